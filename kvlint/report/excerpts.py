"""Excerpts: the lines around a place, cut into what stands before, in and after it, for formats that show source.

Indentation that all lines of an excerpt share is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kvlint.diagnostics import Span
from kvlint.source.display import printable
from kvlint.source.text import SourceText

_LONGEST_LINE = 300  # characters shown of a line; what machines write has lines of megabytes
_LEAD = 60  # characters shown before a place that lies beyond that
_LONGEST_SPAN = 12  # lines shown of a place


@dataclass(frozen=True, slots=True)
class Line:
    """A source line; ``marked`` is its part of the place, and empty where it has none."""

    number: int
    before: str
    marked: str
    after: str

    @property
    def is_hit(self) -> bool:
        """Whether the place has a part in the line."""
        return bool(self.marked)


def excerpt(source: SourceText | None, span: Span, around: int) -> tuple[Line, ...]:
    """The lines of ``span`` with ``around`` lines above and below; none where there is no such text."""
    if source is None or not 1 <= span.line <= len(source.lines):
        return ()
    end = min(span.end_line, span.line + _LONGEST_SPAN - 1)
    first, last = max(1, span.line - around), min(len(source.lines), end + around)
    cut = common_indentation(source.lines[first - 1 : last])
    moved = Span(span.line, max(1, span.column - cut), span.end_line, max(1, span.end_column - cut))
    return tuple(_line(source.lines[number - 1][cut:], number, moved, end) for number in range(first, last + 1))


def common_indentation(lines: Iterable[str]) -> int:
    """How many characters of indentation ``lines`` share, empty ones left aside."""
    indents = [line[: len(line) - len(line.lstrip())] for line in lines if line.strip()]
    columns = enumerate(zip(*indents, strict=False))
    return next((index for index, characters in columns if len(set(characters)) > 1), min(map(len, indents), default=0))


def _line(text: str, number: int, span: Span, end: int) -> Line:
    if not span.line <= number <= end:
        return Line(number, text[:_LONGEST_LINE] + _more(text, _LONGEST_LINE), "", "")
    start = span.column - 1 if number == span.line else len(text) - len(text.lstrip())
    stop = span.end_column - 1 if number == span.end_line else len(text)
    if (span.line, span.column) == (span.end_line, span.end_column):
        start, stop = len(text) - len(text.lstrip()), len(text)  # a point: the whole line
    head = max(0, start - _LEAD) if start > _LONGEST_LINE else 0
    tail = max(stop, start) if stop - head <= _LONGEST_LINE else head + _LONGEST_LINE
    after = text[tail : max(tail, head + _LONGEST_LINE)]
    return Line(
        number,
        ("…" if head else "") + text[head:start],
        text[start:tail],
        after + _more(text, tail + len(after)),
    )


def _more(text: str, shown: int) -> str:
    return "…" if len(text) > shown else ""


def shown(text: str) -> str:
    r"""``text`` with control characters, also those that reorder text, spelled ``\u202e``; tabs and line feeds stay."""
    return text if text.isprintable() else "".join(map(_spelled, printable(text)))


def _spelled(character: str) -> str:
    if character.isprintable() or character in "\t\n":
        return character
    return character.encode("unicode_escape").decode("ascii")
