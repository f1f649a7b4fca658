"""Sleeps and polls of the program: no number of tries, but a wait for something to change."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from typing import Any

from kvlint.explore.control import Control
from kvlint.explore.identities import PLAIN
from kvlint.explore.operations import WHOLE
from kvlint.explore.primitive import Primitive


class Waiting(Primitive):
    """Sleeps and polls: whoever has found nothing to do goes on when something it read has changed.

    Where it is the time that passes (``is_of_time``), that is less than what can happen, and is noted as a limit.
    """

    def __init__(self, control: Control, label: str, *, is_of_time: bool = False) -> None:
        super().__init__(control, label)
        self._is_of_time = is_of_time
        self.resource.uses.waits_for_anything = True
        # Whether it waits depends on what others did up to then: going on at once is a step like any other.
        control.sharing.always_stop(self.resource)

    def content(self) -> Hashable:
        """Nothing."""
        return None

    def sleep(self, seconds: float = 0.0) -> None:  # noqa: ARG002
        """Wait until something that the actor read since its last wait reads differently."""
        actor = self.control.current
        if actor is None:
            return
        reads = actor.reads

        def ready() -> bool:
            return any(_reads_differently(*read) for read in reads)

        if self._is_of_time and not ready():
            frame = sys._getframe(1)
            place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
            self.control.limits.add(f"a sleep is taken to last until something changes: {place}")
        self.control.before(self.resource, "await change", WHOLE, False, ready)
        actor.reads = []
        self.control.after(None)


def _reads_differently(read: Callable[..., Any], arguments: tuple[Any, ...], seen: Any) -> bool:
    try:
        return _differ(read(*arguments), seen)
    except Exception:
        # It was there to be read before.
        return True


def _differ(one: Any, other: Any) -> bool:
    """Whether two entries are different, without calling code of theirs."""
    return one is not other and (type(one) not in PLAIN or type(one) is not type(other) or one != other)
