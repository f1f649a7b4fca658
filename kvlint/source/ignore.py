"""Patterns in gitignore's language, compiled so that thousands of paths cost milliseconds.

One language serves ``.gitignore`` files, ``exclude`` and ``per-file-ignores``
(https://git-scm.com/docs/gitignore): a pattern without an inner slash fits a
name at any depth, ``**`` spans folders, a trailing slash asks for a folder,
``!`` takes a match back, and the last pattern that fits decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_WILD = re.compile(r"[*?\[\\]")
_TOKEN = re.compile(r"\*{2,}/|/\*{2,}$|\*+|\?|\[(?:!|\^)?\]?(?:\\.|[^\]\\])*\]|\\.|[^*?\[\\/]+|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Pattern:
    """One line; ``literal`` is set where it holds no wildcard, ``tail`` is what every path that fits ends with."""

    regex: re.Pattern[str]
    negated: bool
    folders_only: bool
    anchored: bool
    literal: str | None
    tail: str


class Patterns:
    """A list of patterns, relative to one folder."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._patterns = [pattern for line in lines if (pattern := _parse(line)) is not None]
        # Most lines of a real .gitignore are plain names: a dictionary answers for all of them at once.
        self._literal: dict[str, list[int]] = {}
        self._wild: list[int] = []
        for index, pattern in enumerate(self._patterns):
            if pattern.literal is None:
                self._wild.append(index)
            else:
                self._literal.setdefault(pattern.literal, []).append(index)
        # And most of the others end in a suffix that no Python file has.
        self._tails = tuple({self._patterns[index].tail for index in self._wild})

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def verdict(self, path: str, is_folder: bool) -> bool | None:
        """True if ``path`` (relative, forward slashes) is ignored, False if taken back, None if no pattern fits.

        The folders above it are taken to be not ignored.
        """
        name = path.rpartition("/")[2]
        last = -1
        for key in {name, path}:
            for index in self._literal.get(key, ()):
                pattern = self._patterns[index]
                if (pattern.anchored and key != path) or (not pattern.anchored and key != name):
                    continue
                if is_folder or not pattern.folders_only:
                    last = max(last, index)
        if name.endswith(self._tails):
            last = max(last, self._last_wild(path, name, is_folder))
        return None if last < 0 else not self._patterns[last].negated

    def covers(self, path: str, is_folder: bool = False) -> bool:
        """Whether ``path`` or a folder above it is ignored."""
        parts = path.split("/")
        above = ("/".join(parts[:depth]) for depth in range(1, len(parts)))
        return any(self.verdict(folder, is_folder=True) for folder in above) or bool(self.verdict(path, is_folder))

    def _last_wild(self, path: str, name: str, is_folder: bool) -> int:
        for index in reversed(self._wild):
            pattern = self._patterns[index]
            if pattern.folders_only and not is_folder:
                continue
            if pattern.regex.fullmatch(path if pattern.anchored else name):
                return index
        return -1


def _parse(line: str) -> _Pattern | None:
    text = line.rstrip("\r\n")
    while text.endswith(" ") and not text.endswith("\\ "):
        text = text[:-1]
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    text = text[negated:]
    folders_only = text.endswith("/")
    text = text.rstrip("/") if folders_only else text
    anchored = "/" in text
    text = text.removeprefix("/")
    if text.startswith("**/") and "/" not in text[3:]:
        # `**/name` is `name`.
        text, anchored = text[3:], False
    if not text:
        return None
    wild = _WILD.search(text)
    tail = "" if text.endswith("\\") else re.split(r"[*?\]]|\\.", text)[-1].rpartition("/")[2]
    return _Pattern(_regex(text), negated, folders_only, anchored, None if wild else text, tail)


def _regex(glob: str) -> re.Pattern[str]:
    if len(glob) > 1 and not glob.strip("*"):
        return re.compile(".+", re.DOTALL)
    parts: list[str] = []
    at_start = True
    for token in _TOKEN.findall(glob):
        if at_start and token.startswith("**") and token.endswith("/"):
            parts.append("(?:.+/)?")
            continue
        if token.startswith("/*"):
            parts.append("/.+")
        elif token[0] == "*":
            # Two asterisks beside other characters are two single ones.
            parts.append("[^/]*" + ("/" if token.endswith("/") else ""))
        elif token == "?":
            parts.append("[^/]")
        elif token[0] == "[" and len(token) > 1:
            parts.append(_set(token[1:-1]))
        else:
            parts.append(re.escape(token[1:] if token[0] == "\\" and len(token) > 1 else token))
        at_start = token == "/" or token.endswith("/")
    return re.compile("".join(parts), re.DOTALL)


def _set(body: str) -> str:
    negated = body[:1] in ("!", "^")
    inner = body[negated:]
    escaped = re.sub(r"\\?(.)", lambda match: "-" if match[0] == "-" else re.escape(match[1]), inner)
    candidate = f"[{'^/' if negated else ''}{escaped}]"
    try:
        re.compile(candidate)
    except re.error:
        # A range that runs backwards fits nothing.
        return r"(?!)"
    return f"(?!/){candidate}"
