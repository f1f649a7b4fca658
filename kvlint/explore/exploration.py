"""Exploring one scenario of a backend: searched, the witnesses shown, the verdicts drawn."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from kvlint.explore.actor import Stubborn
from kvlint.explore.opening import Unsupported
from kvlint.explore.operations import Choice, Violation
from kvlint.explore.program import Load, Program
from kvlint.explore.properties import PROPERTIES
from kvlint.explore.replay import NotAgain, witness
from kvlint.explore.results import PropertyResult, ScenarioResult, Verdict
from kvlint.explore.scenarios import Scenario
from kvlint.explore.search.limits import Limits
from kvlint.explore.search.partial_order import PartialOrder
from kvlint.explore.search.preemption_bound import Found, PreemptionBound
from kvlint.explore.search.state_graph import StateGraph
from kvlint.explore.search.verdicts import of_property, worst
from kvlint.explore.switching import default_switching

#: Told now and then: states, runs, seconds.
Seen = Callable[[int, int, float], None]
#: Told what changes as long as the program moves.
Watch = Callable[[Callable[[], object]], None]

BOUNDS = (0, 1, 2)
_QUICK_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Plan:
    """How to explore.

    Attributes:
        scheduler: Whether the scheduler takes part.
        limits: Of the complete search of each scenario.
        complete: Whether there is one, or only the quick search.
        bounds: The preemption bounds of the quick search.
        strategy: The complete search: ``states`` or ``partial-order``.
    """

    scheduler: bool = True
    limits: Limits = field(default_factory=Limits)
    complete: bool = True
    bounds: tuple[int, ...] = BOUNDS
    strategy: str = "states"


@dataclass(frozen=True, slots=True)
class _Way:
    """A schedule that breaks a property."""

    violation: Violation
    choices: tuple[Choice, ...]
    preemptions: int


@dataclass(frozen=True, slots=True)
class _Evidence:
    """What the searches of one scenario brought."""

    quick: dict[str, Found]
    quick_seconds: float | None
    graph: StateGraph | None
    orders: PartialOrder | None

    @property
    def search(self) -> StateGraph | PartialOrder | None:
        """The complete search."""
        return self.graph or self.orders

    def way(self, broken: str) -> _Way | None:
        """The schedule with the fewest preemptions that is known."""
        ways = []
        if self.graph is not None:
            best = self.graph.fewest_preemptions(lambda violation: violation.property == broken)
            if best is not None:
                ways.append(_Way(best.violation, tuple(best.choices), best.preemptions))
        if broken in self.quick:
            found = self.quick[broken]
            ways.append(_Way(found.violation, found.choices, found.preemptions))
        if self.orders is not None and not ways:
            known = [(violation, way) for violation, way in self.orders.ways.items() if violation.property == broken]
            ways += [_Way(violation, tuple(way), len(way)) for violation, way in known]
        return min(ways, key=lambda way: way.preemptions, default=None)

    def details(self, broken: str) -> tuple[str, ...]:
        """Every way in which the property is broken."""
        violations = set() if self.search is None else self.search.violations()
        violations |= {each.violation for each in self.quick.values()}
        return tuple(sorted({each.detail for each in violations if each.property == broken}))

    def schedules(self, broken: str | None = None) -> int | None:
        """How many schedules there are, or break a property; None where that is not known."""
        return self.graph.schedules(broken) if self.graph is not None and self.graph.complete else None


def explore_scenario(
    load: Load, scenario: Scenario, plan: Plan, seen: Seen | None = None, watch: Watch | None = None
) -> ScenarioResult:
    """One scenario of a backend; what cannot be explored is inconclusive, with the reason.

    ``watch`` is told what to look at to see whether the program moves.
    """
    try:
        program = Program(load, scenario, default_switching(), scheduler=plan.scheduler or scenario.needs_scheduler)
        if watch is not None:
            watch(lambda: program.control.steps)
        evidence = _searched(program, plan, seen)
        # Code that catches BaseException has gone on after it, with something that is not real.
        program.control.limits |= {str(fault) for fault in getattr(program.backend, "faults", ())}
        return _result(program, evidence)
    except Unsupported as problem:
        return _nothing(scenario, str(problem))
    except Stubborn as problem:
        return _nothing(scenario, f"{problem} catches BaseException and goes on, so that it cannot be ended")


def _searched(program: Program, plan: Plan, seen: Seen | None) -> _Evidence:
    found, seconds = _quick(program, plan)
    graph = orders = None
    if plan.complete and plan.strategy == "states":
        graph = StateGraph(program.run, program.final, plan.limits, seen)
        graph.search()
    elif plan.complete:
        orders = PartialOrder(program.run, program.final, plan.limits)
        orders.search()
    return _Evidence(found, seconds, graph, orders)


def _result(program: Program, evidence: _Evidence) -> ScenarioResult:
    search = evidence.search
    results = tuple(_property_result(program, name, evidence) for name in PROPERTIES)
    reason = "" if search is None else search.reason
    reasons = [reason, *(limit for limit in sorted(program.control.limits) if limit not in reason)]
    return ScenarioResult(
        scenario=program.scenario.name,
        summary=program.scenario.summary,
        verdict=worst(result.verdict for result in results),
        schedules=evidence.schedules(),
        states=0 if evidence.graph is None else len(evidence.graph.nodes),
        runs=0 if search is None else search.runs,
        seconds=0.0 if search is None else search.seconds,
        quick_seconds=evidence.quick_seconds,
        reason="; ".join(filter(None, reasons)),
        shared=tuple(program.control.sharing.stops()),
        properties=results,
    )


def _property_result(program: Program, name: str, evidence: _Evidence) -> PropertyResult:
    way = evidence.way(name)
    shown = None
    if way is not None:
        try:
            shown = witness(program, way.violation, way.choices)
        except NotAgain as problem:
            program.control.limits.add(str(problem))
    verdict = of_property(evidence.search, violated=shown is not None, limits=program.control.limits)
    return PropertyResult(name, verdict, evidence.schedules(name), evidence.details(name), shown)


def _quick(program: Program, plan: Plan) -> tuple[dict[str, Found], float | None]:
    """The first schedule with the fewest preemptions for each property, and the seconds to the first of all."""
    found: dict[str, Found] = {}
    began = time.perf_counter()
    first = None
    limits = Limits(min(_QUICK_SECONDS, plan.limits.seconds), plan.limits.states, plan.limits.steps)
    left = list(plan.bounds)
    while left:
        bound = left.pop(0)
        stops = program.control.sharing.stops()
        search = PreemptionBound(program.run, program.final, limits, bound)
        before = time.perf_counter() - began
        search.search()
        if program.control.sharing.stops() != stops and found:
            # What was found before is a schedule between fewer yield points, which is none any more.
            found.clear()
            first, left = None, list(plan.bounds)
            continue
        if search.found and first is None:
            first = before + min(each.seconds for each in search.found.values())
        for name, each in search.found.items():
            found.setdefault(name, each)
        if found and plan.complete:
            break
    return found, first


def _nothing(scenario: Scenario, reason: str) -> ScenarioResult:
    results = tuple(PropertyResult(each, Verdict.INCONCLUSIVE, None, (), None) for each in PROPERTIES)
    return ScenarioResult(
        scenario.name, scenario.summary, Verdict.INCONCLUSIVE, None, 0, 0, 0.0, None, reason, (), results
    )
