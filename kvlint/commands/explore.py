"""``kvlint explore``: run a tree's real backend under every schedule."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

import click

from kvlint.commands.explore_progress import ExploreProgress
from kvlint.commands.streams import colour_for, emit, say, warn
from kvlint.commands.tree_root import tree_root

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvlint.explore.events import Failed
    from kvlint.explore.request import Request
    from kvlint.explore.run import Outcome

_MIB = 1 << 20
_LEAST_MEMORY = 256  # MiB
_STATUS = {"HOLDS": 0, "VIOLATED": 1, "INCONCLUSIVE": 3}
_NEEDED = ("greenlet", "numpy")
_QUICK_BOUND = 2


@click.command(short_help="Run a backend under every thread schedule (executes its code).")
@click.argument("root", required=False, type=click.Path(), metavar="[ROOT]")
@click.option("--installed", metavar="NAME", help="Explore an installed distribution; its backend is run.")
@click.option("--scenario", "scenarios", multiple=True, metavar="NAME", help="Explore this scenario only; repeatable.")
@click.option("--list-scenarios", is_flag=True, help="List the scenarios and properties; nothing is run.")
@click.option(
    "--scheduler/--no-scheduler", default=True, help="Have the scheduler take part as well.  [default: scheduler]"
)
@click.option("--quick", is_flag=True, help="Look for a schedule with at most 2 preemptions only; nothing then HOLDS.")
@click.option(
    "--strategy",
    type=click.Choice(("states", "partial-order")),
    default="states",
    help="How the complete search goes.  [default: states]",
)
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    metavar="SECONDS",
    help="Search each scenario for at most this long.  [default: 60]",
)
@click.option(
    "--max-states",
    type=click.IntRange(min=1),
    default=2_000_000,
    metavar="N",
    help="See at most N states of a scenario.  [default: 2000000]",
)
@click.option(
    "--max-steps",
    type=click.IntRange(min=1),
    default=5_000,
    metavar="N",
    help="Follow a schedule for at most N steps.  [default: 5000]",
)
@click.option(
    "--memory-limit",
    type=click.IntRange(min=0),
    default=4096,
    metavar="MIB",
    help="Let the process that explores allocate at most this much; 0 for any amount.  [default: 4096]",
)
@click.option("--replay", metavar="TOKEN", help="Run the schedule of a report again.")
@click.option("--threads", is_flag=True, help="With --replay: run it on real threads.")
@click.option(
    "--output-format",
    type=click.Choice(("text", "json", "html")),
    default="text",
    help="How the result is written.  [default: text]",
)
@click.option("--output", type=click.Path(), metavar="FILE", help="Write the result to FILE.")
@click.option("-q", "--quiet", is_flag=True, help="Print the result only.")
@click.option("-v", "--verbose", is_flag=True, help="Say what the tree has printed, and more about failures.")
@click.pass_context
def explore(
    ctx: click.Context,
    /,
    *,
    root: str | None,
    installed: str | None,
    scenarios: tuple[str, ...],
    list_scenarios: bool,
    scheduler: bool,
    quick: bool,
    strategy: str,
    time_limit: float,
    max_states: int,
    max_steps: int,
    memory_limit: int,
    replay: str | None,
    threads: bool,
    output_format: str,
    output: str | None,
    quiet: bool,
    verbose: bool,
) -> None:
    """Run the NIXL backend of an SGLang tree (the current folder if no ROOT is given) under every thread schedule.

    THIS EXECUTES CODE OF THE TREE, with your rights, in a process of its own:
    explore only what you would run anyway.  Neither torch nor a GPU nor a
    network is needed, but the extra `explore` (greenlet and numpy) is.

    Its real transfer worker and bootstrap listener, and a scheduler that does
    what prefill.py does, take turns at every access to shared state.  A
    property that some schedule breaks is reported with the shortest way
    there.

    Exits with 0 if every property holds, 1 if one is violated, 3 if a limit left it open, 2 if the command failed.
    """
    if not math.isfinite(time_limit):
        raise click.UsageError(f"--time-limit {time_limit}: give a number of seconds")
    if 0 < memory_limit < _LEAST_MEMORY:
        raise click.UsageError(f"--memory-limit {memory_limit}: nothing can be loaded in less than {_LEAST_MEMORY} MiB")
    if list_scenarios:
        emit(_listing(), output)
        return
    _refuse_contradictions(scenarios, quick, replay, threads, output_format)
    from kvlint.explore.request import Request

    request = Request(
        root=tree_root(root, installed),
        scenarios=() if replay is not None else _scenarios(scenarios, scheduler),
        scheduler=scheduler,
        seconds=time_limit,
        states=max_states,
        steps=max_steps,
        preemptions=_QUICK_BOUND if quick else None,
        complete=not quick,
        strategy=strategy,
        replay=replay,
        threads=threads,
    )
    _require_extra()
    outcome = _run(request, memory_limit * _MIB, quiet)
    _end_without_result(outcome.failure, outcome)
    if outcome.failure is None or outcome.exploration.scenarios or output_format == "json":
        emit(_rendered(outcome, output_format, output), output)
    _explain(outcome, quiet, verbose)
    ctx.exit(2 if outcome.failure is not None else _STATUS[outcome.verdict.value])


# -- what is asked for -------------------------------------------------------------


def _listing() -> str:
    from kvlint.explore.scenarios import SCENARIOS
    from kvlint.properties import PROPERTIES

    scenarios = {
        known.name: known.summary + (" (needs the scheduler)" if known.needs_scheduler else "") for known in SCENARIOS
    }
    return f"scenarios\n{_rows(scenarios)}\nproperties\n{_rows(PROPERTIES)}"


def _rows(entries: dict[str, str]) -> str:
    width = max(map(len, entries))
    return "".join(f"  {name:{width}}  {text}\n" for name, text in entries.items())


def _refuse_contradictions(
    scenarios: Sequence[str], quick: bool, replay: str | None, threads: bool, output_format: str
) -> None:
    if replay is None:
        if threads:
            raise click.UsageError("--threads runs one schedule on real threads: give its token with --replay")
        return
    if scenarios:
        raise click.UsageError("--replay runs the schedule of a token, which names its scenario: leave --scenario out")
    if quick:
        raise click.UsageError("--replay runs one schedule and searches for none: leave --quick out")
    if output_format == "html":
        raise click.UsageError("--replay has no page: take the format text or json")


def _scenarios(names: Sequence[str], scheduler: bool) -> tuple[str, ...]:
    from kvlint.explore.scenarios import SCENARIOS

    known = {entry.name: entry for entry in SCENARIOS}
    for name in names:
        if name not in known:
            from difflib import get_close_matches

            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else "`kvlint explore --list-scenarios` lists them"
            raise click.UsageError(f"--scenario {name}: there is no such scenario; {hint}")
        if known[name].needs_scheduler and not scheduler:
            raise click.UsageError(f"--scenario {name} is about what the scheduler does: leave --no-scheduler out")
    if names:
        return tuple(dict.fromkeys(names))
    return tuple(name for name, entry in known.items() if scheduler or not entry.needs_scheduler)


def _require_extra() -> None:
    from importlib.util import find_spec

    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise click.UsageError(f"kvlint explore needs {' and '.join(missing)}: pip install 'flake8-kvlint[explore]'")


# -- the work ------------------------------------------------------------------------


def _run(request: Request, memory: int, quiet: bool) -> Outcome:
    from kvlint.explore.parent import Limits
    from kvlint.explore.run import explore as explored

    with ExploreProgress(quiet=quiet) as progress:
        return explored(request, Limits(memory=memory), progress)


def _end_without_result(failure: Failed | None, outcome: Outcome) -> None:
    """Raise KvlintError where nothing was found out and the caller can do something about it."""
    from kvlint.config import KvlintError
    from kvlint.explore.events import FailureKind

    is_the_callers = failure is not None and failure.kind in {FailureKind.LOAD, FailureKind.TOKEN}
    if failure is not None and is_the_callers and not outcome.exploration.scenarios:
        raise KvlintError(failure.message)


def _rendered(outcome: Outcome, output_format: str, output: str | None) -> str:
    match output_format:
        case "json":
            from kvlint.explore.report import json_report

            return json_report.render(outcome)
        case "html":
            from importlib import import_module

            page: str = import_module("kvlint.explore.report.html").render_html(outcome.exploration)
            return page
        case _:
            from kvlint.explore.report import text

            return text.render(outcome, colour=colour_for(output), width=_width(output))


def _width(output: str | None) -> int | None:
    """The columns of the terminal that the result goes to, None where it goes elsewhere."""
    import shutil

    return shutil.get_terminal_size().columns if output is None and sys.stdout.isatty() else None


def _explain(outcome: Outcome, quiet: bool, verbose: bool) -> None:
    from kvlint.explore.events import FailureKind
    from kvlint.source.display import counted

    failure, printed = outcome.failure, outcome.printed
    if failure is not None:
        say(f"error: {failure.message}")
        if failure.kind is FailureKind.CRASH:
            hint = "  this is a defect in kvlint; please report it with what --verbose prints"
            say(failure.details.rstrip() if verbose and failure.details else hint)
    if printed.size and not quiet:
        warn([f"the tree's code printed {counted(printed.size, 'byte')} ({counted(printed.lines, 'line')})"])
        if verbose:
            say(printed.head.decode("utf-8", "replace").rstrip())
