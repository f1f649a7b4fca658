"""The most naive search: every schedule, one after the other, remembering nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kvlint.explore.control import Control, Strategy
from kvlint.explore.operations import Choice, Violation


class TooMany(BaseException):
    """There are more schedules than anybody wants to run."""


@dataclass
class _Frame:
    choices: list[Choice]
    preempts: list[bool]
    position: int = 0
    events: tuple[Violation, ...] = ()


@dataclass
class EverySchedule:
    """Depth-first over choices; ``fewest`` is the smallest number of preemptions of a schedule up to the violation."""

    run: Callable[[Strategy], None]
    final: Callable[[Control], list[Violation]]
    most_schedules: int = 200_000
    most_steps: int = 60
    script: Sequence[Choice] = field(default_factory=list)
    histories: list[int] = field(default_factory=list)

    def search(self) -> None:
        while not self._all():
            pass

    def _all(self) -> bool:
        self._frames: list[_Frame] = []
        self.script, self.histories = [], []
        self.schedules = 0
        self.by_property: Counter[str] = Counter()
        self.fewest: dict[str, int] = {}
        self.violations: set[Violation] = set()
        while True:
            self._grown = False
            self.run(self)
            if self._grown:
                return False
            if not self._back():
                return True

    def _back(self) -> bool:
        while self._frames:
            last = self._frames[-1]
            last.position += 1
            if last.position < len(last.choices):
                self.script = [frame.choices[frame.position] for frame in self._frames]
                del self.histories[len(self.script) - 1 :]
                return True
            self._frames.pop()
        return False

    def choose(self, control: Control) -> Choice | None:
        self._grown = control.sharing.grown
        if self._grown:
            return None
        if self._frames:
            self._frames[-1].events = tuple(control.events)
        else:
            self._initial = tuple(control.events)
        choices, _ = control.choices()
        if not choices:
            self._note(tuple(self.final(control)))
            return None
        assert len(self._frames) < self.most_steps
        last = self.script[-1].actor if self.script else -1
        could_go_on = any(choice.actor == last for choice in choices)
        self._frames.append(_Frame(choices, [could_go_on and choice.actor != last for choice in choices]))
        self.script = [*self.script, choices[0]]
        return choices[0]

    def _note(self, final: tuple[Violation, ...]) -> None:
        self.schedules += 1
        if self.schedules > self.most_schedules:
            raise TooMany
        broken: set[str] = set()
        preemptions = 0
        steps = [(frame.events, frame.preempts[frame.position]) for frame in self._frames]
        for found, price in [(self._initial, False), *steps, (final, False)]:
            preemptions += price
            for violation in found:
                self.violations.add(violation)
                broken.add(violation.property)
                self.fewest[violation.property] = min(self.fewest.get(violation.property, 99), preemptions)
        self.by_property.update(broken)
