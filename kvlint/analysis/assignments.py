"""Abstract assignment: names, unpacking, subscripts, attributes, deletion."""

from __future__ import annotations

import ast

from kvlint.analysis import ir
from kvlint.analysis.frames import Frame
from kvlint.analysis.recall import Recaller
from kvlint.analysis.states import State
from kvlint.analysis.values import (
    UNDECIDED,
    UNKNOWN,
    BoundCall,
    Field,
    Item,
    Known,
    Object,
    Pairs,
    Several,
    Something,
    StatusTable,
    Value,
    is_mutable,
    with_causes,
)


class Assigner(Recaller):
    """Carries out assignments; see ``memory.Memory`` for the two uses."""

    def _assign_all(self, targets: tuple[ir.Expression, ...], value: Value, state: State, frame: Frame) -> list[State]:
        states = [state]
        for target in targets:
            states = [end for before in states for end in self.assign(target, value, before, frame)]
        return states

    def assign(self, target: ir.Expression, value: Value, state: State, frame: Frame) -> list[State]:
        """The states after ``target = value``."""
        match target:
            case ir.Name(id=name):
                if frame.decisive is not None and name not in frame.decisive:
                    return [state]
                return [state.bind(name, self._kept(self.constant(value)))]
            case ir.Collection(items=items):
                return self._unpack(items, self.constant(value), state, frame)
            case ir.Subscript(owner=owner, key=key):
                return self._store_item(owner, key, value, state, frame)
            case ir.Attribute(owner=owner, name=name):
                return [
                    self._store_attribute(holder, name, value, ready)
                    for holder, ready in self.evaluate(owner, state, frame)
                ]
            case ir.Opaque(parts=parts) if not self.in_worker:  # ``first, *rest = …``
                lost = Something(undecided=True, reaches=True)
                states = [state]
                for part in parts:
                    states = [end for before in states for end in self.assign(part, lost, before, frame)]
                return states
            case _:
                return [state]

    def _kept(self, value: Value) -> Value:
        """What a variable keeps of a value: on a worker's paths, only what a decision about the room can use."""
        if not self.in_worker:
            return value
        if isinstance(value, BoundCall) and isinstance(value.owner, Something | Item):
            return Something(value.causes)
        if isinstance(value, Known) and not value.causes:
            # No decision about the room can rest on it, unless it is a status to be written.
            is_member = not isinstance(value.value, bool) and self.subject.enum.name_of(value.value) is not None
            return value if is_member else UNKNOWN
        if isinstance(value, Something) and value.not_none and not value.causes:
            return UNKNOWN
        return value

    def _unpack(self, items: tuple[ir.Expression, ...], value: Value, state: State, frame: Frame) -> list[State]:
        parts: list[Value]
        match value:
            case Several(items=values) if len(values) == len(items):
                parts = [with_causes(part, value.causes) for part in values]
            case Known(value=tuple() as constants) if len(constants) == len(items):
                parts = [Known(constant, value.causes) for constant in constants]
            case Known(value=tuple() | None) | Several() if not self.in_worker:
                is_none = isinstance(value, Known) and value.value is None
                self.raise_("TypeError" if is_none else "ValueError", state, frame)
                return []
            case Item():
                parts = [Item(part=not _looks_like_item(item)) for item in items]
            case _:
                parts = [self.part_of(self.computed((value,))) for _ in items]
        states = [state]
        for item, part in zip(items, parts, strict=True):
            states = [end for before in states for end in self.assign(item, part, before, frame)]
        return states

    def _store_item(
        self, owner: ir.Expression, key: ir.Expression, value: Value, state: State, frame: Frame
    ) -> list[State]:
        ends = []
        for (table, index), ready in self.evaluate_all((owner, key), state, frame):
            if isinstance(table, StatusTable):
                ends.append(self.store(self.constant(index), value, ready))
            elif not self.in_worker:
                ends.append(self._changed(table, value, self.shared((value,), ready)))
            elif isinstance(owner, ir.Name) and isinstance(table, Known):
                ends.append(ready.within(ready.env.set(owner.id, Something(not_none=True))))
            else:
                ends.append(ready)
        return ends

    def _changed(self, container: Value, value: Value, state: State) -> State:
        """The state after an entry of ``container``, not the status table, was set to ``value`` or deleted."""
        container = self.constant(container)
        match container:
            case Something(reaches=True) | Object():
                return state.poisoned()
            case Known() | Several() | Pairs():
                state = self.forget_mutable(state, (value,))
                return state if is_mutable(container) else state.doubted(self.in_worker)
            case _:
                return state

    def _store_attribute(self, holder: Value, name: str, value: Value, state: State) -> State:
        value = self.constant(value)
        if name == self.subject.attribute:
            if self.subject.kind == "table":
                if isinstance(value, StatusTable):
                    return state
                # What other names still mean the old table is not followed.
                return state.storing(UNDECIDED).doubted(self.in_worker)
            return state.storing(value.value if isinstance(value, Known) else UNDECIDED)
        if self.in_worker:
            return state
        if isinstance(holder, Object) and (holder.cls.lookup(name) or holder.cls.lookup("__setattr__")):
            return state.poisoned()  # a property's setter
        if isinstance(holder, Object) and holder.path is not None:
            return self.shared((value,), state.holding(state.heap.set(holder.path + name, self._unaliased(value))))
        state = self.shared((value,), state)
        return state.poisoned() if isinstance(holder, Something) and holder.reaches else state

    def _update(self, statement: ir.Update, state: State, frame: Frame) -> list[State]:
        ends = []
        for (old, new), ready in self.evaluate_all((statement.target, statement.value), state, frame):
            if isinstance(old, StatusTable):
                ends.append(ready.storing(UNDECIDED))
                continue
            if is_mutable(old) and not self.in_worker:
                ready = self.forget_mutable(ready, (new,))
            ends.extend(self.assign(statement.target, self.arithmetic(statement.operator, old, new), ready, frame))
        return ends

    def _delete(self, targets: tuple[ir.Expression, ...], at: ast.AST, state: State, frame: Frame) -> list[State]:
        states = [state]
        for target in targets:
            if not isinstance(target, ir.Subscript):
                if not self.in_worker:
                    lost = Something(undecided=True)
                    states = [end for before in states for end in self.assign(target, lost, before, frame)]
                continue
            following = []
            for before in states:
                for (table, key), ready in self.evaluate_all((target.owner, target.key), before, frame):
                    end = self._deleted(table, self.constant(key), at, ready, frame)
                    following.extend([end] if end is not None else [])
            states = following
        return states

    def _deleted(self, table: Value, key: Value, at: ast.AST, state: State, frame: Frame) -> State | None:
        if isinstance(table, StatusTable):
            return self.deleted(key, state, frame)
        if not self.in_worker:
            return self._changed(table, key, state)
        if isinstance(table, Field) and self.is_room(key):
            self.raise_("KeyError", state, frame, frozenset({table.name}))
            return self.removed_from(table.name, at, state)
        return state


def _looks_like_item(target: ir.Expression) -> bool:
    """Whether an unpacked part may be the item itself rather than its room (``room, chunk = queue.get()``)."""
    return isinstance(target, ir.Name) and not any(
        word in target.id.lower() for word in ("room", "id", "key", "idx", "index", "rank", "num")
    )
