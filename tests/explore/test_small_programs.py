"""Programs that nobody thought of: what the searches find in them is the same."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from kvlint.explore.primitives import Lock, Queue, Waiting

from .every_schedule import TooMany
from .models import Model, World, cached, naive, reduced

Instruction = tuple[Any, ...]
MOST_SCHEDULES = 1_500

KEYS = st.sampled_from([1, 2])
SIMPLE = st.one_of(
    st.tuples(st.just("put"), KEYS, st.sampled_from(["a", "b"])),
    st.tuples(st.just("put what was read"), KEYS),
    st.tuples(st.just("get"), KEYS),
    st.tuples(st.just("subscript"), KEYS),
    st.tuples(st.just("pop"), KEYS),
    st.tuples(st.just("count")),
    st.tuples(st.just("values")),
    st.tuples(st.just("loop")),
    st.tuples(st.just("add"), KEYS),
    st.tuples(st.just("discard"), KEYS),
    st.tuples(st.just("in set"), KEYS),
    st.tuples(st.just("append"), KEYS),
    st.tuples(st.just("take")),
    st.tuples(st.just("give"), KEYS),
    st.tuples(st.just("receive")),
    st.tuples(st.just("try to receive")),
    st.tuples(st.just("sleep")),
)
INSTRUCTIONS: st.SearchStrategy[Instruction] = st.one_of(
    SIMPLE,
    st.tuples(st.just("if in"), KEYS, SIMPLE),
    st.tuples(st.just("if read"), SIMPLE),
    st.tuples(st.just("locked"), st.lists(SIMPLE, min_size=1, max_size=2)),
)
PROGRAMS = st.lists(st.lists(INSTRUCTIONS, min_size=1, max_size=4), min_size=2, max_size=3)


class _Interpreter:
    """Does the instructions of one actor; ``read`` is what it read last."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.read: Any = None

    def do(self, instruction: Instruction) -> None:
        name, *arguments = instruction
        getattr(self, "_" + name.replace(" ", "_"))(*arguments)

    def _put(self, key: int, value: str) -> None:
        self.world.table[key] = value

    def _put_what_was_read(self, key: int) -> None:
        self.world.table[key] = self.read

    def _get(self, key: int) -> None:
        self.read = self.world.table.get(key)

    def _subscript(self, key: int) -> None:
        self.read = self.world.table[key]

    def _pop(self, key: int) -> None:
        self.read = self.world.table.pop(key, None)

    def _count(self) -> None:
        self.read = len(self.world.table)

    def _values(self) -> None:
        self.read = tuple(self.world.table.values())

    def _loop(self) -> None:
        for key in self.world.table:
            self.read = key

    def _add(self, key: int) -> None:
        self.world.marked.add(key)

    def _discard(self, key: int) -> None:
        self.world.marked.discard(key)

    def _in_set(self, key: int) -> None:
        self.read = key in self.world.marked

    def _append(self, value: int) -> None:
        self.world.items.append(value)

    def _take(self) -> None:
        self.read = self.world.items.pop()

    def _give(self, value: int) -> None:
        self.world.queue.put(value)

    def _receive(self) -> None:
        self.read = self.world.queue.get()

    def _try_to_receive(self) -> None:
        try:
            self.read = self.world.queue.get_nowait()
        except queue.Empty:
            self.read = None

    def _sleep(self) -> None:
        self.world.waiting.sleep()

    def _if_in(self, key: int, instruction: Instruction) -> None:
        if key in self.world.table:
            self.do(instruction)

    def _if_read(self, instruction: Instruction) -> None:
        if self.read:
            self.do(instruction)

    def _locked(self, instructions: list[Instruction]) -> None:
        with self.world.lock:
            for instruction in instructions:
                self.do(instruction)


def _build(world: World) -> None:
    world.table, world.marked, world.items = {1: "z"}, {1}, [7]
    world.lock, world.queue = Lock(world.control, "lock"), Queue(world.control, "queue")
    world.waiting = Waiting(world.control, "waiting")


def _actor(instructions: list[Instruction]) -> Callable[[World], None]:
    def actor(world: World) -> None:
        interpreter = _Interpreter(world)
        for instruction in instructions:
            interpreter.do(instruction)

    return actor


def _looping(instructions: list[Instruction]) -> Callable[[World], None]:
    """Takes from the queue for ever, and does the same with each item."""

    def worker(world: World) -> None:
        interpreter = _Interpreter(world)
        while True:
            interpreter.read = world.queue.get()
            for instruction in instructions:
                interpreter.do(instruction)

    return worker


def _agree(make: Callable[[], Model]) -> None:
    try:
        _, everything = naive(make, MOST_SCHEDULES)
    except TooMany:
        assume(False)
    assert cached(make)[1] == everything
    _, violations, ends = reduced(make)
    assert violations == everything.violations
    assert ends == everything.ends


QUICK = settings(
    max_examples=60,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)


@QUICK
@given(PROGRAMS)
def test_searches_agree_on_programs(program: list[list[Instruction]]) -> None:
    _agree(lambda: Model(_build, *map(_actor, program)))


@QUICK
@given(
    st.lists(SIMPLE.filter(lambda each: each[0] not in ("give", "receive")), min_size=1, max_size=2),
    st.lists(st.lists(INSTRUCTIONS, min_size=1, max_size=3), min_size=1, max_size=2),
)
def test_searches_agree_on_workers(item: list[Instruction], others: list[list[Instruction]]) -> None:
    _agree(lambda: Model(_build, _looping(item), *map(_actor, others)))
