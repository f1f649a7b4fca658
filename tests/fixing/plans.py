"""Plans over the small sources of these tests, and the assertion that every edit of a text must pass."""

from __future__ import annotations

import ast
from textwrap import dedent

import libcst as cst
import pytest

from kvlint.diagnostics import DeferAbortCleanup, FixPlan, RecordFailure, SkipGuard, StickyTerminal
from kvlint.fixing.edits import apply_plan
from kvlint.fixing.refusals import EditRefused

PATH = "pkg/conn.py"
STORED = "self.status.get(room)"
TERMINALS = ("Poll.Failed", "Poll.Success")
CALM = ("None", *TERMINALS)


def sticky(
    line: int, function: str = "update", stored: str = STORED, terminals: tuple[str, ...] = TERMINALS
) -> StickyTerminal:
    """A sticky-terminal plan for ``function`` at ``line``."""
    return StickyTerminal(PATH, line, function, stored, terminals)


def skip(
    line: int,
    column: int,
    *,
    end: bool = False,
    in_body: bool = True,
    record: str | None = 'self.record(room, "gone")',
) -> SkipGuard:
    """A skip-guard plan at a position."""
    return SkipGuard(PATH, line, column, end, STORED, CALM, record, "self.update(room, Poll.Failed)", in_body)


def drop(line: int, column: int) -> DeferAbortCleanup:
    """A defer-abort-cleanup plan at a position."""
    return DeferAbortCleanup(PATH, line, column)


def record(line: int, function: str = "update") -> RecordFailure:
    """A record-failure plan for ``function`` at ``line``."""
    return RecordFailure(PATH, line, function, "status", STORED, CALM, "Poll.Failed", "self.status[room] = Poll.Failed")


def place(source: str, text: str) -> tuple[int, int]:
    """Line and column, from 1, of the only occurrence of ``text``."""
    assert source.count(text) == 1
    before = source[: source.index(text)]
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


def edited(source: str, plan: FixPlan) -> str:
    """``source`` with ``plan`` carried out; parses, and takes the plan no second time."""
    after = apply_plan(PATH, source.encode(), plan)
    ast.parse(after)
    assert cst.parse_module(after).bytes == after
    with pytest.raises(EditRefused):
        apply_plan(PATH, after, plan)
    return after.decode()


def text(source: str) -> str:
    """A test's source, without the margin of the test."""
    return dedent(source).lstrip("\n")
