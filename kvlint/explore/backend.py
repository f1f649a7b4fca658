"""What an explored backend has to offer, whoever loads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

Frames = list[bytes]
Found = Iterator[tuple[str, Any]]


class Sender(Protocol):
    """The scheduler's handle on one room: the real object."""

    def poll(self) -> Any:
        """The room's status."""

    def clear(self) -> None:
        """Forget the room."""

    def failure_exception(self) -> None:
        """Raise what went wrong, and forget the room."""

    def abort(self) -> None:
        """Give the room up."""


class Backend(Protocol):
    """A loaded backend: the real manager, the functions of its threads, and frames of its own making.

    ``hooks`` has ``receive()``, the listener's next frames, and
    ``transfer_state(handle)``, how a transfer ended; the explorer sets both.
    """

    manager: Any
    poll: Any
    hooks: Any
    root: Path
    digest: str

    @property
    def stubbed(self) -> Sequence[str]:
        """What is not real, in words."""

    def left_out(self) -> Sequence[str]:
        """What of the program takes no part, in words: then nothing can be said to hold."""

    def elsewhere(self) -> Found:
        """Containers of the program that are in none of its objects, by a name for people."""

    def bodies(self) -> list[tuple[str, Callable[[], None]]]:
        """Name and function of every thread that the manager started: workers first, the listener last."""

    def is_ours(self, kind: type) -> bool:
        """Whether a class is the tree's."""

    def make_sender(self, room: int, /) -> Any:
        """The scheduler's sender of a room; this opens it."""

    def begin(self, sender: Any, /) -> None:
        """What the scheduler does once the room waits for input."""

    def send(self, sender: Any, number: int, last: bool, /) -> None:
        """Queue a chunk."""

    def registration_frames(self) -> list[Frames]:
        """Messages of the decode side that come before everything else."""

    def metadata_frames(self, room: int, /) -> list[Frames]:
        """Messages of the decode side about where a room's pages go."""

    def abort_frames(self, room: int, /) -> list[Frames]:
        """Messages of the decode side that give a room up."""
