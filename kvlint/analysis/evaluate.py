"""Abstract evaluation of expressions; calls are left to the subclass in ``calls``."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace

from kvlint.analysis import ir, operators, walk
from kvlint.analysis.frames import Frame, Raised, forget
from kvlint.analysis.subject import Subject
from kvlint.analysis.values import (
    ABSENT,
    STATUS,
    UNDECIDED,
    UNKNOWN,
    BoundCall,
    Causes,
    Field,
    Global,
    Item,
    Key,
    Known,
    Local,
    Object,
    Pairs,
    Removal,
    Several,
    Something,
    State,
    StatusTable,
    Stored,
    Super,
    Value,
    carries,
    causes_of,
    computed_from,
    with_causes,
)
from kvlint.semantics.constants import ConstantDict, Member, _NotConstant, constant_of, fold
from kvlint.semantics.hierarchy import ClassInfo
from kvlint.semantics.world import World

Outcomes = list[tuple[Value, State]]
_CONTENT_CAUSES = frozenset({STATUS})


class Evaluator(ABC):
    """Evaluates expressions for one subject.

    ``in_worker`` tells the two uses apart: a writer's table must never claim
    what it does not know, so an unknown call that gets hold of the object makes
    the status UNDECIDED; on a worker's paths every key means the room at hand.
    """

    def __init__(self, world: World, subject: Subject, *, in_worker: bool) -> None:
        self.world = world
        self.subject = subject
        self.in_worker = in_worker
        self.escaped: list[Raised] = []

    # -- names and attributes -------------------------------------------------

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
                return [(self._display(values), after) for values, after in self.evaluate_all(parts, state, frame)]
            case ir.Closure(function=function):
                return [(Local(function, frame.number), state)]
            case ir.Repeated():
                return self._repeated(expression, state, frame)
            case ir.Opaque(parts=parts):
                return [(self.computed(values), after) for values, after in self.evaluate_all(parts, state, frame)]

    def computed(self, values: Sequence[Value]) -> Something:
        """The result of an operation not followed: for a table, undecided unless something unrelated goes in."""
        value = computed_from(values)
        if self.in_worker:
            return value
        reaches = any(carries(each) for each in values)
        undecided = value.undecided or reaches or all(_is_settled(each) for each in values)
        return replace(value, undecided=undecided, reaches=reaches)

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

    def constant(self, value: Value) -> Value:
        """``value`` with a global name folded to the constant it stands for."""
        if not isinstance(value, Global):
            return value
        folded = constant_of(self.world, value.module, value.dotted)
        return value if isinstance(folded, _NotConstant) else Known(folded, value.causes)

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
                return BoundCall(owner, name, owner.causes & _CONTENT_CAUSES)
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
        changes = not self.in_worker and cls.assigns(name)
        method = None if changes else cls.lookup(name)
        if method is not None:
            return self.computed((owner,)) if method.is_property else BoundCall(owner, name)
        holder = None if changes else cls.value(name)
        if holder is not None:
            folded = fold(self.world, holder[0], holder[1])
            if not isinstance(folded, _NotConstant) and folded is not None:
                return Known(folded)
        if not self.in_worker and name in _aliases(cls, self.subject.attribute):
            return Something(undecided=True, reaches=True)
        attribute = cls.attribute_class(name)
        if attribute is None:
            return Field(name, container=not self.in_worker and cls.is_container(name))
        return Object(attribute, path="" if self.in_worker else f"{path}{name}.")

    def stored_value(self, stored: Stored) -> Value:
        """The value of a read of the stored status (ABSENT reads as None)."""
        if stored is UNDECIDED:
            return Something(frozenset({STATUS}), undecided=True)
        if stored is ABSENT:
            return Known(None, frozenset({STATUS}))
        return Known(stored, frozenset({STATUS}))  # type: ignore[arg-type]

    # -- operators ------------------------------------------------------------

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

    def is_room(self, value: Value) -> bool:
        """Whether a key value means the room at hand."""
        if isinstance(value, Key):
            return True
        return self.in_worker and not self._is_other_room(value)

    def _is_other_room(self, value: Value) -> bool:
        return isinstance(value, Known) and STATUS not in value.causes

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

    def tested(self, value: Value) -> Value:
        """``value`` as a condition: what a table is worth depends on all rooms in it."""
        value = self.constant(value)
        return Something(undecided=True) if isinstance(value, StatusTable) else value

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
        if isinstance(value, BoundCall) and not self.in_worker:
            return self.computed((value,)).undecided
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

    def _collection(self, expression: ir.Collection, state: State, frame: Frame) -> Outcomes:
        results: Outcomes = []
        for values, after in self.evaluate_all(expression.items, state, frame):
            values = [self.constant(value) for value in values]
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
                results.append((Several(tuple(values)), after))
        return results

    @staticmethod
    def _unaliased(value: Value) -> Value:
        """What a container keeps of a value: nothing of the contents of what may change elsewhere."""
        changes = isinstance(value, Known) and value.mutable
        return Something(value.causes, undecided=True, not_none=True) if changes else value

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

    # -- subscripts -----------------------------------------------------------

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
            case _:
                pass
        return [(self.part_of(self.computed((owner, key))), state)]

    def entry_of(self, owner: Known | Pairs, key: Value, default: Value | None, state: State, frame: Frame) -> Outcomes:
        """``owner[key]`` of a dict display or, with a default, ``owner.get(key, default)``."""
        entries: list[tuple[Value, Value]] = []
        match owner:
            case Known(value=ConstantDict(entries=constants)):
                entries = [(Known(name), Known(held)) for name, held in constants]
            case Pairs(items=items):
                entries = list(items)
            case _:
                pass
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

    def part_of(self, value: Something) -> Something:
        """Something inside a value: what a room table holds says nothing of whether the room is in it."""
        return Something(value.causes & _CONTENT_CAUSES, value.undecided) if self.in_worker else value

    # -- effects on the status ------------------------------------------------

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

    def forget_mutable(self, state: State) -> State:
        """``state`` after some list, set or dict changed: which of the variables hold it is not followed."""
        env = state.env
        for name in env.names():
            value = env.get(name)
            if isinstance(value, Known) and value.mutable:
                env = env.set(name, self._unaliased(value))
        return state.within(env)

    # -- exceptions and calls -------------------------------------------------

    def raise_(self, name: str, state: State, frame: Frame, causes: Causes = frozenset()) -> None:
        """Let the exception ``name`` leave from ``state``."""
        self.throw(Raised(name, state, causes), frame)

    def throw(self, raised: Raised, frame: Frame) -> None:
        """Let an exception leave the statement that ``frame`` is at."""
        if frame.handled is not None:
            raised = replace(raised, state=forget(raised.state, frame.handled, frame.receiver))
        (self.escaped if frame.raised is None else frame.raised).append(raised)

    @abstractmethod
    def follows(self, table: str) -> bool:
        """Whether ``table`` is a room table whose contents matter here."""

    @abstractmethod
    def call(self, expression: ir.Call, state: State, frame: Frame) -> Outcomes:
        """Every result of a call."""


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
