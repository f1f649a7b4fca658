"""Why an edit or a write did not happen: the two errors of this package and the note a report prints."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """A file that was left as it is, wholly or in one place, and the reason in words for the user."""

    path: str
    reason: str


class _RefusedError(Exception):
    """Common shape of the two errors below; both say which file and why."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class EditRefused(_RefusedError):
    """The text is not what the plan expects, or cannot be edited without touching more than the plan says."""


class WriteRefused(_RefusedError):
    """The file on disk was not replaced; it still holds the text that it held before."""
