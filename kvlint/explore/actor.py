"""A thread of the program, and what ends it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kvlint.explore.loop_heads import LoopHead
from kvlint.explore.operations import Operation, Resource

#: Something that was read: how to read it again without a stop, and what came of it.
Read = tuple[Callable[..., Any], tuple[Any, ...], Any]


class Stopped(BaseException):
    """Ends an actor at the end of a run; a BaseException, as workers catch Exception."""


class Stubborn(Exception):
    """An actor could not be ended: it catches BaseException and goes on."""


class Actor:
    """A thread of the program; ``is_foreign`` unless its function is the explorer's own."""

    __slots__ = (
        "bit",
        "died",
        "doing",
        "finished",
        "function",
        "head",
        "held",
        "history",
        "is_foreign",
        "is_quiet",
        "name",
        "number",
        "outcome",
        "paused",
        "pending",
        "reads",
        "started",
        "stops",
        "unstopped",
    )

    def __init__(self, number: int, name: str, function: Callable[[], None], *, is_foreign: bool = True) -> None:
        self.number = number
        self.is_foreign = is_foreign
        self.bit = 1 << number
        self.name = name
        self.function = function
        self.head: tuple[LoopHead, Resource, str] | None = None
        self.begin()

    def begin(self) -> None:
        """Be as before the first operation."""
        self.history = 0
        self.pending: Operation | None = None
        self.doing: Operation | None = None
        self.outcome = 0
        self.paused = False
        self.is_quiet = False
        self.started = False
        self.finished = False
        self.died: BaseException | None = None
        self.reads: list[Read] = []
        self.stops = 0
        self.unstopped = 0
        self.held: list[int] = []

    def can_go_on(self) -> bool:
        """Whether the actor waits for nothing but its turn."""
        pending = self.pending
        return pending is not None and (pending.ready is None or pending.ready())
