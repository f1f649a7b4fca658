"""What the process that drills and the two sides tell each other: one message per line of JSON."""

from __future__ import annotations

import json
from typing import TypeVar

import msgspec

from kvlint.drill.storm import Storm
from kvlint.drill.threads import DeadThread

# -- to a side -----------------------------------------------------------------------


class Setup(msgspec.Struct, frozen=True, tag=True):
    """The first message: what to load, and the memory to have.

    Attributes:
        root: The tree.
        device: `cpu`, `cuda`, or `auto` for the latter where there is a GPU.
        storm: The largest storm that will come: its rooms' measures hold for all that come.
        places: Rooms that there is memory for.
        workers: Transfer workers of the prefill side; None for the release's number.
        backend: The plugin of NIXL.
        address: The bootstrap server's, for the decode side; "" for the prefill side, which starts it.
    """

    root: str
    device: str
    storm: Storm
    places: int
    workers: int | None
    backend: str
    address: str = ""


class Begin(msgspec.Struct, frozen=True, tag=True):
    """A storm begins."""

    storm: Storm


class Start(msgspec.Struct, frozen=True, tag=True):
    """A room starts; its pages are those of a place.

    Attributes:
        room: The room.
        place: The place.
        checked: Whether nobody else can still write to the place: its bytes can be compared.
    """

    room: int
    place: int
    checked: bool = True


class Opened(msgspec.Struct, frozen=True, tag=True):
    """The prefill side has made a room's sender: told by that side, and passed on to the decode side.

    An abort that is not to be early waits for it, however busy the machine is.
    """

    room: int


class Settle(msgspec.Struct, frozen=True, tag=True):
    """No more rooms will start: see what becomes of those that there are, and report.

    Attributes:
        seconds: For how long nothing must have happened, twice.
        most: Seconds after which it is reported all the same.
    """

    seconds: float
    most: float


class Stop(msgspec.Struct, frozen=True, tag=True):
    """End."""


Command = Setup | Begin | Start | Opened | Settle | Stop

# -- from a side ---------------------------------------------------------------------


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The side is up.

    Attributes:
        address: The bootstrap server's.
        version: The tree's release, or None.
        digest: SHA-256 of the modules that were loaded.
        nixl: The release of NIXL, or None.
        torch: The release of torch.
        took: The device that the memory is on: `cpu` or `cuda`.
        device: That, in words.
        workers: Transfer workers.
    """

    address: str
    version: str | None
    digest: str
    nixl: str | None
    torch: str
    took: str
    device: str
    workers: int


class Begun(msgspec.Struct, frozen=True, tag=True):
    """The side is ready for the rooms of the storm."""


class Done(msgspec.Struct, frozen=True, tag=True):
    """The decode side is done with a room.

    Attributes:
        room: The room.
        succeeded: Whether its pages came.
        aborted: Whether it was given up.
    """

    room: int
    succeeded: bool
    aborted: bool


class Released(msgspec.Struct, frozen=True, tag=True):
    """Nothing of a room is on its way from the prefill side any more."""

    room: int


class Alive(msgspec.Struct, frozen=True, tag=True):
    """The side lives."""


class StuckRoom(msgspec.Struct, frozen=True):
    """A room that ended in no way.

    Attributes:
        room: Its number.
        status: The name of the status that it stays in; `absent` if the manager does not know it any more.
        has_metadata: Whether the manager knows where its pages are to be written.
        queue: Where the scheduler keeps it: `bootstrap`, `running` or `inflight`.
    """

    room: int
    status: str
    has_metadata: bool
    queue: str


class Flip(msgspec.Struct, frozen=True):
    """A status that was written over Failed."""

    room: int
    status: str


class PrefillReport(msgspec.Struct, frozen=True, tag=True):
    """What became of the rooms, as the prefill side's scheduler sees it.

    Attributes:
        succeeded: Rooms that ended in Success.
        failed: Rooms that ended in Failed.
        stuck: Rooms that ended in no way.
        settled: Whether all stood still in the end; otherwise the time was up, and stuck rooms may not be stuck.
        flips: What was written over Failed.
        zombies: Rooms that the scheduler was done with and that are in the status table again, with their status.
        orphan_records: Rooms that it was done with and of which a failure record is kept.
        orphan_exceptions: The same, of exceptions.
        orphan_metadata: The same, of metadata.
        errors: What the scheduler's calls raised, with tracebacks.
        dead_threads: Threads that ended.
        transfers: Transfers that were posted to NIXL.
        log: The last warnings and errors that the tree has logged.
        peak_bytes: The most memory that the process has had.
    """

    succeeded: tuple[int, ...]
    failed: tuple[int, ...]
    stuck: tuple[StuckRoom, ...]
    settled: bool
    flips: tuple[Flip, ...]
    zombies: dict[int, str]
    orphan_records: tuple[int, ...]
    orphan_exceptions: tuple[int, ...]
    orphan_metadata: tuple[int, ...]
    errors: tuple[str, ...]
    dead_threads: tuple[DeadThread, ...]
    transfers: int
    log: tuple[str, ...]
    peak_bytes: int


class DecodeReport(msgspec.Struct, frozen=True, tag=True):
    """What the decode side has received.

    Attributes:
        succeeded: Rooms whose pages came.
        failed: Rooms that failed without an abort.
        aborted: Rooms that were given up.
        early: Of those, how many before the prefill side was to make their sender.
        waiting: Rooms whose pages it still waits for.
        compared: Rooms whose bytes were compared.
        wrong: Wrong bytes of each room that has some.
        seconds: From the first room's start to the last one's success.
        errors: What the scheduler's calls raised, with tracebacks.
        dead_threads: Threads that ended.
        log: The last warnings and errors that the tree has logged.
        peak_bytes: The most memory that the process has had.
    """

    succeeded: tuple[int, ...]
    failed: tuple[int, ...]
    aborted: tuple[int, ...]
    early: tuple[int, ...]
    waiting: tuple[int, ...]
    compared: int
    wrong: dict[int, int]
    seconds: float
    errors: tuple[str, ...]
    dead_threads: tuple[DeadThread, ...]
    log: tuple[str, ...]
    peak_bytes: int


class Unable(msgspec.Struct, frozen=True, tag=True):
    """The side cannot go on.

    Attributes:
        message: What was wrong and where.
        details: A traceback, for what is not the tree's.
    """

    message: str
    details: str = ""


Told = Ready | Begun | Opened | Done | Released | Alive | PrefillReport | DecodeReport | Unable

_T = TypeVar("_T")
_COMMANDS: msgspec.json.Decoder[Command] = msgspec.json.Decoder(Command)
_TOLD: msgspec.json.Decoder[Told] = msgspec.json.Decoder(Told)


def encode(message: Command | Told) -> bytes:
    """The message as a line."""
    try:
        return msgspec.json.encode(message) + b"\n"
    except UnicodeEncodeError:
        # Bytes of a path that are no UTF-8 are lone surrogates in a str, which msgspec takes neither this way nor back.
        return json.dumps(msgspec.to_builtins(message, str_keys=True)).encode() + b"\n"


def decode_command(line: bytes) -> Command:
    """The command of a line.

    Raises:
        ValueError: It is none.
    """
    return _decoded(_COMMANDS, line)


def decode_told(line: bytes) -> Told:
    """What a side told with a line.

    Raises:
        ValueError: Nothing that a side tells; the tree can write to any descriptor of its process.
    """
    return _decoded(_TOLD, line)


def _decoded(decoder: msgspec.json.Decoder[_T], line: bytes) -> _T:
    try:
        if b"\\ud" in line:
            decoded: _T = msgspec.convert(json.loads(line), decoder.type, str_keys=True)
            return decoded
        return decoder.decode(line)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ValueError(str(error)) from error
