"""Measures `kvlint explore` on the re-created tree before and after its fixes, and beside frontrun."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from measure import CommandFailed, progress

from tools import BENCH, Missing, Tool, find_library

TABLES = ("abort", "scenarios", "strategies", "frontrun")
TREES = ("pinned", "fixed")
_ABORT = ("--scenario", "abort")
_OTHERS = ("abort-before-init", "scheduler-abort", "transfer-error", "room-reuse", "two-rooms")
# Nothing is violated, something is, something is open.
_EXPLORED = (0, 1, 3)
_FIXED = (0, 1)
_START_UP = 60.0


@dataclass(frozen=True, slots=True)
class Run:
    """What one exploration took and saw; None is what it does not say.

    Attributes:
        command: Seconds of the whole process.
        search: Seconds of the search.
        runs: How often the program was run; 0 where it does not say.
        states: How many states were seen.
        schedules: How many schedules the search stands for.
        outcome: In words.
        is_cut: Whether a limit ended the search.
    """

    command: float
    search: float | None
    runs: int
    states: int | None
    schedules: int | None
    outcome: str
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One line over all rounds: medians, and the range of the search's ratio to the first line's."""

    name: str
    run: Run
    ratio: float | None
    lowest: float
    highest: float


Measured = Callable[[], Run]


def compare(lines: Mapping[str, Measured], rounds: int) -> list[Row]:
    """Measure every line once per round, in turn from either end; ratios are to the first line of the same round."""
    names = list(lines)
    seen: dict[str, list[Run]] = {name: [] for name in names}
    for number in range(rounds):
        for name in reversed(names) if number % 2 else names:
            progress(f"round {number + 1} of {rounds}: {name}")
            seen[name].append(lines[name]())
    progress("")
    return [_row(name, seen[name], seen[names[0]]) for name in names]


def _row(name: str, runs: Sequence[Run], base: Sequence[Run]) -> Row:
    pairs = [(mine.search, other.search) for mine, other in zip(runs, base, strict=True)]
    ratios = [mine / other for mine, other in pairs if mine is not None and other]
    searches = [run.search for run in runs if run.search is not None]
    last = runs[-1]
    shown = Run(
        command=median(run.command for run in runs),
        search=median(searches) if searches else None,
        runs=round(median(run.runs for run in runs)),
        states=last.states,
        schedules=last.schedules,
        outcome=last.outcome,
        is_cut=any(run.is_cut for run in runs),
    )
    if not ratios:
        return Row(name, shown, None, 0.0, 0.0)
    return Row(name, shown, median(ratios), min(ratios), max(ratios))


def show(title: str, rows: Sequence[Row]) -> None:
    """Print one comparison."""
    width = max(len(row.name) for row in rows)
    print(f"\n{title}\n")
    print(
        f"  {'':{width}}    search    ratio        (range)  command  states    runs   runs/s"
        "        schedules  schedules/s  outcome"
    )
    for row in rows:
        print(f"  {row.name:{width}}  {_figures(row)}  {row.run.outcome}", flush=True)


def _figures(row: Row) -> str:
    run = row.run
    search = "-" if run.search is None else f"{run.search:.3f}"
    # A search that was cut would have taken longer.
    more = ">" if run.is_cut else ""
    ratio = "-" if row.ratio is None else f"{more}{row.ratio:.2f}"
    spread = "" if row.ratio is None else f"({row.lowest:.2f}-{row.highest:.2f})"
    states = f"{run.states:,}" if run.states else "-"
    runs = f"{run.runs:,}" if run.runs else "-"
    schedules = "-" if run.schedules is None else _number(run.schedules)
    return (
        f"{search:>8} {ratio:>8} {spread:>14} {run.command:8.2f} {states:>7} {runs:>7}"
        f" {_rate(run.runs, run.search):>8} {schedules:>16} {_rate(run.schedules, run.search):>12}"
    )


def _rate(number: int | None, seconds: float | None) -> str:
    return "-" if not number or not seconds else _number(number / seconds)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value < 1e10 else f"{value:.2e}"


# -- kvlint -------------------------------------------------------------------------


def explored(root: Path, *arguments: str) -> Run:
    """Run `kvlint explore` on one scenario; raises CommandFailed if it does not come to a result."""
    seconds, printed = _timed(_kvlint("explore", str(root), "--output-format", "json", *arguments), _EXPLORED)
    return of_scenario(json.loads(printed)["scenarios"][0], seconds, is_quick="--quick" in arguments)


def of_scenario(scenario: Mapping[str, Any], command: float, *, is_quick: bool) -> Run:
    """What a scenario of the report says."""
    violated = [entry["property"] for entry in scenario["properties"] if entry["verdict"] == "VIOLATED"]
    is_open = any(entry["verdict"] == "INCONCLUSIVE" for entry in scenario["properties"])
    words = [f"violated: {', '.join(violated)}"] if violated else []
    if is_quick and not violated:
        words = ["no witness with at most 2 preemptions"]
    elif scenario["reason"]:
        words.append(scenario["reason"])
    elif not violated and not is_open:
        words = ["all hold"]
    return Run(
        command=command,
        search=scenario["quick_seconds"] if is_quick else scenario["seconds"],
        runs=scenario["runs"],
        states=scenario["states"],
        schedules=scenario["schedules"],
        outcome="; ".join(words),
        is_cut=bool(scenario["reason"]) and not is_quick,
    )


def _kvlint(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "kvlint", *arguments]


def _timed(
    command: Sequence[str],
    good: Sequence[int],
    environment: Mapping[str, str] | None = None,
    limit: float | None = None,
) -> tuple[float, str]:
    told = {**os.environ, **(environment or {})}
    shown = f"{' '.join(command[:4])} …"
    began = time.perf_counter()
    # A session of its own: frontrun's command starts the Python that explores, and both have to be ended.
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=told, start_new_session=True
    ) as process:
        try:
            printed, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            raise CommandFailed(f"{shown}: no end after {limit:g} s") from None
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
    seconds = time.perf_counter() - began
    if process.returncode not in good:
        raise CommandFailed(f"{shown}: exit status {process.returncode}\n{errors[-2000:]}")
    return seconds, printed


# -- frontrun -----------------------------------------------------------------------


class Frontrun:
    """Explores the same program with frontrun, of the environment that it is installed in.

    frontrun traces what is not installed; for it to trace the tree's code only, kvlint and what drives it are
    shown to it as if they were.
    """

    def __init__(self, tool: Tool, scratch: Path, seconds: float) -> None:
        self._command = tool.command
        self._seconds = seconds
        self._installed = scratch / "site-packages"
        self._installed.mkdir()
        import kvlint

        (self._installed / "kvlint").symlink_to(Path(kvlint.__file__).parent)
        self._script = self._installed / "explore_frontrun.py"
        self._script.symlink_to(BENCH / self._script.name)

    def explored(self, root: Path, **options: object) -> Run:
        """Explore; raises CommandFailed if it does not come to a result."""
        command = [*self._command, str(self._script), str(root), str(self._seconds), json.dumps(options)]
        environment = {"PYTHONPATH": str(self._installed), "PYTHONHASHSEED": "0"}
        wall, printed = _timed(command, (0,), environment, self._seconds + _START_UP)
        return of_frontrun(json.loads(printed.splitlines()[-1]), wall, self._seconds)


def of_frontrun(said: Mapping[str, Any], command: float, limit: float) -> Run:
    """What explore_frontrun.py said; that time was up it does not say, and calls what it saw until then enough."""
    is_cut = said["holds"] is not False and said["seconds"] >= limit
    if said["holds"] is False:
        outcome = "violated: pinned-room"
    elif is_cut:
        outcome = f"nothing found; {limit:g} s were over"
    elif said["holds"] is None:
        outcome = "inconclusive"
    else:
        outcome = "nothing found"
    return Run(command, said["seconds"] - said["building"], said["runs"], None, None, outcome, is_cut)


# -- tables -------------------------------------------------------------------------


class Bench:
    """One session: which trees, how often, how long, and with which frontrun."""

    def __init__(self, options: argparse.Namespace, trees: Mapping[str, Path], scratch: Path) -> None:
        self._trees = trees
        self._rounds = options.rounds
        self._limit = ("--time-limit", f"{options.time_limit:g}")
        self._seconds = options.time_limit
        self._frontrun = find_library("frontrun", options.tools)
        self._scratch = scratch

    def describe(self) -> None:
        """Say what is compared."""
        cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
        print(f"Python {platform.python_version()}, {cores} cores, {load()}")
        print("Seconds; ratios are medians of each round's search over that of the first line, with their range.")
        print("command: the whole process; schedules: those that the search stands for, most of which were not run.")

    def abort(self) -> None:
        """The scenario of the two changes."""
        for name, root in self._trees.items():
            quick = partial(explored, root, *_ABORT, "--no-scheduler", "--quick")
            lines: dict[str, Measured] = {
                "complete, no scheduler": partial(explored, root, *_ABORT, "--no-scheduler", *self._limit),
                "complete, with scheduler": partial(explored, root, *_ABORT, *self._limit),
                "--quick, no scheduler": quick,
                "--quick, with scheduler": partial(explored, root, *_ABORT, "--quick"),
            }
            show(f"abort, {name} tree", compare(lines, self._rounds))

    def scenarios(self) -> None:
        """All of them, with the scheduler."""
        for name, root in self._trees.items():
            lines: dict[str, Measured] = {
                each: partial(explored, root, "--scenario", each, *self._limit) for each in ("abort", *_OTHERS)
            }
            show(f"every scenario with the scheduler, {name} tree", compare(lines, 1))

    def strategies(self) -> None:
        """Both complete searches."""
        for name, root in self._trees.items():
            search = partial(explored, root, *_ABORT, "--no-scheduler", *self._limit)
            lines: dict[str, Measured] = {
                "states": partial(search, "--strategy", "states"),
                "partial-order": partial(search, "--strategy", "partial-order"),
            }
            show(f"strategies, abort without scheduler, {name} tree", compare(lines, 1))

    def frontrun(self) -> None:
        """The same program under a general explorer."""
        if isinstance(self._frontrun, Missing):
            print(f"\nfrontrun: skipped, it is not installed; to have it: {self._frontrun.advice}")
            return
        tool = Frontrun(self._frontrun, self._scratch, self._seconds)
        print(f"\nfrontrun {self._frontrun.version} switches between bytecode instructions: its runs are not kvlint's")
        pinned, fixed = self._trees["pinned"], self._trees["fixed"]
        seeds = iter(range(1, self._rounds + 1))
        lines: dict[str, Measured] = {
            "kvlint explore --quick": partial(explored, pinned, *_ABORT, "--no-scheduler", "--quick"),
            "frontrun, random": lambda: tool.explored(
                pinned, strategy="random", seed=next(seeds), max_attempts=1_000_000
            ),
            "frontrun, DPOR, 1 preemption": partial(tool.explored, pinned, preemption_bound=1),
        }
        show("until the pin is found", compare(lines, self._rounds))
        lines = {
            "kvlint explore --quick": partial(explored, pinned, *_ABORT, "--no-scheduler", "--quick"),
            "frontrun, DPOR, 2 (its default)": partial(tool.explored, pinned, preemption_bound=2),
        }
        show("until the pin is found, with frontrun's default", compare(lines, 1))
        complete = partial(explored, fixed, *_ABORT, "--no-scheduler", *self._limit)
        lines = {
            "kvlint explore, no bound": complete,
            "frontrun, DPOR, 1 preemption": partial(tool.explored, fixed, preemption_bound=1),
            "frontrun, DPOR, 2 preemptions": partial(tool.explored, fixed, preemption_bound=2),
        }
        show("until all of the fixed tree is searched", compare(lines, 1))


def load() -> str:
    """What else the machine does."""
    return f"load average {os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "load unknown"


def trees(tree: Path | None, scratch: Path) -> dict[str, Path]:
    """The re-created tree, and a copy that `kvlint fix --unsafe-fixes` has changed."""
    pinned, fixed = tree, scratch / "fixed"
    if pinned is None:
        from upstream import pin

        pinned = scratch / "pinned"
        pin.write_tree(pinned)
    progress("fixing a copy")
    shutil.copytree(pinned / "sglang", fixed / "sglang")
    _timed(_kvlint("fix", "--isolated", "--unsafe-fixes", "--quiet", str(fixed)), _FIXED)
    progress("")
    return dict(zip(TREES, (pinned, fixed), strict=True))


def main() -> int:
    """Run the command; the exit status is 0 unless a tool broke down."""
    options = _options()
    sys.path.insert(0, str(BENCH.parent / "tests"))
    from upstream import releases

    with tempfile.TemporaryDirectory(prefix="kvlint-bench-") as folder:
        scratch = Path(folder)
        try:
            bench = Bench(options, trees(options.tree, scratch), scratch)
            bench.describe()
            for name in TABLES:
                if name in (options.only or TABLES):
                    getattr(bench, name)()
        except (CommandFailed, releases.IndexUnreachable, releases.BadWheel, OSError) as failure:
            print(failure, file=sys.stderr)
            return 1
    print(f"\nat the end: {load()}")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=f"{__doc__} See bench/README.md.")
    parser.add_argument("--tree", type=Path, metavar="DIR", help="what tests.upstream.pin wrote; else it is made")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="rounds of what takes seconds")
    parser.add_argument("--time-limit", type=float, default=60.0, metavar="S", help="seconds of each search")
    parser.add_argument("--tools", type=Path, metavar="DIR", help="a virtual environment that holds frontrun")
    parser.add_argument("--only", action="append", choices=TABLES, help="print this table (may be repeated)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
