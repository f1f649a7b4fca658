"""How paths and counts are shown.

Paths are shown as the user wrote them, with forward slashes, and never as bytes
that break a format.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Target:
    """A file to be checked: its absolute ``path``, and the ``display`` path derived from what the user wrote."""

    display: str
    path: str


class DisplayPaths:
    """Display paths of targets, and of the files beside them that findings refer to."""

    def __init__(self, targets: Iterable[Target]) -> None:
        self._known = {target.path: target.display for target in targets}

    def of(self, path: str, anchor: str | None = None) -> str:
        """The display path of absolute ``path``.

        A file that is no target is shown relative to ``anchor`` (a target's
        absolute path) and the way in which that was given.
        """
        if path in self._known:
            return self._known[path]
        if anchor is None or anchor not in self._known:
            return slashed(path)
        relative = os.path.relpath(path, os.path.dirname(anchor))
        return slashed(os.path.normpath(os.path.join(os.path.dirname(self._known[anchor]), relative)))


def slashed(path: str) -> str:
    """``path`` with forward slashes."""
    return path.replace(os.sep, "/") if os.sep != "/" else path


def printable(path: str) -> str:
    r"""``path`` as text that any UTF-8 stream takes: bytes that are no UTF-8 become ``\xff``."""
    try:
        data = path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        # Surrogates that stand for no byte: an odd encoding of a source file may hold them, no path does.
        data = path.encode("utf-8", "backslashreplace")
    return data.decode("utf-8", "backslashreplace")


def one_line(path: str) -> str:
    r"""``path`` printable and without control characters (a line feed becomes ``\n``)."""
    text = printable(path)
    return text if text.isprintable() else "".join(_visible(character) for character in text)


def counted(number: int, noun: str) -> str:
    """``number`` and ``noun``, with an s where there is not one of it."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _visible(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
