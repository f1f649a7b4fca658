"""The search without a memory: one schedule for every way to order the steps that depend on each other.

Dynamic partial-order reduction (Flanagan and Godefroid, "Dynamic partial-order
reduction for model checking software", POPL 2005) with source sets and sleep
sets (Abdulla, Aronis, Jonsson and Sagonas, "Optimal dynamic partial order
reduction", POPL 2014, algorithm 1).  Operations that wait are looked at while
they do, as in the first of the two papers: a step depends on what lets it go on
and on what makes it wait.  The search shares nothing with the one over states
but what an access is, and so checks it: both have to find the same violations
and the same ends.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

from kvlint.explore.actor import Actor
from kvlint.explore.control import Control
from kvlint.explore.operations import Access, Choice, Violation, entry_of
from kvlint.explore.search.depth_first import DepthFirst


class _Next(NamedTuple):
    """The operation that an actor is to do next, whether it can or waits.

    ``waits_for_anything``: any step of anybody may be what it waits for.
    """

    actor: int
    access: Access
    waits_for_anything: bool
    outcomes: int
    is_enabled: bool

    def depends_on(self, other: _Next) -> bool:
        """Whether the order of the two can matter, or one of them may let the other go on."""
        return self.waits_for_anything or other.waits_for_anything or not self.access.commutes(other.access)


@dataclass(slots=True)
class _State:
    """A state on the way that is being gone, with what has to be tried there."""

    nexts: dict[int, _Next]
    sleeping: dict[Choice, _Next]
    wanted: set[int] = field(default_factory=set)
    done: dict[Choice, _Next] = field(default_factory=dict)

    def enabled(self) -> list[int]:
        return [actor for actor, each in self.nexts.items() if each.is_enabled]

    def choices_of(self, actor: int) -> list[Choice]:
        return [Choice(actor, outcome) for outcome in range(self.nexts[actor].outcomes)]

    def open_choice(self, actors: set[int] | list[int]) -> Choice | None:
        """A choice of one of ``actors`` that was not made here and would not only repeat what is known."""
        for actor in actors:
            for choice in self.choices_of(actor):
                if choice not in self.done and choice not in self.sleeping:
                    return choice
        return None

    def still_sleeping(self, step: _Next) -> dict[Choice, _Next]:
        """What needs no trying after ``step``: it was tried before, and ``step`` makes no difference to it."""
        return {
            choice: each
            for choice, each in (self.sleeping | self.done).items()
            if each.actor != step.actor and not each.depends_on(step)
        }


@dataclass(frozen=True, slots=True)
class _Event:
    """A step that was done; ``past`` is the set of steps that happened before it, itself included, as bits."""

    step: _Next
    past: int


class PartialOrder(DepthFirst):
    """Goes through at least one schedule of every class of schedules that differ in the order of independent steps.

    ``limits.states`` bounds the number of runs here.

    Attributes:
        traces: Runs that came to their end, since the last beginning.
        ways: What some schedule breaks, and the first such schedule.
        finals: What is shared at the ends, as keys.
    """

    def _begin(self) -> None:
        self.script = []
        self.histories = []
        self.traces = 0
        self.finals: set[Hashable] = set()
        self.ways: dict[Violation, list[Choice]] = {}
        self._states: list[_State] = []
        self._events: list[_Event] = []

    def violations(self) -> set[Violation]:
        """Everything that some schedule breaks."""
        return set(self.ways)

    def _limit(self) -> str:
        return super()._limit() or (f"{self.runs} schedules were run" if self.runs >= self._limits.states else "")

    def _note(self, violations: list[Violation]) -> None:
        for violation in violations:
            self.ways.setdefault(violation, list(self.script))

    def _back(self) -> bool:
        """Go back to the last state where something has to be tried, and try it."""
        while self._states:
            # The end of a way has a state, but no step was done from it.
            del self.script[len(self._states) - 1 :]
            del self._events[len(self._states) - 1 :]
            state = self._states[-1]
            choice = state.open_choice(state.wanted)
            if choice is not None:
                del self.histories[len(self.script) :]
                self._go(state, choice)
                return True
            self._states.pop()
        return False

    def _go(self, state: _State, choice: Choice) -> None:
        """Do a step: note it, and what it comes after."""
        step = state.nexts[choice.actor]
        state.done[choice] = step
        past = 1 << len(self._events)
        for event in self._events:
            if event.step.actor == step.actor or event.step.depends_on(step):
                past |= event.past
        self._events.append(_Event(step, past))
        self.script = [*self.script, choice]

    def choose(self, control: Control) -> Choice | None:
        """The next step; None at the end, and where every step was tried elsewhere."""
        self._sharing = control.sharing
        if control.sharing.grown:
            return None
        self._note(control.events)
        if len(self._states) >= self._limits.steps:
            self.reason = f"a schedule had {self._limits.steps} steps"
            return None
        state = self._state(control)
        self._states.append(state)
        for each in state.nexts.values():
            self._try_earlier(each)
        enabled = state.enabled()
        if not enabled:
            self.traces += 1
            self._note(self._final(control))
            self.finals.add(_contents(control))
            return None
        choice = state.open_choice(enabled)
        if choice is None:
            return None
        state.wanted.add(choice.actor)
        self._go(state, choice)
        return choice

    def _state(self, control: Control) -> _State:
        nexts = {actor.number: _next(actor) for actor in control.actors if actor.pending is not None}
        if not self._states:
            return _State(nexts, {})
        return _State(nexts, self._states[-1].still_sleeping(self._events[-1].step))

    def _try_earlier(self, step: _Next) -> None:
        """Have ``step`` tried before each step done that it depends on, where nothing in between comes of that."""
        known = 0
        for event in self._events:
            if event.step.actor == step.actor:
                known = event.past
        covered = known
        for number in range(len(self._events) - 1, -1, -1):
            event = self._events[number]
            if event.step.depends_on(step):
                if not covered >> number & 1:
                    self._reverse(number, step, known)
                covered |= event.past

    def _reverse(self, number: int, step: _Next, known: int) -> None:
        """Have a way tried from the state before step ``number`` on which ``step`` comes before that.

        On it comes all that did not come of step ``number``, and then ``step``;
        whichever of these steps needs none of the others can be first, and if one
        that can be is tried there anyway, so is this way.
        """
        state = self._states[number]
        first: set[int] = set()
        among = 0
        for later in range(number + 1, len(self._events)):
            event = self._events[later]
            if event.past >> number & 1:
                continue
            if not event.past & among:
                first.add(event.step.actor)
            among |= 1 << later
        needed = known | self._needed(step)
        if not needed & among:
            if not state.nexts[step.actor].is_enabled:
                # What it waited for was step ``number`` itself.
                return
            first.add(step.actor)
        if not first & state.wanted and not any(state.open_choice([actor]) is None for actor in first):
            state.wanted.add(min(first))

    def _needed(self, step: _Next) -> int:
        """Steps that come before ``step`` in whatever order: those that it depends on."""
        found = 0
        for number, event in enumerate(self._events):
            if event.step.depends_on(step):
                found |= 1 << number
        return found


def _next(actor: Actor) -> _Next:
    pending = actor.pending
    assert pending is not None
    return _Next(
        actor.number,
        Access(pending.resource.identity, entry_of(pending.key), pending.writes),
        pending.ready is not None and pending.resource.uses.waits_for_anything,
        pending.outcomes,
        actor.can_go_on(),
    )


def _contents(control: Control) -> Hashable:
    shared = [(each.identity, each.content) for each in control.resources if each.uses.shared]
    return (frozenset(shared), control.outside())
