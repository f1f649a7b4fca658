"""Standard streams that cannot be written: a full disk, a pipe whose reader has gone, a closed descriptor."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from kvlint.commands.streams import say

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

#: The exit status where output was lost.
UNWRITTEN = 2

#: The exit status where the reader of a pipe has seen enough, as click has it.
UNREAD = 1


class _Descriptor(io.FileIO):
    """A descriptor that notes the first write that fails; later ones are dropped, so that nothing complains twice."""

    failure: OSError | None = None
    is_told = True

    def write(self, data: ReadableBuffer, /) -> int:
        """Write ``data`` as far as possible; raises OSError, at most once and only where failures are to be told."""
        if self.failure is None:
            try:
                return super().write(data)
            except OSError as error:
                self.failure = error
                if self.is_told:
                    raise
        return memoryview(data).nbytes


def run_guarded(command: Callable[[], object]) -> None:
    """Run ``command``, which ends with SystemExit; exit with `UNWRITTEN`, and say so, if its output gets lost.

    A pipe that nobody reads any more ends it quietly.  What cannot be written
    to standard error is dropped: it is no part of a result.
    """
    output, messages = sys.stdout, sys.stderr
    raw, sys.stdout = _guarded(output)
    raw_messages, sys.stderr = _guarded(messages)
    raw_messages.is_told = False
    try:
        require_folder()
        try:
            command()
        finally:
            sys.stdout.flush()
    except (OSError, SystemExit):
        if raw.failure is None:
            raise
        if raw.failure.errno == errno.EPIPE:
            sys.exit(UNREAD)
        say(f"error: standard output cannot be written: {raw.failure.strerror}")
        sys.exit(UNWRITTEN)
    finally:
        sys.stdout, sys.stderr = output, messages


def require_folder() -> None:
    """Exit with `UNWRITTEN`, and say so, where the current folder has been removed: no relative path means anything."""
    try:
        os.getcwd()
    except OSError as error:
        say(f"error: the current folder cannot be used ({error.strerror}): change to one that exists")
        sys.exit(UNWRITTEN)


def _guarded(stream: TextIO | None) -> tuple[_Descriptor, TextIO]:
    """``stream``, or what stands for it where it was closed, written by way of a `_Descriptor`."""
    if stream is None:
        # As the first free one it takes the closed one's number, and keeps it from files of ours; it refuses writes.
        raw = _Descriptor(os.open(os.devnull, os.O_RDONLY), "w", closefd=False)
        return raw, io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8", errors="backslashreplace")
    stream.flush()
    raw = _Descriptor(stream.fileno(), "w", closefd=False)
    guarded = io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=getattr(stream, "line_buffering", False),
        write_through=getattr(stream, "write_through", False),
    )
    return raw, guarded
