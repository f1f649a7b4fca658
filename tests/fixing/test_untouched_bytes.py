"""Whatever the file looks like, inserting adds lines and leaves every byte of the others alone."""

from __future__ import annotations

import ast
import codecs
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlint.diagnostics import FixPlan
from kvlint.fixing.document import line_end, split_lines
from kvlint.fixing.edits import apply_plan
from kvlint.fixing.refusals import EditRefused

from .plans import PATH, record, skip, sticky

steps = st.sampled_from(["\t", " ", "  ", "   ", "    ", "        "])
# Not "\r" together with "\n": an empty line between them would make one line end of two.
palettes = st.sampled_from([["\n"], ["\r\n"], ["\r"], ["\n", "\r\n"], ["\r", "\r\n"]])
fillers = st.sampled_from(
    ["", "# why", "x = 1  # tail", "\x0c", "s = '''a", "y = 'ä\u00a0'", "z = (1,", "if a: b; c", "u = 0; v = 1;"]
)
closers = {"s = '''a": "b'''", "z = (1,": "2)"}


File = tuple[list[str], list[tuple[str, int, int]]]


@st.composite
def files(draw: st.DrawFn) -> File:
    """Lines without ends, and what may be edited: a kind, a line and a column (from 1)."""
    step, inner = draw(steps), draw(steps)
    lines: list[str] = []
    marks: list[tuple[str, int, int]] = []

    def fill(indent: str) -> None:
        for filler in draw(st.lists(fillers, max_size=3)):
            lines.append(filler if filler in ("", "\x0c") else indent + filler)
            if filler in closers:
                lines.append(closers[filler])

    fill("")
    for number in range(draw(st.integers(1, 3))):
        lines.append(f"class C{number}:")
        fill(step)
        lines.append(f"{step}def update(self, room, status):")
        marks.append(("writer", len(lines), 0))
        if draw(st.booleans()):
            lines.append(f"{step}{inner}'''doc'''")
        fill(step + inner)
        lines.append(f"{step}{inner}while True:")
        fill(step + inner + step)
        lines.append(f"{step}{inner}{step}if room not in infos:")
        marks.append(("block", len(lines), len(step + inner + step) + 1))
        fill(step + inner + step + step)
        lines.append(f"{step}{inner}{step}{step}log()")
        lines.append(f"{step}{inner}{step}if room in infos: log()")
        marks.append(("else", len(lines), len(step + inner + step) + 1))
        lines.append(f"{step}{inner}{step}continue")
        marks.append(("exit", len(lines), len(step + inner + step) + 1))
        fill(step)
    return lines, marks


def _plan(kind: str, line: int, column: int) -> Sequence[FixPlan]:
    if kind == "writer":
        return [sticky(line), record(line)]
    return [skip(line, column, end=kind != "exit", in_body=kind == "block")]


def _without_inserted(before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether ``before`` is ``after`` less one run of lines."""
    added = len(after) - len(before)
    return any([*after[:i], *after[i + added :]] == list(before) for i in range(len(before) + 1))


@settings(deadline=None)
@given(files(), st.data())
def test_inserting_leaves_every_other_byte(file: File, data: st.DataObject) -> None:
    bare, marks = file
    palette = data.draw(palettes, label="line ends")
    picked = data.draw(st.lists(st.sampled_from(palette), min_size=len(bare), max_size=len(bare)))
    lines = [line + end for line, end in zip(bare, picked, strict=True)]
    declared = data.draw(st.booleans(), label="latin-1")
    mark = b"" if declared else data.draw(st.sampled_from([b"", codecs.BOM_UTF8]))
    if declared:
        lines.insert(0, "# -*- coding: latin-1 -*-" + palette[-1])
    encoding = "latin-1" if declared else "utf-8"
    kind, line, column = data.draw(st.sampled_from(marks), label="place")
    plan = data.draw(st.sampled_from(_plan(kind, line + declared, column)), label="plan")
    before = mark + "".join(lines).encode(encoding)
    after = apply_plan(PATH, before, plan)
    ast.parse(after)
    assert after.startswith(mark)
    old, new = (split_lines(data[len(mark) :].decode(encoding)) for data in (before, after))
    assert _without_inserted(old, new)
    assert {line_end(line) for line in new} <= set(palette)
    with pytest.raises(EditRefused):
        apply_plan(PATH, after, plan)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    ("source", "plan"),
    [
        ("def update(self, room, status):~    self.s = status", sticky(1)),
        ("def update(self, room, status): self.s = status", sticky(1)),
        ("def f():~    if room in infos:~        send()", skip(2, 5, end=True)),
        ("def f():~    if room not in infos: return", skip(2, 27)),
    ],
)
def test_missing_final_newline_stays_missing(end: str, source: str, plan: FixPlan) -> None:
    after = apply_plan(PATH, source.replace("~", end).encode(), plan).decode()
    assert not after.endswith(("\r", "\n"))
    if "~" in source:
        assert {line_end(line) for line in split_lines(after)[:-1]} == {end}


def test_mixed_line_ends_follow_the_neighbour() -> None:
    source = b"class M:\r\n    def update(self, room, status):\r\n        self.a = 1\n        self.b = 2\r"
    after = apply_plan(PATH, source, sticky(2, stored="self.s"))
    assert (
        after.replace(
            b"        # A stored terminal status is final.\r\n"
            b"        if self.s in (Poll.Failed, Poll.Success):\r\n"
            b"            return\r\n",
            b"",
        )
        == source
    )
