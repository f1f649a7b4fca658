"""Runs the threads of a backend one after the other: each until it has nothing more to take."""

from __future__ import annotations

import queue
from collections import deque
from types import SimpleNamespace
from typing import Any

from kvlint.loading import Backend, CapturedThread, Frame


class Idle(BaseException):
    """A thread would wait from here on."""


class IdleQueue:
    """A queue whose get() says so where it would wait."""

    def __init__(self) -> None:
        self._items: deque[Any] = deque()

    def put(self, item: Any) -> None:
        self._items.append(item)

    def get(self) -> Any:
        if not self._items:
            raise Idle
        return self._items.popleft()


QUEUE = SimpleNamespace(__name__="queue", SimpleQueue=IdleQueue, Queue=IdleQueue, Empty=queue.Empty)


class Driver:
    """Feeds a backend frames, and runs its threads."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.frames: deque[Frame] = deque()
        self.sent: list[tuple[str, Frame]] = []
        backend.hooks.receive = self._receive
        backend.hooks.sent = lambda endpoint, frame: self.sent.append((endpoint, frame))

    def _receive(self) -> Frame:
        if not self.frames:
            raise Idle
        return self.frames.popleft()

    def run(self, thread: CapturedThread) -> None:
        """Run a thread until it would wait."""
        try:
            thread.run()
        except Idle:
            return
        raise AssertionError(f"{thread} came to an end")

    def listen(self, frames: list[Frame]) -> None:
        """Let the listener take frames."""
        self.frames.extend(frames)
        self.run(self.backend.listener)

    def work(self) -> None:
        """Let the workers take what was queued."""
        for worker in self.backend.workers:
            self.run(worker)

    def status(self, sender: Any) -> str:
        """What a sender polls, by name."""
        names: dict[object, str] = {
            value: name for name, value in vars(self.backend.poll).items() if isinstance(value, int)
        }
        return names[sender.poll()]
