"""Locks, conditions, events, queues and sleeps of the program, as operations that a schedule decides."""

from __future__ import annotations

import queue
from collections.abc import Callable, Hashable
from copy import copy
from typing import Any

from kvlint.explore.control import Control
from kvlint.explore.identities import PLAIN, Identified
from kvlint.explore.operations import WHOLE, Resource

_FREE = -1


class _Primitive(Identified):
    """A resource whose content is a few numbers."""

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
        elif waits and self.control.current is None:
            raise RuntimeError(f"{self.resource.uses.label} would wait for ever")
        self.control.after(taken)
        return taken

    def release(self) -> None:
        self.control.before(self.resource, "release", WHOLE, True)
        if self.holder == _FREE or (self.reentrant and self.holder != self._actor()):
            problem = RuntimeError("cannot release un-acquired lock" if self.reentrant else "release unlocked lock")
            self.control.after(problem)
            raise problem
        self.depth -= 1
        if not self.depth:
            self.control.holds_no_more(self.identity, self.holder)
            self.holder = _FREE
        self.renewed()
        self.control.after(None)

    def locked(self) -> bool:
        self.control.before(self.resource, "locked", WHOLE, False)
        self.control.after(self.holder != _FREE)
        return self.holder != _FREE

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

    def wait(self, timeout: float | None = None) -> bool:
        actor = self._actor()
        self._waiting.append(actor)
        self.renewed()
        depth = self._lock.depth
        self._lock.depth = 1
        self._lock.release()

        def ready() -> bool:
            return timeout is not None or actor in self._notified

        self.control.before(self.resource, "wait", WHOLE, True, ready)
        told = actor in self._notified
        if not ready():
            raise RuntimeError(f"{self.resource.uses.label} would wait for ever")
        self._notified.discard(actor)
        if actor in self._waiting:
            self._waiting.remove(actor)
        self.renewed()
        self.control.after(told)
        self._lock.acquire()
        self._lock.depth = depth
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
        self.control.before(self.resource, "notify", WHOLE, True)
        if self._lock.holder == _FREE:
            raise RuntimeError("cannot notify on un-acquired lock")
        for actor in self._waiting[:n]:
            self._notified.add(actor)
            self._waiting.remove(actor)
        self.renewed()
        self.control.after(None)

    def notify_all(self) -> None:
        self.notify(len(self._waiting))

    notifyAll = notify_all


class Semaphore(_Primitive):
    """``threading.Semaphore``."""

    parts = ("_value",)

    def __init__(self, control: Control, label: str, value: int = 1) -> None:
        self._value = value
        super().__init__(control, label)

    def content(self) -> Hashable:
        return self._value

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        waits = blocking and timeout is None
        self.control.before(self.resource, "acquire", WHOLE, True, (lambda: self._value > 0) if waits else None)
        taken = self._value > 0
        if taken:
            self._value -= 1
            self.renewed()
        self.control.after(taken)
        return taken

    def release(self, n: int = 1) -> None:
        self.control.before(self.resource, "release", WHOLE, True)
        self._value += n
        self.renewed()
        self.control.after(None)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *problem: object) -> None:
        self.release()


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
        actor = self.control.current
        if actor is not None:
            actor.reads.append((self.content, (), self._set))
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
        self.control.after(self._set)
        return self._set


class Queue(_Primitive):
    """``queue.Queue`` and ``queue.SimpleQueue``: putting and getting are one operation each."""

    parts = ("_items",)

    def __init__(self, control: Control, label: str, maxsize: int = 0) -> None:
        self.maxsize = maxsize
        self._items: list[Any] = []
        super().__init__(control, label)

    def content(self) -> Hashable:
        frozen, moment = self.control.identities.frozen, self.control.moment()
        return tuple([frozen(item, moment) for item in self._items])

    def _is_full(self) -> bool:
        return 0 < self.maxsize <= len(self._items)

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        waits = block and timeout is None and self.maxsize > 0
        ready = (lambda: not self._is_full()) if waits else None
        self.control.before(self.resource, "put", WHOLE, True, ready)
        if self._is_full():
            self.control.after("full")
            raise queue.Full
        self._items.append(item)
        self.renewed()
        self.control.after(item)

    def put_nowait(self, item: Any) -> None:
        self.put(item, block=False)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        waits = block and timeout is None
        self.control.before(self.resource, "take", WHOLE, True, (lambda: bool(self._items)) if waits else None)
        if not self._items:
            self.control.after("empty")
            raise queue.Empty
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
        self.control.after(len(self._items))
        return len(self._items)

    def empty(self) -> bool:
        return self.qsize() == 0

    def full(self) -> bool:
        return 0 < self.maxsize <= self.qsize()

    def task_done(self) -> None:
        return


class LifoQueue(Queue):
    """``queue.LifoQueue``."""

    def _take(self) -> Any:
        return self._items.pop()


class PriorityQueue(Queue):
    """``queue.PriorityQueue``."""

    def _take(self) -> Any:
        smallest = min(self._items)
        self._items.remove(smallest)
        return smallest


class Waiting(_Primitive):
    """Sleeps and polls: whoever has found nothing to do goes on when something it read has changed."""

    def __init__(self, control: Control, label: str) -> None:
        super().__init__(control, label)
        self.resource.uses.waits_for_anything = True

    def content(self) -> Hashable:
        return None

    def sleep(self, seconds: float = 0.0) -> None:
        """Wait until something that the actor read since its last wait reads differently."""
        actor = self.control.current
        if actor is None:
            return
        reads = actor.reads

        def ready() -> bool:
            return any(_differ(read(*arguments), seen) for read, arguments, seen in reads)

        self.control.before(self.resource, "await change", WHOLE, False, ready)
        actor.reads = []
        self.control.after(None)



def _differ(one: Any, other: Any) -> bool:
    """Whether two entries are different, without calling code of theirs."""
    return one is not other and (type(one) not in PLAIN or type(one) is not type(other) or one != other)
