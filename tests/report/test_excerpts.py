"""Excerpts show the place, whatever the lines around it are."""

from __future__ import annotations

import pytest

from kvlint.diagnostics import Span
from kvlint.report.excerpts import Line, common_indentation, excerpt, shown
from kvlint.source.text import SourceText, decode


def text(source: str) -> SourceText:
    return decode("a.py", source.encode())


def test_lines_around_and_shared_indentation() -> None:
    source = text("def f():\n    a\n\n    bcd\n      e\nf\n")
    assert excerpt(source, Span(4, 6, 4, 7), 1) == (
        Line(3, "", "", ""),
        Line(4, "b", "c", "d"),
        Line(5, "  e", "", ""),
    )


def test_a_point_is_its_line() -> None:
    assert excerpt(text("  x = 1\n"), Span(1, 1, 1, 1), 2) == (Line(1, "", "x = 1", ""), Line(2, "", "", ""))


def test_a_place_of_several_lines() -> None:
    assert excerpt(text("f(\n  a,\n  b)\n"), Span(1, 1, 3, 5), 0) == (
        Line(1, "", "f(", ""),
        Line(2, "  ", "a,", ""),
        Line(3, "  ", "b)", ""),
    )


def test_a_long_place_is_cut() -> None:
    source = text("".join(f"x{number}\n" for number in range(1, 40)))
    found = excerpt(source, Span(2, 1, 30, 4), 1)
    assert [line.number for line in found] == list(range(1, 15))
    assert [line.is_hit for line in found] == [False, *[True] * 12, False]


@pytest.mark.parametrize("span", [Span(9, 1, 9, 2), Span(0, 1, 0, 2)])
def test_a_place_that_is_not_there(span: Span) -> None:
    assert excerpt(text("a\n"), span, 1) == ()
    assert excerpt(None, span, 1) == ()


def test_lines_of_machines_are_cut_around_the_place() -> None:
    line = "a" * 5000 + "MARK" + "b" * 5000
    (found,) = excerpt(text(line), Span(1, 5001, 1, 5005), 0)
    assert (found.before, found.marked) == ("…" + "a" * 60, "MARK")
    assert found.after.startswith("b")
    assert found.after.endswith("b…")
    assert len(found.before + found.marked + found.after) < 320
    (whole,) = excerpt(text(line), Span(1, 1, 1, 9001), 0)
    assert (len(whole.marked), whole.after) == (300, "…")
    above, _ = excerpt(text(f"{line}\nx"), Span(2, 1, 2, 2), 1)
    assert above.before == "a" * 300 + "…"


def test_what_hides_or_reorders_text_is_spelled() -> None:
    assert shown("a\u202eb\x00c\td\xa0\x0b") == "a\\u202eb\\x00c\td\\xa0\\x0b"
    assert shown("caf\udce9") == "caf\\xe9"


def test_common_indentation() -> None:
    assert common_indentation([]) == 0
    assert common_indentation(["", "   "]) == 0
    assert common_indentation(["    a", "", "  b"]) == 2
    assert common_indentation(["\ta", "    b"]) == 0
