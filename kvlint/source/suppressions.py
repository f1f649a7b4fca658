"""Comments that silence findings, read exactly as flake8 (7.0 to 7.5) reads them.

Exactly matters: the flake8 plugin leaves noqa to flake8, and the command must
come to the same verdict.  Hence codes are compared with their case, a code is a
prefix, ``# flake8: noqa`` on a line of its own silences the whole file whatever
follows it, and a comment counts for every line of the multi-line string or
backslash continuation that it ends.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from kvlint.source.text import SourceText

# flake8.defaults.NOQA_INLINE_REGEXP and NOQA_FILE.
_INLINE = re.compile(r"# noqa(?::[\s]?(?P<codes>([A-Z]+[0-9]+(?:[,\s]+)?)+))?", re.IGNORECASE)
_WHOLE_FILE = re.compile(r"\s*# flake8[:=]\s*noqa", re.IGNORECASE)
_SEPARATOR = re.compile(r"[,\s]+")

_OUTSIDE_STATEMENTS = frozenset({tokenize.ENDMARKER, tokenize.DEDENT})
_LINE_ENDS = frozenset({tokenize.NL, tokenize.NEWLINE})


@dataclass(frozen=True, slots=True)
class NamedCode:
    """A code written in a noqa comment, at ``line`` and ``column`` (from 1); it acts on ``lines``."""

    code: str
    line: int
    column: int
    lines: range


class Suppressions:
    """The noqa comments of one file."""

    def __init__(self, source: SourceText) -> None:
        self._source = source
        # The cheap test first: hardly any file needs to be tokenized.
        self._any = "noqa" in source.text.lower()

    @cached_property
    def whole_file(self) -> bool:
        """Whether the file asks not to be looked at."""
        return self._any and any(map(_WHOLE_FILE.match, self._source.lines))

    def silences(self, line: int, code: str) -> bool:
        """Whether a finding of ``code`` on ``line`` is suppressed."""
        if not self._any:
            return False
        if self.whole_file:
            return True
        match = _INLINE.search(self._text_around(line))
        if match is None:
            return False
        return match["codes"] is None or code.startswith(tuple(_codes(match["codes"])))

    def named_codes(self) -> Iterator[NamedCode]:
        """The codes that comments name.

        Text in strings counts for `silences`, as in flake8, but nobody is told
        to tidy up an example in a docstring.
        """
        if not self._any or self.whole_file:
            return
        for token in self._tokens:
            if token.type != tokenize.COMMENT:
                continue
            match = _INLINE.search(token.string)
            # flake8 takes the first match of the whole line range, which may stand in front of this comment.
            if match is None or match["codes"] is None or not self._is_first(token, match):
                continue
            line, offset = token.start
            for found in re.finditer(r"[^,\s]+", match["codes"]):
                column = offset + match.start("codes") + found.start() + 1
                yield NamedCode(found[0], line, column, self._ranges.get(line, range(line, line + 1)))

    def _is_first(self, token: tokenize.TokenInfo, match: re.Match[str]) -> bool:
        line = token.start[0]
        lines = self._ranges.get(line, range(line, line + 1))
        before = sum(len(self._source.lines[number - 1]) + 1 for number in range(lines.start, line))
        first = _INLINE.search(self._text_around(line))
        return first is not None and first.start() == before + token.start[1] + match.start()

    def _text_around(self, line: int) -> str:
        """The text in which flake8 looks for a comment that acts on ``line``."""
        lines = self._ranges.get(line, range(line, line + 1))
        return "".join(text + "\n" for text in self._source.lines[lines.start - 1 : lines.stop - 1])

    @cached_property
    def _tokens(self) -> tuple[tokenize.TokenInfo, ...]:
        try:
            return tuple(tokenize.generate_tokens(io.StringIO(self._source.text).readline))
        except (tokenize.TokenError, SyntaxError):
            return ()

    @cached_property
    def _ranges(self) -> dict[int, range]:
        """For each line the lines whose comments act on it, as in flake8's ``_noqa_line_mapping``."""
        ranges: dict[int, range] = {}
        lines: list[int] = []
        for token in self._tokens:
            if token.type in _OUTSIDE_STATEMENTS:
                continue
            lines += (token.start[0], token.end[0])
            if token.type in _LINE_ENDS:
                together = range(min(lines), max(lines) + 1)
                ranges |= dict.fromkeys(together, together)
                lines = []
        return ranges


def _codes(text: str) -> list[str]:
    return [code for code in _SEPARATOR.split(text) if code]
