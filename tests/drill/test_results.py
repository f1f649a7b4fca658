"""What a drill finds out, from what the two sides have told."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kvlint.drill.results import Ends, Spread, counted_statuses, spread

from . import made


def test_ends_are_split_by_who_gave_up() -> None:
    clean = made.clean_storm()
    assert clean.aborted == Ends(1, 4, 0)
    assert clean.not_aborted == Ends(5, 0, 0)
    broken = made.broken_storm()
    assert broken.aborted == Ends(0, 2, 3)
    assert broken.not_aborted == Ends(5, 0, 0)
    assert (clean.early, broken.decode_waiting) == (1, 1)


def test_both_sides_are_told_of() -> None:
    broken = made.broken_storm()
    assert broken.log == ("room 6: \x1b[31mno\x1b[0m", "second")
    assert broken.dead_threads == (made.DEAD,)
    assert (broken.integrity.compared, broken.integrity.not_compared) == (3, 2)
    assert (broken.peak_memory.prefill, broken.peak_memory.decode) == (500 * made.MIB, 400 * made.MIB)


def test_faults_are_named() -> None:
    assert made.clean_storm().faults() == []
    assert made.broken_storm().faults() == [
        "3 rooms not at an end when the time was up",
        "1 dead thread",
        "1 zombie room",
        "2 rooms with 9 wrong bytes",
        "1 error in a scheduler",
        "the decode side waits for 1 room",
    ]
    assert replace(made.broken_storm(), settled=True).faults()[0] == "3 rooms pinned"
    assert replace(made.clean_storm(), not_started=2).faults() == ["2 rooms not even let in"]
    failed = replace(made.clean_storm(), not_aborted=Ends(4, 1, 0))
    assert failed.faults() == ["1 room failed though nobody gave up"]
    assert made.throughput(1.0).faults() == []
    assert made.throughput(failed=1, wrong_bytes=2).faults() == [
        "1 room without an abort did not succeed",
        "2 wrong bytes without an abort",
    ]


@pytest.mark.parametrize(
    ("changes", "has_faults"),
    [({"flips": (1,)}, False), ({"orphan_records": (1,)}, False), ({"zombies": {1: "Success"}}, True)],
)
def test_what_is_a_fault(changes: dict[str, object], has_faults: bool) -> None:
    assert made.result(replace(made.clean_storm(), **changes)).has_faults is has_faults


def test_a_tree_has_the_faults_of_both_parts() -> None:
    found = made.result(made.broken_storm(), made.throughput(1.0, failed=2))
    assert len(found.trees[0].faults()) == 7
    assert found.has_faults
    assert not made.result(made.clean_storm(), made.throughput(1.0)).has_faults
    assert not made.result().has_faults


def test_speed() -> None:
    measured = made.throughput(0.5, 1.0)
    assert measured.rooms_per_second() == [48.0, 24.0]
    assert measured.gigabytes_per_second() == pytest.approx([0.805306368, 0.402653184])
    assert spread([3.0, 1.0, 2.0, 10.0]) == Spread(1.0, 2.5, 10.0)


def test_statuses_are_counted() -> None:
    assert list(counted_statuses(["a", "b", "b"]).items()) == [("b", 2), ("a", 1)]
