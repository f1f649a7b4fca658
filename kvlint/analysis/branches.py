"""Abstract branches, and the decisions by which a worker gives a room up."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Iterable

from msgspec import Struct, field

from kvlint.analysis import ir
from kvlint.analysis.assignments import Assigner
from kvlint.analysis.conclusions import Context
from kvlint.analysis.frames import After, Frame
from kvlint.analysis.memory import Outcomes
from kvlint.analysis.states import Skip, State, distinct
from kvlint.analysis.values import Causes, Known, Object, Several, Something, Value


class Exits(Struct, eq=False):
    """The states in which a block was left other than by running to its end."""

    breaks: list[State] = field(default_factory=list)
    continues: list[State] = field(default_factory=list)
    returns: list[tuple[Value, State]] = field(default_factory=list)


class Brancher(Assigner):
    """Runs ``if`` and ``match``; marks the branch after which a room can no longer be concluded."""

    @abstractmethod
    def block(self, block: ir.Block, states: Iterable[State], frame: Frame, exits: Exits, after: After) -> list[State]:
        """Run a block from each of ``states``; returns the states at its end."""

    def _if(self, statement: ir.If, states: list[State], frame: Frame, exits: Exits, after: After) -> list[State]:
        chosen: dict[tuple[bool, Causes], list[State]] = {}
        for state in states:
            for value, ready in self.evaluated(statement.test, state, frame):
                causes = value.causes
                for answer, end in self.decide(value, ready):
                    if causes and self.in_worker:
                        branches = (statement.then, statement.other) if answer else (statement.other, statement.then)
                        end = self._decided(end, causes, statement.at, answer, *branches, frame, after)
                    chosen.setdefault((answer, causes), []).append(end)
        ends: list[State] = []
        for (answer, causes), entering in chosen.items():
            branch = statement.then if answer else statement.other
            ends.extend(self._controlled(branch, entering, causes, frame, exits, after))
        return ends

    def _controlled(
        self, block: ir.Block, states: list[State], causes: Causes, frame: Frame, exits: Exits, after: After
    ) -> list[State]:
        """Run ``block`` as controlled by a decision on ``causes``."""
        if not causes:
            return self.block(block, states, frame, exits, after)
        by_control: dict[Causes, list[State]] = {}
        for state in states:
            # What was tested matters to what a helper returns; the outermost frame returns to nobody.
            tested = state.tested | causes if frame.number else state.tested
            by_control.setdefault(state.control, []).append(state.under(state.control | causes, tested))
        ends: list[State] = []
        for control, inside in by_control.items():
            ends.extend(end.under(control, end.tested) for end in self.block(block, inside, frame, exits, after))
        return ends

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

    def _match(self, statement: ir.Match, states: list[State], frame: Frame, exits: Exits, after: After) -> list[State]:
        ends: list[State] = []
        pending = [found for state in states for found in self.evaluated(statement.subject, state, frame)]
        for case in statement.cases:
            chosen: dict[Causes, list[State]] = {}
            following: Outcomes = []
            for subject, before in pending:
                causes = subject.causes
                matched, missed = self._matches(case, subject, before, frame)
                following.extend((subject, state) for state in missed)
                if causes and self.in_worker:
                    rival = tuple(inner for other in statement.cases if other is not case for inner in other.body)
                    matched = [
                        self._decided(state, causes, case.at, True, case.body, rival, frame, after) for state in matched
                    ]
                chosen.setdefault(causes, []).extend(matched)
            for causes, entering in chosen.items():
                ends.extend(self._controlled(case.body, entering, causes, frame, exits, after))
            pending = list(dict.fromkeys(following))
        return [*ends, *(state for _, state in pending)]

    def _matches(self, case: ir.Case, subject: Value, state: State, frame: Frame) -> tuple[list[State], list[State]]:
        matched: list[State] = []
        missed: list[State] = []
        for answer, ready in self._pattern(case.pattern, subject, state, frame):
            if not answer:
                missed.append(ready.within(state.env))
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
