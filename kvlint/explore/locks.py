"""Locks, conditions, semaphores and events of the program, as operations that a schedule decides."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any

from kvlint.explore.control import Control
from kvlint.explore.operations import WHOLE
from kvlint.explore.primitive import FREE, Primitive


class Lock(Primitive):
    """``threading.Lock``; releasing one that is free is an error, as in the original."""

    reentrant = False
    parts = ("holder", "depth")

    def __init__(self, control: Control, label: str) -> None:
        self.holder = FREE
        self.depth = 0
        super().__init__(control, label)
        control.sharing.expose(self.resource)

    def content(self) -> Hashable:
        return (self.holder, self.depth)

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if timeout != -1 and (timeout < 0 or not blocking):
            # Raises what the interpreter says to such arguments, of a lock that nobody has.
            threading.Lock().acquire(blocking, timeout)
        asker = self._actor()

        def ready() -> bool:
            return self.holder == FREE or (self.reentrant and self.holder == asker)

        waits = blocking and timeout < 0
        self.control.before(self.resource, "acquire", WHOLE, True, ready if waits else None)
        taken = ready()
        if taken:
            self.holder = asker
            self.depth += 1
            if self.depth == 1:
                self.control.holds(self.identity)
            self.renewed()
        elif waits:
            self._nobody_comes()
        else:
            self.control.note_read(ready, (), False)
        self.control.after(taken)
        return taken

    def release(self) -> None:
        self.control.before(self.resource, "release", WHOLE, True)
        if self.holder == FREE or (self.reentrant and self.holder != self._actor()):
            self._fails(RuntimeError("cannot release un-acquired lock" if self.reentrant else "release unlocked lock"))
        self.depth -= 1
        if not self.depth:
            self._free()
        self.renewed()
        self.control.after(None)

    def _free(self) -> None:
        self.control.holds_no_more(self.identity, self.holder)
        self.holder, self.depth = FREE, 0

    def locked(self) -> bool:
        self.control.before(self.resource, "locked", WHOLE, False)
        held = self.holder != FREE
        self.control.note_read(lambda: self.holder != FREE, (), held)
        self.control.after(held)
        return held

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *problem: object) -> None:
        self.release()


class RLock(Lock):
    """``threading.RLock``."""

    reentrant = True


class Condition(Primitive):
    """``threading.Condition``: ``wait`` gives the lock up, waits for a notification, and takes the lock again."""

    parts = ("_waiting", "_notified")

    def __init__(self, control: Control, label: str, lock: Lock | None = None) -> None:
        self._lock = lock if lock is not None else RLock(control, label)
        self._waiting: list[int] = []
        self._notified: set[int] = set()
        super().__init__(control, label + " waiters")
        self.acquire = self._lock.acquire
        self.release = self._lock.release

    def content(self) -> Hashable:
        return (tuple(self._waiting), frozenset(self._notified))

    def __enter__(self) -> bool:
        return self._lock.acquire()

    def __exit__(self, *problem: object) -> None:
        self._lock.release()

    def _is_owned(self) -> bool:
        # Of a plain lock the original knows only whether somebody has it.
        holder = self._lock.holder
        return holder == self._actor() if self._lock.reentrant else holder != FREE

    def wait(self, timeout: float | None = None) -> bool:
        control, lock = self.control, self._lock
        actor = self._actor()
        control.before(lock.resource, "release", WHOLE, True)
        if not self._is_owned():
            lock._fails(RuntimeError("cannot wait on un-acquired lock"))
        # Whoever has got the lock finds this actor among those that wait.
        self._waiting.append(actor)
        self.renewed()
        depth = lock.depth
        lock._free()
        lock.renewed()
        control.after(None)

        def ready() -> bool:
            return timeout is not None or actor in self._notified

        control.before(self.resource, "wait", WHOLE, True, ready)
        told = actor in self._notified
        if not ready():
            self._nobody_comes()
        self._notified.discard(actor)
        if actor in self._waiting:
            self._waiting.remove(actor)
        self.renewed()
        control.after(told)
        lock.acquire()
        lock.depth = depth
        lock.renewed()
        return told

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        result = predicate()
        while not result:
            told = self.wait(timeout)
            result = predicate()
            if not told:
                break
        return result

    def notify(self, n: int = 1) -> None:
        self._notify(n)

    def notify_all(self) -> None:
        self._notify(None)

    def _notify(self, most: int | None) -> None:
        self.control.before(self.resource, "notify", WHOLE, True)
        if not self._is_owned():
            self._fails(RuntimeError("cannot notify on un-acquired lock"))
        self._notified.update(self._waiting[:most])
        del self._waiting[:most]
        self.renewed()
        self.control.after(None)

    notifyAll = notify_all  # noqa: N815 - threading's own name


class Semaphore(Primitive):
    """``threading.Semaphore``."""

    parts = ("_value",)

    _most: int | None = None

    def __init__(self, control: Control, label: str, value: int = 1) -> None:
        if value < 0:
            raise ValueError("semaphore initial value must be >= 0")
        self._value = value
        super().__init__(control, label)

    def content(self) -> Hashable:
        return self._value

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        if not blocking and timeout is not None:
            raise ValueError("can't specify timeout for non-blocking acquire")
        waits = blocking and timeout is None
        self.control.before(self.resource, "acquire", WHOLE, True, (lambda: self._value > 0) if waits else None)
        taken = self._value > 0
        if taken:
            self._value -= 1
            self.renewed()
        elif waits:
            self._nobody_comes()
        else:
            self.control.note_read(lambda: self._value > 0, (), False)
        self.control.after(taken)
        return taken

    def release(self, n: int = 1) -> None:
        if n < 1:
            raise ValueError("n must be one or more")
        self.control.before(self.resource, "release", WHOLE, True)
        if self._most is not None and self._value + n > self._most:
            self._fails(ValueError("Semaphore released too many times"))
        self._value += n
        self.renewed()
        self.control.after(None)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *problem: object) -> None:
        self.release()


class BoundedSemaphore(Semaphore):
    """``threading.BoundedSemaphore``."""

    def __init__(self, control: Control, label: str, value: int = 1) -> None:
        super().__init__(control, label, value)
        self._most = value


class Event(Primitive):
    """``threading.Event``."""

    parts = ("_set",)

    def __init__(self, control: Control, label: str) -> None:
        self._set = False
        super().__init__(control, label)

    def content(self) -> Hashable:
        return self._set

    def is_set(self) -> bool:
        self.control.before(self.resource, "is_set", WHOLE, False)
        self.control.note_read(self.content, (), self._set)
        self.control.after(self._set)
        return self._set

    isSet = is_set  # noqa: N815 - threading's own name

    def set(self) -> None:
        self._store(True)

    def clear(self) -> None:
        self._store(False)

    def _store(self, value: bool) -> None:
        self.control.before(self.resource, "set" if value else "clear", WHOLE, True)
        self._set = value
        self.renewed()
        self.control.after(None)

    def wait(self, timeout: float | None = None) -> bool:
        waits = timeout is None
        self.control.before(self.resource, "wait", WHOLE, False, (lambda: self._set) if waits else None)
        if waits and not self._set:
            self._nobody_comes()
        self.control.note_read(self.content, (), self._set)
        self.control.after(self._set)
        return self._set
