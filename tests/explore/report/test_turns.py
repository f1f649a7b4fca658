from __future__ import annotations

from msgspec.structs import replace

from kvlint.explore.report.turns import MOST_ROWS, Turn, turns
from kvlint.explore.results import Witness

from .explorations import LISTENER, PINNED, SCHEDULER, WORKER, long_witness, step


def rows(found: list[Turn]) -> list[str]:
    return [row.numbers for turn in found for row in turn.rows]


def test_turns_of_the_demo() -> None:
    found = turns(PINNED)
    assert [(turn.actor, len(turn.rows), turn.preempts) for turn in found] == [
        (WORKER, 8, ""),
        (LISTENER, 10, WORKER),
        (WORKER, 5, ""),
        (SCHEDULER, 1, ""),
    ]
    assert rows(found) == [str(number) for number in range(1, 25)]


def test_nothing_is_lost_when_it_is_folded() -> None:
    witness = long_witness()
    found = turns(witness)
    assert [step for turn in found for row in turn.rows for step in row.steps] == list(witness.steps)
    assert any(row.is_folded for turn in found for row in turn.rows)
    numbers = [row.number for turn in found for row in turn.rows]
    assert numbers == sorted(numbers)
    for turn in found:
        assert not turn.rows[0].is_folded
        assert not turn.rows[-1].is_folded
        assert all(not row.is_folded or len(row.steps) >= 3 for row in turn.rows)
    kept = [row.step for turn in found for row in turn.rows if not row.is_folded]
    assert all(step in kept for step in witness.steps if step.breaks or step.preempts)


def alone(private: int, shared: int = 0) -> Witness:
    """Two actors: one reads its own table long, both use another."""
    own = [step(WORKER, ("in", "own", str(number)), "True", None) for number in range(private)]
    both = [step(WORKER, ("in", "rooms", "7"), "True", None)] * shared
    write = step(LISTENER, ("add", "rooms", "7"), "None", None)
    return Witness("", "", 0, (WORKER, LISTENER), (*own, *both, write), {}, "")


def test_what_nobody_else_uses_is_folded_first() -> None:
    assert len(rows(turns(alone(MOST_ROWS - 1)))) == MOST_ROWS
    assert rows(turns(alone(MOST_ROWS))) == ["1", f"2-{MOST_ROWS - 1}", str(MOST_ROWS), str(MOST_ROWS + 1)]
    assert rows(turns(alone(50, 20))) == ["1", "2-50", *(str(number) for number in range(51, 72))]


def test_then_reads() -> None:
    assert rows(turns(alone(10, 100))) == ["1", "2-109", "110", "111"]


def test_a_status_that_changes_is_always_shown() -> None:
    steps = [step(WORKER, ("[]=", "x", str(number)), "1", None) for number in range(60)]
    steps[30] = step(WORKER, ("[]=", "request_status", "7"), "Failed", None)
    witness = Witness("", "", 0, (WORKER,), tuple(steps), {}, "")
    assert rows(turns(witness)) == ["1", "2-30", "31", "32-59", "60"]


def test_a_short_stretch_is_not_folded() -> None:
    steps = [step(actor, ("in", "own", "1"), "True", None) for _ in range(20) for actor in (*[WORKER] * 4, LISTENER)]
    found = turns(Witness("", "", 0, (WORKER, LISTENER), tuple(steps), {}, ""))
    assert len(rows(found)) == len(steps)


def test_no_steps() -> None:
    assert turns(replace(PINNED, steps=())) == []


def test_a_first_step_preempts_nobody() -> None:
    first = replace(PINNED.steps[0], preempts=True)
    assert turns(replace(PINNED, steps=(first,)))[0].preempts == ""
