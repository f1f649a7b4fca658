"""Small programs on controlled containers and locks, and what each strategy finds in them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kvlint.explore.actor import Actor
from kvlint.explore.adoption import Adopted
from kvlint.explore.containers import Controlled
from kvlint.explore.control import Control, Strategy
from kvlint.explore.operations import Choice, Resource, Violation
from kvlint.explore.primitive import Primitive
from kvlint.explore.search.limits import Limits
from kvlint.explore.search.partial_order import PartialOrder
from kvlint.explore.search.state_graph import StateGraph
from kvlint.explore.switching import Greenlets, Switching

from .every_schedule import EverySchedule

DIED = "died"
DEADLOCK = "deadlock"


class World:
    """What the actors of a model share: attributes, whose containers become controlled."""

    def __init__(self, control: Control) -> None:
        self.control = control

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    if TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None: ...


Body = Callable[[World], None]


class Model:
    """``build`` makes what is shared, each body is an actor."""

    def __init__(self, build: Callable[[World], None], *bodies: Body, switching: Switching | None = None) -> None:
        self.control = control = Control(switching or Greenlets())
        self.world = world = World(control)
        build(world)
        self._adopted = Adopted(control, {"": world}, lambda kind: issubclass(kind, World))
        control.actors = [
            Actor(number, f"{body.__name__} {number}", lambda body=body: body(world))  # type: ignore[misc]
            for number, body in enumerate(bodies)
        ]
        control.keep()
        self.ends: set[Hashable] = set()

    def run(self, strategy: Strategy) -> None:
        self._adopted.restore()
        self.control.run(strategy)
        if self._adopted.control_changed_attributes():
            self.control.sharing.grown = True

    def final(self, control: Control) -> list[Violation]:
        current, control.current = control.current, None
        self.ends.add(plain(vars(self.world)))
        control.current = current
        found = []
        for actor in control.actors:
            if actor.died is not None:
                found.append(Violation(DIED, actor.name, repr(actor.died)))
            elif not actor.finished:
                assert actor.pending is not None
                waits_for = f"{actor.pending.kind} {actor.pending.resource.uses.label}"
                found.append(Violation(DEADLOCK, actor.name, waits_for))
        return found


def plain(value: Any) -> Hashable:
    """What ``value`` holds, comparable between programs."""
    if issubclass(type(value), Controlled):
        value = value.plain()
    if isinstance(value, dict):
        return tuple((key, plain(held)) for key, held in value.items() if key != "control")
    if isinstance(value, set):
        return frozenset(value)
    if isinstance(value, list | deque):
        return tuple(map(plain, value))
    if isinstance(value, Primitive):
        return value.content()
    if isinstance(value, Resource):
        return value.uses.label
    return value if isinstance(value, Hashable) else repr(value)


@dataclass(frozen=True)
class Found:
    """What a search found; ``by_property`` counts schedules."""

    violations: frozenset[Violation]
    ends: frozenset[Hashable]
    schedules: int
    by_property: tuple[tuple[str, int], ...]


class Cut(Exception):
    """A search did not come to its end."""


Make = Callable[[], Model]
LIMITS = Limits(seconds=120.0)


def cached(make: Make) -> tuple[StateGraph, Found]:
    """The search over states."""
    return searched(make())


def searched(model: Model) -> tuple[StateGraph, Found]:
    """The search over states, of a model that is used afterwards."""
    graph = StateGraph(model.run, model.final, LIMITS)
    graph.search()
    if not graph.complete:
        raise Cut(graph.reason)
    violations = graph.violations()
    counts = {violation.property: graph.schedules(violation.property) for violation in violations}
    return graph, Found(frozenset(violations), frozenset(model.ends), graph.schedules(), tuple(sorted(counts.items())))


def naive(make: Make, most_schedules: int = 200_000) -> tuple[EverySchedule, Found]:
    model = make()
    search = EverySchedule(model.run, model.final, most_schedules)
    search.search()
    return search, Found(
        frozenset(search.violations),
        frozenset(model.ends),
        search.schedules,
        tuple(sorted(search.by_property.items())),
    )


def reduced(make: Make) -> tuple[PartialOrder, frozenset[Violation], frozenset[Hashable]]:
    model = make()
    search = PartialOrder(model.run, model.final, LIMITS)
    search.search()
    assert search.complete, search.reason
    return search, frozenset(search.violations()), frozenset(model.ends)


class Again:
    """The strategy that makes given choices."""

    def __init__(self, script: list[Choice], final: Callable[[Control], list[Violation]]) -> None:
        self._left = list(script)
        self._final = final
        self.script: Sequence[Choice] = []
        self.histories: list[int] = []
        self.violations: list[Violation] = []
        self.preemptions = 0

    def choose(self, control: Control) -> Choice | None:
        self.violations += control.events
        choices, _ = control.choices()
        if not self._left:
            self.violations += [] if choices else self._final(control)
            return None
        choice = self._left.pop(0)
        assert choice in choices
        last = self.script[-1].actor if self.script else -1
        self.preemptions += choice.actor != last and any(each.actor == last for each in choices)
        self.script = [*self.script, choice]
        return choice
