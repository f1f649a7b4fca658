"""Abstract calls, by what is called: tables, constants, constructors, methods, functions, builtins, the unknown."""

from __future__ import annotations

import ast
import builtins

from msgspec.structs import replace

from kvlint.analysis import ir, operators
from kvlint.analysis.conclusions import receiver_name
from kvlint.analysis.effects import BYSTANDERS, flattened
from kvlint.analysis.frames import Frame
from kvlint.analysis.inlining import MAX_DEPTH, Inliner
from kvlint.analysis.lower import lowered
from kvlint.analysis.memory import Outcomes
from kvlint.analysis.states import State
from kvlint.analysis.values import (
    NONE,
    STATUS,
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
    carries,
    computed_from,
    is_mutable,
)
from kvlint.semantics.constants import enum_info
from kvlint.semantics.hierarchy import ClassInfo, Method, class_info, resolve_class
from kvlint.semantics.module import Function, Module
from kvlint.semantics.world import External, Symbol

# Builtins that call what they are given.
_CALLING = frozenset({"filter", "iter", "map", "max", "min", "sorted"})
# Builtins that run or change what no analysis sees.
_UNSEEN = frozenset({"exec", "eval", "compile", "globals", "locals", "vars", "__import__"})


class Caller(Inliner):
    """Evaluates calls, sorted by what is called."""

    def call(self, expression: ir.Call, state: State, frame: Frame) -> Outcomes:
        """Every result of a call."""
        results: Outcomes = []
        for callee, ready in self._callee(expression.callee, state, frame):
            match callee, expression.arguments:
                case BoundCall(owner=StatusTable(), name="update"), (ir.Mapping(items=items),) if (
                    not expression.keywords
                ):
                    results.extend((NONE, after) for after in self._stored_all(items, ready, frame))
                    continue
                case _:
                    pass
            names = tuple(name for name, _ in expression.keywords)
            parts = (*expression.arguments, *(value for _, value in expression.keywords))
            for values, before in self.evaluate_all(parts, ready, frame):
                count = len(expression.arguments)
                named = dict(zip(names, values[count:], strict=True))
                results.extend(self._apply(expression, callee, values[:count], named, before, frame))
        return results

    def _stored_all(
        self, items: tuple[tuple[ir.Expression, ir.Expression], ...], state: State, frame: Frame
    ) -> list[State]:
        """The states after the entries of a dict display were put into the status table."""
        parts = tuple(part for pair in items for part in pair)
        ends: list[State] = []
        for values, after in self.evaluate_all(parts, state, frame):
            for key, value in zip(values[::2], values[1::2], strict=True):
                after = self.store(self.constant(key), value, after)
            ends.append(after)
        return ends

    def _callee(self, callee: ir.Expression, state: State, frame: Frame) -> Outcomes:
        if isinstance(callee, ir.Attribute):
            return [
                (self._method_of(owner, callee.name, after), after)
                for owner, after in self.evaluate(callee.owner, state, frame)
            ]
        return self.evaluate(callee, state, frame)

    def _method_of(self, owner: Value, name: str, state: State) -> Value:
        if isinstance(owner, Something) and self.in_worker:
            return BoundCall(owner, name, owner.causes & frozenset({STATUS}))
        if isinstance(owner, Global):
            folded = owner if self.in_worker else self.constant(owner)
            return self.attribute_of(owner, name, state) if folded is owner else BoundCall(folded, name, owner.causes)
        if isinstance(owner, Object):
            attribute = self.attribute_of(owner, name, state)
            if isinstance(attribute, Field) or (isinstance(attribute, Something | Local) and not self.in_worker):
                return attribute
            return BoundCall(owner, name, owner.causes)
        return BoundCall(owner, name, owner.causes)

    def _apply(
        self,
        expression: ir.Call,
        callee: Value,
        values: list[Value],
        named: dict[str, Value],
        state: State,
        frame: Frame,
    ) -> Outcomes:
        if expression.at in self.takes:
            if frame.raised is not None:
                self.raise_("Empty", state, frame)
            return [(Item(), state.note(taken=True))]
        values = [self.constant(value) for value in values]
        named = {name: self.constant(value) for name, value in named.items()}
        results = self._dispatch(expression, callee, values, named, state, frame)
        if not self.in_worker and any(is_mutable(value) for value in (*values, *named.values())):
            given = (callee, *values, *named.values())
            return [(value, self.forget_mutable(after, given)) for value, after in results]
        return results

    def _dispatch(
        self,
        expression: ir.Call,
        callee: Value,
        values: list[Value],
        named: dict[str, Value],
        state: State,
        frame: Frame,
    ) -> Outcomes:
        match callee:
            case BoundCall(owner=StatusTable(), name=name):
                return self._on_status_table(name, values, named, state, frame)
            case BoundCall(owner=Field() as owner, name=name):
                return self._on_field(expression, owner, name, values, state, frame)
            case BoundCall(owner=Object() as owner, name=name):
                method = owner.cls.lookup(name)
                return self._on_object(expression, owner, method, values, named, state, frame)
            case BoundCall(owner=Super() as owner, name=name):
                method = owner.cls.lookup(name, after=owner.after)
                if method is None and name == "__init__":
                    return [(NONE, state)]
                receiver = Object(owner.cls, path=owner.path)
                return self._on_object(expression, receiver, method, values, named, state, frame)
            case BoundCall(owner=Known() as owner, name=name):
                return self._on_constant(expression, owner, name, values, state, frame)
            case BoundCall(owner=Pairs() | Several(mutable=True) as owner, name=name):
                return self._on_contents(owner, name, values, state, frame)
            case Local():
                return self._on_local(expression, callee, values, named, state, frame)
            case Global():
                return self._on_global(expression, callee, values, named, state, frame)
            case _:
                return self._unknown(expression, callee, [*values, *named.values()], state, frame)

    def _on_object(
        self,
        expression: ir.Call,
        receiver: Object,
        method: Method | None,
        values: list[Value],
        named: dict[str, Value],
        state: State,
        frame: Frame,
    ) -> Outcomes:
        everything = [*values, *named.values()]
        if method is None or method.kind == "wrapped" or expression.spread:
            return self._unknown(expression, receiver, everything, state, frame)
        if self.in_worker and self.reach.is_hook(method):
            return self._unknown(expression, receiver, everything, state, frame)
        touches = self.reach.touches(method, receiver.cls, self.subject)
        if self.in_worker and not touches and not self._hands_over(method, receiver, everything):
            self._may_raise(expression, state, frame)
            return [(computed_from(everything), state)]
        if self.depth >= MAX_DEPTH:
            return self._unknown(expression, receiver, everything, state, frame)
        of_class: Value = Something() if self.in_worker else Object(receiver.cls, path="class.")
        arguments = [*({"static": [], "class": [of_class]}.get(method.kind, [receiver])), *values]
        module, owner = method.owner.module, method.owner
        inner = self._frame(module, owner, method.node, frame, receiver_name(method.node))
        touches = touches or self.in_worker
        return self.inline(lowered(self.world, method.node), arguments, named, state, inner, frame, touches)

    def _hands_over(self, method: Method, receiver: Object, values: list[Value]) -> bool:
        """Whether a worker's call gives its item to a method that hands it over."""
        given = any(isinstance(value, Item) and not value.part for value in flattened(values))
        return given and self.reach.hands_over(method, receiver.cls)

    def _on_global(
        self,
        expression: ir.Call,
        callee: Global,
        values: list[Value],
        named: dict[str, Value],
        state: State,
        frame: Frame,
    ) -> Outcomes:
        everything = [*values, *named.values()]
        target = self.world.resolve(callee.module, callee.dotted)
        if isinstance(target, Symbol):
            if isinstance(target.node, ast.ClassDef):
                return self._construct(target.module, target.node, everything, state, expression, frame)
            if isinstance(target.node, ast.FunctionDef | ast.AsyncFunctionDef):
                owner = None if self.in_worker else self._class_before(callee)
                if owner is not None:
                    return self._on_class(expression, callee, owner, values, named, state, frame)
                return self._on_function(expression, callee, target.module, target.node, values, named, state, frame)
            return self._unknown(expression, callee, everything, state, frame)
        return self._on_builtin(expression, callee, values, named, state, frame)

    def _on_builtin(
        self,
        expression: ir.Call,
        callee: Global,
        values: list[Value],
        named: dict[str, Value],
        state: State,
        frame: Frame,
    ) -> Outcomes:
        everything = [*values, *named.values()]
        if callee.dotted == "super":
            above = self._super(values, state, frame)
            if above is not None:
                return [(above, state)]
        if callee.dotted in {"getattr", "setattr", "delattr"} and values:
            return self._dynamic(callee.dotted, values, state)
        calls = callee.dotted in _CALLING and any(
            self._may_write(value, everything, state, frame) for value in everything
        )
        if (callee.dotted in _UNSEEN or calls) and not self.in_worker:
            return [(Something(undecided=True, reaches=True), state.poisoned())]
        if not expression.spread and (not named or callee.dotted in {"max", "min"}):
            try:
                folded = self._folded(callee.dotted, values)
            except operators.RaisesError as error:
                self.raise_(error.name, state, frame)
                return []
            if folded is not None and not any(isinstance(value, StatusTable) for value in values):
                if named or (isinstance(folded, Something) and not self.in_worker):
                    folded = self.computed(everything)
                return [(folded, state)]
        if callee.dotted == "next" or callee.dotted in BYSTANDERS or hasattr(builtins, callee.dotted):
            undecided = any(isinstance(value, StatusTable) for value in everything)
            value = self.computed(everything)
            return [(replace(value, undecided=value.undecided or undecided), state)]
        return self._unknown(expression, callee, everything, state, frame)

    def _may_write(self, value: Value, given: list[Value], state: State, frame: Frame) -> bool:
        """Whether a call of ``value`` by a builtin that is ``given`` it can change the status."""
        match value:
            case BoundCall():
                return carries(value)
            case Local(function=function):
                return self._local_matters(function, state, frame)
            case Global():
                return any(carries(other) for other in given)
            case _:
                return False

    def _folded(self, name: str, values: list[Value]) -> Value | None:
        if not values and name in {"tuple", "list", "set", "frozenset", "dict"} and not self.in_worker:
            return Known(frozenset() if "set" in name else (), mutable=name in {"list", "set", "dict"})
        return operators.builtin(name, values)

    def _super(self, values: list[Value], state: State, frame: Frame) -> Value | None:
        """``super()``, or ``super(C, self)`` with the same meaning; None where it cannot be told."""
        receiver = self._receiver(state, frame)
        if not values and frame.defined_in is not None and receiver is not None:
            return Super(receiver.cls, frame.defined_in, path=receiver.path)
        match values:
            case [Global(module=module, dotted=dotted), Object() as receiver]:
                cls = resolve_class(self.world, module, dotted)
                if cls is not None:
                    return Super(receiver.cls, cls, path=receiver.path)
            case _:
                pass
        return None if self.in_worker else Something(undecided=True, reaches=True)

    def _class_before(self, callee: Global) -> ClassInfo | None:
        """The class ``C`` of ``C.method``."""
        owner = callee.dotted.rpartition(".")[0]
        return resolve_class(self.world, callee.module, owner) if owner else None

    def _on_class(
        self,
        expression: ir.Call,
        callee: Global,
        owner: ClassInfo,
        values: list[Value],
        named: dict[str, Value],
        state: State,
        frame: Frame,
    ) -> Outcomes:
        """``C.method(...)``: a static method, or a method given its object."""
        method = owner.lookup(callee.dotted.rpartition(".")[2])
        match method, values:
            case Method(kind="static"), _:
                return self._on_object(expression, Object(owner, path="class."), method, values, named, state, frame)
            case Method(kind="instance"), [Object() as receiver, *rest]:
                return self._on_object(expression, receiver, method, rest, named, state, frame)
            case _:
                return self._unknown(expression, Something(reaches=True), [*values, *named.values()], state, frame)

    def _dynamic(self, name: str, values: list[Value], state: State) -> Outcomes:
        if name == "getattr" and len(values) > 1:
            attribute = values[1]
            if isinstance(attribute, Known) and isinstance(attribute.value, str):
                return [(self.attribute_of(values[0], attribute.value, state), state)]
            return [(Something(undecided=True, reaches=carries(values[0])), state)]
        return [(NONE, state.poisoned() if carries(values[0]) else state)]

    def _construct(
        self,
        module: Module,
        node: ast.ClassDef,
        values: list[Value],
        state: State,
        expression: ir.Call,
        frame: Frame,
    ) -> Outcomes:
        cls = class_info(self.world, module, node)
        members = enum_info(cls)
        if members is not None:
            if len(values) == 1 and isinstance(values[0], Known):
                plain = getattr(values[0].value, "value", values[0].value)
                for value in members.values.values():
                    if plain == getattr(value, "value", value):
                        return [(Known(value, values[0].causes), state)]
                self.raise_("ValueError", state, frame)
                return []
            return [(self.computed(values), state)]
        if self.in_worker:
            return self._unknown(expression, Object(cls), values, state, frame, result=Object(cls))
        if _is_plain_exception(cls):
            return [(Object(cls, path=None), state)]
        callee = Global(module, node.name)
        return self._unknown(expression, callee, values, state, frame, result=Object(cls, path=None))

    def _on_function(
        self,
        expression: ir.Call,
        callee: Value,
        module: Module,
        node: Function,
        values: list[Value],
        named: dict[str, Value],
        state: State,
        frame: Frame,
    ) -> Outcomes:
        everything = [*values, *named.values()]
        touches = self.reach.function_touches(module, node, self.subject)
        if self.in_worker and not touches and not any(self._is_given(value) for value in flattened(everything)):
            self._may_raise(expression, state, frame)
            return [(computed_from(everything), state)]
        if node.decorator_list or expression.spread or self.depth >= MAX_DEPTH:
            callee = Something(reaches=True) if touches and not self.in_worker else callee
            return self._unknown(expression, callee, everything, state, frame)
        inner = self._frame(module, None, node, frame, None)
        touches = touches or self.in_worker or any(carries(value) for value in everything)
        return self.inline(lowered(self.world, node), values, named, state, inner, frame, touches)

    def _is_given(self, value: Value) -> bool:
        """Whether a function that gets ``value`` can matter to a worker's room or item."""
        match value:
            case Object() | StatusTable() | Item(part=False):
                return True
            case Field(name=name):
                return self.reach.follows(name)
            case _:
                return False


def _is_plain_exception(cls: ClassInfo) -> bool:
    """Whether making an instance of ``cls`` only keeps the arguments, as built-in exceptions do."""
    if any(entry.methods.keys() & {"__init__", "__new__"} for entry in cls.family()):
        return False
    bases = [getattr(builtins, entry.dotted, None) for entry in cls.resolution_order if isinstance(entry, External)]
    return bool(bases) and all(isinstance(base, type) and issubclass(base, BaseException) for base in bases)
