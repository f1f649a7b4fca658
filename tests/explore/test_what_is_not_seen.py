"""What a program does that no schedule shows is told, and then nothing is said to hold; and what once was not seen."""

from __future__ import annotations

import dataclasses
import enum
from collections import Counter, deque
from collections.abc import Callable
from itertools import chain
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from kvlint.explore.elsewhere import Elsewhere, in_functions, in_modules
from kvlint.explore.search.state_graph import StateGraph
from kvlint.explore.substitutes import Clock, substitutes
from kvlint.explore.waiting import Waiting

from .models import LIMITS, Model, World, cached, naive


class Table(dict[Any, Any]):
    """A table of a class of its own."""


class Worker(World):
    """Something that notes that it is at work."""

    def work(self) -> None:
        self.busy = True
        self.table[1] = 1
        self.busy = False


class Slotted(World):
    """Something with slots."""

    __slots__ = ("value",)


def searched(model: Model) -> StateGraph:
    graph = StateGraph(model.run, model.final, LIMITS)
    graph.search()
    return graph


@pytest.mark.parametrize(
    ("value", "told"),
    [(Table(), "a Table"), (Counter(), "a Counter"), (bytearray(b"x"), "a bytearray")],
)
def test_containers_of_other_classes_are_told(value: Any, told: str) -> None:
    def build(world: World) -> None:
        world.value = value

    graph = searched(Model(build, lambda world: None))
    assert not graph.complete
    assert told in graph.reason


def test_slots_are_told() -> None:
    def build(world: World) -> None:
        world.inner = Slotted(world.control)

    graph = searched(Model(build, lambda world: None))
    assert "Slotted have slots" in graph.reason


def test_a_sleep_is_told() -> None:
    def build(world: World) -> None:
        world.table = {}
        world.time = substitutes(world.control, Clock())["time"]

    def sleeper(world: World) -> None:
        if 1 not in world.table:
            world.time.sleep(5)

    def other(world: World) -> None:
        world.table[1] = 1

    graph = searched(Model(build, sleeper, other))
    assert "a sleep is taken to last until something changes" in graph.reason
    assert not graph.complete


class Point(NamedTuple):
    """A key that is equal to others."""

    x: int


@dataclasses.dataclass(frozen=True)
class Key:
    """A key that is equal to others."""

    x: int


class One(enum.IntEnum):
    """A number by another name."""

    ONE = 1


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (lambda: Point(1), lambda: Point(1)),
        (lambda: Key(1), lambda: Key(1)),
        (lambda: 1, lambda: True),
        (lambda: 2, lambda: 2.0),
        (lambda: One.ONE, lambda: 1),
    ],
)
def test_equal_keys_are_one_entry(written: Callable[[], Any], read: Callable[[], Any]) -> None:
    def build(world: World) -> None:
        world.table = {}

    def reader(world: World) -> None:
        if read() in world.table:
            raise ValueError("seen")

    def writer(world: World) -> None:
        world.table[written()] = 1

    def make() -> Model:
        return Model(build, reader, writer)

    _, found = cached(make)
    assert found == naive(make)[1]
    assert len(found.violations) == 1


def test_whoever_polls_an_attribute_wakes() -> None:
    def build(world: World) -> None:
        world.done = False
        world.waiting = Waiting(world.control, "waiting")

    def poller(world: World) -> None:
        while not world.done:
            world.waiting.sleep()
        raise ValueError("awake")

    def other(world: World) -> None:
        world.done = True

    _, found = cached(lambda: Model(build, poller, other))
    assert {violation.detail for violation in found.violations} == {"ValueError('awake')"}


def test_an_attribute_that_is_back_at_the_end_counts() -> None:
    def build(world: World) -> None:
        world.inner = Worker(world.control)
        world.inner.busy, world.inner.table = False, {}

    def reader(world: World) -> None:
        if world.inner.busy:
            raise ValueError("met it at work")

    _, found = cached(lambda: Model(build, lambda world: world.inner.work(), reader))
    assert {violation.detail for violation in found.violations} == {"ValueError('met it at work')"}


def test_tables_of_one_list_are_all_put_back() -> None:
    def build(world: World) -> None:
        world.queues = [deque([1]), deque([2])]

    def taker(world: World) -> None:
        for number in (0, 1):
            world.queues[number].popleft()

    model = Model(build, taker)
    for _ in range(3):
        assert not searched(model).violations()


_KEPT: dict[int, int] = {}


def test_containers_outside_of_objects_are_told_when_they_change() -> None:
    closed: list[int] = []

    def thread() -> None:
        closed.append(1)

    module = ModuleType("conn")
    vars(module).update(table=_KEPT, constant=(1,), names=[1])
    elsewhere = Elsewhere(chain(in_modules({"conn": module}), in_functions([thread, None, len])))
    assert elsewhere.changed() == []
    thread()
    _KEPT[1] = 2
    assert elsewhere.changed() == [
        "table of the module conn",
        "closed around test_containers_outside_of_objects_are_told_when_they_change.<locals>.thread",
    ]
    _KEPT.clear()
