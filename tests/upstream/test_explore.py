"""Every schedule of released backends, and of the pinned tree before and after each fix."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import kvlint
from kvlint.config import Config
from kvlint.explore.exploration import Plan, explore_scenario
from kvlint.explore.program import Program
from kvlint.explore.replay import again, schedule
from kvlint.explore.results import PropertyResult, ScenarioResult, Verdict
from kvlint.explore.scenarios import scenario
from kvlint.explore.search.limits import Limits
from kvlint.explore.session import tree_loader
from kvlint.explore.switching import Threads
from kvlint.properties import (
    LEAKED_RECORD,
    OVERWRITTEN_TERMINAL,
    PINNED_ROOM,
    THREAD_DEATH,
)

Release = Callable[[str], Path]

#: Releases whose backend is explored: the others load too, and have no worker or send no ABORT.
RELEASES = ("0.5.13", "0.5.14", "0.5.15", "0.5.16", "0.5.18", "0.5.20", "0.5.22", "0.5.23")
#: Fixes by the rules that they belong to.
STICKY_TERMINAL, SKIP_GUARD, ATOMIC_STATUS = ("KVL004",), ("KVL002",), ("KVL008",)


@cache
def explored(root: Path, name: str = "abort", *, scheduler: bool = False) -> ScenarioResult:
    situation = scenario(name)
    plan = Plan(scheduler=scheduler, limits=Limits(seconds=300))
    result = explore_scenario(tree_loader(root, situation), situation, plan)
    assert result.reason == ""
    return result


def judged(result: ScenarioResult, name: str) -> PropertyResult:
    return next(entry for entry in result.properties if entry.property == name)


def broken(result: ScenarioResult) -> dict[str, int]:
    """The properties that some schedule breaks, with the preemptions of the witness."""
    return {
        entry.property: entry.witness.preemptions
        for entry in result.properties
        if entry.verdict is Verdict.VIOLATED and entry.witness is not None
    }


@pytest.fixture(scope="module")
def fixed(pinned: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[tuple[str, ...] | None], Path]:
    """The pinned tree with the fixes of some rules; None: of all, unsafe ones too."""
    made: dict[tuple[str, ...] | None, Path] = {}

    def fix(codes: tuple[str, ...] | None) -> Path:
        if codes not in made:
            root = tmp_path_factory.mktemp("fixed")
            shutil.copytree(pinned / "sglang", root / "sglang")
            chosen = Config() if codes is None else Config(select=codes)
            run = kvlint.fix([root], unsafe=codes is None or "KVL008" in codes, config=chosen)
            assert run.changes
            made[codes] = root
        return made[codes]

    return fix


def test_the_pin_is_found_and_counted(pinned: Path) -> None:
    result = explored(pinned)
    assert result.schedules == 6_662_462
    assert judged(result, PINNED_ROOM).schedules == 51_021
    assert broken(result) == {PINNED_ROOM: 1, OVERWRITTEN_TERMINAL: 1}


def test_the_witness_is_the_one_of_the_private_commit(pinned: Path) -> None:
    witness = judged(explored(pinned), PINNED_ROOM).witness
    assert witness is not None
    assert [(step.actor, step.place.line) for step in witness.steps if step.place and "nixl" in step.place.path] == [
        *[("worker", line) for line in (706, 508, 725)],
        *[("listener", line) for line in (1868, 508, 1874, 1875)],
        *[("worker", line) for line in (865, 706)],
    ]
    writes = [(step.actor, step.observed) for step in witness.steps if step.operation == "[]="]
    assert writes == [("worker", "Transferring"), ("listener", "Failed"), ("worker", "Transferring")]


def test_the_witness_is_confirmed_with_threads_in_a_program_that_was_not_searched(pinned: Path) -> None:
    witness = judged(explored(pinned), PINNED_ROOM).witness
    assert witness is not None
    made = schedule(witness.token)
    program = Program(tree_loader(pinned, scenario("abort")), scenario("abort"), Threads(), scheduler=made.scheduler)
    shown, confirmed = again(program, made)
    assert confirmed
    assert shown == witness


def test_sticky_terminal_alone_leaves_the_pin(fixed: Callable[[tuple[str, ...] | None], Path]) -> None:
    assert broken(explored(fixed(STICKY_TERMINAL)))[PINNED_ROOM] == 1


def test_the_safe_fixes_leave_the_preemption_inside_the_writer(
    fixed: Callable[[tuple[str, ...] | None], Path],
) -> None:
    assert broken(explored(fixed((*STICKY_TERMINAL, *SKIP_GUARD)))) == {OVERWRITTEN_TERMINAL: 1}


def test_with_the_lock_nothing_is_left(fixed: Callable[[tuple[str, ...] | None], Path]) -> None:
    result = explored(fixed((*STICKY_TERMINAL, *SKIP_GUARD, *ATOMIC_STATUS)))
    assert (result.verdict, broken(result)) == (Verdict.HOLDS, {})


@pytest.mark.parametrize("name", ["abort", "scheduler-abort", "transfer-error"])
def test_with_all_fixes_only_records_of_failures_leak(
    name: str, fixed: Callable[[tuple[str, ...] | None], Path]
) -> None:
    result = explored(fixed(None), name, scheduler=True)
    assert set(broken(result)) == {LEAKED_RECORD}
    assert set(judged(result, LEAKED_RECORD).details) <= {"exceptions still has it", "failure_records still has it"}


@pytest.mark.parametrize("version", RELEASES)
def test_a_release(version: str, release: Release) -> None:
    result = explored(release(version))
    if version < "0.5.16":
        # The first ABORT trips an assertion of the listener.
        assert judged(result, THREAD_DEATH).schedules == result.schedules
        assert PINNED_ROOM not in broken(result)
    else:
        assert broken(result) == {OVERWRITTEN_TERMINAL: 1}


def test_the_preemption_that_is_left_in_0_5_23(release: Release) -> None:
    witness = judged(explored(release("0.5.23")), OVERWRITTEN_TERMINAL).witness
    assert witness is not None
    lines = [(step.operation, step.place.line) for step in witness.steps if step.place and "common" in step.place.path]
    writer = [(kind, line) for kind, line in lines if line in (654, 670, 680)]
    assert writer == [("get", 654), ("get", 654), ("[]=", 670), ("[]=", 680)]
    assert witness.steps[-1].breaks == OVERWRITTEN_TERMINAL
