"""What both sides have in common: the scheduler's loop, and what it is told meanwhile."""

from __future__ import annotations

import os
import resource
import select
import sys
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Generic, Protocol, TypeVar

from msgspec.structs import replace

from kvlint.drill.backend import Backend
from kvlint.drill.memory import Memory, chosen_device
from kvlint.drill.messages import (
    Alive,
    Begin,
    Begun,
    Command,
    DecodeReport,
    Opened,
    PrefillReport,
    Ready,
    Settle,
    Setup,
    Start,
    Stop,
    Told,
    decode_command,
    encode,
)
from kvlint.drill.storm import PlannedRoom, planned
from kvlint.loading.errors import UnforeseenUse

_ALIVE_SECONDS: Final = 0.5
_CHUNK = 1 << 16
_MOST_ERRORS = 10


class Channel:
    """The messages of a side.

    Args:
        reading: The descriptor that commands come by.
        writing: The descriptor that messages go to.
    """

    def __init__(self, reading: int, writing: int) -> None:
        self._reading = reading
        self._writing = writing
        self._rest = b""
        os.set_blocking(reading, False)

    def tell(self, message: Told) -> None:
        """Tell the process that drills something. Without it, this process ends."""
        line = encode(message)
        try:
            while line:
                line = line[os.write(self._writing, line) :]
        except OSError:
            os._exit(1)

    def commands(self, seconds: float) -> list[Command]:
        """What comes within this time; it returns as soon as something does. Without the sender, this process ends."""
        if not select.select([self._reading], [], [], seconds)[0]:
            return []
        data = os.read(self._reading, _CHUNK)
        if not data:
            os._exit(1)
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [decode_command(line) for line in lines]

    def setup(self) -> Setup:
        """The first command."""
        while True:
            for command in self.commands(60.0):
                assert isinstance(command, Setup)
                return command

    @contextmanager
    def signs_of_life(self) -> Iterator[None]:
        """Tell that this process lives while something else keeps the side busy; nothing else must be told meanwhile.

        On a busy machine, importing torch in both processes, one after the other, takes longer than silence may.
        """
        over = threading.Event()

        def tell() -> None:
            while not over.wait(_ALIVE_SECONDS):
                self.tell(Alive())

        thread = threading.Thread(target=tell, name="signs of life", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


class Polled(Protocol):
    """A request of a scheduler: what it polled last is kept."""

    status: object


_Request = TypeVar("_Request", bound=Polled)


class Side(ABC, Generic[_Request]):
    """A side of a drill.

    Args:
        setup: What was asked for.
        channel: Where messages go.
    """

    mode: str

    def __init__(self, setup: Setup, channel: Channel) -> None:
        self.channel = channel
        setup = replace(setup, device=chosen_device(setup.device))
        self.device = setup.device
        self.memory = Memory(setup.storm, setup.places, setup.device)
        self.places = setup.places
        self.backend = Backend(setup, self.mode, self.memory)
        self.storm = setup.storm
        self.plan: dict[int, PlannedRoom] = {}
        self.settle: Settle | None = None
        self._settle_begin = self._settle_since = 0.0
        self._settled_once = False
        self._is_over = True
        self._told = 0.0
        self.errors: list[str] = []
        self.succeeded: list[int] = []
        self.failed: list[int] = []
        self.moved_at = 0.0

    # -- what a side does ------------------------------------------------------------

    @abstractmethod
    def begin(self) -> None:
        """A storm begins."""

    @abstractmethod
    def start(self, start: Start) -> None:
        """A room arrives."""

    @abstractmethod
    def opened(self, room: int) -> None:
        """The prefill side has made a room's sender: it may be given up from now on."""

    def sleep(self, end: float) -> None:
        """Let a time by `time.monotonic()` come."""
        time.sleep(max(0.0, end - time.monotonic()))

    @abstractmethod
    def step(self) -> None:
        """One step of the scheduler."""

    @abstractmethod
    def fail(self, request: _Request) -> None:
        """A room polls Failed: do what the scheduler does with it."""

    @abstractmethod
    def conclude(self, request: _Request, where: list[int]) -> None:
        """A room has come to an end, which ``where`` keeps."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether there is no room left."""

    @abstractmethod
    def is_still(self) -> bool:
        """Whether nothing is going on besides the scheduler."""

    @abstractmethod
    def report(self, settled: bool) -> PrefillReport | DecodeReport:
        """What became of the rooms."""

    # -- the loop ----------------------------------------------------------------------

    def ready(self) -> Ready:
        """What is known once the side is up."""
        import torch

        backend = self.backend
        workers = sum(thread.kind == "worker" for thread in backend.threads.started)
        return Ready(
            address=backend.address,
            version=backend.version,
            digest=backend.digest,
            nixl=backend.nixl_version,
            torch=str(torch.__version__),
            took=self.device,
            device=self.memory.device_name,
            workers=workers,
        )

    def run(self) -> None:
        """Do what is asked for, until the end of it."""
        self.channel.tell(self.ready())
        while True:
            pause = self.storm.step if not self._is_over else _ALIVE_SECONDS
            before = time.monotonic()
            for command in self._received(pause):
                if isinstance(command, Stop):
                    return
                self._take(command)
            now = time.monotonic()
            if now - self._told > _ALIVE_SECONDS:
                self._told = now
                self.channel.tell(Alive())
            if self._is_over:
                continue
            # A command may come in the middle of the pause; the scheduler sleeps on.
            self.sleep(before + pause)
            self.step()
            self._look()

    def _received(self, pause: float) -> list[Command]:
        return self.channel.commands(0.0 if not self._is_over else pause)

    def _take(self, command: Command) -> None:
        match command:
            case Begin():
                self.storm = command.storm
                self.backend.transfers.least = command.storm.transfer
                self.plan = {entry.room: entry for entry in planned(command.storm)}
                self.settle = None
                self.errors = []
                self._is_over = False
                self.begin()
                self.channel.tell(Begun())
            case Start():
                self.moved()
                self.start(command)
            case Opened():
                self.opened(command.room)
            case Settle():
                self.settle = command
                # It may be asked for anew.
                self._is_over = False
                self._settle_begin = time.monotonic()
                self._settled_once = False
                self._settle_since = self._settle_begin
            case Setup() | Stop():
                # The first message was the one, and run() ends with the other.
                pass

    def moved(self) -> None:
        """Something has happened to a room."""
        self.moved_at = time.monotonic()

    def _look(self) -> None:
        """Report, if all has settled."""
        settle = self.settle
        if settle is None:
            return
        now = time.monotonic()
        if not self.is_still():
            self.moved_at = now
        if self.moved_at > self._settle_since:
            self._settle_since, self._settled_once = self.moved_at, False
        if now - self._settle_begin > settle.most:
            self._end(settled=False)
        elif now - self._settle_since >= settle.seconds:
            # Rooms that are left have another chance: what looks stuck once may have been a busy machine.
            if self._settled_once or self.is_empty():
                self._end(settled=True)
            self._settled_once, self._settle_since = True, now

    def _end(self, settled: bool) -> None:
        faults = self.backend.faults
        if faults:
            # A thread that a stand-in's refusal has ended was not ended by the tree.
            raise faults[0]
        self._is_over = True
        self.channel.tell(self.report(settled))

    # -- requests ------------------------------------------------------------------------

    def poll(self, request: _Request, end: Any) -> tuple[bool, Any]:
        """What a request's sender or receiver polls, and whether it raised nothing."""
        right, status = self.guarded(lambda: end.poll())
        if right and status != request.status:
            self.moved()
            request.status = status
        return right, status

    def stays(self, request: _Request, right: bool, status: object) -> bool:
        """Whether a request stays in its queue: not if it polled Failed, or if a call about it raised something."""
        if right and status != self.backend.poll.Failed:
            return True
        if right:
            self.fail(request)
        else:
            self.conclude(request, self.failed)
        return False

    # -- helpers -------------------------------------------------------------------------

    def guarded(self, action: Callable[[], Any]) -> tuple[bool, Any]:
        """What a call of the scheduler returns, and whether it raised nothing; what it raised is kept."""
        try:
            return True, action()
        except UnforeseenUse:
            raise
        except Exception:
            if len(self.errors) < _MOST_ERRORS:
                self.errors.append(traceback.format_exc())
            return False, None

    @staticmethod
    def peak_bytes() -> int:
        """The most memory that this process has had."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
