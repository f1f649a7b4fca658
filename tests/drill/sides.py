"""A tree that is played: a clock that is set by hand, and what the sides of a drill call."""

from __future__ import annotations

import sys
from collections import deque
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from kvlint.drill import agent, decode, prefill, run, side
from kvlint.drill.messages import Command, Setup, Told
from kvlint.drill.storm import PlannedRoom, Storm
from kvlint.drill.threads import DeadThread

if TYPE_CHECKING:
    import pytest

STORM = Storm(rooms=4, chunks=2)


class Clock:
    """Stands in for the module `time`: it is what time the test says; whoever sleeps finds that it has passed."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def install(self, monkeypatch: pytest.MonkeyPatch) -> Clock:
        for module in (agent, decode, prefill, run, side):
            monkeypatch.setattr(module, "time", self)
        return self


class Poll:
    """The statuses of a release."""

    Failed = 0
    Bootstrapping = 1
    WaitingForInput = 2
    Transferring = 3
    Success = 4


NAMES = {value: name for name, value in vars(Poll).items() if isinstance(value, int)}


class Endpoint:
    """A sender or a receiver: what it polls is set by the test; what is called is noted."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.status: Any = Poll.Bootstrapping
        self.calls: list[str] = []
        #: Names of calls that raise.
        self.broken: set[str] = set()

    def called(self, name: str) -> None:
        self.calls.append(name)
        if name in self.broken:
            raise RuntimeError(f"{name} is broken")

    def poll(self) -> Any:
        if "poll" in self.broken:
            raise RuntimeError("poll is broken")
        return self.status

    def failure_exception(self) -> None:
        self.calls.append("failure_exception")
        raise RuntimeError("what the client is told")

    def clear(self) -> None:
        self.called("clear")

    def abort(self) -> None:
        self.called("abort")


class Endpoints:
    """In place of Senders and of Receivers."""

    def __init__(self) -> None:
        self.of: dict[int, Endpoint] = {}
        #: Rooms whose endpoint cannot be made, or cannot be opened.
        self.unmakable: set[int] = set()
        self.unopenable: set[int] = set()
        self.pages: dict[int, list[int]] = {}

    def make(self, room: int) -> Endpoint:
        if room in self.unmakable:
            raise RuntimeError("it cannot be made")
        self.of[room] = Endpoint(room)
        return self.of[room]

    def open(self, receiver: Endpoint) -> None:
        if receiver.room in self.unopenable:
            raise RuntimeError("it cannot be opened")

    def begin(self, sender: Endpoint, pages: int, auxiliary: int) -> None:
        sender.called(f"begin {pages}")

    def send(self, sender: Endpoint, pages: Any, last: bool) -> None:
        self.pages.setdefault(sender.room, []).extend(map(int, pages))
        sender.called("last" if last else "chunk")

    def send_metadata(self, receiver: Endpoint, pages: Any, auxiliary: int) -> None:
        self.pages[receiver.room] = list(map(int, pages))
        receiver.called("send_metadata")

    def clear(self, sender: Endpoint) -> None:
        sender.clear()

    def abort(self, sender: Endpoint) -> None:
        sender.abort()


class PlayedThreads:
    def __init__(self) -> None:
        self.started: list[Any] = []
        self.all: list[Any] = []
        self.idle: list[Any] = []
        self.dead: list[DeadThread] = []
        self.listens = True

    def listeners_are_idle(self) -> bool:
        return self.listens

    def workers(self) -> list[Any]:
        return self.all

    def idle_workers(self) -> list[Any]:
        return self.idle

    def all_dead(self) -> list[DeadThread]:
        return self.dead


class Manager:
    def __init__(self) -> None:
        self.request_status: dict[int, int] = {}

    def update_status(self, bootstrap_room: int, status: int) -> None:
        self.request_status[bootstrap_room] = status


class PlayedBackend:
    """In place of Backend."""

    def __init__(self, setup: Setup, mode: str, memory: Any) -> None:
        self.threads = PlayedThreads()
        self.transfers = agent.Transfers(0.0)
        self.log = deque(["warned"])
        self.manager: Any = Manager()
        self.poll = Poll
        self.address, self.version, self.digest, self.nixl_version = "here:1", "0.5.14", "d", "1.5.1"
        self.endpoints = Endpoints()
        self.tables: dict[str, set[int]] = {}
        self.mode = mode
        self.faults: list[BaseException] = []
        self.no_abort: str | None = None

    def why_no_abort(self) -> str | None:
        return self.no_abort

    def senders(self) -> Endpoints:
        return self.endpoints

    def receivers(self) -> Endpoints:
        return self.endpoints

    def status(self, room: int) -> str:
        return NAMES.get(self.manager.request_status.get(room), "absent")

    def known_rooms(self) -> list[int]:
        return list(self.manager.request_status)

    def table(self, name: str) -> set[int]:
        return self.tables.get(name, set())


class PlayedMemory:
    """In place of Memory: what a place holds is a number, and so is what is wrong with it."""

    device_name = "host memory"

    def __init__(self, storm: Storm, places: int, device: str) -> None:
        self._pages = storm.chunks * 16
        self.filled: list[tuple[int, int]] = []
        self.compared: list[tuple[int, int]] = []
        self.wrong: dict[int, int] = {}

    def pages(self, place: int) -> range:
        return range(place * self._pages, (place + 1) * self._pages)

    def fill(self, place: int, key: int) -> None:
        self.filled.append((place, key))

    def wrong_bytes(self, place: int, key: int, order: list[int]) -> int:
        self.compared.append((place, key))
        return self.wrong.get(key, 0)


class PlayedChannel:
    """In place of Channel: commands come in the batches that the test has set; after the last, Stop is the test's."""

    def __init__(self, *batches: list[Command]) -> None:
        self.told: list[Told] = []
        self.batches = deque(batches)
        self.waited: list[float] = []

    def tell(self, message: Told) -> None:
        self.told.append(message)

    def commands(self, seconds: float) -> list[Command]:
        self.waited.append(seconds)
        return self.batches.popleft() if self.batches else []

    def of(self, kind: type) -> list[Any]:
        return [message for message in self.told if isinstance(message, kind)]


def played(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have sides be built of what is played."""
    monkeypatch.setattr(side, "chosen_device", lambda wanted: "cpu")
    monkeypatch.setattr(side, "Memory", PlayedMemory)
    monkeypatch.setattr(side, "Backend", PlayedBackend)


def setup(storm: Storm = STORM, device: str = "auto") -> Setup:
    return Setup(root="tree", device=device, storm=storm, places=4, workers=None, backend="UCX")


def plan(made: side.Side[Any], *entries: PlannedRoom) -> None:
    made.plan = {entry.room: entry for entry in entries}


def torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have something called torch be there."""
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(__version__="2.13.0"))
