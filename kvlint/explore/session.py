"""Exploring a tree: every scenario searched, the witnesses shown, the verdicts drawn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kvlint.explore.control import Stubborn
from kvlint.explore.embedded import EmbeddedBackend
from kvlint.explore.nixl_backend import NixlBackend
from kvlint.explore.opening import Unsupported
from kvlint.explore.operations import Choice, Violation
from kvlint.explore.program import Load, Program
from kvlint.explore.properties import PROPERTIES
from kvlint.explore.replay import witness
from kvlint.explore.results import Exploration, PropertyResult, ScenarioResult, Verdict, Witness
from kvlint.explore.scenarios import SCENARIOS, Scenario
from kvlint.explore.search.limits import Limits
from kvlint.explore.search.preemption_bound import Found, PreemptionBound
from kvlint.explore.search.state_graph import StateGraph
from kvlint.explore.search.verdicts import of_property, worst
from kvlint.explore.switching import Greenlets

Seen = Callable[[int, int, float], None]
"""Told now and then: states, runs, seconds."""

_BOUNDS = (0, 1, 2)
_QUICK_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Plan:
    """How to explore.

    Attributes:
        scheduler: Whether the scheduler takes part.
        limits: Of the complete search of each scenario.
        complete: Whether there is one, or only the quick search.
    """

    scheduler: bool = True
    limits: Limits = Limits()
    complete: bool = True


def explore_scenario(load: Load, scenario: Scenario, plan: Plan, seen: Seen | None = None) -> ScenarioResult:
    """One scenario of a backend; what cannot be explored is inconclusive, with the reason."""
    try:
        program = Program(load, scenario, Greenlets(), scheduler=plan.scheduler or scenario.needs_scheduler)
        return _searched(program, plan, seen)
    except (Unsupported, Stubborn) as problem:
        return _nothing(scenario, str(problem))


def _searched(program: Program, plan: Plan, seen: Seen | None) -> ScenarioResult:
    found, quick_seconds = _quick(program, plan)
    graph = None
    if plan.complete:
        graph = StateGraph(program.run, program.final, plan.limits, seen)
        graph.search()
    digest = program.backend.digest
    results = []
    for property in PROPERTIES:
        shown = _witness(program, property, graph, found, digest)
        details = _details(property, graph, found)
        verdict = of_property(graph, violated=shown is not None, limits=program.control.limits)
        counted = graph.schedules(property) if graph is not None and graph.complete else None
        results.append(PropertyResult(property, verdict, counted, details, shown))
    reason = "" if graph is None else graph.reason
    return ScenarioResult(
        scenario=program.scenario.name,
        summary=program.scenario.summary,
        verdict=worst(result.verdict for result in results),
        schedules=graph.schedules() if graph is not None and graph.complete else None,
        states=0 if graph is None else len(graph.nodes),
        runs=0 if graph is None else graph.runs,
        seconds=0.0 if graph is None else graph.seconds,
        quick_seconds=quick_seconds,
        reason="; ".join([reason, *sorted(program.control.limits)] if reason else sorted(program.control.limits)),
        shared=tuple(program.control.stops()),
        properties=tuple(results),
    )


def _quick(program: Program, plan: Plan) -> tuple[dict[str, Found], float | None]:
    """The first schedule with the fewest preemptions for each property, and the seconds to the first of all."""
    found: dict[str, Found] = {}
    began = time.perf_counter()
    first = None
    limits = Limits(min(_QUICK_SECONDS, plan.limits.seconds), plan.limits.states, plan.limits.steps)
    for bound in _BOUNDS:
        search = PreemptionBound(program.run, program.final, limits, bound)
        before = time.perf_counter() - began
        search.search()
        if search.found and first is None:
            first = before + min(each.seconds for each in search.found.values())
        for property, each in search.found.items():
            found.setdefault(property, each)
        if found and plan.complete:
            break
    return found, first


def _witness(
    program: Program, property: str, graph: StateGraph | None, found: dict[str, Found], digest: str
) -> Witness | None:
    way: tuple[Violation, tuple[Choice, ...], int] | None = None
    if property in found:
        quick = found[property]
        way = (quick.violation, quick.choices, quick.preemptions)
    if graph is not None:
        best = graph.fewest_preemptions(lambda violation: violation.property == property)
        if best is not None and (way is None or best.preemptions <= way[2]):
            way = (best.violation, tuple(best.choices), best.preemptions)
    return None if way is None else witness(program, way[0], way[1], digest)


def _details(property: str, graph: StateGraph | None, found: dict[str, Found]) -> tuple[str, ...]:
    violations = set() if graph is None else graph.violations()
    violations |= {each.violation for each in found.values()}
    return tuple(sorted({each.detail for each in violations if each.property == property}))


def _nothing(scenario: Scenario, reason: str) -> ScenarioResult:
    results = tuple(PropertyResult(each, Verdict.INCONCLUSIVE, None, (), None) for each in PROPERTIES)
    return ScenarioResult(
        scenario.name, scenario.summary, Verdict.INCONCLUSIVE, None, 0, 0, 0.0, None, reason, (), results
    )


def tree_loader(root: Path, scenario: Scenario) -> Load:
    """Loads the NIXL backend of a tree."""
    return partial(NixlBackend, root, scenario.chunks)


def explore_embedded(folder: Path, scenarios: Iterable[Scenario] = SCENARIOS[:1], plan: Plan = Plan()) -> Exploration:
    """Explore the demo's backend, or a copy of it, in this process."""
    results = tuple(explore_scenario(partial(EmbeddedBackend, folder), each, plan) for each in scenarios)
    return Exploration(
        tree=str(folder),
        version=None,
        digest="",
        loaded=("base", "backend"),
        stubbed=EmbeddedBackend.stubbed,
        scheduler=plan.scheduler,
        verdict=worst(result.verdict for result in results),
        scenarios=results,
    )


def run(request: Request, emit: Emit) -> None:
    """Do what is asked for, and tell it as it happens.

    Raises:
        LoadError: The tree cannot be loaded.
        BadToken: The token is none, or of a scenario that there is not.
    """
    root = Path(request.root)
    if request.replay is not None:
        emit(_replayed(root, request.replay, emit, threads=request.threads))
        return
    plan = Plan(
        scheduler=request.scheduler,
        limits=Limits(request.seconds, request.states, request.steps),
        complete=request.complete,
        bounds=_BOUNDS if request.preemptions is None else tuple(range(request.preemptions + 1)),
        strategy=request.strategy,
    )
    _tell_what_is_loaded(root, emit)
    for name in request.scenarios:
        emit(Progress(name))

        def seen(states: int, runs: int, seconds: float, name: str = name) -> None:
            emit(Progress(name, states, runs, seconds))

        situation = scenario(name)
        emit(Found(explore_scenario(tree_loader(root, situation), situation, plan, seen, emit.watch)))


def _tell_what_is_loaded(root: Path, emit: Emit) -> None:
    control = Control(Greenlets())
    backend = load_backend(root, substitutes=substitutes(control, Clock()))
    emit(Loaded(backend.version, backend.digest, tuple(backend.loaded), tuple(backend.stubbed)))


def _replayed(root: Path, text: str, emit: Emit, *, threads: bool) -> Replayed:
    made = schedule(text)
    try:
        situation = scenario(made.scenario)
    except KeyError:
        raise BadToken(f"the token is of a scenario that there is not: {made.scenario}") from None
    switching = Threads() if threads else Greenlets()
    program = Program(tree_loader(root, situation), situation, switching, scheduler=made.scheduler)
    emit.watch(lambda: program.control.steps)
    _tell_what_is_loaded(root, emit)
    shown, confirmed = again(program, made)
    return Replayed(shown, confirmed, threads)
