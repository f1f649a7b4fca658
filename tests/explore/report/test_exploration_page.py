"""The page of an exploration; that it is whole, safe and for everybody is held by tests/report/test_html.py too."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from kvlint import __version__
from kvlint.explore.report.html import render_html
from kvlint.explore.results import Exploration, PropertyResult, ScenarioResult, Verdict
from kvlint.properties import PROPERTIES

from .explorations import DEMO, PINNED, hostile, long_exploration, properties, scenario

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

_VOID = {"meta", "link", "input"}
_INLINE = {"a", "code", "span", "strong"}


class Reader(HTMLParser):
    """What a page says: tags, attributes, and text without style, script and drawings."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._text: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in _INLINE:
            self._text.append(" ")
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if not {"style", "script", "svg", "title"} & set(self._open):
            self._text.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self._text).split())


def read(exploration: Exploration) -> Reader:
    return Reader(render_html(exploration))


def only(*scenarios: ScenarioResult, verdict: Verdict = Verdict.VIOLATED) -> Exploration:
    return replace(DEMO, scenarios=scenarios, verdict=verdict)


def test_it_begins_with_the_verdict_and_what_it_rests_on() -> None:
    text = read(DEMO).text
    assert "✗ VIOLATED Something is violated in 1 of 3 scenarios; below is a schedule for each." in text
    assert "Not everything was seen in 1 of 3 scenarios." in text
    for told in ("kvlint/demo_backend", DEMO.digest, "base backend", "the message socket", "takes part"):
        assert told in text
    assert "release not known" in text
    plain = read(replace(DEMO, scheduler=False, version="0.5.14", digest="", loaded=(), stubbed=())).text
    assert "takes no part: worker and listener only" in plain
    assert "release 0.5.14" in plain
    assert "real code nothing was loaded stand-ins none" in plain
    assert "SHA-256 of what was loaded not taken" in plain


def test_many_modules_are_folded() -> None:
    assert "9 modules of the tree" in read(replace(DEMO, loaded=tuple("abcdefghi"))).text


def test_the_table_has_a_verdict_for_each_property_of_each_scenario() -> None:
    page = render_html(DEMO)
    table = page[page.index('<table class="verdicts"') : page.index("</table>")]
    rows = [re.sub(r"<[^>]+>", " ", row).split() for row in re.findall(r"<tr.*?</tr>", table)]
    assert rows[0] == ["scenario", *PROPERTIES]
    assert " ".join(rows[1]) == (
        "abort ✗ VIOLATED 6,662,462 schedules ✗ VIOLATED in 51,021 schedules ✓ HOLDS "
        "✗ VIOLATED in 1,204,117 schedules ✓ HOLDS ✓ HOLDS ✓ HOLDS ✓ HOLDS"
    )
    assert " ".join(rows[3]) == "two-rooms ? INCONCLUSIVE " + " ".join(["? INCONCLUSIVE"] * 7)


def test_a_scenario_tells_what_holds_and_what_is_not_known() -> None:
    text = read(DEMO).text
    assert (
        "2,118 states, 904 runs, 174 ms, first violation after 4 ms; shared by several actors: failure_lock, " in text
    )
    assert "Cut short: 60 s were over" in text
    assert f"Not known: {', '.join(PROPERTIES)}." in text
    assert f"These hold: {', '.join(PROPERTIES)}." in text
    assert "321 states, 98 runs, 60.0 s" in text


def test_a_violation_has_its_schedule_three_times() -> None:
    page = render_html(DEMO)
    reader = Reader(page)
    text = reader.text
    assert "pinned-room, room 7: stays Transferring and nobody is left to end it" in text
    assert "51,021 of 6,662,462 schedules" in text
    assert "kvlint check looks for causes of this with KVL00" in text
    assert "1 other way in which it is broken room 7: Success is replaced by Transferring" in text
    drawn = [attributes for tag, attributes in reader.tags if tag == "div" and attributes.get("role") == "img"]
    assert [str(attributes["class"]).split()[1] for attributes in drawn] == ["wide", "narrow"] * 2
    assert str(drawn[0]["aria-label"]).startswith(
        "24 steps of worker, listener, scheduler with 1 preemption show pinned"
    )
    assert "Room 7 goes through WaitingForInput, Transferring, Failed, Transferring." in str(drawn[0]["aria-label"])
    rows = re.findall(r'<tr role="row"><th scope="row" role="rowheader">(\w+)</th>(.*?)</tr>', page)
    assert [number for number, _ in rows[:25]] == [*(str(number) for number in range(1, 25)), "end"]
    ninth = rows[8][1]
    assert [cell.startswith('class="idle"') for cell in ninth.split('<td role="cell" ')[1:]] == [
        True,
        False,
        True,
        True,
    ]
    assert "receive ABORT of room 7" in ninth
    assert "demo_backend/backend.py:82 (bootstrap_listener)" in ninth
    assert "preempts" in ninth
    assert "room 7: Failed" in rows[15][1]
    assert 'class="did breaks"' in rows[20][1]
    assert "breaks overwritten-terminal" in rows[20][1]
    assert "polls request_status[7] — for ever" in rows[24][1]


def test_a_schedule_can_be_run_again() -> None:
    text = read(DEMO).text
    assert f"kvlint explore --replay {PINNED.token} kvlint/demo_backend" in text
    without = read(replace(DEMO, scheduler=False, tree="a b")).text
    assert f"kvlint explore --no-scheduler --replay {PINNED.token} 'a b'" in without


def test_diagrams_of_many_actors_are_printed_narrow() -> None:
    assert 'class="swimlane narrow paper"' in render_html(long_exploration())
    assert 'class="swimlane wide paper"' in render_html(DEMO)


def test_nothing_explored() -> None:
    text = read(only(verdict=Verdict.INCONCLUSIVE)).text
    assert "? INCONCLUSIVE No scenario was explored, so nothing is known." in text
    assert all(meaning in text for meaning in PROPERTIES.values())


def test_everything_holds() -> None:
    text = read(only(scenario(), scenario("two-rooms"), verdict=Verdict.HOLDS)).text
    assert "✓ HOLDS Every property holds in every schedule of 2 scenarios." in text


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (PropertyResult("pinned-room", Verdict.VIOLATED, None, (), None), "pinned-room ✗ VIOLATED at least once"),
        (PropertyResult("pinned-room", Verdict.VIOLATED, 3, ("room 7: stays",), None), "pinned-room: room 7: stays"),
    ],
)
def test_a_violation_without_a_schedule(found: PropertyResult, told: str) -> None:
    text = read(only(scenario(verdict=Verdict.VIOLATED, properties=properties(pinned_room=found)))).text
    assert told in text
    assert "No schedule was kept." in text


def test_counts_of_what_was_cut_short() -> None:
    broken = PropertyResult("pinned-room", Verdict.VIOLATED, 3, ("stays",), PINNED)
    cut = scenario(schedules=None, verdict=Verdict.VIOLATED, properties=(broken,))
    assert "✗ VIOLATED in 3 schedules" in read(only(cut)).text
    one = scenario(schedules=1, states=1, properties=(replace(broken, schedules=1),), verdict=Verdict.VIOLATED)
    assert "1 of 1 schedule" in read(only(one)).text
    many = scenario(schedules=864_568_083_598_981_256, properties=(replace(broken, schedules=10**10),))
    text = read(only(many)).text
    assert "8.6·10¹⁷ schedules" in text
    assert "in 1.0·10¹⁰ schedules" in text
    assert "10,000,000,000 of 864,568,083,598,981,256 schedules" in text


def test_properties_of_another_version_are_shown() -> None:
    strange = PropertyResult("new-property", Verdict.HOLDS, 0, (), None)
    text = read(only(scenario(properties=(strange,)), scenario("two-rooms"), verdict=Verdict.HOLDS)).text
    assert "new-property a property that this kvlint does not know" in text
    assert "not judged" in text


@pytest.mark.parametrize("exploration", [hostile(), long_exploration()], ids=["hostile", "long"])
def test_odd_explorations(exploration: Exploration) -> None:
    page = render_html(exploration)
    reader = Reader(page)
    assert [tag for tag, _ in reader.tags].count("script") == 1
    assert {character for character in page if not character.isprintable()} <= {"\n", "\t"}
    identifiers = [attributes["id"] for _, attributes in reader.tags if "id" in attributes]
    assert len(set(identifiers)) == len(identifiers)
    assert all(re.fullmatch(r"[\w-]+", str(identifier)) for identifier in identifiers)
    assert len(page.encode()) < 500_000


class Page(SingleFileSnapshotExtension):
    """A snapshot that a browser shows."""

    file_extension = "html"
    _write_mode = WriteMode.TEXT


def test_as_committed(snapshot: SnapshotAssertion) -> None:
    """Style and script stand in files of their own."""
    page = re.sub(r"<(style|script)>.*?</\1>", r"<\1></\1>", render_html(DEMO), flags=re.DOTALL)
    page = re.sub(r"sha256-[^']+", "sha256", page.replace(__version__, "VERSION"))
    assert page == snapshot(extension_class=Page)
