"""Replacements say exactly what an edit does, to an editor that counts lines and characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlint.diagnostics import Replacement, Span
from kvlint.fixing.document import split_lines
from kvlint.fixing.refusals import EditRefused
from kvlint.fixing.replacements import replacements


def carried_out(text: str, found: tuple[Replacement, ...]) -> str:
    starts = [0]
    for line in split_lines(text):
        starts.append(starts[-1] + len(line))
    for item in reversed(found):
        start = starts[item.span.line - 1] + item.span.column - 1
        end = starts[item.span.end_line - 1] + item.span.end_column - 1
        text = text[:start] + item.text + text[end:]
    return text


def test_an_insertion_deletes_nothing() -> None:
    assert replacements("a.py", b"a\nb\n", b"a\nx\nb\n") == (Replacement(Span(2, 1, 2, 1), "x\n"),)


def test_a_removal_inserts_nothing() -> None:
    assert replacements("a.py", b"a\nx\nb\n", b"a\nb\n") == (Replacement(Span(2, 1, 3, 1), ""),)


def test_two_edits_are_two_replacements() -> None:
    found = replacements("a.py", b"a\nb\nc\n", b"x\na\nb\ny\nc\n")
    assert [(item.span.line, item.text) for item in found] == [(1, "x\n"), (3, "y\n")]


def test_the_end_of_a_text_without_a_line_end() -> None:
    assert replacements("a.py", b"a\nb", b"a\nb\nc") == (Replacement(Span(2, 1, 2, 2), "b\nc"),)


def test_the_mark_is_no_character() -> None:
    mark = b"\xef\xbb\xbf"
    assert replacements("a.py", mark + b"a\r\n", mark + b"x\r\na\r\n") == (Replacement(Span(1, 1, 1, 1), "x\r\n"),)


def test_a_text_that_cannot_be_decoded() -> None:
    with pytest.raises(EditRefused):
        replacements("a.py", b"a\n", b"\xff\n")


texts = st.lists(st.sampled_from(["a", "b", "\u00e4", "", "x y"]), max_size=6).map("\n".join)
ends = st.sampled_from(["\n", "\r\n", "\r"])


@given(texts, texts, ends)
def test_carried_out_they_give_the_edited_text(before: str, after: str, end: str) -> None:
    old, new = before.replace("\n", end), after.replace("\n", end)
    assert carried_out(old, replacements("a.py", old.encode(), new.encode())) == new
