"""Every place of a module that writes a status, with the writer it reaches and the members it may write."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from kvlint.analysis.evidence import member_named
from kvlint.analysis.infer import Writer, attribute_subjects, own_writers, subject_of, writer_for
from kvlint.analysis.places import Place, callees, places_of
from kvlint.analysis.subject import StatusEnum, Subject
from kvlint.analysis.threads import Thread, thread_of
from kvlint.semantics.class_body import parameters
from kvlint.semantics.module import Module, inner_blocks, leaves
from kvlint.semantics.world import World


class Write(Struct, frozen=True, eq=False, dict=True):
    """A call of a writer (``writer`` set) or a direct store into the table or attribute.

    ``members`` are the members it may write, empty where that cannot be told.
    ``locks`` are the locks held around it, as dotted texts; ``guards`` the
    conditions that hold there, each with the locks held when it was tested.
    """

    node: ast.AST
    place: Place
    subject: Subject
    writer: Writer | None
    members: tuple[str, ...]
    key: ast.expr | None
    locks: frozenset[str]
    guards: tuple[Guard, ...]


class Guard(Struct, frozen=True):
    """A condition that is ``holds`` where a statement runs, tested under ``locks``."""

    test: ast.expr
    holds: bool
    locks: frozenset[str]


class Surroundings(Struct, frozen=True):
    """What holds at a node: enclosing conditions and locks."""

    guards: tuple[Guard, ...] = ()
    locks: frozenset[str] = frozenset()


def writes_in(world: World, module: Module) -> tuple[Write, ...]:
    """Every status write in ``module``, in source order."""
    key = ("writes", module)
    known = world.memo.get(key)
    if not isinstance(known, tuple):
        world.memo[key] = ()
        known = world.memo[key] = tuple(write for place in places_of(world, module) for write in _writes_of(place))
    return known


def _writes_of(place: Place) -> Iterator[Write]:
    is_writer = _is_writer(place)
    for node in place.nodes(ast.Call, ast.Assign):
        match node:
            case ast.Call():
                call = _writer_call(place, node)
                if call is not None:
                    writer, status, room = call
                    here = place_surroundings(place, node)
                    members = possible_members(place, status, writer.subject.enum, here.guards)
                    yield Write(node, place, writer.subject, writer, members, room, here.locks, here.guards)
                elif not is_writer:
                    yield from _store_call(place, node)
            case ast.Assign(targets=targets, value=value) if not is_writer:
                for target in targets:
                    yield from _store(place, node, target, value)
            case _:
                pass


def place_surroundings(place: Place, node: ast.AST) -> Surroundings:
    """What holds at ``node`` in ``place``; found for the whole function the first time it is asked for."""
    key = ("surroundings", place)
    known = place.world.memo.get(key)
    if not isinstance(known, dict):
        known = place.world.memo[key] = surroundings(place)
    return known.get(node) or Surroundings()


def _is_writer(place: Place) -> bool:
    method = place.method
    return method.cls is not None and any(writer.method.node is method.node for writer in own_writers(method.cls))


def _writer_call(place: Place, call: ast.Call) -> tuple[Writer, ast.expr, ast.expr | None] | None:
    callee = call.func
    if isinstance(callee, ast.Name):
        values = place.assigned(callee.id)
        if len(values) != 1:
            return None
        callee = values[0]
    if not isinstance(callee, ast.Attribute):
        return None
    owner = place.class_of(callee.value)
    if owner is None:
        return None
    is_super = isinstance(callee.value, ast.Call)
    writer = writer_for(owner, callee.attr, after=place.cls if is_super else None)
    if writer is None:
        return None
    status = _argument(writer, call, writer.signature.status)
    room = _argument(writer, call, writer.signature.room) if writer.signature.room else None
    return None if status is None else (writer, status, room)


def _argument(writer: Writer, call: ast.Call, name: str) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if any(isinstance(argument, ast.Starred) for argument in call.args) or any(not each.arg for each in call.keywords):
        return None  # the spread arguments may hold it
    index = [argument.arg for argument in parameters(writer.method.node)].index(name) - 1
    if index < len(call.args):
        return call.args[index]
    for argument, default in zip(
        reversed(writer.method.node.args.args), reversed(writer.method.node.args.defaults), strict=False
    ):
        if argument.arg == name:
            return default
    return None


def _store(place: Place, node: ast.AST, target: ast.expr, value: ast.expr) -> Iterator[Write]:
    if isinstance(target, ast.Attribute):
        for subject in attribute_subjects(place.world, place.module):
            if target.attr != subject.attribute:
                continue
            here = place_surroundings(place, node)
            members = possible_members(place, value, subject.enum, here.guards)
            if members:
                yield Write(node, place, subject, None, members, None, here.locks, here.guards)
        return
    if not isinstance(target, ast.Subscript):
        return
    found = _table_of(place, target.value)
    if found is not None:
        here = place_surroundings(place, node)
        members = possible_members(place, value, found.enum, here.guards)
        yield Write(node, place, found, None, members, target.slice, here.locks, here.guards)


def _store_call(place: Place, call: ast.Call) -> Iterator[Write]:
    match call:
        case ast.Call(func=ast.Attribute(value=owner, attr="__setitem__"), args=[key, value]):
            pairs = [(key, value)]
        case ast.Call(func=ast.Attribute(value=owner, attr="update"), args=[ast.Dict(keys=keys, values=values)]):
            pairs = [(key, value) for key, value in zip(keys, values, strict=True) if key is not None]
        case _:
            return
    found = _table_of(place, owner)
    if found is not None:
        here = place_surroundings(place, call)
        for key, value in pairs:
            members = possible_members(place, value, found.enum, here.guards)
            yield Write(call, place, found, None, members, key, here.locks, here.guards)


def _table_of(place: Place, expression: ast.expr) -> Subject | None:
    """The status table that an expression yields: ``self.table``, ``self.manager.table`` or a local alias."""
    if isinstance(expression, ast.Name):
        values = place.assigned(expression.id)
        return _table_of(place, values[0]) if len(values) == 1 and isinstance(values[0], ast.Attribute) else None
    if not isinstance(expression, ast.Attribute):
        return None
    owner = place.class_of(expression.value)
    subject = subject_of(owner) if owner is not None else None
    return subject if subject is not None and subject.attribute == expression.attr else None


# -- which members -------------------------------------------------------------


def possible_members(
    place: Place, value: ast.expr, enum: StatusEnum, guards: tuple[Guard, ...], depth: int = 4
) -> tuple[str, ...]:
    """The members that ``value`` may be, empty where that cannot be told."""
    if depth == 0:
        return ()
    match value:
        case ast.Attribute():
            found = member_named(place.world, place.module, value)
            return (found[1],) if found is not None and found[0] is enum else ()
        case ast.IfExp(body=body, orelse=orelse):
            sides = [possible_members(place, side, enum, guards, depth - 1) for side in (body, orelse)]
            return tuple(dict.fromkeys(name for side in sides for name in side)) if all(sides) else ()
        case ast.Name(id=name):
            found = member_named(place.world, place.module, value)
            if found is not None:
                return (found[1],) if found[0] is enum else ()
            narrowed = _narrowed(place, name, enum, guards)
            if narrowed:
                return narrowed
            if place.parameter(name) is not None:
                return ()
            sides = [possible_members(place, side, enum, guards, depth - 1) for side in place.assigned(name)]
            return tuple(dict.fromkeys(member for side in sides for member in side)) if sides and all(sides) else ()
        case _:
            return ()


def _narrowed(place: Place, name: str, enum: StatusEnum, guards: tuple[Guard, ...]) -> tuple[str, ...]:
    """The members that an equality or membership test around the write leaves for a variable."""
    for guard in guards:
        for test in _conjuncts(guard.test, guard.holds):
            match test:
                case ast.Compare(left=ast.Name(id=left), ops=[ast.Eq() | ast.Is()], comparators=[right]):
                    found = possible_members(place, right, enum, (), 1) if left == name else ()
                case ast.Compare(
                    left=ast.Name(id=left), ops=[ast.In()], comparators=[ast.Tuple() | ast.Set() as right]
                ):
                    found = (
                        tuple(m for element in right.elts for m in possible_members(place, element, enum, (), 1))
                        if left == name
                        else ()
                    )
                case _:
                    found = ()
            if found:
                return found
    return ()


def _conjuncts(test: ast.expr, holds: bool) -> Iterator[ast.expr]:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) and holds:
        for value in test.values:
            yield from _conjuncts(value, True)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _conjuncts(test.operand, not holds)
    elif holds:
        yield test
    elif isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.NotEq):
        yield ast.Compare(left=test.left, ops=[ast.Eq()], comparators=test.comparators)


# -- what surrounds a write ----------------------------------------------------


def surroundings(place: Place) -> dict[ast.AST, Surroundings]:
    """The conditions and locks around every node of a function."""
    found: dict[ast.AST, Surroundings] = {}
    _surround(place.node.body, Surroundings(), found)
    return found


def _surround(body: list[ast.stmt], here: Surroundings, found: dict[ast.AST, Surroundings]) -> None:  # noqa: C901 - one arm a kind
    for statement in body:
        _note_expressions(statement, here, found)
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                continue
            case ast.If(test=test, body=then, orelse=orelse):
                _surround(then, _guarded(here, test, True), found)
                _surround(orelse, _guarded(here, test, False), found)
                if leaves(then):
                    here = _guarded(here, test, False)
                elif orelse and leaves(orelse):
                    here = _guarded(here, test, True)
            case ast.While(test=test, body=inner, orelse=orelse):
                _surround(inner, _guarded(here, test, True), found)
                _surround(orelse, here, found)
            case ast.With(items=items, body=inner) | ast.AsyncWith(items=items, body=inner):
                names = {ast.unparse(item.context_expr) for item in items}
                _surround(inner, Surroundings(here.guards, here.locks | names), found)
            case ast.Match(subject=subject, cases=cases):
                for case in cases:
                    _surround(case.body, _matched(here, subject, case), found)
            case _:
                for block in inner_blocks(statement):
                    _surround(block, here, found)


def _guarded(here: Surroundings, test: ast.expr, holds: bool) -> Surroundings:
    return Surroundings((*here.guards, Guard(test, holds, here.locks)), here.locks)


def _matched(here: Surroundings, subject: ast.expr, case: ast.match_case) -> Surroundings:
    if isinstance(case.pattern, ast.MatchValue):
        return _guarded(here, ast.Compare(left=subject, ops=[ast.Eq()], comparators=[case.pattern.value]), True)
    return here


def _note_expressions(statement: ast.stmt, here: Surroundings, found: dict[ast.AST, Surroundings]) -> None:
    found[statement] = here
    pending: list[ast.AST] = [
        child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.expr | ast.withitem)
    ]
    while pending:
        current = pending.pop()
        found[current] = here
        pending.extend(child for child in ast.iter_child_nodes(current) if not isinstance(child, ast.stmt))


def opens_rooms(place: Place, depth: int = 3) -> bool:
    """Whether a function is a constructor or a helper that only constructors call."""
    if thread_of(place) is not Thread.SCHEDULER:
        return False
    if place.method.is_constructor:
        return True
    if depth == 0:
        return False
    callers = _callers(place.world, place.module).get(place.method.node, [])
    return bool(callers) and all(opens_rooms(caller, depth - 1) for caller in callers)


def _callers(world: World, module: Module) -> dict[ast.AST, list[Place]]:
    """The functions of ``module`` that call a function, by its node."""
    key = ("callers", module)
    known = world.memo.get(key)
    if isinstance(known, dict):
        return known
    callers: dict[ast.AST, list[Place]] = {}
    for caller in places_of(world, module):
        for node in dict.fromkeys(callee.node for _, callee in callees(caller)):
            callers.setdefault(node, []).append(caller)
    world.memo[key] = callers
    return callers
