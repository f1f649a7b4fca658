"""Notices that the tree's code stands still, and raises an exception where it does.

A timer's signal comes four times a second, and its handler runs between two bytecodes of the main thread. Ticks are
counted, not seconds: a process that was itself suspended, or got no processor, has stood still for no tick.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Final

TICK: Final = 0.25  # seconds
_PATIENCE = 4  # ticks from one exception to the next, for code that swallows them
_MOST_RAISED = 3


class Stalled(BaseException):
    """The tree's code stands still; the message says where. No Exception, as workers catch those and go on."""


class Watchdog:
    """Watches while it is entered; only the main thread can enter it.

    Args:
        seconds: How long nothing may move while code of the tree runs.
        root: The folder of the tree.
        give_up: Called with a message where no exception gets out of the tree's code, or none can be raised. It must
            end the process.
        alive: Called at every tick.

    Attributes:
        stalled: The message of the last exception that was raised, "" before.
    """

    def __init__(
        self, seconds: float, root: str, give_up: Callable[[str], None], alive: Callable[[], None] = lambda: None
    ) -> None:
        self._most = max(1, round(seconds / TICK))
        self._words = f"{seconds:g} s"
        self._root = os.path.join(os.path.realpath(root), "")
        self._named: dict[str, bool] = {}
        self._give_up = give_up
        self._alive = alive
        self._counter: Callable[[], object] = lambda: None
        self._moves = 0
        self._seen: object = None
        self._still = 0
        self._raised = 0
        self.stalled = ""

    def __enter__(self) -> Watchdog:
        self._before = signal.signal(signal.SIGALRM, self._tick)
        signal.setitimer(signal.ITIMER_REAL, TICK, TICK)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._before)

    def watch(self, counter: Callable[[], object]) -> None:
        """Look at ``counter``: while its value changes, something moves."""
        self._counter = counter
        self.moved()

    def moved(self) -> None:
        """Something has moved."""
        self._moves += 1

    def _tick(self, _: int, frame: FrameType | None) -> None:
        self._alive()
        seen = (self._moves, self._counter())
        if seen != self._seen:
            self._seen, self._still, self._raised = seen, 0, 0
            return
        self._still += 1
        if self._still < self._most:
            return
        place = self._place(frame)
        if place is not None:
            self._still = max(0, self._most - _PATIENCE)
            self._stop(place)
            return
        place = self._place_elsewhere()
        if place is not None:
            # Python has no way to raise an exception with a message on another thread.
            self._give_up(f"no step for {self._words}: a thread runs in {place}")

    def _stop(self, place: str) -> None:
        message = f"no step for {self._words}: it runs in {place}"
        if self._raised == _MOST_RAISED:
            self._give_up(f"{message}, and goes on after BaseException")
            return
        self._raised += 1
        self.stalled = message
        raise Stalled(message)

    def _place(self, frame: FrameType | None) -> str | None:
        """The innermost line of the tree on a stack, or None."""
        while frame is not None:
            code = frame.f_code
            if self._is_tree(code.co_filename):
                return f"{code.co_filename}:{frame.f_lineno} ({code.co_qualname})"
            frame = frame.f_back
        return None

    def _place_elsewhere(self) -> str | None:
        """The innermost line of the tree on a thread that is not waiting for its turn, or None."""
        for thread, frame in sys._current_frames().items():
            if thread != threading.get_ident() and not self._waits(frame) and (place := self._place(frame)):
                return place
        return None

    @staticmethod
    def _waits(frame: FrameType | None) -> bool:
        """Whether a thread stands in a hand-over of the exploration's."""
        while frame is not None and frame.f_globals.get("__name__") == "threading":
            frame = frame.f_back
        return frame is not None and frame.f_globals.get("__name__") == "kvlint.explore.switching"

    def _is_tree(self, path: str) -> bool:
        known = self._named.get(path)
        if known is None:
            known = self._named[path] = os.path.realpath(path).startswith(self._root)
        return known
