"""Abstract evaluation of expressions; calls are left to the subclass in ``calls``."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import assert_never

from msgspec.structs import replace

from kvlint.analysis import ir, operators, walk
from kvlint.analysis.conditions import Conditions
from kvlint.analysis.frames import Frame
from kvlint.analysis.memory import CONTENT_CAUSES, Outcomes
from kvlint.analysis.states import State
from kvlint.analysis.values import (
    ABSENT,
    STATUS,
    UNDECIDED,
    UNKNOWN,
    BoundCall,
    Field,
    Global,
    Item,
    Known,
    Local,
    Object,
    Pairs,
    Several,
    Something,
    StatusTable,
    Super,
    Value,
    causes_of,
    computed_from,
    with_causes,
)
from kvlint.semantics.constants import ConstantDict, Member, NotConstant, fold
from kvlint.semantics.hierarchy import ClassInfo


class Evaluator(Conditions):
    """Evaluates expressions for one subject; see ``memory.Memory`` for the two uses."""

    def evaluate(self, expression: ir.Expression, state: State, frame: Frame) -> Outcomes:  # noqa: C901
        """Every value that ``expression`` can have in ``state``, each with the state after it."""
        match expression:
            case ir.Literal(value=value):
                return [(Known(value), state)]
            case ir.Name(id=name):
                return [(self._variable(name, state, frame), state)]
            case ir.Attribute():
                return self._attribute(expression, state, frame)
            case ir.Subscript():
                return self._subscript(expression, state, frame)
            case ir.Call():
                return self.call(expression, state, frame)
            case ir.Compare():
                return self._compare(expression, state, frame)
            case ir.Logical():
                return self._merged(self._logical(expression, state, frame))
            case ir.Not(operand=operand):
                return [(self._negated(value), after) for value, after in self.evaluate(operand, state, frame)]
            case ir.Conditional():
                return self._merged(self._conditional(expression, state, frame))
            case ir.Bind(name=name, value=inner):
                follows = frame.decisive is None or name in frame.decisive
                return [
                    (value, after.bind(name, value) if follows else after)
                    for value, after in self.evaluate(inner, state, frame)
                ]
            case ir.Arithmetic(operator=name, left=left, right=right):
                return [
                    (self.arithmetic(name, first, second), after)
                    for (first, second), after in self.evaluate_all((left, right), state, frame)
                ]
            case ir.Collection():
                return self._collection(expression, state, frame)
            case ir.Mapping(items=()):
                return [(Known((), mutable=True), state)]
            case ir.Mapping(items=items):
                parts = tuple(part for pair in items for part in pair)
                return [
                    (self._display(values), self.shared(values, after))
                    for values, after in self.evaluate_all(parts, state, frame)
                ]
            case ir.Closure(function=function):
                return [(Local(function, frame.number), state)]
            case ir.Repeated():
                return self._repeated(expression, state, frame)
            case ir.Opaque(parts=parts):
                return [(self.computed(values), after) for values, after in self.evaluate_all(parts, state, frame)]
            case _:
                assert_never(expression)

    def arithmetic(self, name: str, left: Value, right: Value) -> Value:
        """``left op right``."""
        left, right = self.constant(left), self.constant(right)
        result = operators.arithmetic(name, left, right)
        return self.computed((left, right)) if isinstance(result, Something) else result

    def _display(self, parts: Sequence[Value]) -> Value:
        """A dict display of keys and values in turn."""
        if self.in_worker:
            return replace(computed_from(parts), not_none=True)
        values = [self.constant(value) for value in parts]
        known = [value for value in values if isinstance(value, Known) and not value.mutable]
        if len(known) < len(values):
            return Pairs(tuple(zip(values[::2], values[1::2], strict=True)))
        constants = [value.value for value in known]
        entries = tuple(zip(constants[::2], constants[1::2], strict=True))
        return Known(ConstantDict(entries), causes_of(values), mutable=True)

    def evaluate_all(
        self, expressions: tuple[ir.Expression, ...], state: State, frame: Frame
    ) -> list[tuple[list[Value], State]]:
        """The values of several expressions evaluated from left to right."""
        results: list[tuple[list[Value], State]] = [([], state)]
        for expression in expressions:
            results = [
                ([*values, value], after)
                for values, before in results
                for value, after in self.evaluate(expression, before, frame)
            ]
        return results

    def _variable(self, name: str, state: State, frame: Frame) -> Value:
        if name in frame.volatile and not self.in_worker:
            return Something(undecided=True, reaches=True)
        bound = state.env.get(name)
        if bound is None:
            return UNKNOWN if name in frame.locals else Global(frame.module, name)
        return bound

    def _attribute(self, expression: ir.Attribute, state: State, frame: Frame) -> Outcomes:
        results: Outcomes = []
        for owner, after in self.evaluate(expression.owner, state, frame):
            if isinstance(owner, Known) and owner.value is None and not hasattr(None, expression.name):
                self.raise_("AttributeError", after, frame, owner.causes)
                continue
            results.append((self.attribute_of(owner, expression.name, after), after))
        return results

    def attribute_of(self, owner: Value, name: str, state: State) -> Value:
        """The value of ``owner.name``."""
        if name == self.subject.attribute and not isinstance(owner, Global | Known):
            if self.subject.kind == "attribute":
                return self.stored_value(state.stored)
            return StatusTable()
        match owner:
            case Object():
                return self._attribute_of_object(owner, name, state)
            case Global(module=module, dotted=dotted):
                return self.constant(Global(module, f"{dotted}.{name}", owner.causes))
            case Known(value=Member() as member) if name in {"value", "name"}:
                inner = member.value if name == "value" else member.name
                return Known(inner, owner.causes)  # type: ignore[arg-type]
            case Item():
                return Item(part=True, causes=owner.causes)
            case Something() if self.in_worker:
                return BoundCall(owner, name, owner.causes & CONTENT_CAUSES)
            case StatusTable() | Known() | Field() | Something() | Several() | Super():
                return BoundCall(owner, name, owner.causes)
            case _:
                return computed_from((owner,))

    def _attribute_of_object(self, owner: Object, name: str, state: State) -> Value:
        cls, path = owner.cls, owner.path
        if path is None or name in {"__dict__", "__class__"}:
            return self.computed((owner,)) if cls.lookup(name) is None else BoundCall(owner, name)
        known = state.heap.get(path + name)
        if known is not None:
            return known
        changes = not self.in_worker and (cls.assigns(name) or name in _stored_attributes(cls))
        method = None if changes else cls.lookup(name)
        if method is not None:
            return self.computed((owner,)) if method.is_property else BoundCall(owner, name)
        holder = None if changes else cls.value(name)
        if holder is not None:
            folded = fold(self.world, holder[0], holder[1])
            if not isinstance(folded, NotConstant) and folded is not None:
                return Known(folded)
        if not self.in_worker and name in _aliases(cls, self.subject.attribute):
            return Something(undecided=True, reaches=True)
        attribute = cls.attribute_class(name)
        if attribute is None:
            return Field(name, container=not self.in_worker and cls.is_container(name))
        return Object(attribute, path="" if self.in_worker else f"{path}{name}.")

    def _collection(self, expression: ir.Collection, state: State, frame: Frame) -> Outcomes:
        results: Outcomes = []
        for values, after in self.evaluate_all(expression.items, state, frame):
            values = [self.constant(value) for value in values]
            after = self.shared(values, after)
            if not self.in_worker:
                values = [self._unaliased(value) for value in values]
            known = [value for value in values if isinstance(value, Known)]
            if len(known) == len(values):
                constants = tuple(value.value for value in known)
                causes = causes_of(values)
                if expression.kind == "set":
                    results.append((Known(frozenset(constants), causes, mutable=True), after))
                else:
                    results.append((Known(constants, causes, mutable=expression.kind == "list"), after))
            else:
                # Of a set display, which of its items is which cannot be told.
                lasting = not self.in_worker and expression.kind != "tuple"
                results.append((Several(tuple(values), mutable=lasting), after))
        return results

    def _repeated(self, expression: ir.Repeated, state: State, frame: Frame) -> Outcomes:
        inner = state
        for name in expression.names:
            inner = inner.bind(name, Something())
        results: Outcomes = []
        for values, after in self.evaluate_all(expression.parts, inner, frame):
            undecided = any(isinstance(value, StatusTable) for value in values)
            value = self.computed(values)
            result = replace(value, undecided=value.undecided or undecided, not_none=True)
            if not self.in_worker:
                results.append((result, self._any_number_of_times(expression, state, after)))
                continue
            results.append((result, after.within(state.env)))
            if after.stored != state.stored or after.trace != state.trace:
                results.append((result, state))
        return results

    def _any_number_of_times(self, expression: ir.Repeated, before: State, once: State) -> State:
        """The state after what led from ``before`` to ``once`` happened an unknown number of times."""
        env = before.env
        for part in expression.parts:
            for inner in walk.subexpressions(part):
                if isinstance(inner, ir.Bind):
                    env = env.set(inner.name, Something(undecided=True))
        changed = once.stored != before.stored or once.heap != before.heap or once.trace != before.trace
        after = before.within(env)
        return after.poisoned().note(uncertain=True) if changed else after

    def _subscript(self, expression: ir.Subscript, state: State, frame: Frame) -> Outcomes:
        results: Outcomes = []
        for (owner, key), after in self.evaluate_all((expression.owner, expression.key), state, frame):
            results.extend(self.item_of(self.constant(owner), self.constant(key), after, frame))
        return results

    def item_of(self, owner: Value, key: Value, state: State, frame: Frame) -> Outcomes:  # noqa: C901 - one arm a kind
        """``owner[key]``."""
        match owner:
            case StatusTable():
                if not self.is_room(key):
                    return [(Something(undecided=not self._is_other_room(key)), state)]
                if state.stored is ABSENT:
                    self.raise_("KeyError", state, frame, frozenset({STATUS}))
                    return []
                if state.stored is UNDECIDED:
                    state = state.doubted(self.in_worker)
                return [(self.stored_value(state.stored), state)]
            case Field(name=name) if self.is_room(key) and self.follows(name):
                causes = frozenset({name})
                self.raise_("KeyError", state, frame, causes)
                return [(Something(causes, not_none=True), state)]
            case Several(items=items) if isinstance(key, Known) and isinstance(key.value, int):
                if -len(items) <= key.value < len(items):
                    return [(items[key.value], state)]
            case Known(value=tuple() as constants) if isinstance(key, Known) and not (owner.mutable and self.in_worker):
                if isinstance(key.value, int) and -len(constants) <= key.value < len(constants):
                    return [(Known(constants[key.value], owner.causes | key.causes), state)]
            case Known(value=ConstantDict()) | Pairs():
                return self.entry_of(owner, key, None, state, frame)
            case Known(value=None) if not self.in_worker:
                self.raise_("TypeError", state, frame, owner.causes)
                return []
            case Item():
                return [(Item(part=True, causes=owner.causes), state)]
            case Object() if not self.in_worker:  # its own `__getitem__`
                state = state.poisoned()
            case _:
                pass
        return [(self.part_of(self.computed((owner, key))), state)]

    def entry_of(self, owner: Known | Pairs, key: Value, default: Value | None, state: State, frame: Frame) -> Outcomes:
        """``owner[key]`` of a dict display or, with a default, ``owner.get(key, default)``."""
        entries: list[tuple[Value, Value]]
        if isinstance(owner, Pairs):
            entries = list(owner.items)
        else:
            assert isinstance(owner.value, ConstantDict)
            entries = [(Known(name), Known(held)) for name, held in owner.value.entries]
        for known, value in reversed(entries):
            answer = operators.truth(operators.compare("==", key, known))
            if answer is None:
                parts = [part for entry in entries for part in entry]
                return [(self.computed((owner, key, *parts, *([] if default is None else [default]))), state)]
            if answer:
                return [(with_causes(value, owner.causes | key.causes), state)]
        if default is None:
            self.raise_("KeyError", state, frame, owner.causes | key.causes)
            return []
        return [(with_causes(default, owner.causes | key.causes), state)]

    @abstractmethod
    def call(self, expression: ir.Call, state: State, frame: Frame) -> Outcomes:
        """Every result of a call."""


def _stored_attributes(cls: ClassInfo) -> frozenset[str]:
    """The attributes that code in the modules of ``cls``'s hierarchy sets on any object or class."""
    key = ("stored attributes", cls)
    known = cls.world.memo.get(key)
    if not isinstance(known, frozenset):
        known = cls.world.memo[key] = frozenset(
            node.attr
            for module in {entry.module for entry in cls.family()}
            for node in module.nodes_of_kind(ast.Attribute)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        )
    return known


def _aliases(cls: ClassInfo, table: str) -> frozenset[str]:
    """Attributes that some method sets to something made from the attribute ``table``."""
    key = ("aliases", cls, table)
    known = cls.world.memo.get(key)
    if not isinstance(known, frozenset):
        known = cls.world.memo[key] = frozenset(
            name
            for entry in cls.family()
            for method in entry.methods.values()
            for name in _aliases_in(entry, method, table)
        )
    return known


def _aliases_in(cls: ClassInfo, method: ast.AST, table: str) -> Iterator[str]:
    for node in cls.module.nodes_of(method, ast.Assign, ast.AnnAssign):
        match node:
            case ast.Assign(targets=targets, value=value):
                names = [target.attr for target in targets if isinstance(target, ast.Attribute)]
                if names and _mentions(value, table):
                    yield from names
            case ast.AnnAssign(target=ast.Attribute(attr=name), value=ast.expr() as value) if _mentions(value, table):
                yield name
            case _:
                pass


def _mentions(expression: ast.expr, table: str) -> bool:
    """Whether ``expression`` uses the attribute ``table`` other than to read one entry of it."""
    match expression:
        case ast.Subscript(value=ast.Attribute(attr=attr), slice=key) if attr == table:
            return _mentions(key, table)
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr=attr), attr="get"), args=arguments) if attr == table:
            return any(_mentions(argument, table) for argument in arguments)
        case ast.Attribute(attr=attr) if attr == table:
            return True
        case _:
            return any(
                _mentions(child, table) for child in ast.iter_child_nodes(expression) if isinstance(child, ast.expr)
            )
