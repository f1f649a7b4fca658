"""What an edit changes in a text, as the fewest spans to replace: the form in which reports and editors take a fix."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from kvlint.diagnostics import Replacement, Span
from kvlint.fixing.document import line_end, read_document


def replacements(path: str, before: bytes, after: bytes) -> tuple[Replacement, ...]:
    """The replacements that turn ``before`` into ``after``, from top to bottom; ``path`` only names them in errors.

    Whole lines are replaced, inserted or removed.  Spans count lines and
    characters as findings do: a byte order mark is no character.

    Raises:
        EditRefused: one of the two cannot be decoded.
    """
    old, new = read_document(path, before).lines, read_document(path, after).lines
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return tuple(
        _replacement(old, start, end, "".join(new[first:last]))
        for tag, start, end, first, last in matcher.get_opcodes()
        if tag != "equal"
    )


def _replacement(old: Sequence[str], start: int, end: int, text: str) -> Replacement:
    line, column = _position(old, start)
    end_line, end_column = _position(old, end)
    return Replacement(Span(line, column, end_line, end_column), text)


def _position(lines: Sequence[str], index: int) -> tuple[int, int]:
    """The line and column at which line ``index`` begins; behind the last line, where the text ends."""
    if index < len(lines) or not lines or line_end(lines[-1]):
        return index + 1, 1
    return index, len(lines[-1]) + 1
