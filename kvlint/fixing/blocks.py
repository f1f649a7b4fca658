"""Statements of a LibCST module by their place, and the few ways an edit changes a block of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

Block = cst.Module | cst.IndentedBlock
Suite = Block | cst.SimpleStatementSuite
Statement = cst.BaseStatement
_Positions = Mapping[cst.CSTNode, CodeRange]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a statement, an ``elif`` or a handler stands.

    ``node`` is a small statement, a compound statement, an ``elif`` or an
    ``except``; it is number ``small`` of the simple statements on element
    ``index`` of ``suite``.  ``indent`` is the full indentation of the suite's
    statements, ``step`` what a block inside the suite adds to it.  ``line`` (from
    1) and ``column`` (from 0) are where the node starts in the module,
    ``first_line`` counts its decorators in.
    """

    node: cst.CSTNode
    suite: Suite
    index: int
    small: int
    indent: str
    step: str
    line: int
    column: int
    first_line: int


@dataclass(frozen=True, slots=True)
class _Level:
    suite: Suite
    indent: str
    step: str


def places(module: cst.Module, step: str) -> Iterator[Place]:
    """Every place of ``module``; ``step`` is the indentation to use where the module shows none."""
    wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
    positions = wrapper.resolve(PositionProvider)
    shown = any(isinstance(node, cst.IndentedBlock) for node in positions)
    pending = [_Level(module, "", module.default_indent if shown else step)]
    while pending:
        level = pending.pop()
        for index, small, statement in _elements(level.suite):
            for node in _carriers(statement):
                yield _place(node, level, index, small, positions)
                body = getattr(node, "body", None)
                if isinstance(body, cst.IndentedBlock | cst.SimpleStatementSuite):
                    pending.append(_inside(body, level, module.default_indent))


def _place(node: cst.CSTNode, level: _Level, index: int, small: int, positions: _Positions) -> Place:
    start = positions[node].start
    decorators = getattr(node, "decorators", ())
    first = min([start.line, *(positions[decorator].start.line for decorator in decorators)])
    return Place(node, level.suite, index, small, level.indent, level.step, start.line, start.column, first)


def _inside(body: cst.IndentedBlock | cst.SimpleStatementSuite, level: _Level, default: str) -> _Level:
    """The level of a body: one on its header's line is treated as the indented block it could be."""
    if isinstance(body, cst.SimpleStatementSuite):
        return _Level(body, level.indent + level.step, level.step)
    step = default if body.indent is None else body.indent
    return _Level(body, level.indent + step, step)


def _elements(suite: Suite) -> Iterator[tuple[int, int, cst.CSTNode]]:
    if isinstance(suite, cst.SimpleStatementSuite):
        for small, statement in enumerate(suite.body):
            yield 0, small, statement
        return
    for index, line in enumerate(suite.body):
        if isinstance(line, cst.SimpleStatementLine):
            for small, statement in enumerate(line.body):
                yield index, small, statement
        else:
            yield index, 0, line


def _carriers(statement: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The statement and those of its parts that hold a body of their own."""
    pending = [statement]
    while pending:
        node = pending.pop()
        yield node
        for name in ("orelse", "finalbody"):
            part = getattr(node, name, None)
            if isinstance(part, cst.CSTNode) and hasattr(part, "body") and not isinstance(part, cst.BaseExpression):
                pending.append(part)
        pending.extend(getattr(node, "handlers", ()))
        pending.extend(getattr(node, "cases", ()))


def as_block(suite: Suite, step: str) -> Block:
    """``suite`` as a block whose statements have lines of their own."""
    if not isinstance(suite, cst.SimpleStatementSuite):
        return suite
    line = cst.SimpleStatementLine(suite.body, trailing_whitespace=suite.trailing_whitespace)
    return cst.IndentedBlock([line], indent=step)


def insert(module: cst.Module, place: Place, new: Sequence[Statement]) -> cst.Module:
    """``module`` with ``new`` right before the statement at ``place``."""
    block = as_block(place.suite, place.step)
    return swap(module, place.suite, insert_into(block, place.index, place.small, new))


def insert_into(block: Block, index: int, small: int, new: Sequence[Statement]) -> Block:
    """``block`` with ``new`` before simple statement ``small`` of element ``index``."""
    body: list[Statement] = list(block.body)
    if small:
        body[index : index + 1] = _split(body[index], small)
        index += 1
    body[index:index] = new
    return block.with_changes(body=body)


def _split(line: Statement, small: int) -> tuple[Statement, Statement]:
    """One line ``a; b`` as two; what stood above and behind it stays there."""
    assert isinstance(line, cst.SimpleStatementLine)
    *head, last = line.body[:small]
    left = [*head, last.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)]
    return (
        line.with_changes(body=left, trailing_whitespace=cst.TrailingWhitespace()),
        line.with_changes(body=line.body[small:], leading_lines=()),
    )


def swap(module: cst.Module, old: cst.CSTNode, new: cst.CSTNode) -> cst.Module:
    """``module`` with the very node ``old`` replaced by ``new``."""
    if old is module:
        assert isinstance(new, cst.Module)
        return new
    replaced = module.deep_replace(old, new)
    assert isinstance(replaced, cst.Module)
    return replaced


def holds(block: cst.CSTNode, statement: Statement) -> bool:
    """Whether a statement with the code of ``statement`` stands directly in ``block``; layout does not matter."""
    return any(_code(other) == _code(statement) for other in getattr(block, "body", ()))


def _code(node: cst.CSTNode) -> str:
    bare = node.with_changes(leading_lines=()) if hasattr(node, "leading_lines") else node
    return "".join(cst.Module([]).code_for_node(bare).split()).replace(",)", ")")
