"""Which locals are still read after each statement; what nobody reads any more need not tell states apart."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from kvlint.analysis import ir, walk

Names = frozenset[str]
_NONE: Names = frozenset()


class _Exits(Struct, frozen=True):
    """What is live where a block is left early; ``raising`` is live at every statement of a try body."""

    breaking: Names = _NONE
    continuing: Names = _NONE
    raising: Names = _NONE


class Liveness(Struct, frozen=True, eq=False):
    """Live names after each statement (by the statement), and in the handlers of each ``try``."""

    after: dict[ir.Statement, Names]
    handlers: dict[ir.Statement, Names]


def liveness(function: ir.Function) -> Liveness:
    """The live names of a function's statements; names that nested functions read are always live."""
    found = Liveness({}, {})
    captured = (
        frozenset(
            part.id
            for nested in walk.nested_functions(function.body)
            for part in walk.expressions(nested.body)
            if isinstance(part, ir.Name)
        )
        | function.shared
    )
    _block(function.body, captured, _Exits(captured, captured, captured), found)
    return found


def _block(block: ir.Block, after: Names, exits: _Exits, found: Liveness) -> Names:
    live = after | exits.raising
    for statement in reversed(block):
        found.after[statement] = found.after.get(statement, _NONE) | live
        live = _statement(statement, live, exits, found) | exits.raising
    return live


def _statement(statement: ir.Statement, after: Names, exits: _Exits, found: Liveness) -> Names:  # noqa: C901
    reads = _reads(statement)
    match statement:
        case ir.If(then=then, other=other):
            return reads | _block(then, after, exits, found) | _block(other, after, exits, found)
        case ir.While(body=body, other=other):
            return reads | _loop(body, other, after, reads, _NONE, exits, found)
        case ir.For(target=target, body=body, other=other):
            return reads | _loop(body, other, after, _NONE, _bound(target), exits, found)
        case ir.Try():
            return _try(statement, after, exits, found)
        case ir.With(items=items, body=body):
            bound = frozenset[str]().union(*(_bound(target) for _, target in items if target is not None))
            return reads | (_block(body, after, exits, found) - bound)
        case ir.Match(cases=cases):
            blocks = [_block(case.body, after, exits, found) for case in cases]
            return reads | after.union(*blocks)
        case ir.Break():
            return exits.breaking
        case ir.Continue():
            return exits.continuing
        case ir.Return() | ir.Raise():
            return reads | exits.raising
        case ir.Assign(targets=targets):
            bound = frozenset[str]().union(*(_bound(target) for target in targets))
            return reads | (after - bound)
        case _:
            return reads | after


def _loop(
    body: ir.Block, other: ir.Block, after: Names, head: Names, bound: Names, exits: _Exits, found: Liveness
) -> Names:
    done = _block(other, after, exits, found)
    live = done | head
    for _ in range(2):  # the second time round sees what the first one found at the head
        inner = replace(exits, breaking=after, continuing=live)
        live |= _block(body, live, inner, found) - bound
    return live


def _try(statement: ir.Try, after: Names, exits: _Exits, found: Liveness) -> Names:
    ending = _block(statement.final, after, exits, found)
    final = (
        replace(exits, breaking=exits.breaking | ending, continuing=exits.continuing | ending)
        if statement.final
        else exits
    )
    caught = ending | exits.raising
    for handler in statement.handlers:
        before = _block(handler.body, ending, final, found)
        caught |= before - ({handler.name} if handler.name else _NONE)
    found.handlers[statement] = caught
    inner = replace(final, raising=caught)
    return _block(statement.body, _block(statement.other, ending, final, found), inner, found)


def _reads(statement: ir.Statement) -> Names:
    names: set[str] = set()
    for expression in walk.expressions_of(statement):
        names |= {part.id for part in walk.subexpressions(expression) if isinstance(part, ir.Name)}
    if isinstance(statement, ir.Assign):
        values = {part.id for part in walk.subexpressions(statement.value) if isinstance(part, ir.Name)}
        stored = frozenset[str]().union(*(_bound(target) for target in statement.targets))
        deep = {
            part.id
            for target in statement.targets
            for piece in walk.subexpressions(target)
            if isinstance(piece, ir.Subscript | ir.Attribute)
            for part in walk.subexpressions(piece)
            if isinstance(part, ir.Name)
        }
        names -= stored - values - deep
    if isinstance(statement, ir.For):
        names -= _bound(statement.target) - {
            part.id for part in walk.subexpressions(statement.iterable) if isinstance(part, ir.Name)
        }
    return frozenset(names)


def _bound(target: ir.Expression) -> Names:
    match target:
        case ir.Name(id=name):
            return frozenset({name})
        case ir.Collection(items=items):
            return frozenset[str]().union(*(_bound(item) for item in items))
        case _:
            return _NONE
