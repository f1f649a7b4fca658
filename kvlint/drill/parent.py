"""Starts the processes of a drill, speaks with them, and ends them.

Each has a group of its own, and is ended by its number: when all is done, when it is silent, on Ctrl-C, and by the
system when this process is killed.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Final, Never, TypeVar

from msgspec.structs import replace

from kvlint.config import KvlintError
from kvlint.drill.messages import Alive, Command, Ready, Setup, Told, Unable, decode_told, encode
from kvlint.loading.processes import environment, import_path

_CODE = "import sys; sys.path[:] = {path!r}; from kvlint.drill.child import main; main()"
#: What NIXL, UCX and CUDA are told by the environment is the user's to say.
_PREFIXES = ("UCX_", "NIXL_", "CUDA_", "NVIDIA_")
#: Without it UCX listens on every network interface (seen with nixl 1.5.1).
_DEFAULTS = {"UCX_NET_DEVICES": "lo"}
_CHUNK = 1 << 16
_KEPT = 1 << 14  # bytes kept of what a process prints, from the end
_STACK_SECONDS = 2.0
_PIECE_SECONDS = 0.25
SILENCE: Final = 30.0  # seconds without a sign of life
_STARTING: Final = 120.0  # seconds

_Wanted = TypeVar("_Wanted")


class DrillError(KvlintError):
    """A drill cannot go on; the message says what was wrong and where.

    Attributes:
        details: More for those who want to know: stacks, what the processes printed, a traceback.
    """

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.details = details


class Process:
    """A process of one side or of both.

    Args:
        label: What it is called in messages.
        sides: The names of its sides.
        selector: Where its descriptors are looked at.
    """

    def __init__(self, label: str, sides: Sequence[str], selector: selectors.BaseSelector) -> None:
        self.label = label
        self.printed = b""
        self.stack = b""
        self._selector = selector
        self._open = contextlib.ExitStack()
        theirs: list[int] = []
        try:
            arguments = []
            self.links = {}
            for side in sides:
                to_side, writing = self._pipe(theirs, reads=False)
                from_side, reading = self._pipe(theirs, reads=True)
                arguments.append(f"--side={side}:{to_side}:{from_side}")
                os.set_blocking(writing, False)
                self.links[side] = Link(self, side, reading, writing)
                self._watch(reading, self.links[side].read)
            their_stack, stack = self._pipe(theirs, reads=True)
            self._watch(stack, self._add_stack)
            self._popen = self._start([*arguments, f"--stacks={their_stack}"], theirs)
        except OSError as error:
            self._open.close()
            raise DrillError(f"the {label} process cannot be started: {error.strerror or error}") from error
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        assert self._popen.stdout is not None
        self._open.callback(self._popen.stdout.close)
        self._watch(self._popen.stdout.fileno(), self._add_printed)

    def _pipe(self, theirs: list[int], reads: bool) -> tuple[int, int]:
        """The other process's end and this one's, which is closed at the end."""
        ends = os.pipe()
        mine, other = ends if reads else ends[::-1]
        theirs.append(other)
        self._open.callback(os.close, mine)
        return other, mine

    def _watch(self, descriptor: int, take: Callable[[bytes], None]) -> None:
        os.set_blocking(descriptor, False)
        self._selector.register(descriptor, selectors.EVENT_READ, take)

        def forget() -> None:
            with contextlib.suppress(KeyError):
                self._selector.unregister(descriptor)

        self._open.callback(forget)

    @staticmethod
    def _start(arguments: list[str], descriptors: Sequence[int]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-P", "-c", _CODE.format(path=import_path()), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=_DEFAULTS | environment(os.environ, tempfile.gettempdir(), _PREFIXES),
            pass_fds=descriptors,
            start_new_session=True,
        )

    def _add_printed(self, data: bytes) -> None:
        self.printed = (self.printed + data)[-_KEPT:]

    def _add_stack(self, data: bytes) -> None:
        self.stack += data

    @property
    def number(self) -> int:
        """The process's number."""
        return self._popen.pid

    def ended(self) -> str | None:
        """How it has ended, or None if it runs."""
        status = self._popen.poll()
        if status is None:
            return None
        if status >= 0:
            return f"the {self.label} process has ended with exit status {status}"
        name = signal.Signals(-status).name
        hint = ", perhaps for want of memory" if -status == signal.SIGKILL else ""
        return f"the {self.label} process was ended by {name}{hint}"

    def ask_for_stacks(self) -> None:
        """Have it write its stacks, even if it was stopped."""
        with contextlib.suppress(ProcessLookupError):
            self._popen.send_signal(signal.SIGUSR1)
            self._popen.send_signal(signal.SIGCONT)

    def end(self) -> None:
        """End it with all that it has started, and forget its descriptors."""
        with self._open:
            # The group keeps its number as long as it has members. Until it is waited for, its number is nobody else's.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, signal.SIGKILL)
            self._popen.wait()


class Link:
    """A side, as the process that drills speaks with it.

    Attributes:
        process: Its process.
        side: Its name.
        told: What it has told and nobody has taken yet.
        heard: When it told something last, by `time.monotonic()`.
        longest_silence: Seconds; for whoever sets it back to 0.
    """

    def __init__(self, process: Process, side: str, reading: int, writing: int) -> None:
        self.process = process
        self.side = side
        self.told: deque[Told] = deque()
        self.heard = time.monotonic()
        self.longest_silence = 0.0
        self._reading = reading
        self._writing = writing
        self._rest = b""
        self._unsent = b""

    def read(self, data: bytes) -> None:
        """Take what came.

        Raises:
            DrillError: It is nothing that a side tells, or the side cannot go on.
        """
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            now = time.monotonic()
            self.longest_silence = max(self.longest_silence, now - self.heard)
            self.heard = now
            try:
                message = decode_told(line)
            except ValueError as error:
                raise DrillError(
                    f"the {self.side} side: the tree's code wrote to the descriptor that messages come by"
                ) from error
            if isinstance(message, Unable):
                raise DrillError(message.message, message.details)
            if not isinstance(message, Alive):
                self.told.append(message)

    def send(self, command: Command) -> None:
        """Tell the side something; if it has ended, that is found out elsewhere."""
        self._unsent += encode(command)
        self.flush()

    def flush(self) -> None:
        """Send what the pipe had no room for before: to wait for a process that does not read is to wait for ever."""
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(self._writing, self._unsent) :]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self._unsent = b""


class Pair:
    """The two sides of a tree.

    Attributes:
        prefill: The prefill side.
        decode: The decode side.
        ready: What the prefill side has told of itself.
    """

    def __init__(self, prefill: Link, decode: Link) -> None:
        self.prefill = prefill
        self.decode = decode
        self.ready: Ready | None = None

    def links(self) -> tuple[Link, Link]:
        """Both."""
        return self.prefill, self.decode

    def processes(self) -> list[Process]:
        """Its processes: two, or one."""
        return list(dict.fromkeys(link.process for link in self.links()))


class Processes:
    """The processes of a drill; enter it, and they have ended when it is left."""

    def __init__(self, silence: float = SILENCE) -> None:
        self._selector = selectors.DefaultSelector()
        self._all: list[Process] = []
        self._silence = silence

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.ExitStack() as stack:
            stack.callback(self._selector.close)
            for process in self._all:
                stack.callback(process.end)

    def start(self, name: str, one_process: bool) -> Pair:
        """The processes of a tree, started together.

        Args:
            name: What the tree is called in messages, "" if there is but one.
            one_process: Whether both sides are to be in one.

        Raises:
            DrillError: They cannot be started.
        """
        prefix = f"{name} " if name else ""
        groups = [["prefill", "decode"]] if one_process else [["prefill"], ["decode"]]
        links: dict[str, Link] = {}
        for sides in groups:
            process = Process(prefix + " and ".join(sides), sides, self._selector)
            self._all.append(process)
            links |= process.links
        return Pair(links["prefill"], links["decode"])

    def set_up(self, pair: Pair, setup: Setup) -> Ready:
        """Have both sides load their tree.

        Raises:
            DrillError: One of them cannot.
        """
        pair.prefill.send(setup)
        pair.ready = self.next(pair, pair.prefill, Ready, _STARTING)
        pair.decode.send(replace(setup, address=pair.ready.address, device=pair.ready.took))
        self.next(pair, pair.decode, Ready, _STARTING)
        return pair.ready

    # -- what they tell ----------------------------------------------------------------

    def next(self, pair: Pair, link: Link, kind: type[_Wanted], seconds: float) -> _Wanted:
        """The next message of a side, which has to be of a kind; others of it are passed over.

        Raises:
            DrillError: It does not come.
        """
        end = time.monotonic() + seconds
        for _ in self.until(pair, end):
            while link.told:
                message = link.told.popleft()
                if isinstance(message, kind):
                    return message
        return self.give_up(link, f"the {link.side} side did not tell {kind.__name__} within {seconds:g} s")

    def until(self, pair: Pair, end: float) -> Iterator[None]:
        """Read what the sides of a pair tell, again and again, until a time by `time.monotonic()`.

        Raises:
            DrillError: One of them cannot go on, has ended, or is silent.
        """
        while True:
            yield
            now = time.monotonic()
            if now >= end:
                return
            self._read(min(_PIECE_SECONDS, end - now))
            for link in pair.links():
                link.flush()
                how = link.process.ended()
                if how is not None:
                    self._read(0)
                    raise DrillError(how, self._details(link.process))
                if time.monotonic() - link.heard > self._silence:
                    self.give_up(link, f"the {link.side} side gave no sign of life for {self._silence:g} s")

    def _read(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            try:
                data = os.read(key.fd, _CHUNK)
            except BlockingIOError:
                continue
            if data:
                key.data(data)
            else:
                self._selector.unregister(key.fd)

    def give_up(self, link: Link, why: str) -> Never:
        """Have a process say where it stands, and end it.

        Raises:
            DrillError: Always, with the reason that is given.
        """
        process = link.process
        process.ask_for_stacks()
        end = time.monotonic() + _STACK_SECONDS
        while time.monotonic() < end:
            # It comes in pieces; the whole of it has come when there is none for a while.
            before = len(process.stack)
            self._read(_PIECE_SECONDS)
            if before and len(process.stack) == before:
                break
        process.end()
        self._all.remove(process)
        raise DrillError(f"{why}; the {process.label} process was ended", self._details(process))

    @staticmethod
    def _details(process: Process) -> str:
        parts = (process.stack, process.printed)
        return "\n".join(part.decode("utf-8", "replace").rstrip() for part in parts if part)
