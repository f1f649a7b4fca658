"""The quick search: schedules with few preemptions first, as few suffice for most bugs.

Musuvathi and Qadeer, "Iterative context bounding for systematic testing of
multithreaded programs" (PLDI 2007).  It finds witnesses; that nothing was found
proves nothing.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from kvlint.explore.control import Control
from kvlint.explore.operations import Choice, Violation
from kvlint.explore.search.depth_first import DepthFirst, Final, Run
from kvlint.explore.search.limits import Limits

_MANY = 1 << 30


@dataclass(frozen=True, slots=True)
class Found:
    """The first schedule that breaks a property, in the order of this search."""

    violation: Violation
    choices: tuple[Choice, ...]
    preemptions: int
    seconds: float


class PreemptionBound(DepthFirst):
    """Every schedule with at most ``bound`` preemptions."""

    def __init__(self, run: Run, final: Final, limits: Limits, bound: int) -> None:
        self._bound = bound
        super().__init__(run, final, limits)

    def _begin(self) -> None:
        self.script = []
        self.histories = []
        self._seen: dict[Hashable, int] = {}
        self._branches: list[list[tuple[Choice, int]]] = []
        self._used: list[int] = [0]
        # A schedule is one between the yield points that were known then.
        self.found: dict[str, Found] = {}

    def _back(self) -> bool:
        while self._branches:
            self.script.pop()
            self._used.pop()
            if self._branches[-1]:
                self._go(*self._branches[-1].pop())
                del self.histories[len(self.script) - 1 :]
                return True
            self._branches.pop()
        return False

    def _go(self, choice: Choice, used: int) -> None:
        self.script.append(choice)
        self._used.append(used)

    def choose(self, control: Control) -> Choice | None:
        """The next branch; None in a state that was reached with no more preemptions before."""
        self._sharing = control.sharing
        if control.sharing.grown:
            return None
        for violation in control.events:
            self._note(violation)
        last = self.script[-1].actor if self.script else -1
        used = self._used[-1]
        key = (control.state(), last)
        if self._seen.get(key, _MANY) <= used or len(self.script) >= self._limits.steps:
            return None
        self._seen[key] = used
        choices, _ = control.choices()
        if not choices:
            for violation in self._final(control):
                self._note(violation)
            return None
        stays = any(choice.actor == last for choice in choices)
        ways = [(choice, used + (stays and choice.actor != last)) for choice in choices]
        ways = [way for way in ways if way[1] <= self._bound]
        # Taken from the end: whoever runs goes on first.
        ways.sort(key=lambda way: (way[1], way[0]), reverse=True)
        self._branches.append(ways)
        self._go(*ways.pop())
        return self.script[-1]

    def _note(self, violation: Violation) -> None:
        if violation.property not in self.found:
            self.found[violation.property] = Found(violation, tuple(self.script), self._used[-1], self._passed())
