"""Runs from the inside: ends, replays, what stands where, what a call goes through."""

from __future__ import annotations

import dis
import sys
import types
from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest

from kvlint.explore import loop_heads
from kvlint.explore.actor import Actor, Stubborn
from kvlint.explore.call_sites import calls_method, goes_through_later, is_loop
from kvlint.explore.control import Control
from kvlint.explore.identities import Identities
from kvlint.explore.loop_heads import LoopHead, live_variables
from kvlint.explore.operations import WHOLE
from kvlint.explore.switching import Greenlets, Switching, Threads

from .models import Again, Model, World, cached, searched

BOTH = pytest.mark.parametrize("switching", [Greenlets, Threads])


# Ends of runs.


@BOTH
def test_an_actor_that_catches_everything_is_ended_in_the_end(switching: type[Switching]) -> None:
    def build(world: World) -> None:
        world.table = {}

    def stubborn(world: World) -> None:
        for _ in range(3):
            try:
                world.table[1] = 1
            except BaseException:
                continue

    def other(world: World) -> None:
        world.table[2] = 2

    _, found = cached(lambda: Model(build, stubborn, other, switching=switching()))
    assert found.schedules == 4


def test_an_actor_that_never_ends_is_named() -> None:
    def build(world: World) -> None:
        world.table = {}

    def stubborn(world: World) -> None:
        while True:
            try:
                world.table[1] = 1
            except BaseException:
                continue

    def other(world: World) -> None:
        world.table[2] = 2

    model = Model(build, stubborn, other)
    with pytest.raises(Stubborn, match=r"^stubborn 0$"):
        searched(model)


@BOTH
def test_an_actor_that_was_never_chosen_is_ended(switching: type[Switching]) -> None:
    control = Control(switching())
    resource = control.resource("thing")
    control.sharing.always_stop(resource)
    ended: list[str] = []

    def waits() -> None:
        try:
            control.before(resource, "wait", WHOLE, True)
        finally:
            ended.append("waits")

    control.actors = [Actor(0, "waits", waits)]
    control.keep()
    control.run(Again([], lambda control: []))
    assert ended == ["waits"]


def test_operations_are_recorded_by_whoever_asks() -> None:
    def build(world: World) -> None:
        world.table = {}

    def writer(world: World) -> None:
        world.table[1] = "a"

    def reader(world: World) -> None:
        len(world.table)

    model = Model(build, writer, reader)
    searched(model)
    told: list[tuple[str, str, str, Any]] = []
    model.control.record = lambda actor, doing, came: told.append(
        (actor.name, doing.kind, doing.resource.uses.label, came)
    )

    class All(Again):
        def choose(self, control: Control) -> Any:
            choices, _ = control.choices()
            return choices[0] if choices else None

    model.run(All([], lambda control: []))
    assert told == [("writer 0", "[]=", "table", "a"), ("reader 1", "len", "table", 1)]


def test_what_is_shared_is_told() -> None:
    def build(world: World) -> None:
        world.table = {}

    def writer(world: World) -> None:
        world.table[1] = 1

    model = Model(build, writer, writer)
    searched(model)
    assert model.control.sharing.stops() == ["table"]


# Keys.


def test_equal_values_of_other_types_are_other_keys() -> None:
    identities = Identities()
    keys = [identities.frozen(value, 0) for value in (1, True, 1.0, "1", b"1", None, (1,), (True,), ValueError(1))]
    assert len(set(map(identities.number, keys))) == len(keys)


def test_an_object_keeps_its_name_within_a_run() -> None:
    identities = Identities()
    one, other = object(), object()
    names = [identities.frozen(each, "moment") for each in (one, other, one)]
    assert names[0] == names[2] != names[1]
    identities.begin()
    assert identities.frozen(other, "moment") == names[0]


# Loop heads.


def _stands(code: types.CodeType) -> Iterator[Any]:
    yield loop_heads._Flow(code)
    for held in code.co_consts:
        if isinstance(held, types.CodeType):
            yield from _stands(held)


@pytest.mark.parametrize("name", ["argparse", "threading", "subprocess", "contextlib", "dataclasses"])
def test_stacks_are_as_deep_whichever_way_they_are_come_to(name: str) -> None:
    module = __import__(name)
    assert module.__file__ is not None
    with open(module.__file__, encoding="utf-8") as file:
        code = compile(file.read(), name, "exec")
    for flow in _stands(code):
        for number, stack in flow._stacks.items():
            for way in flow._ways(number, stack):
                assert len(flow._stacks[way.there]) == len(way.stack)


def _live(source: str, marker: str = "here") -> frozenset[str] | None:
    """What is live in the statement that calls ``here``."""
    names: dict[str, Any] = {}
    exec(source, names)
    code = names["function"].__code__
    at = None
    found = False
    for each in dis.get_instructions(code):
        found = found or each.argval == marker
        if found and each.opname in ("CALL", "CALL_KW"):
            at = each.offset
            break
    assert at is not None
    return live_variables(code, at)


@pytest.mark.parametrize(
    ("body", "live"),
    [
        ("while True:\n  here(a)\n  b = 1", {"a"}),
        ("while True:\n  x = here()\n  b = x", set()),
        ("while True:\n  here()\n  c = b", {"b"}),
        ("while True:\n  x = b + here()", {"b"}),
        ("while True:\n  x = here() + b", {"b"}),
        ("for x in a:\n  here()", None),
        ("with a:\n  while True:\n    here(b)", {"b"}),
        ("with a, b:\n  while True:\n    here()", set()),
        ("try:\n  here()\nexcept E:\n  c = b", {"b"}),
        ("try:\n  pass\nexcept E:\n  here()", set()),
        ("del b\nhere()", set()),
        ("here()\nlocals()", None),
        ("x = lambda: b\nhere()\nx()", {"x"}),
        ("f(b, here())", {"b"}),
        ("f(here(), b.c(), here(b))", {"b"}),
        ("x = a.b() + c.d(here())", None),
        ("here(a if b else 1)", None),
        ("here()\nb = 1\nc = b", set()),
        ("here()\nif a:\n  b = 1\nc = b", {"a", "b"}),
    ],
)
def test_variables_that_are_still_read(body: str, live: set[str] | None) -> None:
    lines = "\n".join(f"  {line}" for line in body.splitlines())
    found = _live(f"def function(a, b, c):\n{lines}\n")
    if body.startswith("try:\n  pass"):
        # Nothing can raise there, so that the handler is never come to, or it is with an exception on the stack.
        assert found in (None, frozenset())
    else:
        assert found == (None if live is None else frozenset(live))


def test_two_in_one_instructions_of_later_interpreters() -> None:
    def before(name: str, argval: Any, after: set[str]) -> frozenset[str]:
        instruction = types.SimpleNamespace(opname=name, argval=argval)
        return loop_heads._before(instruction, frozenset(after))  # type: ignore[arg-type]

    assert before("LOAD_FAST_LOAD_FAST", ("a", "b"), set()) == {"a", "b"}
    assert before("LOAD_FAST_BORROW_LOAD_FAST_BORROW", ("a", "b"), set()) == {"a", "b"}
    assert before("STORE_FAST_LOAD_FAST", ("a", "b"), {"a"}) == {"b"}
    assert before("STORE_FAST_LOAD_FAST", ("a", "a"), set()) == set()
    assert before("STORE_FAST_STORE_FAST", ("a", "b"), {"a", "b", "c"}) == {"c"}
    assert before("LOAD_FAST_BORROW", "a", set()) == {"a"}
    assert before("STORE_FAST_MAYBE_NULL", "a", {"a"}) == set()


def test_a_head_knows_itself_and_what_has_changed() -> None:
    heads: list[bool] = []

    class Thing:
        number = 0

    def worker(changes: Any) -> None:
        thing, mine, bound = Thing(), (1, "a", None, True), str.upper
        head = None
        while True:
            frame = sys._getframe()
            if head is None:
                head = LoopHead(frame)
            else:
                heads.append(head.is_back(frame))
                return
            changes(thing)
            str((thing, mine, bound))

    # The frame and the head are variables that change: a head is seen from another frame.
    worker(lambda thing: None)
    assert heads == [False]


# Call sites.


class _Asked:
    """Notes what is said of whoever goes through it."""

    def __init__(self) -> None:
        self.said: list[tuple[bool, bool]] = []
        self.called: list[bool] = []

    def __iter__(self) -> Iterator[Any]:
        frame = sys._getframe(1)
        self.said.append((is_loop(frame), goes_through_later(frame)))
        return iter(())

    def keys(self) -> list[str]:
        self.called.append(calls_method(sys._getframe(1), "keys"))
        return []

    def __getitem__(self, key: str) -> None:
        raise KeyError(key)


AT_ONCE, LATER, LOOP = (False, False), (False, True), (True, False)


def test_what_goes_through_a_container() -> None:
    def use(asked: Any, given: Any, renamed: Any) -> None:
        for _ in asked:
            pass
        [str(item) for item in asked]
        list(asked)
        sorted(asked, key=str)
        str([*asked])
        () = asked
        ",".join(asked)
        renamed(asked)
        enumerate(asked)
        zip(asked, (), strict=False)
        map(str, asked)
        for _ in chain(asked):
            pass
        next(chain(asked), None)
        chain.from_iterable(asked)
        given(asked)
        given(*[asked])
        str((list if asked else tuple)(asked))

    wanted = [LOOP, LOOP, *[AT_ONCE] * 6, *[LATER] * 9]
    # The interpreter calls otherwise once it has seen a call a few times.
    for _ in range(100):
        asked = _Asked()
        use(asked, iter, list)
        assert asked.said[: len(wanted)] == wanted


def test_who_calls_keys() -> None:
    def use(asked: Any) -> None:
        asked.keys()
        dict(asked)
        str({**asked})
        keys = asked.keys
        keys()
        {}.update(asked)

    for _ in range(100):
        asked = _Asked()
        use(asked)
        assert asked.called == [True, False, False, True, False]
