"""The page of an exploration: verdicts, and the schedules that show the violations.

Like every page of kvlint's it is one file that refers to nothing outside
(`kvlint.report.frame`), holds all of its content without its script, and is told
by words where it is told by colours.
"""

from __future__ import annotations

from kvlint.explore.report.drawing import page_style
from kvlint.explore.report.html_views import SIGNS, row_views, scenario_views
from kvlint.explore.report.pointers import rules_that_find
from kvlint.explore.results import Exploration, Verdict
from kvlint.properties import PROPERTIES
from kvlint.report.frame import asset, page
from kvlint.source.display import counted

_HERE = "kvlint.explore.report"
#: More modules than these are folded away.
_FEW_MODULES = 6


def render_html(exploration: Exploration) -> str:
    """The page as text."""
    judged = {found.property for scenario in exploration.scenarios for found in scenario.properties}
    # Those that kvlint knows in its order; others are from a kvlint of another version.
    names = (*(name for name in PROPERTIES if name in judged), *sorted(judged - PROPERTIES.keys()))
    scenarios = list(scenario_views(exploration, PROPERTIES))
    return page(
        "exploration.html.jinja",
        package=_HERE,
        style=asset("exploration.css", _HERE) + page_style(),
        script=asset("exploration.js", _HERE),
        title=f"kvlint: {exploration.verdict.value} {exploration.tree}",
        heading="kvlint exploration",
        exploration=exploration,
        verdict=exploration.verdict.value,
        sign=SIGNS[exploration.verdict],
        told=_told(exploration),
        names=names,
        meanings=PROPERTIES,
        finders={name: rules_that_find(name) for name in names or PROPERTIES},
        rows=row_views(exploration, names),
        scenarios=scenarios,
        few_modules=_FEW_MODULES,
    )


def _told(exploration: Exploration) -> str:
    """The verdict in a sentence."""
    scenarios = exploration.scenarios
    if not scenarios:
        return "No scenario was explored, so nothing is known."
    number = len(scenarios)
    if exploration.verdict is Verdict.HOLDS:
        return f"Every property holds in every schedule of {counted(number, 'scenario')}."
    broken = sum(scenario.verdict is Verdict.VIOLATED for scenario in scenarios)
    unknown = sum(scenario.verdict is Verdict.INCONCLUSIVE for scenario in scenarios)
    told = []
    if broken:
        told.append(
            f"Something is violated in {broken} of {counted(number, 'scenario')}; below is a schedule for each."
        )
    if unknown:
        told.append(f"Not everything was seen in {unknown} of {counted(number, 'scenario')}.")
    return " ".join(told)
