"""On small programs, three searches that share little agree: over states, over orders that matter, over everything."""

from __future__ import annotations

from typing import Any

import pytest

from kvlint.explore.operations import Violation
from kvlint.explore.search.limits import Limits
from kvlint.explore.search.partial_order import PartialOrder
from kvlint.explore.search.state_graph import StateGraph
from kvlint.explore.switching import Threads

from .models import DEADLOCK, DIED, Again, Make, Model, World, cached, naive, reduced, searched
from .samples import SAMPLES, check_then_subscript, deadlock, missing_values, other_name, writers

EACH = pytest.mark.parametrize("make", [make for make, _ in SAMPLES.values()], ids=list(SAMPLES))


@EACH
def test_search_over_states_finds_what_every_schedule_shows(make: Make) -> None:
    _, found = cached(make)
    _, everything = naive(make)
    assert found == everything


@pytest.mark.parametrize(("make", "schedules"), [each for each in SAMPLES.values() if each[1] is not None])
def test_number_of_schedules_has_a_closed_form(make: Make, schedules: int) -> None:
    _, found = cached(make)
    assert found.schedules == schedules


def test_many_schedules_are_counted_without_running_them() -> None:
    graph, found = cached(lambda: writers(2, 20))
    assert found.schedules == 137_846_528_820
    # By how much each has written and who wrote last, unless both wrote the same: 1 + 2n + 2n² - n.
    assert len(graph.nodes) == 1 + 40 + 800 - 20
    assert graph.runs < len(graph.nodes)


@EACH
def test_partial_order_finds_the_same_violations_and_ends(make: Make) -> None:
    search, violations, ends = reduced(make)
    _, everything = naive(make)
    assert violations == everything.violations
    assert ends == everything.ends
    assert search.traces <= everything.schedules


def test_partial_order_runs_independent_steps_in_one_order() -> None:
    def build(world: World) -> None:
        world.one, world.other = {}, {}

    def first(world: World) -> None:
        world.one[1] = 1
        world.one[2] = 2

    def second(world: World) -> None:
        world.other[1] = 1
        world.other[2] = 2

    def both(world: World) -> None:
        world.one.get(3)
        world.other.get(3)

    search, _, _ = reduced(lambda: Model(build, first, second, both))
    _, everything = naive(lambda: Model(build, first, second, both))
    assert search.traces == 1
    assert everything.schedules == 90


@EACH
def test_witness_replays_with_the_fewest_preemptions(make: Make) -> None:
    model = make()
    graph, found = searched(model)
    search, _ = naive(make)
    for name in {violation.property for violation in found.violations}:
        witness = graph.fewest_preemptions(lambda violation, name=name: violation.property == name)  # type: ignore[misc]
        assert witness is not None
        script, preemptions = witness.choices, witness.preemptions
        assert preemptions == search.fewest[name]
        broken = _replayed(model, script, preemptions)
        assert name in {violation.property for violation in broken}


def _replayed(model: Model, script: Any, preemptions: int) -> set[Violation]:
    again = Again(script, model.final)
    model.run(again)
    assert again.preemptions == preemptions
    return set(again.violations)


def test_nothing_is_found_that_is_not_there() -> None:
    graph, _ = cached(check_then_subscript)
    assert graph.fewest_preemptions(lambda violation: violation.property == DEADLOCK) is None


def test_check_then_subscript_dies_of_the_key() -> None:
    _, found = cached(check_then_subscript)
    assert found.violations == {Violation(DIED, "checker 0", "KeyError(1)")}
    assert found.by_property == ((DIED, 1),)


def test_two_locks_wait_for_each_other() -> None:
    _, found = cached(deadlock)
    assert found.violations == {
        Violation(DEADLOCK, "there 0", "acquire other"),
        Violation(DEADLOCK, "back 1", "acquire one"),
    }
    # Both have one lock, in one order or the other.
    assert found.by_property == ((DEADLOCK, 2),)


def test_looking_into_a_defaultdict_is_a_change() -> None:
    _, found = cached(missing_values)
    assert {violation.detail for violation in found.violations} == {"ValueError()", "LookupError()"}


def test_the_name_of_a_stored_dict_goes_on_to_mean_it() -> None:
    _, found = cached(other_name)
    assert found.ends == {(("rooms", (("room", (("peer", 1),)),)),)}
    assert {violation.detail for violation in found.violations} == {"ValueError('no peer yet')"}


def test_threads_find_what_greenlets_find() -> None:
    def model(switching: Any) -> Model:
        def build(world: World) -> None:
            world.table = {1: 1}

        def checker(world: World) -> None:
            if 1 in world.table:
                world.table[1]

        def remover(world: World) -> None:
            world.table.pop(1)

        return Model(build, checker, remover, remover, switching=switching)

    assert cached(lambda: model(Threads()))[1] == cached(lambda: model(None))[1]


# What cuts a search, and what nobody may take for a proof.


def _limited(make: Make, limits: Limits) -> list[StateGraph | PartialOrder]:
    found: list[StateGraph | PartialOrder] = []
    for kind in (StateGraph, PartialOrder):
        model = make()
        search = kind(model.run, model.final, limits)
        search.search()
        found.append(search)
    return found


def test_no_time_is_a_limit() -> None:
    for search in _limited(lambda: writers(3, 3), Limits(seconds=0.0)):
        assert not search.complete
        assert search.reason == "0 s were over"


def test_states_and_runs_are_a_limit() -> None:
    graph, order = _limited(lambda: writers(3, 3), Limits(states=5))
    assert (graph.complete, graph.reason) == (False, "5 states were seen")
    assert (order.complete, order.reason) == (False, "5 schedules were run")


def test_steps_are_a_limit() -> None:
    for search in _limited(lambda: writers(2, 3), Limits(steps=4)):
        assert not search.complete
        assert search.reason == "a schedule had 4 steps"


def _spinning() -> Model:
    def build(world: World) -> None:
        world.table = {}

    def worker(world: World) -> None:
        while True:
            if world.table.get("stop"):
                break

    def stopper(world: World) -> None:
        world.table["stop"] = 1

    return Model(build, worker, stopper)


def test_a_schedule_without_an_end_is_told() -> None:
    graph, order = _limited(_spinning, Limits(steps=30))
    assert graph.reason == "a schedule can go on for ever without an end"
    assert not graph.complete
    assert order.reason == "a schedule had 30 steps"


def test_what_is_broken_before_the_first_choice_counts() -> None:
    def build(world: World) -> None:
        world.table, world.mine = {}, {}

    def breaker(world: World) -> None:
        world.control.violated("early", None, "at once")
        world.table[1] = 1

    def other(world: World) -> None:
        world.table[2] = 1

    make = lambda: Model(build, breaker, other)  # noqa: E731
    graph, found = cached(make)
    assert found == naive(make)[1]
    assert found.by_property == (("early", 2),)
    early = graph.fewest_preemptions(lambda violation: violation.property == "early")
    assert early is not None
    assert (early.choices, early.preemptions) == ([], 0)
    assert reduced(make)[1] == found.violations
