"""Abstract conditions: comparisons, membership, ``and``, ``or``, ``not``, and the ways a branch can go."""

from __future__ import annotations

from kvlint.analysis import ir, operators
from kvlint.analysis.frames import Frame
from kvlint.analysis.memory import Memory, Outcomes
from kvlint.analysis.states import State
from kvlint.analysis.values import (
    ABSENT,
    STATUS,
    UNDECIDED,
    UNKNOWN,
    BoundCall,
    Causes,
    Field,
    Known,
    Object,
    Pairs,
    Several,
    Something,
    StatusTable,
    Value,
    causes_of,
    with_causes,
)


class Conditions(Memory):
    """Evaluates conditions; see ``memory.Memory`` for the two uses."""

    def _compare(self, expression: ir.Compare, state: State, frame: Frame) -> Outcomes:
        pending: list[tuple[Value, Value | None, State]] = [
            (value, None, after) for value, after in self.evaluate(expression.first, state, frame)
        ]
        done: Outcomes = []
        for index, (spelling, right) in enumerate(expression.rest):
            following: list[tuple[Value, Value | None, State]] = []
            for left, so_far, before in pending:
                for value, after in self.evaluate(right, before, frame):
                    for answer, final in self._compared(spelling, left, value, after, frame):
                        if so_far is not None:
                            answer = with_causes(answer, so_far.causes)
                        if operators.truth(answer) is False:
                            done.append((answer, final))
                            continue
                        if operators.truth(answer) is None and index < len(expression.rest) - 1:
                            done.append((answer if self._undecided(answer) else Known(False, answer.causes), final))
                            final = final.doubted(self.in_worker) if self._undecided(answer) else final
                        following.append((value, answer, final))
            pending = following
        return [*done, *((answer, after) for _, answer, after in pending if answer is not None)]

    def _compared(self, spelling: str, left: Value, right: Value, state: State, frame: Frame) -> Outcomes:
        left, right = self.constant(left), self.constant(right)
        if spelling in {"in", "not in"}:
            inside = self._membership(left, right, state)
            if inside is not None:
                return [(self._negated(value) if spelling == "not in" else value, after) for value, after in inside]
        try:
            answer = operators.compare(spelling, left, right)
            return [(self.computed((left, right)) if isinstance(answer, Something) else answer, state)]
        except operators.RaisesError as error:
            self.raise_(error.name, state, frame)
            return []

    def _membership(self, key: Value, table: Value, state: State) -> Outcomes | None:
        if isinstance(table, StatusTable):
            if self.is_room(key):
                if state.stored is UNDECIDED:
                    return [(Something(frozenset({STATUS}), undecided=True), state)]
                return [(Known(state.stored is not ABSENT, frozenset({STATUS})), state)]
            return [(Something(undecided=not self._is_other_room(key)), state)]
        if isinstance(table, Field) and self.is_room(key) and self.follows(table.name):
            causes = frozenset({table.name})
            return [(Known(True, causes), state), (Known(False, causes), state)]
        if isinstance(table, Several):
            answers = [operators.compare("==", self.constant(key), self.constant(item)) for item in table.items]
            truths = [operators.truth(answer) for answer in answers]
            causes = causes_of((key, table))
            if any(answer is True for answer in truths):
                return [(Known(True, causes), state)]
            if all(answer is False for answer in truths):
                return [(Known(False, causes), state)]
        if isinstance(table, Pairs):
            return self._membership(key, Several(tuple(name for name, _ in table.items), table.causes), state)
        return None

    def _merged(self, results: Outcomes) -> Outcomes:
        """On a worker's paths, one unknown for several values that no shared state tells apart."""
        if not self.in_worker or len(results) < 2:
            return results
        merged: Outcomes = []
        plain: dict[State, Value] = {}
        for value, state in results:
            if value.causes or not isinstance(value, Known | Something | BoundCall | Field):
                merged.append((value, state))
            else:
                plain[state] = value if plain.get(state, value) == value else UNKNOWN
        return [*((value, state) for state, value in plain.items()), *merged]

    def _negated(self, value: Value) -> Value:
        answer = operators.truth(self.tested(value))
        return self.computed((self.tested(value),)) if answer is None else Known(not answer, value.causes)

    def _logical(self, expression: ir.Logical, state: State, frame: Frame) -> Outcomes:
        results: Outcomes = []
        pending: list[tuple[State, Causes]] = [(state, frozenset())]
        last = len(expression.operands) - 1
        for index, operand in enumerate(expression.operands):
            following: list[tuple[State, Causes]] = []
            for before, causes in pending:
                for value, after in self.evaluate(operand, before, frame):
                    value = self.constant(value)
                    answer = operators.truth(self.tested(value))
                    if answer is expression.stops_on:
                        # This operand alone decided; those before it were only in the way.
                        results.append((value, after))
                        continue
                    if index == last:
                        results.extend(self._last_operand(value, answer, causes, expression.stops_on, after))
                        continue
                    if answer is None:
                        undecided = self._undecided(self.tested(value))
                        results.append((self._stopped(value, expression.stops_on), after))
                        after = after.doubted(self.in_worker) if undecided else after
                    following.append((after, causes | value.causes))
            pending = following
        return results

    def _stopped(self, value: Value, stops_on: bool) -> Value:
        """The value of an operand that may end ``and`` or ``or``, where it does."""
        if self._undecided(self.tested(value)):
            return Something(value.causes, undecided=True)
        if self.in_worker:
            return Known(stops_on, value.causes)
        return Something(value.causes, truth=stops_on)

    def _last_operand(
        self, value: Value, answer: bool | None, causes: Causes, stops_on: bool, state: State
    ) -> Outcomes:
        if answer is None and not self._undecided(value):
            if not self.in_worker:
                return [(with_causes(value, causes), state)]
            return [(Known(stops_on, value.causes), state), (Known(not stops_on, causes | value.causes), state)]
        return [(with_causes(value, causes), state)]

    def _undecided(self, value: Value) -> bool:
        if not self.in_worker and isinstance(value, BoundCall | Known | Object):
            return self.computed((value,)).undecided  # asked where the truth is open: a class has its own
        return isinstance(value, Something) and value.undecided and value.truth is None

    def _conditional(self, expression: ir.Conditional, state: State, frame: Frame) -> Outcomes:
        results: Outcomes = []
        for test, after in self.evaluate(expression.test, state, frame):
            for answer, chosen in self.decide(test, after):
                branch = expression.then if answer else expression.other
                for value, final in self.evaluate(branch, chosen, frame):
                    results.append((with_causes(value, test.causes), final))
        return results

    def decide(self, test: Value, state: State) -> list[tuple[bool, State]]:
        """The ways a branch on ``test`` can go; going either way on an undecided value is uncertain."""
        test = self.tested(test)
        answer = operators.truth(test)
        if answer is not None:
            return [(answer, state)]
        if self._undecided(test):
            state = state.doubted(self.in_worker)
        return [(True, state), (False, state)]
