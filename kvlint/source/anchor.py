"""What a span of source stands for, in words that survive edits elsewhere: its function and its statement.

Baselines, fingerprints and the question of what a change touched all rest on
it, so it knows neither line numbers nor what a rule says.  Parsed text only:
nothing here depends on which Python runs it.
"""

from __future__ import annotations

import ast
import hashlib
import io
import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kvlint.diagnostics import Span
from kvlint.source.text import SourceText, UnreadableSource, parse

#: A statement longer than this is cut, and told apart from its like by a digest.
LONGEST = 200

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BRANCHES = (ast.If, ast.ExceptHandler, ast.match_case)

# What a formatter may change: quotes, white space, continued lines, the comma before a closing bracket.
_CONTINUATION = re.compile(r"\\\n")
_SPACE = re.compile(r"(?<=\w)(\s)\s*(?=\w)|\s+")
_LAST_COMMA = re.compile(r",(?=[)\]}])")


@dataclass(frozen=True, slots=True)
class Anchor:
    """A statement.

    ``function`` is the qualified name of what it stands in (``Manager.loop``),
    empty at the top of a file; ``text`` is the statement with its formatting
    normalised, of a compound one its header; ``lines`` are those on which a
    change touches it: of a definition all of them, of a bare ``continue`` those
    from the head of its branch.
    """

    function: str
    text: str
    lines: range


@dataclass(frozen=True, slots=True, order=True)
class _Place:
    """Where a node starts: a line from 1 and a column from 0, in bytes of UTF-8 as `ast` has it."""

    line: int
    column: int


class Anchors:
    """The anchors of one file."""

    def __init__(self, source: SourceText) -> None:
        self._source = source

    def at(self, span: Span) -> Anchor:
        """The anchor of the statement that ``span`` starts in.

        An empty span points at the whole file.  Where the file cannot be parsed,
        the statement is the span's first line.
        """
        if (span.line, span.column) == (span.end_line, span.end_column):
            # What was removed before the first line or after the last has changed the file, too.
            return Anchor("", "", range(len(self._source.lines) + 2))
        path = self._path_to(span)
        function = ".".join(node.name for node in path if isinstance(node, _DEFINITIONS))
        if self._is_in_comment(span):
            line = self._line(span.line)
            return Anchor(function, _brief(line[span.column - 1 : span.end_column - 1]), _lines(span))
        if not path or isinstance(path[-1], ast.mod):
            return Anchor(function, _brief(self._between(_Place(span.line, 0), _Place(span.line + 1, 0))), _lines(span))
        return Anchor(function, _brief(self._text(path)), self._extent(path, span))

    # -- finding the statement ------------------------------------------------

    @cached_property
    def _tree(self) -> ast.Module | None:
        try:
            return parse(self._source)
        except UnreadableSource:
            return None

    def _path_to(self, span: Span) -> list[ast.AST]:
        """The nodes around the start of ``span`` that statements nest in, the outermost first."""
        if self._tree is None:
            return []
        column = len(self._line(span.line)[: span.column - 1].encode("utf-8", "surrogatepass"))
        sought = _Place(span.line, column)
        path: list[ast.AST] = [self._tree]
        while True:
            blocks = list(_blocks(path[-1]))
            index = bisect_right(blocks, sought, key=_start) - 1
            if index < 0 or _end(blocks[index]).line < span.line:
                return path
            path.append(blocks[index])

    # -- its text and its lines -----------------------------------------------

    def _text(self, path: Sequence[ast.AST]) -> str:
        node, branch = path[-1], path[-2]
        if isinstance(node, _DEFINITIONS):
            return f"{'class' if isinstance(node, ast.ClassDef) else 'def'} {node.name}"
        if isinstance(branch, _BRANCHES) and _is_bare_exit(node):
            side = "else: " if isinstance(branch, ast.If) and node in branch.orelse else ""
            return f"{self._head(branch)} {side}{self._head(node)}"
        return self._head(node)

    def _head(self, node: ast.AST) -> str:
        """A statement without the statements in it, and without comments."""
        inner = next(_blocks(node), None)
        prefix = "case " if isinstance(node, ast.match_case) else ""
        return prefix + self._between(_start(node), _end(node) if inner is None else _start(inner))

    def _extent(self, path: Sequence[ast.AST], span: Span) -> range:
        node = path[-1]
        if isinstance(node, _DEFINITIONS):
            return range(_start(node).line, (node.end_lineno or node.lineno) + 1)
        if isinstance(path[-2], _BRANCHES) and _is_bare_exit(node):
            return range(_start(path[-2]).line, span.end_line + 1)
        if next(_blocks(node), None) is not None:
            return _lines(span)
        return range(_start(node).line, max(_end(node).line, span.end_line) + 1)

    def _between(self, start: _Place, end: _Place) -> str:
        """The source from ``start`` to ``end`` without its comments."""
        lines = [self._without_comment(number) for number in range(start.line, end.line + 1)]
        if start.line <= end.line:
            # The end first: both may lie on one line.
            lines[-1] = _bytes(lines[-1])[: end.column].decode("utf-8", "surrogatepass")
            lines[0] = _bytes(lines[0])[start.column :].decode("utf-8", "surrogatepass")
        return "\n".join(lines)

    # -- lines and comments ---------------------------------------------------

    def _line(self, number: int) -> str:
        return self._source.lines[number - 1] if number <= len(self._source.lines) else ""

    def _without_comment(self, number: int) -> str:
        line = self._line(number)
        return line[: self._comments.get(number, len(line))] if "#" in line else line

    def _is_in_comment(self, span: Span) -> bool:
        if "#" not in self._line(span.line):
            return False
        start = self._comments.get(span.line)
        return start is not None and start < span.column

    @cached_property
    def _comments(self) -> dict[int, int]:
        """Line → the column (from 0) where its comment starts."""
        found = {}
        try:
            for token in tokenize.generate_tokens(io.StringIO(self._source.text).readline):
                if token.type == tokenize.COMMENT:
                    found[token.start[0]] = token.start[1]
        except (tokenize.TokenError, SyntaxError):
            # Of a file that is no Python, those before the place where that shows.
            pass
        return found


def normalised(text: str) -> str:
    """``text`` as every formatter's version of it reads."""
    text = _CONTINUATION.sub(" ", text).replace("'", '"')
    text = _SPACE.sub(lambda match: " " if match[1] else "", text.strip())
    # Some codecs give lone surrogates, which no file of ours could hold.
    return _LAST_COMMA.sub("", text).replace(",", ", ").encode("utf-8", "backslashreplace").decode()


def _brief(text: str) -> str:
    text = normalised(text).removesuffix(":")
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… {hashlib.sha256(_bytes(text)).hexdigest()[:8]}"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _lines(span: Span) -> range:
    return range(span.line, span.end_line + 1)


def _blocks(node: ast.AST) -> Iterator[ast.AST]:
    """What statements nest in, or are, directly below ``node``, in the order of the source."""
    for name in ("cases", "body", "handlers", "orelse", "finalbody"):
        inner = getattr(node, name, None)
        if isinstance(inner, list):
            yield from inner


def _start(node: ast.AST) -> _Place:
    decorators = getattr(node, "decorator_list", None)
    first: Any = decorators[0] if decorators else node.pattern if isinstance(node, ast.match_case) else node
    # The sign before a decorator is none of its own.
    return _Place(first.lineno, first.col_offset - bool(decorators))


def _end(node: ast.AST) -> _Place:
    last: Any = node.body[-1] if isinstance(node, ast.match_case) else node
    return _Place(last.end_lineno, last.end_col_offset)


def _is_bare_exit(node: ast.AST) -> bool:
    if isinstance(node, ast.Return):
        return node.value is None
    return isinstance(node, ast.Continue | ast.Break | ast.Pass)
