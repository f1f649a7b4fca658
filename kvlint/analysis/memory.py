"""What an abstract run keeps: the room's status, what may be known of values, and exceptions on their way."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from kvlint.analysis import ir
from kvlint.analysis.frames import Frame, Raised, forget
from kvlint.analysis.states import Removal, State
from kvlint.analysis.subject import Subject
from kvlint.analysis.values import (
    ABSENT,
    STATUS,
    UNDECIDED,
    BoundCall,
    Causes,
    Global,
    Key,
    Known,
    Pairs,
    Several,
    Something,
    StatusTable,
    Stored,
    Value,
    carries,
    causes_of,
    computed_from,
    is_mutable,
)
from kvlint.semantics.constants import NotConstant, constant_of
from kvlint.semantics.module import Module
from kvlint.semantics.world import World

Outcomes = list[tuple[Value, State]]
CONTENT_CAUSES = frozenset({STATUS})


class Memory(ABC):
    """Stores, removals and exceptions for one subject.

    ``in_worker`` tells the two uses apart: a writer's table must never claim
    what it does not know, so an unknown call that gets hold of the object makes
    the status UNDECIDED; on a worker's paths every key means the room at hand.
    """

    def __init__(self, world: World, subject: Subject, *, in_worker: bool) -> None:
        self.world = world
        self.subject = subject
        self.in_worker = in_worker
        self.escaped: list[Raised] = []
        self.noted: list[Raised] = []  # what was raised since the list was replaced

    def constant(self, value: Value) -> Value:
        """``value`` with a global name folded to the constant it stands for."""
        if not isinstance(value, Global) or value.dotted in _rebound(self.world, value.module):
            return value
        folded = constant_of(self.world, value.module, value.dotted)
        return value if isinstance(folded, NotConstant) else Known(folded, value.causes)

    def computed(self, values: Sequence[Value]) -> Something:
        """The result of an operation not followed: for a table, undecided unless something unrelated goes in."""
        value = computed_from(values)
        if self.in_worker:
            return value
        reaches = any(carries(each) for each in values)
        undecided = value.undecided or reaches or all(_is_settled(each) for each in values)
        return replace(value, undecided=undecided, reaches=reaches)

    def part_of(self, value: Something) -> Something:
        """Something inside a value: what a room table holds says nothing of whether the room is in it."""
        return Something(value.causes & CONTENT_CAUSES, value.undecided) if self.in_worker else value

    def tested(self, value: Value) -> Value:
        """``value`` as a condition: what a table is worth depends on all rooms in it."""
        value = self.constant(value)
        return Something(undecided=True) if isinstance(value, StatusTable) else value

    def is_room(self, value: Value) -> bool:
        """Whether a key value means the room at hand."""
        if isinstance(value, Key):
            return True
        return self.in_worker and not self._is_other_room(value)

    def _is_other_room(self, value: Value) -> bool:
        return isinstance(value, Known) and STATUS not in value.causes

    def stored_value(self, stored: Stored) -> Value:
        """The value of a read of the stored status, which is not ABSENT."""
        if stored is UNDECIDED:
            return Something(frozenset({STATUS}), undecided=True)
        return Known(stored, frozenset({STATUS}))  # type: ignore[arg-type]

    @staticmethod
    def _unaliased(value: Value) -> Value:
        """What a container keeps of a value: nothing of the contents of what may change elsewhere."""
        if not is_mutable(value):
            return value
        return Something(causes_of((value,)), undecided=True, not_none=True, reaches=carries(value))

    def shared(self, values: Iterable[Value], state: State) -> State:
        """``state`` after a container was made to hold ``values``: a list among them can now change through it."""
        if self.in_worker or not any(is_mutable(value) for value in values):
            return state
        return self.forget_mutable(state)

    def forget_mutable(self, state: State, gained: Iterable[Value] = ()) -> State:
        """``state`` after some list, set or dict changed, perhaps by one of ``gained``.

        Which of the variables hold it is not followed.
        """
        env = state.env
        reaches = any(carries(value) for value in gained)
        for name in env.names():
            value = env.get(name)
            if value is not None and is_mutable(value):
                lost = computed_from((self._unaliased(value),))
                env = env.set(name, replace(lost, not_none=True, reaches=reaches or carries(value)))
        return state.within(env)

    def store(self, key: Value, value: Value, state: State) -> State:
        """The state after the status of the room was stored."""
        if not self.is_room(key):
            return state if self._is_other_room(key) else state.storing(UNDECIDED)
        value = self.constant(value)
        stored: Stored = value.value if isinstance(value, Known) else UNDECIDED
        return state.storing(stored)

    def remove(self, key: Value, state: State) -> State:
        """The state after the room was removed from the status table."""
        if not self.is_room(key):
            return state if self._is_other_room(key) else state.storing(UNDECIDED)
        return state.storing(ABSENT).note(cleared=True)

    def removed_from(self, table: str, at: ast.AST, state: State) -> State:
        """The state after the room was removed from the room table ``table``."""
        removal = Removal(table, at)
        return state.note(removals=state.trace.removals | {removal})

    def deleted(self, key: Value, state: State, frame: Frame) -> State | None:
        """The state after ``del table[key]`` on the status table, None where that raises."""
        if self.is_room(key) and state.stored is ABSENT:
            self.raise_("KeyError", state, frame, frozenset({STATUS}))
            return None
        if not self.in_worker and state.stored is UNDECIDED:
            state = state.note(uncertain=True)
        return self.remove(key, state)

    def raise_(self, name: str, state: State, frame: Frame, causes: Causes = frozenset()) -> None:
        """Let the exception ``name`` leave from ``state``."""
        raised = Raised(name, state, causes)
        self.noted.append(raised)
        self.throw(raised, frame)

    def throw(self, raised: Raised, frame: Frame) -> None:
        """Let an exception leave the statement that ``frame`` is at."""
        if frame.handled is not None:
            raised = replace(raised, state=forget(raised.state, frame.handled, frame.receiver))
        (self.escaped if frame.raised is None else frame.raised).append(raised)

    @abstractmethod
    def evaluate(self, expression: ir.Expression, state: State, frame: Frame) -> Outcomes:
        """Every value that ``expression`` can have in ``state``, each with the state after it."""

    @abstractmethod
    def follows(self, table: str) -> bool:
        """Whether ``table`` is a room table whose contents matter here."""


def _rebound(world: World, module: Module) -> frozenset[str]:
    """The names of ``module`` that some function declares ``global``: they are no constants."""
    key = ("rebound", module)
    known = world.memo.get(key)
    if not isinstance(known, frozenset):
        declared = (node for node in module.nodes_of_kind(ast.Global) if isinstance(node, ast.Global))
        known = world.memo[key] = frozenset(name for node in declared for name in node.names)
    return known


def _is_settled(value: Value) -> bool:
    """Whether nothing unrelated to the status goes into ``value``: running the code always gives the same."""
    match value:
        case Known():
            return True
        case Several(items=items):
            return all(_is_settled(item) for item in items)
        case Pairs(items=pairs):
            return all(_is_settled(part) for pair in pairs for part in pair)
        case BoundCall(owner=owner):
            return _is_settled(owner)
        case _:
            return False
