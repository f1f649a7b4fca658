"""The head of a status writer: where a guard goes, and what its early return must look like."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from kvlint.fixing.blocks import Block, Place, Statement, as_block, holds, insert_into, swap
from kvlint.fixing.phrases import Margin
from kvlint.fixing.region import Region


@dataclass(frozen=True, slots=True)
class Head:
    """The place in a function's body before which a guard goes: after the docstring, inside the lock."""

    old: cst.BaseSuite
    block: Block
    index: int
    small: int
    margin: Margin


def find_head(place: Place) -> Head:
    """The head of the function at ``place``.

    A body that is one ``with`` statement (the writer's lock) is entered: the
    guard must read the stored status under the lock.
    """
    assert isinstance(place.node, cst.FunctionDef)
    old, step = place.node.body, place.step
    margin = Margin(place.indent, place.step)
    documented = True
    while True:
        block = as_block(_suite(old), step)
        assert isinstance(block, cst.IndentedBlock)
        step = block.indent if block.indent is not None else step
        margin = Margin(margin.indent + step, step)
        index, small = after_prologue(block, documented)
        inner = block.body[index] if index == len(block.body) - 1 and not small else None
        if not isinstance(inner, cst.With):
            return Head(old, block, index, small, margin)
        old, documented = inner.body, False


def put_at_head(region: Region, head: Head, guard: Statement) -> cst.Module:
    """The region's module with ``guard`` at ``head``.

    Raises:
        EditRefused: the very same guard stands there already.
    """
    if holds(head.block, guard):
        raise region.refuse("the fix is there already")
    return swap(region.module, head.old, insert_into(head.block, head.index, head.small, [guard]))


def early_return(function: cst.CSTNode) -> str:
    """``return``, or ``return False`` in a function whose other returns all give a truth value."""
    values = [node.value for node in _own_returns(function) if node.value is not None]
    if values and all(isinstance(value, cst.Name) and value.value in ("True", "False") for value in values):
        return "return False"
    return "return"


def _suite(suite: cst.BaseSuite) -> cst.IndentedBlock | cst.SimpleStatementSuite:
    assert isinstance(suite, cst.IndentedBlock | cst.SimpleStatementSuite)
    return suite


def after_prologue(block: cst.IndentedBlock, documented: bool) -> tuple[int, int]:
    """Element and simple statement where code may begin: after the docstring and the scope declarations."""
    for index, line in enumerate(block.body):
        if not isinstance(line, cst.SimpleStatementLine):
            return index, 0
        for small, statement in enumerate(line.body):
            first = documented and index == 0 and small == 0
            if not (first and _is_docstring(statement)) and not isinstance(statement, cst.Global | cst.Nonlocal):
                return index, small
    return len(block.body), 0


def _is_docstring(statement: cst.CSTNode) -> bool:
    return isinstance(statement, cst.Expr) and isinstance(statement.value, cst.SimpleString | cst.ConcatenatedString)


def _own_returns(function: cst.CSTNode) -> Iterator[cst.Return]:
    """The returns of a function, not those of the definitions inside it."""
    pending = list(function.children)
    while pending:
        node = pending.pop()
        if isinstance(node, cst.Return):
            yield node
        elif not isinstance(node, cst.FunctionDef | cst.ClassDef | cst.BaseExpression):
            pending.extend(node.children)
