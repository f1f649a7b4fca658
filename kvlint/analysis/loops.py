"""Abstract loops: to a fixed point, or for one round where a loop serves one item or message a round."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cached_property

from msgspec.structs import replace

from kvlint.analysis import ir
from kvlint.analysis.branches import Brancher, Exits
from kvlint.analysis.frames import After, Frame
from kvlint.analysis.states import State, Trace, distinct
from kvlint.analysis.values import (
    UNDECIDED,
    Causes,
    Global,
    Item,
    Known,
    Pairs,
    Several,
    Something,
    StatusTable,
    Value,
    carries,
    causes_of,
)
from kvlint.semantics.constants import ConstantDict, enum_info
from kvlint.semantics.hierarchy import resolve_class

MAX_STATES = 400  # states kept at one point before the analysis gives up on local variables
_MAX_ROUNDS = 24  # loop iterations before the analysis stops following a loop


class Looper(Brancher):
    """Runs loops.

    ``served`` are loops that take one work item or message a round: each is run
    for one round, started from every stored status, and the states at the end
    of the round are kept in ``rounds``.
    """

    served: frozenset[ast.AST] = frozenset()

    @cached_property
    def rounds(self) -> list[State]:
        """The states in which rounds of served loops ended."""
        return []

    def _while(self, statement: ir.While, states: list[State], frame: Frame, exits: Exits, after: After) -> list[State]:
        def enter(current: State) -> tuple[list[State], list[State]]:
            inside: list[State] = []
            outside: list[State] = []
            for value, ready in self.evaluated(statement.test, current, frame):
                for answer, end in self.decide(value, ready):
                    (inside if answer else outside).append(end)
            return inside, outside

        if statement.at in self.served:
            return self._serve(enter, statement.body, states, frame, exits)
        return self._loop(enter, statement.body, statement.other, states, frame, exits, after)

    def _serve(
        self,
        enter: Callable[[State], tuple[list[State], list[State]]],
        body: ir.Block,
        states: list[State],
        frame: Frame,
        exits: Exits,
    ) -> list[State]:
        """One round of a served loop for every status that may be stored when it starts."""
        starts = distinct(
            state.storing(stored).traced(Trace(taken=state.trace.taken))
            for state in states
            for stored in self.subject.stored_values
        )
        inside: list[State] = []
        outside: list[State] = []
        for start in starts:
            entering, leaving = enter(start)
            inside.extend(entering)
            outside.extend(leaving)
        inner = Exits()
        ends = self.block(body, inside, frame, inner, After(raising=frame.raised is not None))
        self.rounds.extend([*ends, *inner.continues, *inner.breaks, *(end for _, end in inner.returns)])
        exits.returns.extend(inner.returns)
        return distinct([*outside, *inner.breaks])

    def _for(self, statement: ir.For, states: list[State], frame: Frame, exits: Exits, after: After) -> list[State]:
        entering: dict[Value, list[State]] = {}
        for state in states:
            for value, ready in self.evaluated(statement.iterable, state, frame):
                entering.setdefault(self._iterated(self.constant(value)), []).append(ready)
        ends: list[State] = []
        for iterable, before in entering.items():
            if isinstance(iterable, Known) and isinstance(iterable.value, tuple):
                items: tuple[Value, ...] = tuple(Known(item, iterable.causes) for item in iterable.value)
                ends.extend(self._unrolled(items, iterable.causes, statement, before, frame, exits, after))
                continue
            if isinstance(iterable, Several):
                ends.extend(self._unrolled(iterable.items, iterable.causes, statement, before, frame, exits, after))
                continue
            ends.extend(self._for_unknown(iterable, statement, before, frame, exits, after))
        return ends

    def _iterated(self, value: Value) -> Value:
        """Iterating an enum class gives its members; a set has no order to rely on, but every member comes once."""
        if isinstance(value, Known) and isinstance(value.value, frozenset):
            return Something(value.causes, undecided=True)
        if isinstance(value, Known) and isinstance(value.value, ConstantDict):
            return Known(tuple(dict.fromkeys(key for key, _ in value.value.entries)), value.causes)
        if isinstance(value, Pairs):
            return Something(causes_of((value,)), undecided=True, reaches=carries(value))
        if isinstance(value, Global):
            cls = resolve_class(self.world, value.module, value.dotted)
            members = enum_info(cls) if cls is not None else None
            if members is not None:
                return Known(tuple(members.by_value))
        if isinstance(value, StatusTable):
            return Something(undecided=True)
        return value

    def _unrolled(
        self,
        items: tuple[Value, ...],
        causes: Causes,
        statement: ir.For,
        states: list[State],
        frame: Frame,
        exits: Exits,
        after: After,
    ) -> list[State]:
        current = states
        if not items and causes and self.in_worker:
            at, body = statement.at, statement.body
            current = [self._decided(state, causes, at, False, (), body, frame, after) for state in states]
        inner = Exits(returns=exits.returns)
        for item in items:
            here = replace(after, breaking=after.normal, continuing=True)
            started = [end for before in current for end in self.assign(statement.target, item, before, frame)]
            current = distinct([*self.block(statement.body, started, frame, inner, here), *inner.continues])
            inner.continues.clear()
        finished = self.block(statement.other, current, frame, exits, after)
        return [*finished, *inner.breaks]

    def _for_unknown(
        self, iterable: Value, statement: ir.For, states: list[State], frame: Frame, exits: Exits, after: After
    ) -> list[State]:
        element: Value = Item() if isinstance(iterable, Item) else self.part_of(self.computed((iterable,)))
        undecided = isinstance(element, Something) and element.undecided

        def enter(current: State) -> tuple[list[State], list[State]]:
            if undecided:
                current = current.doubted(self.in_worker)
            if statement.at in self.served:
                current = current.note(taken=True)
            return self.assign(statement.target, element, current, frame), [current]

        if statement.at in self.served:
            element = Item()
            return self._serve(enter, statement.body, states, frame, exits)
        return self._loop(enter, statement.body, statement.other, states, frame, exits, after)

    def _loop(
        self,
        enter: Callable[[State], tuple[list[State], list[State]]],
        body: ir.Block,
        other: ir.Block,
        states: list[State],
        frame: Frame,
        exits: Exits,
        after: After,
    ) -> list[State]:
        """Run a loop to a fixed point; ``enter`` gives the states that go round and those that stop."""
        inner = Exits(returns=exits.returns)
        again = after.normal or (self.in_worker and self.reach.block_concludes(body, self._context(states[0], frame)))
        here = replace(after, normal=again, breaking=after.normal, continuing=again)
        seen: set[State] = set()
        frontier = states
        most = MAX_STATES + len(states)
        stopped: list[State] = []
        rounds = 0
        while True:
            fresh = [current for current in frontier if current not in seen]
            seen.update(fresh)
            if not fresh:
                break
            rounds += 1
            if rounds == _MAX_ROUNDS or len(seen) > most:
                stopped.extend(current.storing(UNDECIDED).doubted(self.in_worker) for current in fresh)
                break
            entering: list[State] = []
            for current in fresh:
                inside, outside = enter(current)
                entering.extend(inside)
                stopped.extend(outside)
            frontier = distinct([*self.block(body, entering, frame, inner, here), *inner.continues])
            inner.continues.clear()
        finished = self.block(other, stopped, frame, exits, after)
        return distinct([*finished, *inner.breaks])
