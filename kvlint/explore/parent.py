"""Has a tree explored in a process of its own, which can hang, die, print and fork as it likes: this one does not.

The process gets an environment, a folder for temporary files and a process group of its own, and is ended with all that
it has started: when it is done, when it is silent, when a scenario takes longer than it may, and on Ctrl-C.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType

import msgspec

from kvlint.config import KvlintError
from kvlint.explore.events import Ended, Event, decode
from kvlint.explore.request import Request
from kvlint.loading.processes import environment, import_path

_CODE = "import sys; sys.path[:] = {path!r}; from kvlint.explore.child import main; main()"
_FRAME = re.compile(r'^  File "(.+)", line (\d+) in (.+)$', re.MULTILINE)
#: Folders of frames that are not the tree's.
_OWN = ("/kvlint/explore/", "/kvlint/loading/")
_CHUNK = 1 << 16
_KEPT = 4096  # bytes kept of what the tree prints
_LONGEST_EVENT = 64 << 20  # bytes
_MOST_FRAMES = 4
_STACK_SECONDS = 2.0
_PIECE_SECONDS = 0.25
_ENDING_SECONDS = 5.0
_POLL_SECONDS = 0.02


class StartError(KvlintError):
    """The system refuses what it takes to start a process."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the process may take.

    Attributes:
        memory: Bytes that it may allocate; 0 for any number.
        stall: Seconds without a step after which its own watchdog gets it out of the tree's code.
        silence: Seconds without a sign of life after which it is ended from here.
        grace: Seconds that a scenario may take beyond three times its time limit.
    """

    memory: int = 4 << 30
    stall: float = 10.0
    silence: float = 30.0
    grace: float = 30.0

    def allowance(self, request: Request) -> float:
        """Seconds after which a scenario is ended from here: what a search has found takes its time, too."""
        return 3 * request.seconds + self.grace


@dataclass(slots=True)
class Printed:
    """What the tree has printed: how much, and the beginning of it."""

    size: int = 0
    lines: int = 0
    head: bytes = b""

    def add(self, data: bytes) -> None:
        """Count more of it."""
        self.size += len(data)
        self.lines += data.count(b"\n")
        self.head += data[: _KEPT - len(self.head)]


@dataclass(slots=True)
class Process:
    """A process that explores; enter it (which may raise StartError), and take its events.

    Args:
        request: What it is asked for.
        limits: What it may take.
        printed: Gets what the tree prints.
        session: The module that does the work there.
        path: Its `sys.path`.

    Attributes:
        deadline: When the scenario at hand has to be done, by `time.monotonic()`; None for no such time.
        has_started: Whether it has told anything at all.
        ending: Why it ended before it had told everything; "" as long as nothing is wrong.
    """

    request: Request
    limits: Limits
    printed: Printed
    session: str | None = None
    path: Sequence[str] | None = None
    deadline: float | None = None
    has_started: bool = False
    ending: str = ""
    _process: subprocess.Popen[bytes] = field(init=False)
    _open: contextlib.ExitStack = field(init=False)
    _selector: selectors.BaseSelector = field(init=False)
    _events: int = field(init=False)
    _stacks: int = field(init=False)
    _stack: bytes = b""
    _rest: bytes = b""

    def __enter__(self) -> Process:
        try:
            self._enter()
        except OSError as error:
            raise StartError(f"the process that explores cannot be started: {error.strerror or error}") from error
        return self

    def _enter(self) -> None:
        self._open = contextlib.ExitStack()
        with contextlib.ExitStack() as undo:
            undo.enter_context(self._open)
            folder = self._open.enter_context(
                tempfile.TemporaryDirectory(prefix="kvlint-explore-", ignore_cleanup_errors=True)
            )
            self._events, to_events = self._pipe()
            self._stacks, to_stacks = self._pipe()
            self._start(folder, to_events, to_stacks)
            self._selector = self._open.enter_context(selectors.DefaultSelector())
            assert self._process.stdout is not None
            self._open.callback(self._process.stdout.close)
            for descriptor in (self._events, self._stacks, self._process.stdout.fileno()):
                os.set_blocking(descriptor, False)
                self._selector.register(descriptor, selectors.EVENT_READ)
            undo.pop_all()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._open:
            # The group keeps its number as long as it has members. Until it is waited for, its number is nobody else's.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._read(0)

    def _pipe(self) -> tuple[int, int]:
        """Both ends; the reading one is closed at the end."""
        reading, writing = os.pipe()
        self._open.callback(os.close, reading)
        return reading, writing

    def _start(self, folder: str, events: int, stacks: int) -> None:
        command = [sys.executable, "-P", "-c", _CODE.format(path=list(self.path or import_path()))]
        command += [f"--events={events}", f"--stacks={stacks}"]
        command += [f"--memory={self.limits.memory}", f"--stall={self.limits.stall}"]
        command += [] if self.session is None else [f"--session={self.session}"]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=environment(os.environ, folder),
                pass_fds=(events, stacks),
                start_new_session=True,
            )
        finally:
            os.close(events)
            os.close(stacks)
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError), self._process.stdin as stream:
            stream.write(msgspec.json.encode(self.request))

    # While it runs.

    def events(self) -> Iterator[Event]:
        """What it tells, until it has told everything or has ended otherwise: `ending` says how."""
        heard = time.monotonic()
        while not self.ending:
            now = time.monotonic()
            limit, words = self._limit(heard)
            if now >= limit:
                self.ending = f"{words} and was ended{self._stands()}"
                return
            lines = self._read(limit - now)
            if lines is None:
                self.ending = self._end()
                return
            for line in lines:
                heard = time.monotonic()
                try:
                    event = decode(line)
                except ValueError:
                    self.ending = "the tree's code wrote to the descriptor that results come by"
                    return
                self.has_started = True
                if isinstance(event, Ended):
                    return
                yield event

    def _limit(self, heard: float) -> tuple[float, str]:
        silent = heard + self.limits.silence
        if self.deadline is not None and self.deadline < silent:
            allowed = self.limits.allowance(self.request)
            return self.deadline, f"the process was not done {allowed:g} s after the scenario began"
        return silent, f"the process gave no sign of life for {self.limits.silence:g} s"

    def _read(self, seconds: float) -> list[bytes] | None:
        """What comes within this time: whole lines of events; None when no more can come."""
        lines: list[bytes] = []
        for key, _ in self._selector.select(max(0.0, seconds)):
            try:
                data = os.read(key.fd, _CHUNK)
            except BlockingIOError:
                continue
            if not data:
                self._selector.unregister(key.fd)
                if key.fd == self._events:
                    return None
            elif key.fd == self._events:
                *whole, self._rest = (self._rest + data).split(b"\n")
                lines += whole if len(self._rest) <= _LONGEST_EVENT else [b""]
            elif key.fd == self._stacks:
                self._stack += data
            else:
                self.printed.add(data)
        return lines

    # When something is wrong.

    def _stands(self) -> str:
        """Where it stands, as faulthandler of the process says it."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGUSR1)
        end = time.monotonic() + _STACK_SECONDS
        while (left := end - time.monotonic()) > 0:
            # It comes in pieces; the whole of it has come when there is none for a while.
            before = len(self._stack)
            if self._read(min(left, _PIECE_SECONDS) if before else left) is None:
                break
            if before and len(self._stack) == before:
                break
        return self._place()

    def _end(self) -> str:
        """How it came to its end, when no more events can come."""
        end = time.monotonic() + _ENDING_SECONDS
        while self._process.poll() is None and time.monotonic() < end:
            self._read(_POLL_SECONDS)
        status = self._process.returncode
        # What it printed last, and its stack, are still in the pipes.
        while self._selector.select(0) and self._selector.get_map():
            self._read(0)
        if status is None:
            return "the tree's code closed the descriptor that results come by"
        if not self.has_started:
            return f"the process that explores could not start: it ended with exit status {status}"
        if status >= 0:
            return f"the tree's code ended the process, with exit status {status}"
        name = signal.Signals(-status).name
        if -status == signal.SIGKILL:
            return f"the process was ended by {name}, perhaps for want of memory"
        return f"the process was ended by {name}{self._place()}"

    def _place(self) -> str:
        frames = [
            f"{path}:{line} ({name})" for path, line, name in _FRAME.findall(self._stack.decode(errors="replace"))
        ]
        if not frames:
            return ""
        inner, *outer = [frame for frame in frames if not any(own in frame for own in _OWN)] or frames
        calls = "".join(f", called from {frame}" for frame in outer[: _MOST_FRAMES - 1])
        return f" in {inner}{calls}"
