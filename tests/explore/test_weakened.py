"""The comparison of searches notices when the search over states takes for the same what is not."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pytest

from kvlint.explore import loop_heads
from kvlint.explore.actor import Actor
from kvlint.explore.control import Control
from kvlint.explore.operations import Access
from kvlint.explore.program_frames import program_frames

from .models import Cut, Make, cached, naive
from .samples import COUNTED, SAMPLES


def _unequal(*names: str) -> list[str]:
    """The samples of which the search over states finds something else than every schedule shows."""
    found = []
    for name in names or SAMPLES:
        make: Make = SAMPLES[name][0]
        try:
            is_equal = cached(make)[1] == naive(make)[1]
        except Cut:
            is_equal = False
        if not is_equal:
            found.append(name)
    return found


def test_as_it_is_nothing_is_noticed() -> None:
    assert _unequal("lost update", "check, then subscript", "worker loop") == []


def test_states_without_histories_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    complete = Control.state

    def without_histories(control: Control) -> tuple[Hashable, ...]:
        done = [(actor.pending is None, actor.finished) for actor in control.actors]
        return (*done, *complete(control)[len(control.actors) :])

    monkeypatch.setattr(Control, "state", without_histories)
    assert "lost update" in _unequal("lost update", "check, then subscript", "deadlock")


def test_histories_without_what_was_observed_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    complete = Control.after
    monkeypatch.setattr(Control, "after", lambda control, observed: complete(control, None))
    assert _unequal("check, then subscript", "read under a lock") == ["check, then subscript", "read under a lock"]


def test_states_without_contents_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    complete = Control.state

    def without_contents(control: Control) -> tuple[Hashable, ...]:
        return complete(control)[: len(control.actors)]

    monkeypatch.setattr(Control, "state", without_contents)
    assert _unequal("one write each", "outcomes", "two writes of three")


def test_closing_diamonds_of_operations_that_do_not_commute_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Access, "commutes", lambda one, other: True)
    assert _unequal("lost update", "two writes of three", "check, then subscript", "changing loop")


@pytest.mark.parametrize("where", COUNTED)
def test_beginning_afresh_whatever_is_left_is_noticed(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def stands_there(head: Any, frame: Any) -> bool:
        stands = [(each.f_code, each.f_lasti) for each in program_frames(frame)]
        return stands == [(stand.code, stand.instruction) for stand in head._stands]

    monkeypatch.setattr(loop_heads.LoopHead, "is_back", stands_there)
    monkeypatch.setattr(Control, "forget", _forget_all)
    assert _unequal(f"counting {where}")


def _forget_all(control: Control, key: Hashable) -> None:
    actor: Any = control.current
    actor.history = 0
    actor.reads = []


def test_beginning_afresh_with_things_of_ones_own_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Control, "forget", _forget_all)
    assert _unequal("counting in_table", "counting in_attribute")


def test_first_operations_of_another_beginning_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    heads: dict[str, Any] = {}

    class Remembering:
        """Keeps what it was first given, as if the search had not begun again."""

        def __set_name__(self, owner: type, name: str) -> None:
            self.slot = getattr(owner, name)

        def __get__(self, actor: Any, kind: type) -> Any:
            return heads.get(actor.name)

        def __set__(self, actor: Any, value: Any) -> None:
            if value is not None:
                heads[actor.name] = value

    monkeypatch.setattr(Actor, "head", Remembering())
    heads.clear()
    assert _unequal("late sharing")


def test_locks_that_are_thought_to_be_held_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Control, "holds_no_more", lambda control, lock, holder: None)
    noticed = [name for name in ("re-entrant lock", "lock handed over") if _lost(name)]
    assert noticed


def _lost(name: str) -> bool:
    """Whether schedules are lost, compared with the numbers that the unweakened search finds."""
    counted = {"re-entrant lock": 5, "lock handed over": 3}
    return cached(SAMPLES[name][0])[1].schedules != counted[name]
