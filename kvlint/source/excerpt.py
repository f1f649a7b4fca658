"""The text that a span covers."""

from __future__ import annotations

from kvlint.diagnostics import Span


def text_of(span: Span, lines: tuple[str, ...]) -> str:
    """The text that ``span`` covers, the whole line where it is empty; nothing where the text has no such line."""
    covered = list(lines[span.line - 1 : span.end_line])
    if not covered:
        return ""
    if (span.line, span.column) == (span.end_line, span.end_column):
        return covered[0]
    if len(covered) == span.end_line - span.line + 1:
        covered[-1] = covered[-1][: span.end_column - 1]
    covered[0] = covered[0][span.column - 1 :]
    return "\n".join(covered)
