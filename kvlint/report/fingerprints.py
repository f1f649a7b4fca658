"""Fingerprints: names of findings that survive when lines move, for services that follow a finding through history.

A fingerprint is a hash of what a reader would call the same finding: the rule,
the file's own name and its folder's, the qualified name of the innermost class or
function around the finding, and its source text without white space.  No line
number, no message (it cites lines) and no path from the root goes in, so it stays
when code above is edited, the function moves within its file, or the checkout is
elsewhere; it changes with the text of the finding's own lines, with a renamed
function, class, file or folder.  Findings that agree in all of that are told apart
by counting them from top to bottom.
"""

from __future__ import annotations

import ast
import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache

from kvlint.diagnostics import Finding, Span
from kvlint.source.display import printable
from kvlint.source.text import SourceText, UnreadableSource, parse

_Scope = tuple[int, int, str]


def fingerprints(findings: Iterable[Finding], sources: Mapping[str, SourceText]) -> list[str]:
    """A fingerprint for each of ``findings``, which come in their order; ``sources`` are by display path.

    ``HASH:N``, with N the number among findings of that hash.  Where the text of
    a file is not there, its place in the file counts for nothing.
    """
    scopes = cache(lambda path: _scopes(sources[path]) if path in sources else ())
    seen: Counter[str] = Counter()
    result = []
    for finding in findings:
        span, path = finding.location.span, finding.location.path
        source = sources.get(path)
        text = "" if source is None else "".join(text_of(span, source.lines).split())
        scope = max((found for found in scopes(path) if found[0] <= span.line <= found[1]), default=(0, 0, ""))[2]
        folder, name = os.path.split(path)
        parts = (finding.code, os.path.basename(folder), name, scope, text)
        digest = hashlib.sha256("\0".join(map(printable, parts)).encode()).hexdigest()[:16]
        seen[digest] += 1
        result.append(f"{digest}:{seen[digest]}")
    return result


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


def _scopes(source: SourceText) -> tuple[_Scope, ...]:
    """First line, last line and qualified name of each class and function: around a line the greatest is innermost."""
    try:
        tree = parse(source)
    except UnreadableSource:
        return ()
    found: list[_Scope] = []
    pending: list[tuple[ast.AST, str]] = [(tree, "")]
    while pending:
        node, outer = pending.pop()
        for child in ast.iter_child_nodes(node):
            name = outer
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{outer}.{child.name}" if outer else child.name
                found.append((child.lineno, child.end_lineno or child.lineno, name))
            if not isinstance(child, ast.expr):
                pending.append((child, name))
    return tuple(found)
