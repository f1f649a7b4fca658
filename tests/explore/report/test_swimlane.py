"""The diagrams: well-formed, legible at their width, and true to the schedule."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from msgspec.structs import replace
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from kvlint.explore.report.drawing import BOLD, MONO, palette
from kvlint.explore.report.swimlane import NARROW, comfortable_width, swimlane_parts, swimlane_svg
from kvlint.explore.results import PropertyResult, Step, Witness

from .explorations import ABORT_SCENARIO, OVERWRITTEN, PINNED, WORKER, hostile, long_witness

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

_SVG = "{http://www.w3.org/2000/svg}"


class Picture(SingleFileSnapshotExtension):
    """A snapshot that a browser shows."""

    file_extension = "svg"
    _write_mode = WriteMode.TEXT


def of(results: tuple[PropertyResult, ...]) -> list[Witness]:
    return [result.witness for result in results if result.witness is not None]


EVIL = of(hostile().scenarios[0].properties)[0]
WITNESSES = {
    "pinned": PINNED,
    "overwritten": OVERWRITTEN,
    "hostile": EVIL,
    "long": long_witness(),
    "seven actors": long_witness(actors=7, rooms=4),
    "no steps": replace(PINNED, steps=()),
    "no actors": replace(PINNED, steps=(), actors=(), waiting={}, statuses={}),
    "an end that is not told": replace(PINNED, waiting={}),
}
each_witness = pytest.mark.parametrize("witness", WITNESSES.values(), ids=list(WITNESSES))


def root(svg: str) -> ET.Element:
    return ET.fromstring(svg)


def texts(element: ET.Element) -> list[str]:
    return [text.text or "" for text in element.iter(f"{_SVG}text")]


@pytest.mark.parametrize("standalone", [True, False])
@pytest.mark.parametrize("width", [NARROW, 900, 1200])
@each_witness
def test_it_is_one_picture_of_that_width(witness: Witness, width: int, standalone: bool) -> None:
    element = root(swimlane_svg(witness, standalone=standalone, width=width))
    assert element.tag == f"{_SVG}svg"
    assert element.attrib["role"] == "img"
    height = element.attrib["height"]
    assert (element.attrib["width"], element.attrib["viewBox"]) == (str(width), f"0 0 {width} {height}")


@pytest.mark.parametrize("width", [NARROW, 900])
@each_witness
def test_everything_lies_within(witness: Witness, width: int) -> None:
    element = root(swimlane_svg(witness, standalone=True, width=width))
    height = float(element.attrib["height"])
    for box in element.iter(f"{_SVG}rect"):
        x, y, w, h = (float(box.attrib.get(name, 0)) for name in ("x", "y", "width", "height"))
        assert 0 <= x <= x + w <= width
        assert 0 <= y <= y + h <= height
    for text in element.iter(f"{_SVG}text"):
        kind, size = text.attrib["class"].split(), float(text.attrib["font-size"])
        # Bold characters without serifs are the widest.
        reach = len(text.text or "") * size * (MONO if "mono" in kind else BOLD if "strong" in kind else 0.55)
        x = float(text.attrib["x"])
        left = x - reach if "end" in kind else x - reach / 2 if "middle" in kind else x
        assert left >= -1, text.text
        assert left + reach <= width + 1, text.text
        assert size >= 9 or (text.text or "").isdigit()
        assert 0 <= float(text.attrib["y"]) <= height


@pytest.mark.parametrize("width", [NARROW, 900])
def test_it_shows_the_schedule(width: int) -> None:
    shown = " ".join(texts(root(swimlane_svg(PINNED, standalone=False, width=width)))).replace("- ", "-")
    for told in (
        *("worker", "listener", "scheduler", "receive ABORT of room 7", "request_status[7] = Failed", "preempts"),
        *("7 in transfer_infos → False", "✗ breaks overwritten-terminal", "backend.py:89", "WaitingForInput"),
        *("waits for more in chunks", "waits for a message", "for ever", "✗ pinned-room, room 7: stays"),
    ):
        assert told in shown
    numbers = [text for text in shown.split() if text.isdigit() and text != "7"]
    assert [int(number) for number in numbers[-3:]] == [22, 23, 24]


def test_lanes_are_side_by_side_where_they_fit() -> None:
    wide = root(swimlane_svg(PINNED, standalone=False, width=900))
    heads = [box for box in wide.iter(f"{_SVG}rect") if box.attrib["class"] == "head"]
    assert len(heads) == 3
    columns = {float(box.attrib["x"]) for box in heads}
    steps = [box for box in wide.iter(f"{_SVG}rect") if re.match(r"box( write| broken)?$", box.attrib["class"])]
    assert {float(box.attrib["x"]) for box in steps} - columns == {1.0}  # the last word is below all
    narrow = root(swimlane_svg(PINNED, standalone=False, width=NARROW))
    assert not [box for box in narrow.iter(f"{_SVG}rect") if box.attrib["class"] == "head"]


def test_boxes_go_downwards_and_do_not_overlap() -> None:
    for width in (NARROW, 900):
        svg = root(swimlane_svg(long_witness(), standalone=False, width=width))
        boxes = [box for box in svg.iter(f"{_SVG}rect") if box.find(f"{_SVG}title") is not None]
        steps = [box for box in boxes if re.match(r"\d+: ", box.findtext(f"{_SVG}title") or "")]
        ends = [(float(box.attrib["y"]), float(box.attrib["y"]) + float(box.attrib["height"])) for box in steps]
        assert len(ends) > 40
        assert all(end <= begin for (_, end), (begin, _) in pairwise(ends))


def test_a_strip_shows_each_status_of_each_room() -> None:
    def strips(witness: Witness) -> list[tuple[str, str]]:
        svg = root(swimlane_svg(witness, standalone=False, width=900))
        kinds = {"live", "failed", "success", "absent"}
        boxes = [box for box in svg.iter(f"{_SVG}rect") if box.attrib["class"] in kinds]
        return [(box.attrib["class"], box.findtext(f"{_SVG}title") or "") for box in boxes]

    assert strips(PINNED) == [
        ("live", "room 7: WaitingForInput"),
        ("live", "room 7: Transferring"),
        ("failed", "room 7: Failed"),
        ("live", "room 7: Transferring"),
    ]
    assert {title[:7] for _, title in strips(long_witness(actors=2, rooms=2))} == {"room 7:", "room 8:"}


def test_parts_are_the_whole_without_a_gap() -> None:
    for width in (NARROW, comfortable_width(PINNED)):
        parts = [root(part) for part in swimlane_parts(PINNED, width)]
        whole = root(swimlane_svg(PINNED, standalone=False, width=width))
        windows = [[float(number) for number in part.attrib["viewBox"].split()] for part in parts]
        assert len(parts) > 4
        assert windows[0][1] == 0
        for (_, begin, _, height), (_, then, _, _) in pairwise(windows):
            assert begin + height == then + 1
            assert height <= 201
        assert windows[-1][1] + windows[-1][3] == float(whole.attrib["height"])
        assert {text for part in parts for text in texts(part)} == set(texts(whole))
        assert all(part.attrib["aria-hidden"] == "true" for part in parts)


def test_a_file_has_colours_of_its_own_and_one_of_a_page_has_none() -> None:
    alone = swimlane_svg(PINNED, standalone=True, width=900)
    assert "@media (prefers-color-scheme:dark)" in alone
    assert "var(" not in alone
    light, dark = palette()["--red"]
    assert light in alone
    assert dark in alone
    assert "<title id=" in alone
    within = swimlane_svg(PINNED, standalone=False, width=900)
    assert "<style" not in within
    assert not re.search(r"#[0-9a-f]{6}", within)
    assert " id=" not in within


def test_nothing_runs_and_nothing_is_fetched() -> None:
    for svg in (swimlane_svg(witness, standalone=True, width=900) for witness in WITNESSES.values()):
        element = root(svg)
        tags = {part.tag.removeprefix(_SVG) for part in element.iter()}
        assert tags <= {"svg", "title", "desc", "style", "rect", "text", "path", "circle"}
        names = {name for part in element.iter() for name in part.attrib}
        assert not {name for name in names if name.startswith("on") or name.endswith("href") or name == "style"}
        assert not re.search(r"url\(|@import", svg)
        assert svg.count("http") == 1  # the namespace


def test_odd_characters_are_spelled() -> None:
    svg = swimlane_svg(EVIL, standalone=True, width=900)
    assert {character for character in svg if not character.isprintable()} == {"\n"}
    assert svg.count("\n") == 1
    assert "\\u202e" in svg
    assert svg.encode()


def test_it_stays_small() -> None:
    assert len(swimlane_svg(PINNED, standalone=True, width=900).encode()) < 60_000
    assert len(swimlane_svg(long_witness(), standalone=True, width=900).encode()) < 120_000
    huge = Step(WORKER, "[]=", "x" * 100_000, "y" * 100_000, "z" * 100_000, True, None)
    assert len(swimlane_svg(replace(PINNED, steps=(huge,) * 5), standalone=True, width=900).encode()) < 60_000


def test_the_same_schedule_gives_the_same_bytes() -> None:
    assert swimlane_svg(PINNED, standalone=True, width=900) == swimlane_svg(PINNED, standalone=True, width=900)


@pytest.mark.parametrize("width", [NARROW, 900])
def test_as_committed(snapshot: SnapshotAssertion, width: int) -> None:
    (witness, _) = of(ABORT_SCENARIO.properties)
    assert swimlane_svg(witness, standalone=True, width=width) == snapshot(extension_class=Picture)
