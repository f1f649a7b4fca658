"""What an explored backend has to offer, whoever loads it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

Frames = list[bytes]


class Sender(Protocol):
    """The scheduler's handle on one room: the real object."""

    def poll(self) -> Any: ...

    def clear(self) -> None: ...

    def failure_exception(self) -> None: ...

    def abort(self) -> None: ...


class Hooks(Protocol):
    """What the outside world does, asked while the program runs; the explorer sets these."""

    receive: Callable[[], Frames]
    transfer_state: Callable[[Any], str]


class Backend(Protocol):
    """A loaded backend: the real manager, the functions of its threads, and frames of its own making."""

    manager: Any
    poll: Any
    hooks: Any
    stubbed: Sequence[str]
    root: Path
    digest: str

    def bodies(self) -> list[tuple[str, Callable[[], None]]]:
        """Name and function of every thread that the manager started: workers first, the listener last."""

    def is_ours(self, kind: type) -> bool:
        """Whether a class is the tree's."""

    def make_sender(self, room: int) -> Sender: ...

    def begin(self, sender: Any) -> None: ...

    def send(self, sender: Any, number: int, last: bool) -> None: ...

    def registration_frames(self) -> list[Frames]: ...

    def metadata_frames(self, room: int) -> list[Frames]: ...

    def abort_frames(self, room: int) -> list[Frames]: ...
