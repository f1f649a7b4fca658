"""The atomic-status edits: code under a lock, the lock itself, and single operations in place of a test and a use."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

import libcst as cst

from kvlint.diagnostics import AtomicStatus, LockMaking
from kvlint.fixing.blocks import Block, Place, as_block, swap
from kvlint.fixing.document import Document, split_lines
from kvlint.fixing.refusals import EditRefused
from kvlint.fixing.region import Region, close_region, first_step, indentation, open_region, parse
from kvlint.fixing.writers import after_prologue

_WHY = "# Held while a status is decided on and stored."


def make_atomic(document: Document, plan: AtomicStatus) -> list[str]:
    """The lines of ``document`` with one edit of ``plan``.

    Raises:
        EditRefused: the text is not what the plan expects, or has the edit already.
        ValueError: a text of the plan is no Python.
    """
    if plan.old:
        return _replaced(document, plan)
    lines = _locked(document, plan) if plan.lock else list(document.lines)
    if plan.making is None:
        return lines
    counted = split_lines("".join(lines))
    # Lines that were put above the statement that makes the table have moved it down.
    shift = len(counted) - len(document.lines) if plan.line < plan.making.line else 0
    making = replace(plan.making, line=plan.making.line + shift)
    return _with_lock(replace(document, lines=counted), making)


def _locked(document: Document, plan: AtomicStatus) -> list[str]:
    region = open_region(document, plan.line)
    if plan.function:
        return close_region(region, _body_locked(region, plan))
    place = region.at(plan.line, plan.column)
    if not isinstance(place.node, cst.BaseSmallStatement):
        raise region.refuse(f"the statement at {plan.line}:{plan.column} is no simple one any more")
    return close_region(region, _statement_locked(region, place, plan.lock))


def _body_locked(region: Region, plan: AtomicStatus) -> cst.Module:
    """The region's module with all that a function does under the lock; its docstring stays above."""
    place = region.function(plan.line, plan.function)
    assert isinstance(place.node, cst.FunctionDef)
    old = place.node.body
    assert isinstance(old, cst.IndentedBlock | cst.SimpleStatementSuite)
    block = as_block(old, place.step)
    assert isinstance(block, cst.IndentedBlock)
    index, small = after_prologue(block, documented=True)
    if small or index == len(block.body):
        raise region.refuse(f"the body of {plan.function} does not start on a line of its own")
    if len(block.body) == index + 1 and _takes(block.body[index], plan.lock):
        raise region.refuse("the fix is there already")
    step = block.indent if block.indent is not None else region.module.default_indent
    first = block.body[index]
    assert isinstance(first, cst.SimpleStatementLine | cst.BaseCompoundStatement)
    blank = list(takewhile(lambda line: line.comment is None, first.leading_lines))
    rest = [first.with_changes(leading_lines=first.leading_lines[len(blank) :]), *block.body[index + 1 :]]
    inner = block.with_changes(body=rest, indent=step, header=cst.TrailingWhitespace())
    held = _with(plan.lock, inner).with_changes(leading_lines=blank)
    return swap(region.module, old, block.with_changes(body=[*block.body[:index], held], footer=()))


def _statement_locked(region: Region, place: Place, lock: str) -> cst.Module:
    suite = place.suite
    if isinstance(suite, cst.SimpleStatementSuite):
        suite = as_block(suite, place.step)
    line = suite.body[place.index]
    assert isinstance(line, cst.SimpleStatementLine)
    if len(line.body) > 1:
        raise region.refuse("the statement shares its line with another one")
    above = line.leading_lines
    held = _with(lock, cst.IndentedBlock([line.with_changes(leading_lines=())], indent=place.step))
    body = [*suite.body[: place.index], held.with_changes(leading_lines=above), *suite.body[place.index + 1 :]]
    changed: Block = suite.with_changes(body=body)
    return swap(region.module, place.suite, changed)


def _with(lock: str, body: cst.IndentedBlock) -> cst.With:
    return cst.With([cst.WithItem(cst.parse_expression(lock))], body)


def _takes(statement: cst.BaseStatement, lock: str) -> bool:
    module = cst.Module([])
    return isinstance(statement, cst.With) and any(module.code_for_node(item.item) == lock for item in statement.items)


# -- the lock ------------------------------------------------------------------


def _with_lock(document: Document, making: LockMaking) -> list[str]:
    """The lines with the statement that makes the lock behind the one that makes what it guards, and its import."""
    tree = parse(document.path, document.text)
    maker = _simple_statement(document, tree, making.line, making.column)
    end = maker.end_lineno or maker.lineno
    indent = indentation(document.lines[maker.lineno - 1])
    lines = _inserted(document, end, [f"{indent}{_WHY}", f"{indent}{making.statement}"])
    if making.imported is None:
        return lines
    return _inserted(replace(document, lines=tuple(lines)), _import_index(tree, making.imported), [making.imported])


def _simple_statement(document: Document, tree: ast.Module, line: int, column: int) -> ast.stmt:
    """The statement that starts there and has its lines to itself."""
    starts = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and node.lineno == line]
    at = [node for node in starts if _characters(document, node.lineno, node.col_offset) == column - 1]
    if len(starts) != 1 or len(at) != 1:
        raise EditRefused(document.path, f"no statement starts alone at {line}:{column} any more")
    return at[0]


def _import_index(tree: ast.Module, imported: str) -> int:
    """The index of the line before which an import goes: among the plain imports, in their order."""
    below = 0
    for statement in tree.body:
        match statement:
            case ast.Expr(value=ast.Constant(value=str())):
                below = statement.end_lineno or 0
            case ast.ImportFrom(module="__future__"):
                below = statement.end_lineno or 0
            case ast.Import(names=names) if f"import {names[0].name}" < imported:
                below = statement.end_lineno or 0
            case ast.Import():
                return statement.lineno - 1
            case _:
                break
    return below


def _inserted(document: Document, index: int, texts: Sequence[str]) -> list[str]:
    """The lines with ``texts`` before line ``index``; a last line that lacks its end gets one."""
    end = document.newline_near(index)
    lines = list(document.lines)
    new = [text + end for text in texts]
    if index == len(lines) and lines and not lines[-1].endswith(("\n", "\r")):
        lines[-1] += end
        new[-1] = texts[-1]
    return [*lines[:index], *new, *lines[index:]]


# -- single operations ---------------------------------------------------------


def _replaced(document: Document, plan: AtomicStatus) -> list[str]:
    lines = list(document.lines)
    index, start = plan.line - 1, plan.column - 1
    end = start + len(plan.old)
    if index >= len(lines) or lines[index][start:end] != plan.old:
        raise EditRefused(document.path, f"{plan.old} does not stand at {plan.line}:{plan.column} any more")
    lines[index] = lines[index][:start] + plan.new + lines[index][end:]
    if not plan.after:
        return lines
    tree = parse(document.path, document.text)
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and node.lineno <= plan.line <= (node.end_lineno or node.lineno)
    ]
    if len(around) != 1:
        raise EditRefused(document.path, f"no assignment stands alone at line {plan.line} any more")
    indent, step = indentation(document.lines[around[0].lineno - 1]), first_step(document, tree)
    after = [indent + line.replace("\t", step) for line in plan.after]
    return _inserted(replace(document, lines=tuple(lines)), around[0].end_lineno or plan.line, after)


def _characters(document: Document, line: int, byte_column: int) -> int:
    return len(document.lines[line - 1].encode()[:byte_column].decode(errors="ignore"))
