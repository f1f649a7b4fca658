"""Locks, conditions, events, queues and sleeps of the program, as operations that a schedule decides."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Hashable
from copy import copy
from typing import Any, NoReturn

from kvlint.explore.containers import NESTED, adopt
from kvlint.explore.control import Control
from kvlint.explore.identities import PLAIN, Identified
from kvlint.explore.operations import WHOLE, Resource

_FREE = -1


class _Primitive(Identified):
    """A resource whose content is a few numbers: the attributes in ``parts``."""

    def __init__(self, control: Control, label: str) -> None:
        self.control = control
        self.resource: Resource = control.resource(label)
        self.identity = self.resource.identity
        self.renewed()

    def content(self) -> Hashable:
        raise NotImplementedError

    def renewed(self) -> None:
        self.control.changed(self)

    def entry(self, key: Hashable) -> Any:
        return self.control.content_of(self)

    #: Attributes that change.
    parts: tuple[str, ...] = ()

    def saved(self) -> dict[str, Any]:
        """The attributes that change, copied."""
        return {name: copy(getattr(self, name)) for name in self.parts}

    def put_back(self, saved: dict[str, Any]) -> None:
        """Undo what happened since ``saved`` was taken."""
        for name, value in saved.items():
            setattr(self, name, copy(value))

    def _actor(self) -> int:
        current = self.control.current
        return _FREE - 1 if current is None else current.number

    def _fails(self, problem: Exception) -> NoReturn:
        """End the operation with an exception."""
        self.control.after(problem)
        raise problem

    def _nobody_comes(self) -> NoReturn:
        """Refuse to wait outside of a run, or at its end."""
        raise RuntimeError(f"{self.resource.uses.label} would wait for ever")


class Lock(_Primitive):
    """``threading.Lock``; releasing one that is free is an error, as in the original."""

    reentrant = False
    parts = ("holder", "depth")

    def __init__(self, control: Control, label: str) -> None:
        self.holder = _FREE
        self.depth = 0
        super().__init__(control, label)
        control.expose(self.resource)

    def content(self) -> Hashable:
        return (self.holder, self.depth)

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if timeout != -1 and (timeout < 0 or not blocking):
            # Raises what the interpreter says to such arguments, of a lock that nobody has.
            threading.Lock().acquire(blocking, timeout)
        asker = self._actor()

        def ready() -> bool:
            return self.holder == _FREE or (self.reentrant and self.holder == asker)

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
        if self.holder == _FREE or (self.reentrant and self.holder != self._actor()):
            self._fails(RuntimeError("cannot release un-acquired lock" if self.reentrant else "release unlocked lock"))
        self.depth -= 1
        if not self.depth:
            self._free()
        self.renewed()
        self.control.after(None)

    def _free(self) -> None:
        self.control.holds_no_more(self.identity, self.holder)
        self.holder, self.depth = _FREE, 0

    def locked(self) -> bool:
        self.control.before(self.resource, "locked", WHOLE, False)
        held = self.holder != _FREE
        self.control.note_read(lambda: self.holder != _FREE, (), held)
        self.control.after(held)
        return held

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *problem: object) -> None:
        self.release()


class RLock(Lock):
    """``threading.RLock``."""

    reentrant = True


class Condition(_Primitive):
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
        return holder == self._actor() if self._lock.reentrant else holder != _FREE

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

    notifyAll = notify_all


class Semaphore(_Primitive):
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


class Event(_Primitive):
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

    isSet = is_set

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


class SimpleQueue(_Primitive):
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


class Waiting(_Primitive):
    """Sleeps and polls: whoever has found nothing to do goes on when something it read has changed."""

    def __init__(self, control: Control, label: str) -> None:
        super().__init__(control, label)
        self.resource.uses.waits_for_anything = True
        # Whether it waits depends on what others did up to then: going on at once is a step like any other.
        control.always_stop(self.resource)

    def content(self) -> Hashable:
        return None

    def sleep(self, seconds: float = 0.0) -> None:
        """Wait until something that the actor read since its last wait reads differently."""
        actor = self.control.current
        if actor is None:
            return
        reads = actor.reads

        def ready() -> bool:
            return any(_reads_differently(*read) for read in reads)

        self.control.before(self.resource, "await change", WHOLE, False, ready)
        actor.reads = []
        self.control.after(None)


def _reads_differently(read: Callable[..., Any], arguments: tuple[Any, ...], seen: Any) -> bool:
    try:
        return _differ(read(*arguments), seen)
    except Exception:
        # It was there to be read before.
        return True


def _differ(one: Any, other: Any) -> bool:
    """Whether two entries are different, without calling code of theirs."""
    return one is not other and (type(one) not in PLAIN or type(one) is not type(other) or one != other)
