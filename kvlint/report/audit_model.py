"""What ``kvlint audit`` shows of a release, as plain data in the order in which it is shown.

Built by `kvlint.bundle`, rendered by `audit_text`, `audit_markdown` and, field
by field, by `audit_json`.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Fate(StrEnum):
    """What becomes of a loop when an exception is raised in its body."""

    ENDS = "ends"
    GOES_ON = "goes on"
    UNKNOWN = "unknown"


class Noun(msgspec.Struct, frozen=True, rename={"cls": "class"}):
    """Plain data; in JSON, ``cls`` is spelled ``class``."""


class WriterRow(Noun, frozen=True):
    """A status writer that calls in a backend reach; ``kind`` is the table's name where it has one (``M3``)."""

    cls: str
    name: str
    path: str
    line: int
    table: str
    kind: str | None


class LoopRow(Noun, frozen=True):
    """A worker's or listener's loop, what an exception does to it, and the line that decides."""

    function: str
    thread: str
    line: int
    fate: Fate
    reason: str


class RemovalCounts(Noun, frozen=True):
    """Removals from room tables, by verdict."""

    safe: int = 0
    unsafe: int = 0
    undecided: int = 0


class Backend(Noun, frozen=True):
    """A file with status writers, workers or findings; ``findings`` counts them by code."""

    path: str
    name: str
    writers: tuple[WriterRow, ...]
    findings: dict[str, int]
    loops: tuple[LoopRow, ...]
    removals: RemovalCounts

    @property
    def loop_fate(self) -> Fate | None:
        """The worst fate of its loops, None where it has none."""
        fates = {loop.fate for loop in self.loops}
        return next((fate for fate in (Fate.ENDS, Fate.UNKNOWN, Fate.GOES_ON) if fate in fates), None)


class Release(Noun, frozen=True):
    """An audited release; ``archive`` is None where installed files were read.

    ``affected`` where a judged rule reports; ``fixed_in`` is the first later
    release that is not, None where none is known.  ``incomplete`` are files
    that could not be judged.
    """

    package: str
    version: str
    archive: str | None
    sha256: str | None
    backends: tuple[Backend, ...]
    incomplete: tuple[str, ...] = ()
    fixed_in: str | None = None

    @property
    def findings(self) -> dict[str, int]:
        """Findings of all backends by code."""
        total: dict[str, int] = {}
        for backend in self.backends:
            for code, count in backend.findings.items():
                total[code] = total.get(code, 0) + count
        return dict(sorted(total.items()))

    @property
    def affected(self) -> bool:
        """Whether any judged rule reports."""
        return bool(self.findings)


class Failure(Noun, frozen=True):
    """A requirement, or one release of it, that could not be audited."""

    requirement: str
    message: str


class Audit(Noun, frozen=True):
    """A whole run: releases by package and version, what failed, what else a user should know."""

    releases: tuple[Release, ...]
    failures: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()


#: The codes in the columns of the tables.
CODES = ("KVL001", "KVL002", "KVL003", "KVL004", "KVL005")


def verdict(release: Release) -> str:
    """What the findings mean, in words; that nothing was found is never called safe."""
    if release.affected:
        told = _danger(release) + "; " + _remedy(release)
    elif not release.backends:
        told = "no backend with a status protocol found"
    else:
        told = "nothing found by these rules"
        if any(backend.loop_fate is Fate.ENDS for backend in release.backends):
            told += ", but an exception can end a loop"
    if release.incomplete:
        told += f" ({len(release.incomplete)} {'file' if len(release.incomplete) == 1 else 'files'} not judged)"
    return told


def _danger(release: Release) -> str:
    if set(release.findings) == {"KVL005"}:
        return "a failure can be lost"
    return "an abort can be lost or the request pinned"


def _remedy(release: Release) -> str:
    return f"fixed in {release.fixed_in}" if release.fixed_in else "no fixed release known"


def counted(backend: Backend, code: str) -> str:
    """How often a rule reports, for a cell."""
    return str(backend.findings.get(code, 0) or "-")


def writers_of(backend: Backend) -> str:
    """Its writers and their tables, for a cell: ``CommonKVManager.update_status M3``."""
    return "; ".join(f"{writer.cls}.{writer.name} {writer.kind or writer.table}" for writer in backend.writers) or "-"


def loops_of(backend: Backend) -> str:
    """What an exception does to its loops, for a cell: the lines of those that end."""
    fate = backend.loop_fate
    if fate is None:
        return "-"
    if fate is not Fate.ENDS:
        return {Fate.UNKNOWN: "unknown", Fate.GOES_ON: "no"}[fate]
    return "yes: " + ", ".join(str(loop.line) for loop in backend.loops if loop.fate is Fate.ENDS)


def removals_of(backend: Backend) -> str:
    """Counts of pop sites, for a cell: safe/unsafe/undecided."""
    counts = backend.removals
    if not (counts.safe or counts.unsafe or counts.undecided):
        return "-"
    return f"{counts.safe}/{counts.unsafe}/{counts.undecided}"
