"""Abort handlers: code that runs because a peer asked for a room to be given up."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kvlint.analysis.evidence import member_named
from kvlint.analysis.places import Place, callees, places_of
from kvlint.protocol import is_abort_name
from kvlint.semantics.constants import fold
from kvlint.semantics.module import Module, inner_blocks, leaves
from kvlint.semantics.world import World, dotted_name


def abort_code(world: World, module: Module) -> dict[ast.AST, str]:
    """Every syntax node of ``module`` that belongs to an abort handler, with what makes it one."""
    key = ("aborts", module)
    known = world.memo.get(key)
    if isinstance(known, dict):
        return known
    found: dict[ast.AST, str] = {}
    for place in places_of(world, module):
        for block, reason in _abort_blocks(place):
            _mark(found, block, reason)
    pending = [place for place in places_of(world, module) if _is_abort_function(place)]
    pending.extend(
        target
        for place in places_of(world, module)
        for call, target in callees(place)
        if call in found and target.module is module and _is_private(target)
    )
    seen: set[ast.AST] = set()
    while pending:
        place = pending.pop()
        if place.node in seen:
            continue
        seen.add(place.node)
        reason = next((found[node] for node in place.body if node in found), f"{place.qualified} handles an abort")
        _mark(found, place.node.body, reason)
        pending.extend(target for _, target in callees(place) if target.module is module and _is_private(target))
    world.memo[key] = found
    return found


def _is_private(place: Place) -> bool:
    """Whether only the abort handler's own helpers are followed: a shared public method is not the handler's."""
    return place.name.startswith("_") or is_abort_name(place.name)


def _is_abort_function(place: Place) -> bool:
    return is_abort_name(place.name)


def _mark(found: dict[ast.AST, str], block: list[ast.stmt], reason: str) -> None:
    for statement in block:
        for node in ast.walk(statement):
            found.setdefault(node, reason)


def _abort_blocks(place: Place) -> Iterator[tuple[list[ast.stmt], str]]:
    for block in _blocks(place.node.body):
        for index, statement in enumerate(block):
            match statement:
                case ast.If(test=test, body=body, orelse=orelse):
                    tag = _abort_test(place, test)
                    if tag is None:
                        continue
                    name, positive = tag
                    if positive:
                        yield body, f"it runs on the message tag {name}"
                    else:
                        yield orelse, f"it runs on the message tag {name}"
                        if leaves(body):
                            yield block[index + 1 :], f"it runs on the message tag {name}"
                case ast.Match(cases=cases):
                    for case in cases:
                        name_ = _abort_pattern(place, case.pattern)
                        if name_ is not None:
                            yield case.body, f"it runs on the message tag {name_}"
                case _:
                    pass


def _blocks(body: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    yield body
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for block in inner_blocks(statement):
            if block:
                yield from _blocks(block)


def _abort_test(place: Place, test: ast.expr) -> tuple[str, bool] | None:
    """The abort tag that a condition asks for, and whether the condition holds for it."""
    match test:
        case ast.Compare(left=left, ops=[ast.Eq() | ast.In() as op], comparators=[right]):
            name = _tag(place, left, op) or _tag(place, right, op)
            return None if name is None else (name, True)
        case ast.Compare(left=left, ops=[ast.NotEq()], comparators=[right]):
            name = _tag(place, left, ast.Eq()) or _tag(place, right, ast.Eq())
            return None if name is None else (name, False)
        case ast.BoolOp(op=op, values=values):
            for value in values:
                found = _abort_test(place, value)
                if found is not None and found[1] is isinstance(op, ast.And):
                    return found
            return None
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            found = _abort_test(place, operand)
            return None if found is None else (found[0], not found[1])
        case ast.Call(func=ast.Attribute(attr="startswith"), args=[prefix, *_]):
            name = _tag(place, prefix, ast.Eq())
            return None if name is None else (name, True)
        case _:
            return None


def _tag(place: Place, expression: ast.expr, op: ast.cmpop) -> str | None:
    if isinstance(expression, ast.Call) and isinstance(expression.func, ast.Attribute):  # ABORT.encode()
        expression = expression.func.value
    if isinstance(op, ast.In) and isinstance(expression, ast.Tuple | ast.List | ast.Set):
        # One branch for several tags serves them all; it is an abort handler only if nothing else comes here.
        names = [_tag(place, element, ast.Eq()) for element in expression.elts]
        return names[0] if names and all(name is not None for name in names) else None
    if not isinstance(expression, ast.Constant | ast.Name | ast.Attribute):
        return None
    if member_named(place.world, place.module, expression) is not None:
        return None  # a status, not a message tag
    dotted = dotted_name(expression) if not isinstance(expression, ast.Constant) else None
    folded = fold(place.world, place.module, expression)
    if dotted is not None and place.cls is not None and dotted.split(".")[0] == place.receiver:
        held = place.cls.value(dotted.rpartition(".")[2])
        folded = folded if held is None else fold(place.world, *held)
    if isinstance(folded, str | bytes) and is_abort_name(folded):
        return ast.unparse(expression)
    last = (dotted or "").rpartition(".")[2]
    return dotted if last.isupper() and is_abort_name(last) else None


def _abort_pattern(place: Place, pattern: ast.pattern) -> str | None:
    match pattern:
        case ast.MatchValue(value=value):
            return _tag(place, value, ast.Eq())
        case ast.MatchSequence(patterns=[first, *_]):
            return _abort_pattern(place, first)
        case ast.MatchAs(pattern=ast.pattern() as inner):
            return _abort_pattern(place, inner)
        case ast.MatchOr(patterns=patterns):
            names = [_abort_pattern(place, inner) for inner in patterns]
            return names[0] if names and all(name is not None for name in names) else None
        case ast.MatchClass(cls=cls):
            dotted = dotted_name(cls) or ""
            return dotted if is_abort_name(dotted.rpartition(".")[2]) else None
        case _:
            return None
