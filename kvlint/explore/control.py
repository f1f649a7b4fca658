"""One run: actors that stop before every operation on shared state until they are chosen."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

from kvlint.explore.actor import Actor, Stopped, Stubborn
from kvlint.explore.aliases import Originals
from kvlint.explore.identities import PLAIN, Identities
from kvlint.explore.loop_heads import LoopHead
from kvlint.explore.operations import TRANSFER, WHOLE, Access, Choice, Operation, Resource, Violation, entry_of
from kvlint.explore.sharing import Sharing
from kvlint.explore.switching import Switching
from kvlint.explore.watchdog import Stalled
from kvlint.loading.unforeseen import UnforeseenUse

#: What comes up in an actor and says nothing about it: it ends the run.
_ENDS_RUN = (MemoryError, Stalled, UnforeseenUse)
STARTER = -1
_MOST_STOPS = 100
_MOST_UNSTOPPED = 1_000
_GATHERING = -1


class Holder(Protocol):
    """Something with a resource and a content."""

    resource: Resource

    def content(self) -> Hashable:
        """What is held, as a key."""


class Strategy(Protocol):
    """Decides who goes on."""

    @property
    def script(self) -> Sequence[Choice]:
        """What was chosen before, and is done again first."""

    @property
    def histories(self) -> list[int]:
        """The histories that came of it."""

    def choose(self, control: Control) -> Choice | None:
        """The next choice, or None to end the run here."""


class Control:
    """What controlled objects ask before an operation and tell after it.

    Outside of a run, and for code that is no actor's, ``current`` is None and
    nothing is controlled.
    """

    def __init__(self, switching: Switching) -> None:
        self.switching = switching
        self.identities = Identities()
        self.actors: list[Actor] = []
        self.current: Actor | None = None
        self.resources: list[Resource] = []
        self.events: list[Violation] = []
        self.record: Callable[[Actor, Operation, Any], None] | None = None
        self.sharing = Sharing()
        #: What the program does that no schedule shows, in words: then nothing can be said to hold.
        self.limits: set[str] = set()
        self._problem: BaseException | None = None
        self.originals = Originals()
        self._within: Actor | None = None
        self.steps = 0
        self.outside: Callable[[], Hashable] = lambda: None
        self._kept = 0
        self._gathering = False
        self._stopping = False
        self._over = False
        self._strategy: Strategy | None = None
        self._script: Sequence[Choice] = ()
        self._histories: list[int] = []
        self._cursor = 0
        self._stale: list[Holder] = []
        self.touched: list[Holder] = []
        self._shared: list[Resource] = []
        self._born: dict[Hashable, int] = {}

    # What there is.

    def resource(self, label: str) -> Resource:
        """A new resource; those of one label are judged together."""
        uses = self.sharing.uses(label)
        maker = self.current or self._within
        birth = (label, -1 if maker is None else (maker.number, maker.history))
        nth = self._born.get(birth, 0)
        self._born[birth] = nth + 1
        made = Resource(uses, self.identities.number(("made", birth, nth)))
        self.resources.append(made)
        return made

    def keep(self) -> None:
        """What exists now exists at the beginning of every run."""
        self._kept = len(self.resources)
        self.identities.keep()
        self.originals.keep()

    def holds(self, lock: int) -> None:
        """The actor that runs has taken a lock."""
        if self.current is not None:
            self.current.held.append(lock)

    def holds_no_more(self, lock: int, holder: int) -> None:
        """A lock that actor ``holder`` had taken was given back, by it or another."""
        if 0 <= holder < len(self.actors) and lock in self.actors[holder].held:
            self.actors[holder].held.remove(lock)

    # What controlled objects call.

    def before(
        self,
        resource: Resource,
        kind: str,
        key: Any,
        writes: bool,
        ready: Callable[[], bool] | None = None,
        outcomes: int = 1,
    ) -> int:
        """Wait until the actor that runs is to do an operation; the outcome it was chosen with.

        Raises Stopped at the end of the run.
        """
        actor = self.current
        if actor is None:
            self.note_nested(resource, writes)
            return 0
        if self._stopping:
            self._stop_again(actor)
        uses = resource.uses
        if not (uses.writers if writes else uses.actors) & actor.bit:
            self.sharing.note(uses, actor, writes)
        if uses.shared and not uses.exposed:
            self.sharing.note_guards(resource, actor)
        stops = (uses.shared and uses.exposed) or outcomes > 1
        if not stops and (ready is None or ready()):
            actor.unstopped += 1
            if actor.unstopped > _MOST_UNSTOPPED:
                # It polls what others may only come to use later.
                self.sharing.always_stop(resource)
                self.sharing.grown = True
            # Done without a stop, as a lock orders it; what it observes decides what the actor does all the same.
            actor.is_quiet = uses.shared
            return 0
        actor.pending = actor.doing = Operation(resource, kind, key, writes, ready, outcomes)
        actor.paused = True
        actor.unstopped = 0
        head = actor.head
        if not actor.is_foreign:
            pass
        elif head is None:
            actor.head = (LoopHead(sys._getframe(1)), resource, kind)
        elif head[1] is resource and head[2] == kind and head[0].is_back(sys._getframe(1)):
            self.forget(None)
        self._pause(actor)
        actor.pending = None
        return actor.outcome

    @contextmanager
    def in_operation(self) -> Iterator[None]:
        """Have what code of keys, items and factories does be a part of the operation of the actor that runs."""
        self._within, self.current = self.current, None
        try:
            yield
        finally:
            self.current, self._within = self._within, None

    def note_nested(self, resource: Resource, writes: bool) -> None:
        """Note that ``resource`` is used; in the middle of an operation on another, no schedule comes between."""
        actor = self._within
        if actor is None or self._stopping or (actor.doing is not None and actor.doing.resource is resource):
            return
        self.sharing.note(resource.uses, actor, writes)
        if resource.uses.shared:
            self.limits.add(f"{resource.uses.label} is used in the middle of an operation on something else")

    def note_read(self, read: Callable[..., Any], arguments: tuple[Any, ...], seen: Any) -> None:
        """Note what the actor that runs has observed, and how to look again without a stop."""
        if self.current is not None:
            self.current.reads.append((read, arguments, seen))

    def after(self, observed: Any) -> None:
        """Put what came of the operation into the history of the actor that did it.

        Whatever an actor was chosen for is part of its history, also what it
        observes nothing by: else the state after the step looks like the one
        before, and the schedules that go through it are lost.
        """
        actor = self.current
        if actor is None or self._stopping:
            return
        if self._gathering:
            if type(observed) not in PLAIN:
                self.identities.frozen(observed, _GATHERING)
            actor.paused = False
            return
        if not actor.paused:
            if actor.is_quiet:
                actor.is_quiet = False
                came = self.identities.frozen(observed, actor.history)
                actor.history = self.identities.number((actor.history, came))
            return
        actor.paused = False
        self.steps += 1
        frozen = self.identities.frozen
        moment = actor.history
        assert actor.doing is not None
        if self._cursor < len(self._script):
            # This was done before: what came of it is known, and new objects only need their names.
            if type(actor.doing.key) not in PLAIN:
                frozen(actor.doing.key, moment)
            if type(observed) not in PLAIN:
                frozen(observed, moment)
            actor.history = self._histories[self._cursor - 1]
        else:
            doing = actor.doing
            key = None if doing.key is WHOLE else frozen(doing.key, moment)
            came = frozen(observed, moment)
            actor.history = self.identities.number(
                (moment, doing.resource.identity, doing.kind, key, came, actor.outcome)
            )
            self._histories[self._cursor - 1 :] = [actor.history]
        if self.record is not None:
            # Looking at things for people is no operation of the program.
            self.current = None
            self.record(actor, actor.doing, observed)
            self.current = actor
        actor.outcome = 0

    def changed(self, holder: Holder) -> None:
        """The content of ``holder`` may have changed; its number is computed when it is next asked for."""
        resource = holder.resource
        if not resource.touched:
            resource.touched = True
            self.touched.append(holder)
        if not resource.uses.shared:
            resource.stale = True
        elif self._gathering or self._cursor < len(self._script):
            if not resource.stale:
                resource.stale = True
                self._stale.append(holder)
        else:
            resource.content = self.identities.number(holder.content())
            resource.stale = False

    def content_of(self, holder: Holder) -> int:
        """The number of what ``holder`` holds now."""
        resource = holder.resource
        if resource.stale:
            resource.stale = False
            resource.content = self.identities.number(holder.content())
        return resource.content

    def moment(self) -> Hashable:
        """The history of the actor that runs, to name what it makes."""
        actor = self.current or self._within
        return None if actor is None else actor.history

    def forget(self, key: Hashable) -> None:
        """What the actor that runs does from here on depends on ``key`` alone; None: it is where it began.

        It still depends on what nobody else uses, which is no part of a state but by the history of its user.
        """
        actor = self.current
        if actor is None:
            return
        own = tuple(
            [(holder.resource.identity, self.content_of(holder)) for holder in self.touched if _is_own(holder, actor)]
        )
        actor.history = 0 if key is None and not own else self.identities.number(("anew", key, own))
        actor.reads = []

    def violated(self, broken: str, room: Hashable, detail: str) -> None:
        """Note that the run broke a property with the operation that was done last."""
        if self._cursor >= len(self._script):
            self.events.append(Violation(broken, room, detail))

    # Running.

    def run(self, strategy: Strategy) -> None:
        """One run: every actor comes to its first operation on what is shared, and then ``strategy`` decides.

        The choices of ``strategy.script`` are made again first; ``strategy.histories`` grows with the run.

        Raises Stubborn when an actor cannot be ended afterwards, and what an actor
        raised that is no end of its own: MemoryError, Stalled, UnforeseenUse.
        """
        self._begin(strategy)
        try:
            self._gather()
            if not self._script:
                self._freshen()
            while not self._over:
                choice = self._next()
                if choice is not None:
                    self._give(self.actors[choice.actor], choice)
        finally:
            self._end()

    def _next(self) -> Choice | None:
        cursor = self._cursor
        script = self._script
        if cursor < len(script):
            choice: Choice | None = script[cursor]
            if cursor + 1 == len(script):
                self._freshen()
        else:
            assert self._strategy is not None
            choice = self._strategy.choose(self)
            if choice is None:
                self._over = True
                return None
            self.events.clear()
        self._cursor = cursor + 1
        return choice

    def _freshen(self) -> None:
        """Compute what was put off while known steps were done again."""
        for holder in self._stale:
            self.content_of(holder)
        self._stale.clear()

    def choices(self) -> tuple[list[Choice], list[Access]]:
        """What can be next, in the order of actors, and what it does to what."""
        choices, accesses = [], []
        for actor in self.actors:
            pending = actor.pending
            if pending is None or not actor.can_go_on():
                continue
            access = Access(pending.resource.identity, entry_of(pending.key), pending.writes, pending.kind == TRANSFER)
            for outcome in range(pending.outcomes):
                choices.append(Choice(actor.number, outcome))
                accesses.append(access)
        return choices, accesses

    def state(self) -> tuple[Hashable, ...]:
        """Everything the rest of the run depends on."""
        fixed = [actor.history for actor in self.actors]
        fixed += [resource.content for resource in self._shared]
        outside = self.outside()
        if len(self.resources) == self._kept:
            return (*fixed, outside)
        made = [
            (resource.identity, resource.content) for resource in self.resources[self._kept :] if resource.uses.shared
        ]
        return (*fixed, outside, frozenset(made))

    def _begin(self, strategy: Strategy) -> None:
        del self.resources[self._kept :]
        self._born = {}
        self.identities.begin()
        self.originals.begin()
        self.events = []
        if self.sharing.grown:
            # Actors now come to other first operations, and are back where they began at those.
            for actor in self.actors:
                actor.head = None
        self.sharing.grown = False
        self.steps = 0
        self._stopping = False
        self._over = False
        self._strategy = strategy
        self._script, self._histories, self._cursor = strategy.script, strategy.histories, 0
        self._stale.clear()
        for holder in self.touched:
            holder.resource.touched = False
        self.touched.clear()
        self._shared = [resource for resource in self.resources if resource.uses.shared]
        for actor in self.actors:
            actor.begin()
        self.switching.start([partial(self._body, actor) for actor in self.actors])

    def _gather(self) -> None:
        """Let every actor come to its first operation on what is shared."""
        self._gathering = True
        for actor in self.actors:
            self._give(actor, None)
        self._gathering = False

    def _give(self, actor: Actor, choice: Choice | None) -> None:
        actor.outcome = 0 if choice is None else choice.outcome
        self.current = actor
        self.switching.switch(STARTER, actor.number)
        self.current = None
        self._raise_problem()

    def _raise_problem(self) -> None:
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem

    def _body(self, actor: Actor) -> None:
        actor.started = True
        try:
            actor.function()
        except Stopped:
            pass
        except _ENDS_RUN as problem:
            self._problem = problem
        except BaseException as problem:
            actor.died = problem
        actor.finished = True
        actor.pending = None

    def _pause(self, actor: Actor) -> None:
        """Hand over to whoever is chosen; back when ``actor`` is."""
        there = STARTER
        if not self._gathering:
            choice = self._next()
            if choice is not None:
                chosen = self.actors[choice.actor]
                chosen.outcome = choice.outcome
                if chosen is actor:
                    return
                self.current = chosen
                there = choice.actor
        self.switching.switch(actor.number, there)
        if self._stopping:
            raise Stopped
        self.current = actor

    def _end(self) -> None:
        self.limits.update(
            f"a container that {changed.resource.uses.label} holds is changed by another name of it"
            for changed in self.originals.changed()
        )
        self.limits.update(
            f"attributes of a {name} change after others could find it, which is not seen"
            for name in self.identities.changed()
        )
        self._stopping = True
        for actor in self.actors:
            if not actor.finished:
                self.current = actor
                self.switching.stop(actor.number, Stopped)
        self.current = None
        self._raise_problem()
        stubborn = [actor.name for actor in self.actors if actor.started and not actor.finished]
        if stubborn:
            raise Stubborn(", ".join(stubborn))

    def _stop_again(self, actor: Actor) -> None:
        actor.stops += 1
        if actor.stops > _MOST_STOPS:
            self.switching.switch(actor.number, STARTER)
        raise Stopped


def _is_own(holder: Holder, actor: Actor) -> bool:
    uses = holder.resource.uses
    return not uses.shared and uses.actors == actor.bit
