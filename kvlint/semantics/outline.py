"""Where the top-level functions and classes of a module stand in its text, told without parsing it.

Most modules that an analysis loads are there for one class of many, and parsing
a megabyte of Python takes longer than all that is asked of it.
"""

from __future__ import annotations

import re

from msgspec import Struct

# Strings and comments, whatever they hold.  Quotes inside the braces of an f-string (Python 3.12) can mislead it
# within their line; a piece that is cut wrongly does not parse.
_QUOTED = re.compile(
    r"""
    \#[^\n]*
    | ( \"{3} [^"\\]* (?: (?: \\. | "(?!"") ) [^"\\]* )* \"{3}
      | '{3} [^'\\]* (?: (?: \\. | '(?!'') ) [^'\\]* )* '{3} )
    | " [^"\\\n]* (?: \\. [^"\\\n]* )* "
    | ' [^'\\\n]* (?: \\. [^'\\\n]* )* '
    """,
    re.VERBOSE | re.DOTALL,
)
_TOP_LEVEL = re.compile(r"^\f*[^\s#)\]}].*", re.MULTILINE)
_DEFINITION = re.compile(r"(?:async[ \t]+def|def|class)[ \t]+(\w+)")
_IMPORT = re.compile(r"\bimport\b")
_OUTER_IMPORT = re.compile(r"^(?:from|import)\b", re.MULTILINE)
_INNER_IMPORT = re.compile(r"^[ \t]+(?:from\s+\S+\s+)?import\s+(\([^)]*\)|(?:[^\n\\]|\\\n)*)", re.MULTILINE)


class Definition(Struct, frozen=True):
    """A top-level function or class: the lines it takes, decorators included, from ``start`` up to ``end``."""

    name: str
    start: int
    end: int


def definitions(text: str) -> tuple[Definition, ...]:
    """The top-level definitions in ``text``, in order; lines count from 1."""
    found: list[Definition] = []
    opened: tuple[str | None, int] | None = None  # a definition's name (None: so far decorators) and first line
    line, position = 1, 0
    for start, head in _statements(text):
        line, position = line + text.count("\n", position, start), start
        if opened is not None and opened[0] is not None:
            found.append(Definition(opened[0], opened[1], line))
            opened = None
        definition = _DEFINITION.match(head)
        if definition is not None:
            opened = (definition[1], line if opened is None else opened[1])
        elif head.startswith("@"):
            opened = opened or (None, line)
        else:
            opened = None
    if opened is not None and opened[0] is not None:
        found.append(Definition(opened[0], opened[1], line + text.count("\n", position) + 1))
    return tuple(found)


def _statements(text: str) -> list[tuple[int, str]]:
    """Offset and first line of each top-level statement, of parts of some as well."""
    # Only what can run over several lines; `lastindex` says that it was the pattern's group that matched.
    quoted = [match.span() for match in _QUOTED.finditer(text) if match.lastindex]
    quoted.reverse()
    found = []
    for match in _TOP_LEVEL.finditer(text):
        start = match.start()
        while quoted and quoted[-1][1] <= start:
            quoted.pop()
        inside = bool(quoted) and quoted[-1][0] < start
        continued = text.endswith("\\\n", 0, start) and not _is_comment_before(text, start)
        if not inside and not continued:
            found.append((start, match[0].lstrip("\f")))
    return found


def _is_comment_before(text: str, start: int) -> bool:
    """Whether the line before the one at ``start`` ends in a comment."""
    for match in _QUOTED.finditer(text):
        if match.end() >= start - 1:
            return match.end() == start - 1 and match[0].startswith("#")
    return False


def inner_imports(text: str) -> tuple[str, ...] | None:
    """The import statements of indented code, None where there are some that lines do not tell."""
    bare = _QUOTED.sub("", text).replace("\\\n", " ")
    found = tuple(match[0].strip() for match in _INNER_IMPORT.finditer(bare))
    outer = len(_OUTER_IMPORT.findall(bare))
    return found if len(_IMPORT.findall(bare)) == outer + len(found) else None


def seems_defined(text: str, name: str) -> bool:
    """Whether a line at the margin looks like a definition of ``name``, wherever it may stand."""
    if f"def {name}" not in text and f"class {name}" not in text:
        return False  # most names; the rest of the test takes a hundred times as long
    return re.search(rf"^\f*(?:async[ \t]+def|def|class) {re.escape(name)}\b", text, re.MULTILINE) is not None
