"""The defer-abort-cleanup edit: an abort handler that leaves the removal of a room to others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst
from libcst import matchers as m

from kvlint.diagnostics import DeferAbortCleanup
from kvlint.fixing.blocks import Place, Statement, swap
from kvlint.fixing.region import Region

_REMOVERS = frozenset({"pop", "popitem", "remove", "discard", "clear", "__delitem__"})


def drop_removal(region: Region, plan: DeferAbortCleanup) -> cst.Module:
    """The region's module without the removal; the comments around it stay.

    Raises:
        EditRefused: no plain removal starts there: what it gives is used, it
            removes more than one thing, or it is gone; or a loop runs until
            the removals have emptied the table.
    """
    place = region.at(plan.line, plan.column)
    _require_removal(region, place, plan)
    if any(_waits_for(loop, place.node) for loop in _loops_around(region, place)):
        raise region.refuse(f"without the removal at {plan.line}:{plan.column} the loop around it would never end")
    suite = place.suite
    if isinstance(suite, cst.SimpleStatementSuite):
        return swap(region.module, suite, suite.with_changes(body=_without(suite.body, place.small)))
    line = suite.body[place.index]
    assert isinstance(line, cst.SimpleStatementLine)
    if len(line.body) > 1 or len(suite.body) == 1:
        return swap(region.module, line, line.with_changes(body=_without(line.body, place.small)))
    return swap(region.module, suite, _without_line(suite, place.index))


def _require_removal(region: Region, place: Place, plan: DeferAbortCleanup) -> None:
    where = f"{plan.line}:{plan.column}"
    match place.node:
        case cst.Del(target=cst.Tuple()):
            raise region.refuse(f"the statement at {where} removes more than one thing")
        case cst.Del():
            return
        case cst.Expr(value=cst.Call(func=cst.Attribute(attr=cst.Name(value=name)))) if name in _REMOVERS:
            return
        case cst.Assign() | cst.AnnAssign() | cst.AugAssign() | cst.Return() | cst.If() | cst.Expr():
            raise region.refuse(f"the statement at {where} does more than remove; it must be rewritten by hand")
        case _:
            raise region.refuse(f"the statement at {where} is no removal any more")


def _loops_around(region: Region, place: Place) -> Iterator[cst.While]:
    for other in region.places:
        if isinstance(other.node, cst.While) and any(node is place.node for node in _below_node(other.node.body)):
            yield other.node


def _waits_for(loop: cst.While, removal: cst.CSTNode) -> bool:
    """Whether ``loop`` ends by what ``removal`` takes away: it takes any item, or from what the test looks at."""
    if isinstance(removal, cst.Expr) and m.matches(removal, m.Expr(m.Call(m.Attribute(attr=m.Name("popitem"))))):
        return True
    return bool((_names(loop.test) & _names(removal)) - {"self"})


def _names(node: cst.CSTNode) -> set[str]:
    return {part.value for part in _below_node(node) if isinstance(part, cst.Name)}


def _below_node(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    yield node
    for child in node.children:
        yield from _below_node(child)


def _without(body: Sequence[cst.BaseSmallStatement], small: int) -> list[cst.BaseSmallStatement]:
    """The simple statements of one line without one of them; a block must not become empty."""
    rest = [*body[:small], *body[small + 1 :]]
    if not rest:
        return [cst.Pass()]
    rest[-1] = rest[-1].with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
    return rest


def _without_line(suite: cst.Module | cst.IndentedBlock, index: int) -> cst.Module | cst.IndentedBlock:
    """The block without one line; its comments move to the statement below, or to the end of the block."""
    line = suite.body[index]
    assert isinstance(line, cst.SimpleStatementLine)
    kept = list(line.leading_lines)
    if (comment := line.trailing_whitespace.comment) is not None:
        kept.append(cst.EmptyLine(comment=comment))
    body: list[Statement] = [*suite.body[:index], *suite.body[index + 1 :]]
    if index < len(body):
        body[index] = _below(kept, body[index])
        return suite.with_changes(body=body)
    return suite.with_changes(body=body, footer=[*kept, *suite.footer])


def _below(lines: list[cst.EmptyLine], statement: Statement) -> Statement:
    assert isinstance(statement, cst.SimpleStatementLine | cst.BaseCompoundStatement)
    return statement.with_changes(leading_lines=[*lines, *statement.leading_lines])
