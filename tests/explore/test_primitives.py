"""Controlled locks, conditions, events and queues answer as those of ``threading`` and ``queue``."""

from __future__ import annotations

import inspect
import queue
import threading
from collections.abc import Callable
from typing import Any

import pytest

from kvlint.explore import primitives
from kvlint.explore.control import Control
from kvlint.explore.switching import Greenlets

from .models import DIED, Model, World, cached, naive

Make = Callable[[], Any]
PAIRS: dict[str, tuple[Any, Any]] = {
    "Lock": (threading.Lock, primitives.Lock),
    "RLock": (threading.RLock, primitives.RLock),
    "Condition": (threading.Condition, primitives.Condition),
    "Semaphore": (threading.Semaphore, primitives.Semaphore),
    "BoundedSemaphore": (threading.BoundedSemaphore, primitives.BoundedSemaphore),
    "Event": (threading.Event, primitives.Event),
    "Queue": (queue.Queue, primitives.Queue),
    "LifoQueue": (queue.LifoQueue, primitives.LifoQueue),
    "PriorityQueue": (queue.PriorityQueue, primitives.PriorityQueue),
    "SimpleQueue": (queue.SimpleQueue, primitives.SimpleQueue),
}
LOCKS: list[list[str]] = [
    ["p.acquire()", "p.release()"],
    ["p.acquire(False)", "p.acquire(False)", "p.release()"],
    ["p.acquire(True, 0.0)", "p.release()"],
    ["p.acquire(timeout=-1)", "p.release()"],
    ["p.release()"],
    ["p.acquire(False, 1)"],
    ["p.acquire(True, -2)"],
    ["p.__enter__()", "p.__exit__(None, None, None)"],
    ["p.acquire()", "p.acquire(timeout=0.0)", "p.release()", "p.release()"],
]
QUEUES: list[list[str]] = [
    ["p.put(1)", "p.get()", "p.empty()"],
    ["p.put(2)", "p.put(1)", "p.qsize()", "p.get()", "p.get_nowait()", "p.get_nowait()"],
    ["p.get(False)"],
    ["p.get(timeout=0.0)"],
    ["p.get(timeout=-1)"],
    ["p.put_nowait(1)", "p.get(block=True, timeout=0.0)"],
    ["p.put(1, False)", "p.put(1, timeout=0.0)", "p.qsize()"],
]
BOUNDED_QUEUES: list[list[str]] = [
    ["p.full()", "p.maxsize"],
    ["p.task_done()"],
    ["p.put(1)", "p.task_done()", "p.task_done()"],
    ["p.put(1)", "p.get()", "p.task_done()", "p.join()"],
    ["p.join()"],
    ["p.put(1, timeout=-1)"],
]
USES: dict[str, list[list[str]]] = {
    "Lock": [*LOCKS, ["p.locked()", "p.acquire()", "p.locked()"]],
    "RLock": LOCKS,
    "Condition": [
        *LOCKS,
        ["p.notify()"],
        ["p.notify_all()"],
        ["p.wait(0.0)"],
        ["p.acquire()", "p.notify()", "p.notify(3)", "p.notify_all()", "p.wait(0.0)", "p.release()"],
        ["p.acquire()", "p.wait_for(lambda: 7)", "p.wait_for(lambda: 0, 0.0)", "p.release()"],
        ["p.acquire()", "p.acquire()", "p.wait(0.0)", "p.release()", "p.release()", "p.release()"],
    ],
    "Semaphore": [
        ["p.acquire()", "p.acquire(False)", "p.release()", "p.release(2)", "p.acquire()"],
        ["p.acquire(False, 1)"],
        ["p.release(0)"],
        ["p.__enter__()", "p.__exit__(None, None, None)"],
        ["p.acquire()", "p.acquire(timeout=0.0)"],
    ],
    "BoundedSemaphore": [["p.release()"], ["p.acquire()", "p.release()", "p.release()"]],
    "Event": [
        ["p.is_set()", "p.set()", "p.is_set()", "p.wait()", "p.clear()", "p.is_set()", "p.wait(0.0)"],
        ["p.wait(timeout=0.0)"],
    ],
    "Queue": [*QUEUES, *BOUNDED_QUEUES],
    "LifoQueue": [*QUEUES, *BOUNDED_QUEUES],
    "PriorityQueue": [*QUEUES, *BOUNDED_QUEUES],
    "SimpleQueue": QUEUES,
}
CASES = [(name, uses) for name, each in USES.items() for uses in each]


def _outcomes(primitive: Any, uses: list[str]) -> list[Any]:
    found: list[Any] = []
    for use in uses:
        try:
            found.append(eval(use, {"p": primitive}))
        except Exception as problem:
            found.append((type(problem), str(problem)))
    return found


@pytest.mark.parametrize(("name", "uses"), CASES, ids=[f"{name}: {'; '.join(uses)}" for name, uses in CASES])
def test_answers_as_the_original(name: str, uses: list[str]) -> None:
    original, ours = PAIRS[name]
    expected = _outcomes(original(), uses)
    assert _outcomes(ours(Control(Greenlets()), "outside"), uses) == expected
    assert _inside(ours, uses, shared=False) == expected
    assert _inside(ours, uses, shared=True) == expected


def _inside(make: Any, uses: list[str], *, shared: bool) -> list[Any]:
    found: list[Any] = []

    def build(world: World) -> None:
        world.primitive = make(world.control, "inside")

    def user(world: World) -> None:
        found.append(_outcomes(world.primitive, uses))

    model = Model(build, user)
    if shared:
        model.control.sharing.always_stop(model.world.primitive.resource)
    naive(lambda: model)
    return found[-1]  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", PAIRS)
def test_has_the_public_methods_of_the_original(name: str) -> None:
    original, ours = PAIRS[name]
    made = original()
    wanted = {each for each in dir(made) if not each.startswith("_")}
    # What queues are made of, and the lock of a lock.
    wanted -= {
        "all_tasks_done",
        "mutex",
        "not_empty",
        "not_full",
        "queue",
        "unfinished_tasks",
        "acquire_lock",
        "release_lock",
        "locked_lock",
    }
    assert wanted - set(dir(ours(Control(Greenlets()), "label"))) == set()


@pytest.mark.parametrize("name", ["Condition", "Semaphore", "Event", "Queue", "PriorityQueue", "LifoQueue"])
def test_arguments_have_the_names_of_the_original(name: str) -> None:
    original, ours = PAIRS[name]
    control = Control(Greenlets())
    for method in ("acquire", "release", "wait", "wait_for", "notify", "put", "get"):
        theirs = getattr(original(), method, None)
        if not inspect.ismethod(theirs):
            continue
        mine = inspect.signature(getattr(ours(control, "label"), method))
        assert list(mine.parameters) == list(inspect.signature(theirs).parameters), method


@pytest.mark.parametrize(
    ("name", "uses"),
    [
        ("Lock", ["p.acquire()", "p.acquire()"]),
        ("Semaphore", ["p.acquire()", "p.acquire()"]),
        ("Event", ["p.wait()"]),
        ("Queue", ["p.get()"]),
        ("Queue", ["p.put(1)", "p.join()"]),
        ("Condition", ["p.acquire()", "p.wait()"]),
    ],
)
def test_what_would_wait_for_ever_outside_of_a_run_is_refused(name: str, uses: list[str]) -> None:
    assert _outcomes(PAIRS[name][1](Control(Greenlets()), "it"), uses)[-1][0] is RuntimeError


def test_a_full_queue_outside_of_a_run_refuses_to_wait() -> None:
    bounded = primitives.Queue(Control(Greenlets()), "bounded", 1)
    bounded.put(1)
    with pytest.raises(queue.Full):
        bounded.put_nowait(2)
    with pytest.raises(RuntimeError, match="bounded would wait for ever"):
        bounded.put(2)
    assert bounded.full()


def test_a_negative_semaphore_is_refused() -> None:
    with pytest.raises(ValueError, match="semaphore initial value must be >= 0"):
        primitives.Semaphore(Control(Greenlets()), "label", -1)


def test_smallest_of_what_was_put_comes_first() -> None:
    made = primitives.PriorityQueue(Control(Greenlets()), "label")
    for item in (3, 1, 2):
        made.put(item)
    assert [made.get() for _ in range(3)] == [1, 2, 3]


def test_last_of_what_was_put_comes_first() -> None:
    made = primitives.LifoQueue(Control(Greenlets()), "label")
    for item in (3, 1, 2):
        made.put(item)
    assert [made.get() for _ in range(3)] == [2, 1, 3]


def test_what_was_kept_is_there_again() -> None:
    control = Control(Greenlets())
    uses = {
        "Lock": "p.acquire()",
        "RLock": "p.acquire()",
        "Semaphore": "p.acquire()",
        "Event": "p.set()",
        "Queue": "p.put(1)",
        "SimpleQueue": "p.put(1)",
        "PriorityQueue": "p.put(1)",
    }
    for name, use in uses.items():
        made = PAIRS[name][1](control, name)
        if "Queue" in name:
            made.put(7)
        saved = made.saved()
        before = made.content(), control.content_of(made)
        for _ in range(2):
            eval(use, {"p": made})
            assert made.content() != before[0]
            made.put_back(saved)
            made.renewed()
            assert (made.content(), control.content_of(made)) == before


def test_what_was_queued_before_is_there_in_every_run() -> None:
    def build(world: World) -> None:
        world.queue, world.got = primitives.Queue(world.control, "queue"), []
        world.queue.put(1)
        world.queue.put(2)

    def worker(world: World) -> None:
        while True:
            world.got.append(world.queue.get())

    _, found = cached(lambda: Model(build, worker, worker))
    assert {dict(end)["got"] for end in found.ends} == {(1, 2), (2, 1)}  # type: ignore[call-overload]


def test_a_plain_container_in_a_queue_is_one_for_all() -> None:
    def build(world: World) -> None:
        world.queue, world.seen = primitives.Queue(world.control, "queue"), []

    def giver(world: World) -> None:
        item: list[int] = []
        world.queue.put(item)
        item.append(1)

    def taker(world: World) -> None:
        world.seen.append(len(world.queue.get()))

    _, found = cached(lambda: Model(build, giver, taker))
    assert {dict(end)["seen"] for end in found.ends} == {(0,), (1,)}  # type: ignore[call-overload]


def test_a_timed_wait_may_be_told_or_not() -> None:
    def build(world: World) -> None:
        world.condition, world.told = primitives.Condition(world.control, "condition"), []

    def waiter(world: World) -> None:
        with world.condition:
            world.told.append(world.condition.wait(5.0))

    def teller(world: World) -> None:
        with world.condition:
            world.condition.notify_all()

    make = lambda: Model(build, waiter, teller)  # noqa: E731
    _, found = cached(make)
    assert found == naive(make)[1]
    assert {dict(end)["told"] for end in found.ends} == {(False,), (True,)}  # type: ignore[call-overload]


def test_join_waits_for_every_task() -> None:
    def build(world: World) -> None:
        world.queue, world.done = primitives.Queue(world.control, "queue"), []

    def worker(world: World) -> None:
        world.queue.get()
        world.done.append(1)
        world.queue.task_done()

    def owner(world: World) -> None:
        world.queue.put(1)
        world.queue.join()
        if not world.done:
            raise ValueError

    _, found = cached(lambda: Model(build, worker, owner))
    assert DIED not in dict(found.by_property)
    assert found.violations == frozenset()
