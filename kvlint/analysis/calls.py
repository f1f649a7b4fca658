"""Abstract calls: dict methods of the tables, constructors, methods followed along the hierarchy, and the unknown."""

from __future__ import annotations

import ast
import builtins
from abc import abstractmethod
from dataclasses import replace

from kvlint.analysis import ir, operators
from kvlint.analysis.conclusions import Reach, receiver_name
from kvlint.analysis.effects import BYSTANDERS, Effects, flattened
from kvlint.analysis.evaluate import Outcomes
from kvlint.analysis.frames import Frame, Raised
from kvlint.analysis.lower import lowered
from kvlint.analysis.subject import Subject
from kvlint.analysis.values import (
    NONE,
    STATUS,
    UNKNOWN,
    BoundCall,
    Env,
    Field,
    Global,
    Item,
    Known,
    Local,
    Object,
    Something,
    State,
    StatusTable,
    Super,
    Value,
    computed_from,
)
from kvlint.semantics.constants import enum_info
from kvlint.semantics.hierarchy import ClassInfo, Method, class_info, resolve_class
from kvlint.semantics.module import Function, Module
from kvlint.semantics.world import Symbol, World

_MAX_DEPTH = 8


class Caller(Effects):
    """Evaluates calls; running a function's body is left to the subclass in ``interpreter``."""

    def __init__(self, world: World, subject: Subject, *, in_worker: bool, reach: Reach) -> None:
        super().__init__(world, subject, in_worker=in_worker)
        self.reach = reach
        self.depth = 0
        self.takes: frozenset[ast.AST] = frozenset()
        self._calls: dict[object, tuple[Outcomes, tuple[Raised, ...]]] = {}

    @abstractmethod
    def run_body(self, function: ir.Function, state: State, frame: Frame) -> Outcomes:
        """The returned values of ``function`` started in ``state`` (parameters bound), each with its state."""

    def call(self, expression: ir.Call, state: State, frame: Frame) -> Outcomes:
        """Every result of a call."""
        results: Outcomes = []
        for callee, ready in self._callee(expression.callee, state, frame):
            names = tuple(name for name, _ in expression.keywords)
            parts = (*expression.arguments, *(value for _, value in expression.keywords))
            for values, before in self.evaluate_all(parts, ready, frame):
                count = len(expression.arguments)
                named = dict(zip(names, values[count:], strict=True))
                results.extend(self._apply(expression, callee, values[:count], named, before, frame))
        return results

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
            return self.attribute_of(owner, name, state)
        if isinstance(owner, Object):
            attribute = self.attribute_of(owner, name, state)
            return attribute if isinstance(attribute, Field) else BoundCall(owner, name, owner.causes)
        return BoundCall(owner, name, owner.causes)

    def _apply(  # noqa: C901 - one arm a kind
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
                return self._on_object(expression, Object(owner.cls), method, values, named, state, frame)
            case BoundCall(owner=Known() as owner, name=name):
                return self._on_constant(expression, owner, name, values, state)
            case Local(function=function, frame=number) if number == frame.number and self.depth < _MAX_DEPTH:
                return self._inline_local(function, values, named, state, frame)
            case Global():
                return self._on_global(expression, callee, values, named, state, frame)
            case _:
                return self._unknown(expression, callee, [*values, *named.values()], state, frame)

    # -- the tables -----------------------------------------------------------

    # -- functions whose source is known --------------------------------------

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
        given = self.in_worker and any(isinstance(value, Item) and not value.part for value in flattened(everything))
        if not self.reach.touches(method, receiver.cls, self.subject) and not (
            given and self.reach.hands_over(method, receiver.cls)
        ):
            self._may_raise(expression, state, frame)
            return [(computed_from(everything), state)]
        if self.depth >= _MAX_DEPTH:
            return self._unknown(expression, receiver, everything, state, frame)
        arguments = [*({"static": [], "class": [Something()]}.get(method.kind, [receiver])), *values]
        module, owner = method.owner.module, method.owner
        inner = self._frame(module, owner, method.node, frame, receiver_name(method.node))
        return self.inline(lowered(self.world, method.node), arguments, named, state, inner, frame)

    def _frame(
        self, module: Module, owner: ClassInfo | None, node: ast.AST, caller: Frame, receiver: str | None
    ) -> Frame:
        return Frame(
            module,
            owner,
            node,
            self.depth + 1,
            caller.raised,
            caller.after_call,
            caller.caught,
            receiver=receiver,
        )

    def inline(
        self,
        function: ir.Function,
        arguments: list[Value],
        named: dict[str, Value],
        state: State,
        frame: Frame,
        caller: Frame,
    ) -> Outcomes:
        """Run ``function`` on the given arguments; the caller's locals come back afterwards."""
        if function.is_generator:
            return [(Something(), self._poisoned(state))]
        bound = self._bind(function, arguments, named, state, frame)
        if bound is None:
            self.raise_("TypeError", state, frame)
            return []
        started = replace(state, env=Env(bound), control=frozenset(), tested=frozenset())
        outcomes, thrown = self._run_once(function, started, frame)
        for each in thrown:
            self.throw(replace(each, state=_returned(each.state, state)), caller)
        results: Outcomes = []
        for value, after in outcomes:
            results.append((value, _returned(after, state)))
        return list(dict.fromkeys(results))

    def _run_once(self, function: ir.Function, started: State, frame: Frame) -> tuple[Outcomes, tuple[Raised, ...]]:
        """Run a body, or repeat what the same call in the same state did before."""
        key = (function, started, frame.defined_in, frame.after_call, frame.caught, frame.raised is None, self.depth)
        known = self._calls.get(key)
        if known is None:
            escaped, self.escaped = self.escaped, []
            frame.raised = None if frame.raised is None else []
            self.depth += 1
            try:
                outcomes = self.run_body(function, started, frame)
            finally:
                self.depth -= 1
            thrown = tuple(dict.fromkeys((*self.escaped, *(frame.raised or ()))))
            self.escaped = escaped
            if self.in_worker and self._only_fails(started, outcomes):
                thrown = tuple(replace(each, state=each.state.note(handed=True)) for each in thrown)
            known = self._calls[key] = (outcomes, thrown)
        return known

    def _only_fails(self, started: State, outcomes: Outcomes) -> bool:
        """Whether all that a call does to a live room is to fail it: when it raises, the end has been tried."""
        if not self.subject.is_live(started.stored) or not outcomes:
            return False
        return all(self.subject.enum.is_failure(after.stored) for _, after in outcomes)

    def _bind(  # noqa: C901 - one arm a kind
        self, function: ir.Function, arguments: list[Value], named: dict[str, Value], state: State, frame: Frame
    ) -> dict[str, Value] | None:
        bound = dict(zip(function.parameters, arguments, strict=False))
        if len(arguments) > len(function.parameters) and not function.collects:
            return None
        for name, value in named.items():
            if name in function.parameters:
                bound[name] = value
            elif not function.collects:
                return None
        for name, default in function.defaults:
            if name not in bound:
                bound[name] = self.evaluate(default, state, frame)[0][0]
        for name in function.parameters:
            bound.setdefault(name, UNKNOWN)
        if self.in_worker:
            followed = self.followed(function)
            for name in function.parameters:
                if name not in followed and not isinstance(bound[name], Object):
                    bound[name] = UNKNOWN
        return bound

    @abstractmethod
    def followed(self, function: ir.Function) -> frozenset[str]:
        """The locals of ``function`` that can matter on a worker's path."""

    def _inline_local(
        self, function: ir.Function, values: list[Value], named: dict[str, Value], state: State, frame: Frame
    ) -> Outcomes:
        if self.in_worker and not function.shared and not self._local_matters(function, state, frame):
            return [(computed_from([*values, *named.values()]), state)]
        bound = self._bind(function, values, named, state, frame)
        if bound is None or function.is_generator:
            return [(Something(), self._poisoned(state))]
        started = state
        for name, value in bound.items():
            started = replace(started, env=started.env.set(name, value))
        inner = self._frame(frame.module, frame.defined_in, function.at, frame, frame.receiver)
        inner.number, inner.locals = frame.number, frame.locals
        outcomes, thrown = self._run_once(function, replace(started, tested=frozenset()), inner)
        env = state.env
        for name in function.shared:
            env = env.set(name, Something(undecided=True))
        before = replace(state, env=env)
        for each in thrown:
            self.throw(replace(each, state=_returned(each.state, before)), frame)
        return [
            (value, replace(_returned(after, before), tested=state.tested | after.tested)) for value, after in outcomes
        ]

    def _local_matters(self, function: ir.Function, state: State, frame: Frame) -> bool:
        """Whether a nested function touches the room's status or one of its tables."""
        receiver = self._receiver(state, frame)
        cls = receiver.cls if receiver is not None else None
        return self.reach.nested_touches(function.at, frame.module, cls, frame.defined_in, frame.receiver, self.subject)

    def _on_global(  # noqa: C901 - one arm a kind
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
                return self._on_function(expression, callee, target.module, target.node, values, named, state, frame)
            return self._unknown(expression, callee, everything, state, frame)
        if callee.dotted == "super" and not values and frame.defined_in is not None:
            receiver = self._receiver(state, frame)
            if receiver is not None:
                return [(Super(receiver.cls, frame.defined_in), state)]
        if callee.dotted in {"getattr", "setattr", "delattr"} and values:
            return self._dynamic(callee.dotted, values, state)
        if not named or callee.dotted in {"max", "min"}:
            try:
                folded = operators.builtin(callee.dotted, values)
            except operators.RaisesError as error:
                self.raise_(error.name, state, frame)
                return []
            if folded is not None and not any(isinstance(value, StatusTable) for value in values):
                if named:
                    folded = computed_from(everything)
                return [(folded, state)]
        if callee.dotted == "next" or callee.dotted in BYSTANDERS or hasattr(builtins, callee.dotted):
            undecided = any(isinstance(value, StatusTable) for value in everything)
            value = computed_from(everything)
            return [(Something(value.causes, value.undecided or undecided), state)]
        return self._unknown(expression, callee, everything, state, frame)

    def _receiver(self, state: State, frame: Frame) -> Object | None:
        value = state.env.get(frame.receiver) if frame.receiver is not None else None
        return value if isinstance(value, Object) else None

    def _dynamic(self, name: str, values: list[Value], state: State) -> Outcomes:
        if name == "getattr" and len(values) > 1:
            attribute = values[1]
            if isinstance(attribute, Known) and isinstance(attribute.value, str):
                return [(self.attribute_of(values[0], attribute.value, state), state)]
            return [(Something(undecided=True), state)]
        return [(NONE, self._poisoned(state) if isinstance(values[0], Object) else state)]

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
            return [(computed_from(values), state)]
        return self._unknown(expression, Object(cls), values, state, frame, result=Object(cls))

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
        carries = any(
            isinstance(value, Object | StatusTable)
            or (isinstance(value, Item) and not value.part)
            or (isinstance(value, Field) and self.reach.follows(value.name))
            for value in flattened(everything)
        )
        if not carries and not self.reach.function_touches(module, node, self.subject):
            self._may_raise(expression, state, frame)
            return [(computed_from(everything), state)]
        if node.decorator_list or expression.spread or self.depth >= _MAX_DEPTH:
            return self._unknown(expression, callee, everything, state, frame)
        inner = self._frame(module, None, node, frame, None)
        return self.inline(lowered(self.world, node), values, named, state, inner, frame)

    # -- the unknown ----------------------------------------------------------

    def resolve_named_class(self, module: Module, dotted: str) -> Object | None:
        """An instance of the class that ``dotted`` names in ``module``."""
        cls = resolve_class(self.world, module, dotted)
        return None if cls is None else Object(cls)


def _returned(after: State, caller: State) -> State:
    """``after`` back in the caller: its own locals, what the callee did to everything else."""
    return replace(after, env=caller.env, control=caller.control, tested=caller.tested)
