"""A schedule as turns: what one actor does until another goes on, with long stretches that matter little folded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby

from kvlint.explore.report.room_status import is_change, room_changes
from kvlint.explore.results import Step, Witness

#: How many rows a diagram may have before something is folded.
MOST_ROWS = 40
_FEWEST_FOLDED = 3

Matters = Callable[[int], bool]


@dataclass(frozen=True, slots=True)
class Row:
    """One step, or several that are folded; ``number`` counts from 0."""

    number: int
    steps: tuple[Step, ...]

    @property
    def step(self) -> Step:
        """The first step."""
        return self.steps[0]

    @property
    def is_folded(self) -> bool:
        """Whether it stands for several steps."""
        return len(self.steps) > 1

    @property
    def numbers(self) -> str:
        """As people count: ``3`` or ``3-9``."""
        first = self.number + 1
        return f"{first}-{self.number + len(self.steps)}" if self.is_folded else str(first)


@dataclass(frozen=True, slots=True)
class Turn:
    """What one actor does at a stretch; ``preempts`` is whom it took the turn from, or ""."""

    actor: str
    rows: tuple[Row, ...]
    preempts: str


def turns(witness: Witness, most: int = MOST_ROWS) -> list[Turn]:
    """The turns of a schedule, folded as little as makes them ``most`` rows, if that can be."""
    folded: list[Turn] = []
    for matters in _degrees(witness):
        folded = _turns(witness, matters)
        if sum(len(turn.rows) for turn in folded) <= most:
            break
    return folded


def _degrees(witness: Witness) -> list[Matters]:
    """From keeping every step to keeping next to none."""
    steps = witness.steps
    changes = room_changes(witness)
    disputed = _disputed(steps)

    def tells(number: int) -> bool:
        return bool(steps[number].breaks) or steps[number].preempts or is_change(changes, number)

    return [
        lambda _: True,
        lambda number: tells(number) or (steps[number].label, steps[number].key) in disputed,
        lambda number: tells(number) or steps[number].writes,
        tells,
    ]


def _disputed(steps: tuple[Step, ...]) -> set[tuple[str, str]]:
    """What several actors use and one of them changes."""
    users: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    written = set()
    for step in steps:
        users[step.label, step.key].add(step.actor)
        if step.writes:
            written.add((step.label, step.key))
    return {used for used, actors in users.items() if len(actors) > 1 and used in written}


def _turns(witness: Witness, matters: Matters) -> list[Turn]:
    found: list[Turn] = []
    number = 0
    for actor, group in groupby(witness.steps, key=lambda step: step.actor):
        steps = tuple(group)
        preempted = found[-1].actor if found and steps[0].preempts else ""
        found.append(Turn(actor, tuple(_rows(number, steps, matters)), preempted))
        number += len(steps)
    return found


def _rows(start: int, steps: tuple[Step, ...], matters: Matters) -> list[Row]:
    """The rows of a turn; its first and its last step always have one of their own."""
    last = len(steps) - 1
    rows = []
    for kept, group in groupby(enumerate(steps), key=lambda item: item[0] in (0, last) or matters(start + item[0])):
        members = list(group)
        number = start + members[0][0]
        if kept or len(members) < _FEWEST_FOLDED:
            rows += [Row(number + offset, (step,)) for offset, (_, step) in enumerate(members)]
        else:
            rows.append(Row(number, tuple(step for _, step in members)))
    return rows
