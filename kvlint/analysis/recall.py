"""Evaluating an expression once for all states that agree in what it reads."""

from __future__ import annotations

from msgspec import Struct, field

from kvlint.analysis import ir, walk
from kvlint.analysis.calls import Caller
from kvlint.analysis.frames import Frame
from kvlint.analysis.memory import Outcomes
from kvlint.analysis.states import State
from kvlint.analysis.values import Causes, Value


class _Recalled(Struct, frozen=True):
    """What an evaluation that left the state alone came to: values, and the exceptions on the way to them."""

    values: tuple[Value, ...]
    raised: tuple[tuple[str, Causes], ...]


class Evaluations(Struct, frozen=True, eq=False):
    """The evaluations of one expression: the variables that it reads or binds, and what it came to for their values."""

    names: tuple[str, ...]
    known: dict[object, _Recalled] = field(default_factory=dict)


class Recaller(Caller):
    """Evaluates expressions, or recalls what they came to.

    The states of a long function differ in a few variables, of which most of its
    expressions read none.
    """

    def evaluated(self, expression: ir.Expression, state: State, frame: Frame) -> Outcomes:
        """What `evaluate` gives, recalled where a state like ``state`` was met before."""
        if isinstance(expression, (ir.Literal, ir.Name)):
            return self.evaluate(expression, state, frame)
        evaluations = frame.evaluations.get(expression)
        if evaluations is None:
            evaluations = frame.evaluations[expression] = Evaluations(_names_in(expression, frame.receiver))
        read = tuple(map(state.env.get, evaluations.names))
        key = (state.stored, state.heap, state.control, state.trace.uncertain, frame.raised is None, read)
        recalled = evaluations.known.get(key)
        if recalled is not None:
            for name, causes in recalled.raised:
                self.raise_(name, state, frame, causes)
            return [(value, state) for value in recalled.values]
        # Another list is there afterwards if a function was run: what that does depends on more than the key.
        raised = self.noted = []
        outcomes = self.evaluate(expression, state, frame)
        is_plain = all(after is state for _, after in outcomes) and all(each.state is state for each in raised)
        if self.noted is raised and is_plain:
            values = tuple(value for value, _ in outcomes)
            evaluations.known[key] = _Recalled(values, tuple((each.name, each.causes) for each in raised))
        return outcomes


def _names_in(expression: ir.Expression, receiver: str | None) -> tuple[str, ...]:
    """The variables that an expression reads or binds; a call may look at the receiver as well."""
    found = set() if receiver is None else {receiver}
    for part in walk.subexpressions(expression):
        match part:
            case ir.Name(id=name) | ir.Bind(name=name):
                found.add(name)
            case _:
                pass
    return tuple(found)
