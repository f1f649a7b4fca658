"""The nouns that leave the analysis: findings, where they stand, and the edit that would mend each.

Everything here is plain frozen data.  A rule makes it, a report prints it, the
fixer carries it out; none of the three knows the other two.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad the consequence is for a user of the linted backend."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Applicability(StrEnum):
    """Whether an edit keeps the meaning of correct programs (safe) or needs a reader's judgement (unsafe)."""

    SAFE = "safe"
    UNSAFE = "unsafe"


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A stretch of source text.

    Lines and columns count from 1, columns in characters (not bytes); the end
    column is one past the last character.
    """

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A span in a file; ``path`` is as the user gave it, with forward slashes."""

    path: str
    span: Span


@dataclass(frozen=True, slots=True)
class Related:
    """A second place that a reader needs in order to believe a finding."""

    location: Location
    message: str


@dataclass(frozen=True, slots=True)
class Step:
    """One event of the schedule that a finding warns of; ``order`` is its rank among those of all threads, from 1."""

    order: int
    location: Location
    message: str


@dataclass(frozen=True, slots=True)
class Flow:
    """What one thread does in the schedule that a finding warns of, in the order in which it does it."""

    thread: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Replacement:
    """Text that takes the place of a span (of nothing, where the span is empty), with the file's own line ends."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class StickyTerminal:
    """Make a status writer ignore every write once a terminal status is stored.

    The definition starts at ``line`` of ``path``.  ``stored`` is the text of a
    side-effect-free expression that yields the stored status or None
    (``self.request_status.get(bootstrap_room)``, ``self.status``); ``terminals``
    are the texts of the terminal members as they can be written in that file
    (``KVPoll.Failed``).
    """

    path: str
    line: int
    function: str
    stored: str
    terminals: tuple[str, ...]

    TITLE = "ignore writes once a terminal status is stored"
    NAME = "sticky-terminal"
    APPLICABILITY = Applicability.SAFE


@dataclass(frozen=True, slots=True)
class SkipGuard:
    """Conclude a live room on the path that drops its work item.

    ``line`` and ``column`` are the start of the exit statement (``continue``,
    ``return``, ``break``) that the inserted lines must precede; with
    ``at_block_end`` they are instead the start of the ``if``/``except``
    statement to whose *skipping* block the lines are appended (an absent
    ``else`` is made); ``in_body`` tells whether that is its body or its
    ``else``.  ``stored`` is as in StickyTerminal, ``calm`` holds the
    texts of the values of ``stored`` that need nothing (``None`` and the
    terminal members), ``record`` and ``conclude`` are whole statements, e.g.
    ``self.record_failure(room, "...")`` (None where the class has no recorder)
    and ``self.update_status(room, KVPoll.Failed)``.
    """

    path: str
    line: int
    column: int
    at_block_end: bool
    stored: str
    calm: tuple[str, ...]
    record: str | None
    conclude: str
    in_body: bool = True

    TITLE = "fail a live room before its work item is dropped"
    NAME = "skip-guard"
    APPLICABILITY = Applicability.SAFE


@dataclass(frozen=True, slots=True)
class DeferAbortCleanup:
    """Drop a removal from an abort handler; ``line`` and ``column`` start the statement that removes."""

    path: str
    line: int
    column: int

    TITLE = "leave the removal to clear() or to the worker's success path"
    NAME = "defer-abort-cleanup"
    APPLICABILITY = Applicability.UNSAFE


@dataclass(frozen=True, slots=True)
class RecordFailure:
    """Make a status writer store a failure that is written to a live room.

    ``failure`` is the text of the failure member, ``status`` the writer's
    status parameter, ``store`` a whole statement that stores the failure
    (``self.request_status[bootstrap_room] = KVPoll.Failed``); ``stored`` and
    ``calm`` are as in SkipGuard.
    """

    path: str
    line: int
    function: str
    status: str
    stored: str
    calm: tuple[str, ...]
    failure: str
    store: str

    TITLE = "store a failure written to a live room"
    NAME = "record-failure"
    APPLICABILITY = Applicability.UNSAFE


@dataclass(frozen=True, slots=True)
class OpeningStatus:
    """Make a status writer ignore a write to an absent room unless it is of an ``opening`` status.

    ``status`` is the writer's status parameter; the other fields are as in
    StickyTerminal.
    """

    path: str
    line: int
    function: str
    status: str
    stored: str
    opening: tuple[str, ...]

    TITLE = "let only opening statuses create a room"
    NAME = "opening-status"
    APPLICABILITY = Applicability.UNSAFE


@dataclass(frozen=True, slots=True)
class LockMaking:
    """Where a lock is made: behind the statement that starts at ``line``, ``column`` and makes what it guards.

    ``imported`` is the import that this takes, None where the file has it.
    """

    line: int
    column: int
    statement: str
    imported: str | None


@dataclass(frozen=True, slots=True)
class AtomicStatus:
    """Make a decision and what is done on it one step for other threads.

    One of two edits.  With a ``lock`` the body of the writer that ``function``
    names, or without a name the statement that starts at ``line`` and
    ``column``, runs under that lock; ``making`` makes it in the same file, and
    comes alone where ``lock`` is empty.  With ``old``, that text, which starts
    at ``line`` and ``column``, is replaced by ``new``, a single operation that
    cannot raise, and ``after`` are the lines that then follow its statement, a
    tab standing for a step of indentation.
    """

    path: str
    line: int
    column: int
    lock: str = ""
    function: str = ""
    making: LockMaking | None = None
    old: str = ""
    new: str = ""
    after: tuple[str, ...] = ()

    TITLE = "leave no gap between a decision on shared state and what is done on it"
    NAME = "atomic-status"
    APPLICABILITY = Applicability.UNSAFE


FixPlan = StickyTerminal | SkipGuard | DeferAbortCleanup | RecordFailure | OpeningStatus | AtomicStatus


@dataclass(frozen=True, slots=True)
class Finding:
    """One diagnosis.

    ``plan`` is the edit that mends it, None where no codemod should; ``flows``
    are the threads of a schedule that leads to the harm, empty where one place tells it all.
    """

    code: str
    name: str
    severity: Severity
    message: str
    location: Location
    related: tuple[Related, ...] = ()
    plan: FixPlan | None = None
    flows: tuple[Flow, ...] = ()

    @property
    def sort_key(self) -> tuple[str, int, int, str, str]:
        """Order of every report: path, line, column, code (the message breaks ties)."""
        span = self.location.span
        return (self.location.path, span.line, span.column, self.code, self.message)
