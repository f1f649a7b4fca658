"""What the page shows of an exploration, arranged for its template; no markup but the diagrams."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from kvlint.explore.report.phrases import headline, phrase, wait, where
from kvlint.explore.report.pointers import replay_command, rules_that_find
from kvlint.explore.report.room_status import room_changes
from kvlint.explore.report.swimlane import NARROW, actors_of, comfortable_width, summary, swimlane_parts
from kvlint.explore.results import Exploration, PropertyResult, ScenarioResult, Step, Verdict, Witness
from kvlint.properties import BY_GRAVITY
from kvlint.source.display import counted

#: The sign of each verdict, for those who do not see the colours.
SIGNS = {Verdict.HOLDS: "✓", Verdict.VIOLATED: "✗", Verdict.INCONCLUSIVE: "?"}
#: With more actors than these, the wide diagram gets too small on a sheet of A4.
_MOST_ON_PAPER = 3
#: Numbers from here on are not written out in the table of verdicts.
_LONG = 10_000_000
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
#: Characters of a step that are shown; what a table holds may be long.
_LONGEST = 400


@dataclass(frozen=True, slots=True)
class VerdictView:
    """A verdict with how far it goes: ``3 of 120 schedules``."""

    verdict: Verdict
    extent: str

    @property
    def sign(self) -> str:
        """A sign that does without colours."""
        return SIGNS[self.verdict]


@dataclass(frozen=True, slots=True)
class RowView:
    """A scenario in the table of verdicts; a cell is None where the property was not judged."""

    name: str
    anchor: str
    summary: str
    verdict: VerdictView
    cells: tuple[VerdictView | None, ...]


@dataclass(frozen=True, slots=True)
class CellView:
    """A step in its actor's column."""

    phrase: str
    where: str
    writes: bool
    preempts: bool
    breaks: str


@dataclass(frozen=True, slots=True)
class StepView:
    """A row of the table of steps."""

    number: int
    cells: tuple[CellView | None, ...]
    statuses: str


@dataclass(frozen=True, slots=True)
class WitnessView:
    """A schedule: its diagrams, its steps, and the command that runs it again."""

    anchor: str
    about: str
    summary: str
    wide: Markup
    narrow: Markup
    on_paper: str
    actors: tuple[str, ...]
    steps: tuple[StepView, ...]
    waits: dict[str, str]
    command: str


@dataclass(frozen=True, slots=True)
class PropertyView:
    """A violated property of a scenario."""

    name: str
    anchor: str
    meaning: str
    verdict: VerdictView
    headline: str
    others: tuple[str, ...]
    rules: tuple[str, ...]
    witness: WitnessView | None


@dataclass(frozen=True, slots=True)
class ScenarioView:
    """A scenario; ``kept`` are the properties that hold, ``open`` those that nothing is known of."""

    name: str
    anchor: str
    summary: str
    verdict: VerdictView
    effort: str
    reason: str
    shared: tuple[str, ...]
    violated: tuple[PropertyView, ...]
    kept: tuple[str, ...]
    open: tuple[str, ...]


def row_views(exploration: Exploration, names: tuple[str, ...]) -> list[RowView]:
    """The table of verdicts, with a column for each of ``names``."""
    rows = []
    for number, scenario in enumerate(exploration.scenarios, 1):
        judged = {found.property: found for found in scenario.properties}
        rows.append(
            RowView(
                scenario.scenario,
                _anchor(number, scenario),
                scenario.summary,
                VerdictView(scenario.verdict, _schedules("", scenario.schedules, short=True)),
                tuple(_short(judged[name]) if name in judged else None for name in names),
            )
        )
    return rows


def scenario_views(exploration: Exploration, meanings: dict[str, str]) -> Iterator[ScenarioView]:
    """Every scenario with what it violates."""
    for number, scenario in enumerate(exploration.scenarios, 1):
        anchor = _anchor(number, scenario)
        by_verdict: dict[Verdict, list[PropertyResult]] = {verdict: [] for verdict in Verdict}
        for judged in scenario.properties:
            by_verdict[judged.verdict].append(judged)
        yield ScenarioView(
            name=scenario.scenario,
            anchor=anchor,
            summary=scenario.summary,
            verdict=_scenario_verdict(scenario),
            effort=_effort(scenario),
            reason=scenario.reason,
            shared=scenario.shared,
            violated=tuple(
                _property(judged, f"{anchor}-{nth}", scenario, exploration, meanings)
                for nth, judged in enumerate(sorted(by_verdict[Verdict.VIOLATED], key=_gravity), 1)
            ),
            kept=tuple(judged.property for judged in by_verdict[Verdict.HOLDS]),
            open=tuple(judged.property for judged in by_verdict[Verdict.INCONCLUSIVE]),
        )


def _property(
    judged: PropertyResult, anchor: str, scenario: ScenarioResult, exploration: Exploration, meanings: dict[str, str]
) -> PropertyView:
    witness = judged.witness
    detail = witness.detail if witness is not None else next(iter(judged.details), "")
    return PropertyView(
        name=judged.property,
        anchor=anchor,
        meaning=meanings.get(judged.property, ""),
        verdict=_verdict(judged, scenario),
        headline=headline(witness) if witness is not None else ": ".join(filter(None, (judged.property, detail))),
        others=tuple(other for other in judged.details if not detail.endswith(other)),
        rules=tuple(rules_that_find(judged.property)),
        witness=None if witness is None else _witness(witness, anchor, exploration),
    )


def _witness(witness: Witness, anchor: str, exploration: Exploration) -> WitnessView:
    actors = actors_of(witness)
    preemptions = counted(witness.preemptions, "preemption")
    return WitnessView(
        anchor=anchor,
        about=f"{counted(len(witness.steps), 'step')}, {preemptions}; no schedule breaks it with fewer preemptions",
        summary=summary(witness),
        # Drawn by kvlint, which escapes what it writes into a drawing.
        wide=Markup("".join(swimlane_parts(witness, comfortable_width(witness)))),
        narrow=Markup("".join(swimlane_parts(witness, NARROW))),
        on_paper="wide" if len(actors) <= _MOST_ON_PAPER else "narrow",
        actors=actors,
        steps=tuple(_step_views(witness, actors, exploration.tree)),
        waits={actor: wait(witness, actor) for actor in actors} if witness.waiting else {},
        command=replay_command(exploration.tree, exploration.scheduler, witness.token),
    )


def _step_views(witness: Witness, actors: tuple[str, ...], tree: str) -> Iterator[StepView]:
    changes: dict[int, list[str]] = {}
    for room, of_room in room_changes(witness).items():
        for change in of_room:
            changes.setdefault(change.step, []).append(f"room {room}: {change.status}")
    for number, step in enumerate(witness.steps):
        cells = tuple(_cell(step, tree) if step.actor == actor else None for actor in actors)
        yield StepView(number + 1, cells, "; ".join(changes.get(number, [])))


def _cell(step: Step, tree: str) -> CellView:
    return CellView(_shortened(phrase(step)), _shortened(where(step, tree)), step.writes, step.preempts, step.breaks)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _verdict(judged: PropertyResult, scenario: ScenarioResult) -> VerdictView:
    """Of a property that is violated."""
    if judged.schedules is None:
        return VerdictView(judged.verdict, "at least once")
    if scenario.schedules is None:
        return VerdictView(judged.verdict, _schedules("in ", judged.schedules))
    return VerdictView(judged.verdict, f"{judged.schedules:,} of " + _schedules("", scenario.schedules))


def _gravity(judged: PropertyResult) -> int:
    return BY_GRAVITY.index(judged.property) if judged.property in BY_GRAVITY else len(BY_GRAVITY)


def _short(judged: PropertyResult) -> VerdictView:
    """As a cell of the table, where long numbers have no room."""
    is_counted = judged.verdict is Verdict.VIOLATED and judged.schedules is not None
    return VerdictView(judged.verdict, _schedules("in ", judged.schedules, short=True) if is_counted else "")


def _scenario_verdict(scenario: ScenarioResult) -> VerdictView:
    return VerdictView(scenario.verdict, _schedules("", scenario.schedules))


def _schedules(before: str, number: int | None, *, short: bool = False) -> str:
    if number is None:
        return ""
    return (
        f"{before}{_power(number)} schedules"
        if short and number >= _LONG
        else f"{before}{_counted(number, 'schedule')}"
    )


def _power(number: int) -> str:
    """``number`` to two digits: ``8.6·10¹⁷``."""
    digits, _, exponent = f"{number:.1e}".partition("e+")
    return f"{digits}·10{str(int(exponent)).translate(_RAISED)}"


def _effort(scenario: ScenarioResult) -> str:
    """What the search cost."""
    told = [
        f"{_counted(scenario.states, 'state')}",
        f"{_counted(scenario.runs, 'run')}",
        f"{_seconds(scenario.seconds)}",
    ]
    if scenario.quick_seconds is not None:
        told.append(f"first violation after {_seconds(scenario.quick_seconds)}")
    return ", ".join(told)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _anchor(number: int, scenario: ScenarioResult) -> str:
    """An identifier for the page, whatever the scenario is called."""
    return f"scenario-{number}-" + re.sub(r"[^a-z0-9]+", "-", scenario.scenario.lower()).strip("-")
