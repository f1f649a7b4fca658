"""What a run produced, ready to be rendered: the one thing that every report format is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Flag, auto
from traceback import format_exception
from typing import TYPE_CHECKING

from kvlint.diagnostics import Finding, FixPlan, Replacement
from kvlint.source.text import SourceText, UnreadableSource, read_source

if TYPE_CHECKING:
    from kvlint.analysis.facts import Facts
    from kvlint.report.inspect_model import FileModel
    from kvlint.source.display import DisplayPaths


class Detail(Flag):
    """What a format shows beyond the findings, and what therefore has to be looked up for it."""

    SOURCES = auto()
    EDITS = auto()
    MODELS = auto()
    SUPPRESSED = auto()


@dataclass(frozen=True, slots=True)
class Details:
    """What was looked up for a format that shows more than the findings.

    ``root`` is the absolute path of the folder that stands for the project,
    ``sources`` the texts that findings refer to, by display path, ``edits`` what
    `kvlint fix` would do for each plan that it would carry out, ``models`` the
    backends, as ``kvlint inspect`` shows them.
    """

    root: str
    sources: Mapping[str, SourceText] = field(default_factory=dict)
    edits: Mapping[FixPlan, tuple[str, tuple[Replacement, ...]]] = field(default_factory=dict)
    models: tuple[FileModel, ...] = ()

    def read_source(self, path: str) -> SourceText:
        """The text of the file at display ``path``; raises UnreadableSource where it was not looked up."""
        if path not in self.sources:
            raise UnreadableSource(path, "was not looked up")
        return self.sources[path]


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

    @staticmethod
    def of(path: str, error: Exception) -> Crash:
        """``error``, which should not have happened, as a note on the file at ``path``."""
        return Crash(path, f"{type(error).__name__}: {error}", "".join(format_exception(error)))


@dataclass(frozen=True, slots=True)
class Report:
    """A run: sorted findings with display paths, and what a user has to know besides.

    With a crash the findings are incomplete, which no exit status may hide.
    ``suppressed`` are the findings that comments silence; ``details`` is None
    where the format asks for none.  ``known`` findings were left out since a
    baseline has them, ``elsewhere`` ones since they lie on no changed line;
    ``left_out`` are both, in any order.
    ``overlay`` holds the contents, by display path, that were checked in place of
    those on disk.
    """

    findings: tuple[Finding, ...]
    files: FileCounts
    warnings: tuple[str, ...] = ()
    crashes: tuple[Crash, ...] = ()
    suppressed: tuple[Finding, ...] = ()
    details: Details | None = None
    known: int = 0
    elsewhere: int = 0
    left_out: tuple[Finding, ...] = ()
    overlay: Mapping[str, bytes] = field(default_factory=dict)

    def read_source(self, path: str) -> SourceText:
        """The text that was checked as the file at display ``path``; raises UnreadableSource."""
        return read_source(path, self.overlay)


@dataclass(frozen=True, slots=True)
class Inspected:
    """The facts of one file, with the path to show for it and for the files that it draws on, and what they come to.

    ``is_named`` where the user gave the file itself, no folder around it.
    """

    display: str
    facts: Facts
    names: DisplayPaths
    model: FileModel
    is_named: bool = False


@dataclass(frozen=True, slots=True)
class Inspection:
    """The facts of every file looked into, ordered by display path, why others have none, and what kvlint failed on."""

    files: tuple[Inspected, ...]
    warnings: tuple[str, ...] = ()
    crashes: tuple[Crash, ...] = ()
