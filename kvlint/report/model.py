"""What a run produced, ready to be rendered: the one thing that every report format is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kvlint.diagnostics import Finding
from kvlint.source.text import SourceText, read_source

if TYPE_CHECKING:
    from kvlint.analysis.facts import Facts
    from kvlint.source.display import DisplayPaths


@dataclass(frozen=True, slots=True)
class FileCounts:
    """Files looked at, files that were candidates and could be parsed, and files that could not be."""

    checked: int = 0
    parsed: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Crash:
    """A defect of kvlint's own that one file brought out; the other files were checked all the same."""

    path: str
    reason: str
    traceback: str


@dataclass(frozen=True, slots=True)
class Report:
    """A run: sorted findings with display paths, and what a user has to know besides.

    With a crash the findings are incomplete, which no exit status may hide.
    ``known`` findings were left out since a baseline has them, ``elsewhere`` ones
    since they lie on no changed line.  ``overlay`` holds the contents, by display
    path, that were checked in place of those on disk.
    """

    findings: tuple[Finding, ...]
    files: FileCounts
    warnings: tuple[str, ...] = ()
    crashes: tuple[Crash, ...] = ()
    known: int = 0
    elsewhere: int = 0
    overlay: Mapping[str, bytes] = field(default_factory=dict)

    def read_source(self, path: str) -> SourceText:
        """The text that was checked as the file at display ``path``; raises UnreadableSource."""
        return read_source(path, self.overlay)


@dataclass(frozen=True, slots=True)
class Inspected:
    """The facts of one file, with the path to show for it and for the files that it draws on.

    ``is_named`` where the user gave the file itself, no folder around it.
    """

    display: str
    facts: Facts
    names: DisplayPaths
    is_named: bool = False


@dataclass(frozen=True, slots=True)
class Inspection:
    """The facts of every file looked into, ordered by display path, why others have none, and what kvlint failed on."""

    files: tuple[Inspected, ...]
    warnings: tuple[str, ...] = ()
    crashes: tuple[Crash, ...] = ()
