"""What is asked of the file system when a name is looked up, and what it answered.

A question's answer depends on the disk alone, so that asking again tells whether
something that was concluded from it still holds.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Container, Iterator

from msgspec import Struct, field

# Enough for the largest folder of a real package; a bound, since such a search must not read a whole disk.
_MAX_NEIGHBOURS = 400

#: The answer of `Disk.stands` for a namespace package.
FOLDER = ""


class Asked(Struct):
    """Questions with their answers; the fields are named after the methods of `Disk` that answer them."""

    finds: dict[tuple[str, str], str | None] = field(default_factory=dict)
    stands: dict[str, str | None] = field(default_factory=dict)
    neighbours: dict[tuple[str, frozenset[str]], tuple[str, ...]] = field(default_factory=dict)

    def add(self, other: Asked) -> None:
        """Take over the questions of ``other``."""
        self.finds |= other.finds
        self.stands |= other.stands
        self.neighbours |= other.neighbours

    def files(self) -> Iterator[str]:
        """The paths among the answers."""
        yield from filter(None, self.stands.values())
        for paths in self.neighbours.values():
            yield from paths


class Disk:
    """Answers each question once; ``roots`` are the folders below which packages start, ``extra`` files count as there.

    Paths are absolute.
    """

    def __init__(self, roots: tuple[str, ...], extra: Container[str] = ()) -> None:
        self._roots = roots
        self._extra = extra
        self._known = Asked()

    def finds(self, folder: str, dotted: str) -> str | None:
        """The path, without suffix, of module ``dotted`` below a root or below ``folder`` or the nearest one above it.

        None for the standard library, and where nothing is found.
        """
        key = (folder, dotted)
        if key not in self._known.finds:
            self._known.finds[key] = self._find(folder, dotted)
        return self._known.finds[key]

    def stands(self, stem: str) -> str | None:
        """The file of the module at ``stem`` (a path without suffix), FOLDER for a mere folder, None for nothing."""
        if stem not in self._known.stands:
            self._known.stands[stem] = self._stand(stem)
        return self._known.stands[stem]

    def neighbours(self, path: str, names: frozenset[str]) -> tuple[str, ...]:
        """Other Python files in the file's folder and in the folders beside it that mention one of ``names``."""
        key = (path, names)
        if key not in self._known.neighbours:
            self._known.neighbours[key] = tuple(_neighbours(path, names))
        return self._known.neighbours[key]

    def _find(self, folder: str, dotted: str) -> str | None:
        if dotted.partition(".")[0] in sys.stdlib_module_names:
            return None
        tail = dotted.replace(".", os.sep)
        for root in (*self._roots, *_upwards(folder)):
            stem = os.path.join(root, tail)
            if os.path.isfile(stem + ".py") or os.path.isdir(stem) or os.path.isfile(stem + ".pyi"):
                return stem
        return None

    def _stand(self, stem: str) -> str | None:
        for path in (os.path.join(stem, "__init__.py"), stem + ".py", stem + ".pyi"):
            if path in self._extra or os.path.isfile(path):
                return path
        return FOLDER if os.path.isdir(stem) else None


def _upwards(folder: str) -> Iterator[str]:
    yield folder
    while (parent := os.path.dirname(folder)) != folder:
        folder = parent
        yield folder


def _neighbours(path: str, names: frozenset[str]) -> Iterator[str]:
    wanted = [name.encode() for name in names]
    looked_at = 0
    for folder in _folders_around(path):
        try:
            files = sorted(name for name in os.listdir(folder) if name.endswith(".py"))
        except OSError:
            continue
        for name in files:
            other = os.path.join(folder, name)
            looked_at += 1
            if looked_at > _MAX_NEIGHBOURS:
                return
            if other != path and os.path.isfile(other) and _mentions(other, wanted):
                yield other


def _folders_around(path: str) -> list[str]:
    """The file's own folder first, then the others beside it."""
    folder = os.path.dirname(path)
    try:
        with os.scandir(os.path.dirname(folder)) as entries:
            beside = sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        beside = []
    return list(dict.fromkeys([folder, *beside]))


def _mentions(path: str, words: list[bytes]) -> bool:
    try:
        with open(path, "rb") as stream:
            data = stream.read()
    except OSError:
        return False
    return any(word in data for word in words)
