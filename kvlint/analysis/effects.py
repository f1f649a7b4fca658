"""Abstract calls that change tables or lead out of sight: dict methods, hand-overs, and what unknown code might do."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kvlint.analysis import ir
from kvlint.analysis.conclusions import ITEM_CONCLUSIONS, LIST_CALLS, QUEUE_CALLS, Reach
from kvlint.analysis.evaluate import Evaluator
from kvlint.analysis.frames import Frame
from kvlint.analysis.memory import Outcomes
from kvlint.analysis.states import State
from kvlint.analysis.values import (
    ABSENT,
    NONE,
    STATUS,
    UNDECIDED,
    BoundCall,
    Field,
    Item,
    Key,
    Known,
    Object,
    Pairs,
    Several,
    Something,
    StatusTable,
    Value,
    carries,
    causes_of,
    computed_from,
    with_causes,
)
from kvlint.semantics.constants import ConstantDict

_MUTATORS = frozenset(
    {"append", "appendleft", "add", "extend", "insert", "update", "remove", "discard", "clear", "pop", "popleft"}
    | {"setdefault", "popitem", "sort", "reverse"}
)
# Methods of tuples, lists, sets and dicts that change nothing.
_READERS = frozenset(
    {"get", "keys", "values", "items", "copy", "index", "count", "union", "intersection", "difference", "issubset"}
    | {"issuperset", "isdisjoint", "symmetric_difference", "__contains__", "__getitem__", "__len__", "__iter__"}
)
# Methods of the same that raise on no hashable argument, with how many they take.
_TOTAL = frozenset(
    {("add", 1), ("discard", 1), ("append", 1), ("appendleft", 1), ("get", 1), ("get", 2), ("pop", 2)}
    | {("setdefault", 1), ("setdefault", 2), ("clear", 0), ("copy", 0), ("keys", 0), ("values", 0), ("items", 0)}
)
# Calls that take nothing over, whatever they are given.
BYSTANDERS = frozenset({"logger", "log", "logging", "print", "len", "isinstance", "repr", "str", "warnings", "id"})


class Effects(Evaluator):
    """Evaluates calls of tables and of the unknown; see ``memory.Memory`` for the two uses."""

    reach: Reach

    def follows(self, table: str) -> bool:
        """Whether ``table`` is a room table whose contents matter here."""
        return self.in_worker and self.reach.follows(table)

    def _on_status_table(  # noqa: C901 - one arm a kind
        self, name: str, values: list[Value], named: dict[str, Value], state: State, frame: Frame
    ) -> Outcomes:
        key = values[0] if values else NONE
        default = values[1] if len(values) > 1 else named.get("default", NONE)
        if name in {"get", "pop", "setdefault"} and values and not self.is_room(key):
            changed = state if name == "get" or self._is_other_room(key) else state.storing(UNDECIDED)
            return [(Something(undecided=not self._is_other_room(key)), changed)]
        match name:
            case "get" | "pop" | "setdefault" if values:
                return self._read_status(name, key, default, len(values) + len(named), state, frame)
            case "__contains__" if values:
                return self._membership(key, StatusTable(), state) or []
            case "__getitem__" if values:
                return self.item_of(StatusTable(), key, state, frame)
            case "__setitem__" if len(values) == 2:
                return [(NONE, self.store(key, values[1], state))]
            case "update" if len(values) == 1 and not named and isinstance(values[0], Pairs):
                for room, status in values[0].items:
                    state = self.store(room, status, state)
                return [(NONE, state)]
            case "__delitem__" if values:
                after = self.deleted(key, state, frame)
                return [] if after is None else [(NONE, after)]
            case "clear":
                return [(NONE, self.remove(Key(), state))]
            case "keys":
                return [(StatusTable(), state)]
            case "values" | "items" | "copy" | "__len__" | "__iter__":
                return [(Something(undecided=True, not_none=True), state)]
            case "popitem":
                if not self.in_worker and state.stored is ABSENT:
                    self.raise_("KeyError", state, frame)
                return [(Something(undecided=True), self.remove(Key(), state)), (Something(undecided=True), state)]
            case _:
                if self.in_worker:
                    return [(Something(frozenset({STATUS})), state)]
                return [(Something(undecided=True), state.storing(UNDECIDED))]

    def _read_status(self, name: str, key: Value, default: Value, count: int, state: State, frame: Frame) -> Outcomes:
        if state.stored is UNDECIDED:
            value: Value = Something(frozenset({STATUS}), undecided=True)
            if name == "pop":
                state = self.remove(key, state if count > 1 else state.doubted(self.in_worker))
            return [(value, state)]
        if state.stored is ABSENT:
            if name == "pop" and count == 1:
                self.raise_("KeyError", state, frame, frozenset({STATUS}))
                return []
            if name == "setdefault":
                state = self.store(key, default, state)
            elif name == "pop":
                state = state.note(cleared=True)
            return [(with_causes(default, frozenset({STATUS})), state)]
        value = self.stored_value(state.stored)
        return [(value, self.remove(key, state) if name == "pop" else state)]

    def _on_field(
        self, expression: ir.Call, owner: Field, name: str, values: list[Value], state: State, frame: Frame
    ) -> Outcomes:
        causes = frozenset({owner.name})
        keyed = bool(values) and self.is_room(values[0]) and self.follows(owner.name)
        match name:
            case "get" if keyed:
                default = values[1] if len(values) > 1 else NONE
                return [(Something(causes, not_none=True), state), (with_causes(default, causes), state)]
            case "pop" if keyed:
                state = self.removed_from(owner.name, expression.at, state)
                default = values[1] if len(values) > 1 else NONE
                if len(values) == 1:
                    self.raise_("KeyError", state, frame, causes)
                    return [(Something(causes, not_none=True), state)]
                return [(Something(causes, not_none=True), state), (with_causes(default, causes), state)]
            case "discard" | "remove" | "__delitem__" if keyed:
                return [(NONE, self.removed_from(owner.name, expression.at, state))]
            case "clear" | "popitem" | "popleft" | "pop" if self.follows(owner.name):
                return [(Something(), self.removed_from(owner.name, expression.at, state))]
            case "__contains__" if keyed:
                return self._membership(values[0], owner, state) or []
            case "keys":
                return [(owner, state)]
            case "setdefault" if keyed:
                return [(Something(not_none=True), state)]
            case _:
                return self._unknown(expression, BoundCall(owner, name), values, state, frame)

    def _on_constant(
        self, expression: ir.Call, owner: Known, name: str, values: list[Value], state: State, frame: Frame
    ) -> Outcomes:
        if name in _MUTATORS and owner.mutable:
            state = self._forget_mutated(expression, values, state)
            return [(self._lost(values), self._hand_over(name, values, state))]
        if not self.in_worker and name not in _READERS and isinstance(owner.value, tuple | frozenset | ConstantDict):
            # A method that may change it: a list, set or dict, whoever else holds it.
            state = self.forget_mutable(state, values)
            return [(self._lost((owner, *values)), state if owner.mutable else state.doubted(self.in_worker))]
        if isinstance(owner.value, ConstantDict):
            return self._on_display(owner, name, values, state, frame)
        if owner.mutable and name in {"values", "items", "keys", "copy"}:
            return [(owner, state)]
        if owner.mutable and name == "get" and owner.value == ():
            return [(with_causes(values[1] if len(values) > 1 else NONE, owner.causes), state)]
        return [(self.computed((owner, *values)), state)]

    def _lost(self, values: Sequence[Value]) -> Something:
        return Something(causes_of(values), undecided=not self.in_worker)

    def _on_contents(
        self, owner: Pairs | Several, name: str, values: list[Value], state: State, frame: Frame
    ) -> Outcomes:
        """A method of a display that is not all constants."""
        result = self.computed((owner, *values))
        if name not in _READERS:
            return [(replace(result, undecided=True), self.forget_mutable(state, values))]
        return [(result, state)] if isinstance(owner, Several) else self._on_display(owner, name, values, state, frame)

    def _on_display(self, owner: Known | Pairs, name: str, values: list[Value], state: State, frame: Frame) -> Outcomes:
        match name, values:
            case "get", [key, *rest] if len(rest) < 2:
                return self.entry_of(owner, key, rest[0] if rest else NONE, state, frame)
            case "__getitem__", [key]:
                return self.entry_of(owner, key, None, state, frame)
            case "keys", []:
                return [(owner, state)]
            case _:
                return [(self.computed((owner, *values)), state)]

    def _forget_mutated(self, expression: ir.Call, values: list[Value], state: State) -> State:
        if not self.in_worker:
            return self.forget_mutable(state, values)
        match expression.callee:
            case ir.Attribute(owner=ir.Name(id=name)):
                return state.within(state.env.set(name, Something(not_none=True)))
            case _:
                return state

    def _unknown(
        self,
        expression: ir.Call,
        callee: Value,
        values: list[Value],
        state: State,
        frame: Frame,
        result: Value | None = None,
    ) -> Outcomes:
        """A call whose source is not known: what it might do with what it gets hold of."""
        name = _called_name(expression)
        if self.in_worker:
            state = self._hand_over(name, values, state)
            if not _is_bystander(expression):
                given = any(isinstance(value, Item) and not value.part for value in flattened(values))
                on_item = isinstance(callee, BoundCall) and isinstance(callee.owner, Item)
                whole = on_item and not callee.owner.part  # type: ignore[union-attr]
                told = on_item and name in ITEM_CONCLUSIONS
                unseen = isinstance(callee, Object) and callee.cls.lookup(name) is None
                if given or whole or told or unseen or self._is_hook_call(callee, name):
                    state = state.note(handed=True)
        elif not _is_bystander(expression) and self._reaches_status(callee, values):
            state = state.poisoned()
        # Raised after the effect: a call that ought to conclude the room and fails has been tried.
        if not _never_raises(callee, name, values):
            self._may_raise(expression, state, frame)
        return [(self._answer(callee, values) if result is None else result, state)]

    def _answer(self, callee: Value, values: list[Value]) -> Value:
        """What a call whose source is not known returns."""
        value = computed_from(values)
        if self.in_worker:
            return Something(value.causes - {STATUS}, value.undecided)
        everything = [*values, *([callee.owner] if isinstance(callee, BoundCall) else [])]
        reaches = any(carries(each) for each in everything)
        undecided = reaches or computed_from(everything).undecided
        return Something(value.causes - {STATUS}, undecided, reaches=reaches)

    def _is_hook_call(self, callee: Value, name: str) -> bool:
        if not isinstance(callee, Object):
            return False
        method = callee.cls.lookup(name)
        return method is None or method.kind == "wrapped" or self.reach.is_hook(method)

    def _reaches_status(self, callee: Value, values: list[Value]) -> bool:
        if isinstance(callee, Field | Something):  # a callable kept in an attribute or given may be anything
            return True
        return carries(callee) or any(carries(value) for value in values)

    def _hand_over(self, name: str, values: list[Value], state: State) -> State:
        flat = flattened(values)
        if name in QUEUE_CALLS and any(isinstance(value, Item | Key) for value in flat):
            return state.note(handed=True)
        if name in LIST_CALLS and any(isinstance(value, Item) and not value.part for value in flat):
            return state.note(handed=True)
        return state

    def _may_raise(self, expression: ir.Call, state: State, frame: Frame) -> None:
        if frame.raised is not None and not _is_bystander(expression):
            self.raise_("?", state, frame)


def _never_raises(callee: Value, name: str, values: list[Value]) -> bool:
    """Whether a call is of a method of a built-in container that succeeds on any hashable argument."""
    if not (isinstance(callee, BoundCall) and isinstance(callee.owner, Field) and callee.owner.container):
        return False
    if not all(isinstance(value, Key) or (isinstance(value, Known) and not value.mutable) for value in values):
        return False
    return (name, len(values)) in _TOTAL


def _called_name(expression: ir.Call) -> str:
    match expression.callee:
        case ir.Attribute(name=name) | ir.Name(id=name):
            return name
        case _:
            return ""


def _is_bystander(expression: ir.Call) -> bool:
    callee = expression.callee
    while isinstance(callee, ir.Attribute):
        if callee.name.lstrip("_") in BYSTANDERS:
            return True
        callee = callee.owner
    return isinstance(callee, ir.Name) and callee.id.lower().lstrip("_") in BYSTANDERS


def flattened(values: list[Value]) -> list[Value]:
    """``values`` with what tuples among them hold."""
    found: list[Value] = []
    for value in values:
        found.extend(flattened(list(value.items)) if isinstance(value, Several) else [value])
    return found
