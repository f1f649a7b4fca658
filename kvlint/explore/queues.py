"""Queues of the program: putting and getting are one operation each."""

from __future__ import annotations

import queue
from collections.abc import Hashable
from typing import Any

from kvlint.explore.containers import NESTED, adopt
from kvlint.explore.control import Control
from kvlint.explore.operations import WHOLE
from kvlint.explore.primitive import Primitive


class SimpleQueue(Primitive):
    """``queue.SimpleQueue``: putting and getting are one operation each; a plain container put in is adopted."""

    parts = ("_items", "_unfinished")

    def __init__(self, control: Control, label: str) -> None:
        self.maxsize = 0
        self._unfinished = 0
        self._items: list[Any] = []
        super().__init__(control, label)

    def content(self) -> Hashable:
        frozen, moment = self.control.identities.frozen, self.control.moment()
        return (self._unfinished, *[frozen(item, moment) for item in self._items])

    def _is_full(self) -> bool:
        return 0 < self.maxsize <= len(self._items)

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        waits = self.maxsize > 0 and _waits(block, timeout)
        if self.control.current is not None:
            item = adopt(self.control, item, self.resource.uses.label + NESTED)
        self.control.before(self.resource, "put", WHOLE, True, (lambda: not self._is_full()) if waits else None)
        if self._is_full():
            if waits:
                self._nobody_comes()
            self.control.note_read(self._is_full, (), True)
            self._fails(queue.Full())
        self._items.append(item)
        self._unfinished += 1
        self.renewed()
        self.control.after(item)

    def put_nowait(self, item: Any) -> None:
        self.put(item, block=False)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        waits = _waits(block, timeout)
        self.control.before(self.resource, "take", WHOLE, True, (lambda: bool(self._items)) if waits else None)
        if not self._items:
            if waits:
                self._nobody_comes()
            self.control.note_read(self._items.__len__, (), 0)
            self._fails(queue.Empty())
        item = self._take()
        self.renewed()
        self.control.after(item)
        return item

    def get_nowait(self) -> Any:
        return self.get(block=False)

    def _take(self) -> Any:
        return self._items.pop(0)

    def qsize(self) -> int:
        self.control.before(self.resource, "len", WHOLE, False)
        size = len(self._items)
        self.control.note_read(self._items.__len__, (), size)
        self.control.after(size)
        return size

    def empty(self) -> bool:
        return self.qsize() == 0


class Queue(SimpleQueue):
    """``queue.Queue``."""

    def __init__(self, control: Control, label: str, maxsize: int = 0) -> None:
        super().__init__(control, label)
        self.maxsize = maxsize

    def full(self) -> bool:
        return 0 < self.maxsize <= self.qsize()

    def task_done(self) -> None:
        self.control.before(self.resource, "task_done", WHOLE, True)
        if self._unfinished <= 0:
            self._fails(ValueError("task_done() called too many times"))
        self._unfinished -= 1
        self.renewed()
        self.control.after(None)

    def join(self) -> None:
        self.control.before(self.resource, "join", WHOLE, False, lambda: self._unfinished == 0)
        if self._unfinished:
            self._nobody_comes()
        self.control.after(None)


class LifoQueue(Queue):
    """``queue.LifoQueue``."""

    def _take(self) -> Any:
        return self._items.pop()


class PriorityQueue(Queue):
    """``queue.PriorityQueue``."""

    def _take(self) -> Any:
        with self.control.in_operation():
            smallest = min(range(len(self._items)), key=self._items.__getitem__)
        return self._items.pop(smallest)


def _waits(block: bool, timeout: float | None) -> bool:
    if block and timeout is not None and timeout < 0:
        raise ValueError("'timeout' must be a non-negative number")
    return block and timeout is None
