"""A drill as people read it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from kvlint.drill.messages import StuckRoom
from kvlint.drill.report.text import render
from kvlint.drill.results import DrillResult, Integrity
from kvlint.drill.statistics import Interval

from . import made

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

RESULTS = {
    "clean": made.result(made.clean_storm(), made.throughput(1.0, 2.0, 4.0)),
    "broken": made.result(made.broken_storm(), made.throughput(failed=3)),
    "comparison": made.comparison(2.0, 0.5, 1.0, interval=Interval(0.5, 2.0, 0.97)),
    "short comparison": made.comparison(2.0),
}


@pytest.mark.parametrize("verbose", [False, True], ids=["plain", "verbose"])
@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_as_committed(result: DrillResult, verbose: bool, snapshot: SnapshotAssertion) -> None:
    assert render(result, verbose=verbose) == snapshot


def test_colour_changes_nothing_else() -> None:
    for result in RESULTS.values():
        coloured = render(result, colour=True)
        assert "\x1b[" in coloured
        assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == render(result)


def test_what_a_tree_says_cannot_reach_the_terminal() -> None:
    text = render(RESULTS["broken"], verbose=True)
    assert "\x1b" not in text
    assert "room 6: \\x1b[31mno\\x1b[0m" in text
    assert render(made.result(root="a\udcff\nb")).splitlines()[0] == "a\\xff\\nb  (release 0.5.14)"


def test_the_verdict_is_the_last_line() -> None:
    assert render(RESULTS["clean"]).splitlines()[-1] == (
        "PASSED: every room ended, no thread died, and every compared byte is right"
    )
    assert (
        render(RESULTS["broken"])
        .splitlines()[-1]
        .startswith("FAILED: 3 rooms not at an end when the time was up; 1 dead thread; ")
    )
    passed, failed = render(RESULTS["comparison"]).splitlines()[-2:]
    assert passed.startswith("PASSED: before: ")
    assert failed == "FAILED: after: 1 room without an abort did not succeed; 9 wrong bytes without an abort"


@pytest.mark.parametrize(
    ("settled", "pinned", "words"),
    [
        (True, (), "pinned         none\n"),
        (False, (), "none; the last rooms were still moving when the time was up\n"),
        (True, (StuckRoom(3, "absent", False, "bootstrap"),), "room 3, for ever: 1 absent; of none transfer_infos"),
        (False, (StuckRoom(3, "absent", False, "running"),), "some may only have been slow"),
        (
            True,
            tuple(StuckRoom(room, "Bootstrapping", True, "bootstrap") for room in range(1, 11)),
            "rooms 1, 2, 3, 4, 5, 6, 7, 8 and 2 more, for ever: 10 Bootstrapping; of 10 transfer_infos has metadata\n",
        ),
    ],
)
def test_pinned_rooms_are_told(settled: bool, pinned: tuple[StuckRoom, ...], words: str) -> None:
    storm = replace(made.clean_storm(), settled=settled, pinned=pinned)
    assert words in render(made.result(storm))


@pytest.mark.parametrize(
    ("integrity", "words"),
    [
        (Integrity(1, 0, {}), "1 room compared, every byte: all right\n"),
        (Integrity(0, 0, {}), "0 rooms compared, every byte\n"),
        (
            Integrity(2, 1, {1: 1}),
            ": room 1 with 1 wrong byte; 1 not compared, for want of memory",
        ),
    ],
)
def test_bytes_are_told(integrity: Integrity, words: str) -> None:
    assert words in render(made.result(replace(made.clean_storm(), integrity=integrity)))
