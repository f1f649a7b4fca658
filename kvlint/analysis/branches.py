"""Abstract branches, and the decisions by which a worker gives a room up."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from kvlint.analysis import ir
from kvlint.analysis.assignments import Assigner
from kvlint.analysis.conclusions import Context
from kvlint.analysis.frames import After, Frame
from kvlint.analysis.values import (
    Causes,
    Known,
    Object,
    Several,
    Skip,
    Something,
    State,
    Value,
    distinct,
)


@dataclass(slots=True, eq=False)
class Exits:
    """The states in which a block was left other than by running to its end."""

    breaks: list[State] = field(default_factory=list)
    continues: list[State] = field(default_factory=list)
    returns: list[tuple[Value, State]] = field(default_factory=list)


class Brancher(Assigner):
    """Runs ``if`` and ``match``; marks the branch after which a room can no longer be concluded."""

    @abstractmethod
    def block(self, block: ir.Block, states: Iterable[State], frame: Frame, exits: Exits, after: After) -> list[State]:
        """Run a block from each of ``states``; returns the states at its end."""

    def _if(self, statement: ir.If, state: State, frame: Frame, exits: Exits, after: After) -> list[State]:
        ends: list[State] = []
        for value, ready in self.evaluate(statement.test, state, frame):
            causes = value.causes
            for answer, chosen in self.decide(value, ready):
                branch = statement.then if answer else statement.other
                if causes and self.in_worker:
                    rival = statement.other if answer else statement.then
                    chosen = self._decided(chosen, causes, statement.at, answer, branch, rival, frame, after)
                ends.extend(self._controlled(branch, chosen, causes, frame, exits, after))
        return ends

    def _controlled(
        self, block: ir.Block, state: State, causes: Causes, frame: Frame, exits: Exits, after: After
    ) -> list[State]:
        """Run ``block`` as controlled by a decision on ``causes``."""
        # What was tested matters to what a helper returns; the outermost frame returns to nobody.
        tested = state.tested | causes if frame.number else state.tested
        inside = replace(state, control=state.control | causes, tested=tested)
        ends = self.block(block, [inside], frame, exits, after)
        return [replace(end, control=state.control) for end in ends]

    def _decided(
        self,
        state: State,
        causes: Causes,
        at: ast.AST,
        taken: bool,
        branch: ir.Block,
        rival: ir.Block,
        frame: Frame,
        after: After,
    ) -> State:
        """``state``, marked if taking ``branch`` rather than ``rival`` gives up on concluding the room."""
        if state.trace.skip is not None or not state.trace.taken or self._is_writer(frame):
            return state
        context = self._context(state, frame)
        if self.reach.can(branch, after, context) or not self.reach.can(rival, after, context):
            return state
        return state.note(skip=Skip(causes, at, taken, frame.node))

    def _is_writer(self, frame: Frame) -> bool:
        """Whether the frame runs a writer: what that refuses to store is its own fault, not a skip of the worker's."""
        return getattr(frame.node, "name", None) in self.subject.writers

    def _match(self, statement: ir.Match, state: State, frame: Frame, exits: Exits, after: After) -> list[State]:
        ends: list[State] = []
        for subject, ready in self.evaluate(statement.subject, state, frame):
            pending = [ready]
            for case in statement.cases:
                following: list[State] = []
                for before in pending:
                    matched, missed = self._matches(case, subject, before, frame)
                    causes = subject.causes
                    for chosen in matched:
                        if causes and self.in_worker:
                            rival = tuple(
                                inner for other in statement.cases if other is not case for inner in other.body
                            )
                            chosen = self._decided(chosen, causes, case.at, True, case.body, rival, frame, after)
                        ends.extend(self._controlled(case.body, chosen, causes, frame, exits, after))
                    following.extend(missed)
                pending = distinct(following)
            ends.extend(pending)
        return ends

    def _matches(self, case: ir.Case, subject: Value, state: State, frame: Frame) -> tuple[list[State], list[State]]:
        matched: list[State] = []
        missed: list[State] = []
        for answer, ready in self._pattern(case.pattern, subject, state, frame):
            if not answer:
                missed.append(replace(ready, env=state.env))
                continue
            if case.guard is None:
                matched.append(ready)
                continue
            for value, after in self.evaluate(case.guard, ready, frame):
                for passed, end in self.decide(value, after):
                    (matched if passed else missed).append(end)
        return distinct(matched), distinct(missed)

    def _pattern(self, pattern: ir.Pattern, subject: Value, state: State, frame: Frame) -> list[tuple[bool, State]]:  # noqa: C901 - one arm a kind
        if pattern.name is not None:
            state = state.bind(pattern.name, subject)
        for name in pattern.bound:
            state = state.bind(name, self.computed((subject,)))
        match pattern.kind:
            case "any":
                return [(True, state)]
            case "value" | "is" if pattern.value is not None:
                results = []
                for value, ready in self.evaluate(pattern.value, state, frame):
                    spelling = "is" if pattern.kind == "is" else "=="
                    for answer, after in self._compared(spelling, subject, value, ready, frame):
                        results.extend(self.decide(answer, after))
                return results
            case "either":
                return self._either(pattern.parts, subject, state, frame)
            case "sequence" if (items := self._sequence(subject)) is not None:
                fits = len(items) == len(pattern.parts)
                return self._in_order(pattern.parts, items, state, frame) if fits else [(False, state)]
            case _:
                value = self.computed((subject,))
                for part in pattern.parts:
                    for name in _bound_names(part):
                        state = state.bind(name, value)
                return self.decide(Something(undecided=value.undecided), state)

    def _sequence(self, subject: Value) -> tuple[Value, ...] | None:
        """The items that a sequence pattern sees in ``subject``, None where that is open."""
        match subject:
            case Several(items=items):
                return items
            case Known(value=tuple() as constants) if not self.in_worker:
                return tuple(Known(constant, subject.causes) for constant in constants)
            case _:
                return None

    def _either(
        self, parts: tuple[ir.Pattern, ...], subject: Value, state: State, frame: Frame
    ) -> list[tuple[bool, State]]:
        results: list[tuple[bool, State]] = []
        pending = [state]
        for part in parts:
            following = []
            for before in pending:
                for answer, after in self._pattern(part, subject, before, frame):
                    (results.append((True, after)) if answer else following.append(after))
            pending = following
        return [*results, *((False, after) for after in pending)]

    def _in_order(
        self, parts: tuple[ir.Pattern, ...], items: tuple[Value, ...], state: State, frame: Frame
    ) -> list[tuple[bool, State]]:
        results: list[tuple[bool, State]] = []
        pending = [state]
        for part, item in zip(parts, items, strict=True):
            following = []
            for before in pending:
                for answer, after in self._pattern(part, item, before, frame):
                    (following.append(after) if answer else results.append((False, after)))
            pending = following
        return [*results, *((True, after) for after in pending)]

    def _context(self, state: State, frame: Frame) -> Context:
        receiver = frame.receiver
        holder = state.env.get(receiver) if receiver else None
        cls = holder.cls if isinstance(holder, Object) else None
        return Context(self.subject, frame.module, cls, frame.defined_in, receiver, state.env.items)

    def _can(self, block: ir.Block, after: After, state: State, frame: Frame) -> bool:
        return self.reach.can(block, after, self._context(state, frame))


def _bound_names(pattern: ir.Pattern) -> set[str]:
    names = set(pattern.bound)
    if pattern.name is not None:
        names.add(pattern.name)
    for part in pattern.parts:
        names |= _bound_names(part)
    return names
