"""What is known of the threads of a tree."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from queue import Queue
from typing import Any

import pytest

from kvlint.drill.threads import Threads, TreeThread, watch_threads


class FastQueue:
    """A queue as SGLang has it: without a size."""

    def __init__(self) -> None:
        self._items: deque[Any] = deque()
        self._condition = threading.Condition()

    def put(self, item: Any) -> None:
        with self._condition:
            self._items.append(item)
            self._condition.notify()

    def get(self) -> Any:
        with self._condition:
            while not self._items:
                self._condition.wait()
            return self._items.popleft()


class SizedQueue(FastQueue):
    """A queue that tells its size, and is no queue.Queue."""

    def qsize(self) -> int:
        return len(self._items)


QUEUES: list[Callable[[], Any]] = [Queue, FastQueue, SizedQueue]


class Stopped(Exception):
    """Ends a worker, out of band."""


@pytest.fixture
def threads() -> Threads:
    return Threads()


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> list[threading.ExceptHookArgs]:
    """What is not a tree's thread's to be kept."""
    passed: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    watch_threads(passed.append)
    return passed


class Working:
    """A worker which stops while it works on an item, until the test goes on."""

    def __init__(self, threads: Threads, queue: Any) -> None:
        self.queue = queue
        self.has_taken = threading.Semaphore(0)
        self.may_go_on = threading.Semaphore(0)
        self.thread = threads.thread_class()(target=self.work, args=(queue,))
        self.thread.start()

    def work(self, queue: Any) -> None:
        while (item := queue.get()) is not None:
            self.has_taken.release()
            self.may_go_on.acquire()
            assert item == "item"

    def end(self) -> None:
        self.may_go_on.release(5)
        self.queue.put(None)
        self.thread.join(20)
        assert not self.thread.is_alive()


@pytest.fixture(params=QUEUES)
def worker(request: pytest.FixtureRequest, threads: Threads) -> Iterator[Working]:
    made = Working(threads, request.param())
    yield made
    made.end()


def becomes(wanted: Callable[[], bool]) -> bool:
    """Whether something is so in the end: a thread that is on its way into wait() has nothing to tell it by."""
    pause = threading.Event()
    return any(wanted() or pause.wait(0.005) for _ in range(4000))


def test_a_worker_that_waits_for_an_item_is_idle(threads: Threads, worker: Working) -> None:
    assert worker.thread.kind == "worker"
    assert threads.workers() == [worker.thread]
    assert worker.thread.queues == [worker.queue]
    assert becomes(lambda: threads.idle_workers() == [worker.thread])


def test_a_worker_that_works_is_not_idle(threads: Threads, worker: Working) -> None:
    worker.queue.put("item")
    assert worker.has_taken.acquire(timeout=20)
    # The queue is empty; the worker stands in Semaphore.acquire(), which waits by Condition.wait() as get() does.
    assert becomes(lambda: not threads.idle_workers())
    assert not any(threads.idle_workers() for _ in range(50))
    worker.may_go_on.release()
    assert becomes(lambda: threads.idle_workers() == [worker.thread])


def test_a_worker_with_items_is_not_idle(threads: Threads, worker: Working) -> None:
    assert becomes(lambda: threads.idle_workers() == [worker.thread])
    items = worker.queue.queue if isinstance(worker.queue, Queue) else worker.queue._items
    # There is an item, and the worker has not been woken.
    items.append("item")
    assert threads.idle_workers() == []
    items.clear()
    assert threads.idle_workers() == [worker.thread]


def test_the_moment_between_the_item_and_the_work_is_not_idle(threads: Threads) -> None:
    """The worker stands in get() of its queue, the item is taken: nothing but the frame tells."""
    taken, go_on = threading.Semaphore(0), threading.Semaphore(0)

    class Slow(FastQueue):
        def get(self) -> Any:
            item = super().get()
            taken.release()
            go_on.acquire()
            return item

    def work(queue: Any) -> None:
        queue.get()

    queue = Slow()
    thread = threads.thread_class()(target=work, args=(queue,))
    thread.start()
    assert becomes(lambda: threads.idle_workers() == [thread])
    queue.put("item")
    assert taken.acquire(timeout=20)
    assert not any(threads.idle_workers() for _ in range(50))
    go_on.release()
    thread.join(20)


def test_what_a_thread_is_follows_from_what_it_does(threads: Threads) -> None:
    class Socket:
        def recv_multipart(self) -> list[bytes]:
            return []

    socket = Socket()

    def listen() -> None:
        socket.recv_multipart()

    def other() -> None: ...

    made = [threads.thread_class()(target=target, daemon=False) for target in (listen, other)]
    for thread in made:
        thread.start()
        thread.join(20)
    assert [thread.kind for thread in made] == ["listener", "thread"]
    assert [thread.daemon for thread in made] == [True, True]
    assert threads.started == made
    assert threads.workers() == threads.idle_workers() == []
    # A helper may return; a listener may not.
    (dead,) = threads.all_dead()
    assert (dead.kind, dead.reason, dead.traceback) == ("listener", "it returned", "")


def test_a_subclass_of_a_trees_thread_is_known_too(threads: Threads) -> None:
    class Own(threads.thread_class()):  # type: ignore[misc]
        def run(self) -> None: ...

    thread = Own()
    thread.start()
    thread.join(20)
    assert threads.started == [thread]
    assert thread.kind == "thread"


def ended_by(threads: Threads, error: BaseException, name: str) -> TreeThread:
    def work(queue: Any) -> None:
        raise error

    thread = threads.thread_class()(target=work, args=(Queue(),), name=name)
    thread.start()
    thread.join(20)
    return thread


def test_a_worker_that_raises_is_dead(threads: Threads, hook: list[threading.ExceptHookArgs]) -> None:
    thread = ended_by(threads, KeyError(7), "first")
    (dead,) = threads.all_dead()
    assert (dead.kind, dead.name, dead.reason) == ("worker", "first", "KeyError: 7")
    assert dead.traceback.startswith("Traceback (most recent call last):\n")
    assert "raise error" in dead.traceback
    # It does nothing any more.
    assert threads.idle_workers() == [thread]
    assert hook == []


def test_a_worker_that_returns_is_dead_whatever_its_name_is(
    threads: Threads, hook: list[threading.ExceptHookArgs]
) -> None:
    ended_by(threads, RuntimeError(), "same")
    thread = threads.thread_class()(target=lambda queue: None, args=(Queue(),), name="same")
    thread.start()
    thread.join(20)
    assert [(dead.name, dead.reason) for dead in threads.all_dead()] == [
        ("same", "RuntimeError"),
        ("same", "it returned"),
    ]


def test_trees_are_told_apart(threads: Threads, hook: list[threading.ExceptHookArgs]) -> None:
    other = Threads()
    ended_by(other, RuntimeError("no"), "theirs")
    assert threads.all_dead() == []
    assert [dead.reason for dead in other.all_dead()] == ["RuntimeError: no"]


def test_other_threads_are_no_trees(threads: Threads, hook: list[threading.ExceptHookArgs]) -> None:
    def fail() -> None:
        raise Stopped

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join(20)
    assert [what.exc_type for what in hook] == [Stopped]
    assert threads.all_dead() == []


def test_what_was_there_before_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    passed: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", passed.append)
    watch_threads()
    thread = threading.Thread(target=lambda: [][0])
    thread.start()
    thread.join(20)
    assert [what.exc_type for what in passed] == [IndexError]
