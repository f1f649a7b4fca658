"""What the process that explores tells the one that started it, as it happens: one event per line of JSON."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Protocol

import msgspec

from kvlint.explore.results import ScenarioResult, Witness


class FailureKind(Enum):
    """Why there is no (further) result."""

    #: The tree cannot be loaded, or its backend not built.
    LOAD = "load"
    #: The token of a replay cannot be used.
    TOKEN = "token"
    #: A limit was reached: it stands still, takes too much memory, ends the process.
    LIMIT = "limit"
    #: A defect of kvlint's.
    CRASH = "crash"


class Loaded(msgspec.Struct, frozen=True, tag=True):
    """The tree was loaded; see `Exploration` for the attributes."""

    version: str | None
    digest: str
    loaded: tuple[str, ...]
    stubbed: tuple[str, ...]


class Progress(msgspec.Struct, frozen=True, tag=True):
    """How far the search of a scenario is; the first one, with zeros, says that it begins."""

    scenario: str
    states: int = 0
    runs: int = 0
    seconds: float = 0.0


class Found(msgspec.Struct, frozen=True, tag=True):
    """A scenario is done with."""

    result: ScenarioResult


class Replayed(msgspec.Struct, frozen=True, tag=True):
    """A schedule was run again; ``confirmed`` says whether it breaks what its token says."""

    witness: Witness
    confirmed: bool
    with_threads: bool


class Failed(msgspec.Struct, frozen=True, tag=True):
    """There is no result, or no further one.

    Attributes:
        message: What was wrong and where.
        details: A traceback, for defects of kvlint's.
    """

    kind: FailureKind
    message: str
    details: str = ""


class Alive(msgspec.Struct, frozen=True, tag=True):
    """Nothing has happened; the process still answers."""


class Ended(msgspec.Struct, frozen=True, tag=True):
    """All was told: what ends after this has ended as it should."""


Event = Loaded | Progress | Found | Replayed | Failed | Alive | Ended


class Emit(Protocol):
    """How a session tells what happens."""

    def __call__(self, event: Event) -> None:
        """Tell an event."""

    def watch(self, counter: Callable[[], object]) -> None:
        """Have ``counter`` looked at now and then, between two bytecodes of whatever runs.

        As long as neither its value changes nor an event is told, the tree's
        code counts as standing still; see `watchdog`.
        """


_DECODER: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def encode(event: Event) -> bytes:
    """The event as a line."""
    return msgspec.json.encode(event) + b"\n"


def decode(line: bytes) -> Event:
    """The event of a line.

    Raises:
        ValueError: It is none; the tree can write to any descriptor of its process.
    """
    try:
        return _DECODER.decode(line)
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error
