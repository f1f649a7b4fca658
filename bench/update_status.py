"""Compares the status writer update_status() of two SGLang trees, in nanoseconds per call.

Both trees are loaded by one process, and their blocks of calls alternate, each pair from either end. Two processes
would differ in more than the trees: every process has its own addresses, its own hashes and its own share of caches,
which moves times like these by some percent for as long as it lives, however often it is measured. In one process both
trees have the same of these, and the two blocks of a pair run within milliseconds. What is left is the order in which
the trees were loaded and lie in memory. So this is done in several processes, in every other one with the other tree
first, and intervals are made of the processes' medians.

The trees share no module (kvlint.loading), and each has a copy of the measuring loop, so that they do not share what
the interpreter has specialised. The loop's own time is measured too, and subtracted. Nobody else wants a lock that the
writer takes: what waiting for it costs is not measured.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import comb
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from measure import CommandFailed, progress

_CHILD = Path(__file__).resolve().with_name("status_writes.py")
_CONFIDENCE = 0.95
#: With fewer values than this, not even their range holds the median with that confidence.
FEWEST_PROCESSES = 6
#: Seconds for a process to load two trees, and for one pair of every transition: far more than they take.
_LOADING, _PAIR = 120.0, 2.0


@dataclass(frozen=True, slots=True)
class Times:
    """Nanoseconds of one call: the median of all blocks, their quartiles, and the status that is stored afterwards."""

    median: float
    lower_quartile: float
    upper_quartile: float
    stored: str


@dataclass(frozen=True, slots=True)
class Interval:
    """The median of the processes' medians, and the interval that holds it with a confidence of 95 % or more."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Row:
    """One transition in both trees; the difference is in nanoseconds."""

    transition: str
    before: Times
    after: Times
    ratio: Interval
    difference: Interval


def interval(values: Sequence[float]) -> Interval:
    """The median of values with the order statistics that hold it, which needs nothing of how they are spread.

    The number of values below the median is binomial: H. A. David and H. N. Nagaraja, Order Statistics (2003), 7.1.

    Raises:
        ValueError: There are fewer than FEWEST_PROCESSES values.
    """
    ordered, number = sorted(values), len(values)
    if number < FEWEST_PROCESSES:
        raise ValueError(f"{number} values have no interval; {FEWEST_PROCESSES} or more are needed.")
    outside, cut = 0, 0
    while 2 * (outside + comb(number, cut)) <= (1 - _CONFIDENCE) * 2**number:
        outside += comb(number, cut)
        cut += 1
    return Interval(median(ordered), ordered[cut - 1], ordered[number - cut])


def rows(processes: Sequence[Mapping[str, Any]]) -> list[Row]:
    """What several runs of status_writes.py say together.

    Raises:
        CommandFailed: They did not measure the same: their modules, or what a transition stores, are different.
    """
    first = processes[0]
    if any(each["trees"] != first["trees"] for each in processes):
        raise CommandFailed("The processes loaded different modules: a tree was changed meanwhile; measure again.")
    return [_row(name, [each["transitions"][name] for each in processes]) for name in first["transitions"]]


def _row(name: str, entries: Sequence[Mapping[str, Any]]) -> Row:
    results = entries[0]["results"]
    if any(entry["results"] != results for entry in entries):
        raise CommandFailed(f"{name}: not every process stored the same status, so their times cannot be compared.")
    pairs = [entry["pairs"] for entry in entries]
    before, after = (_times([pair[which] for each in pairs for pair in each], results[which]) for which in (0, 1))
    return Row(
        name,
        before,
        after,
        ratio=interval([median(new / old for old, new in each) for each in pairs]),
        difference=interval([median(new - old for old, new in each) for each in pairs]),
    )


def _times(values: Sequence[float], stored: str) -> Times:
    lower, middle, upper = quantiles(values, n=4, method="inclusive")
    return Times(middle, lower, upper, stored)


def show(title: str, measured: Sequence[Row]) -> None:
    """Print the comparison."""
    width = max(len(row.transition) for row in measured)
    print(f"\n{title}\n")
    print(
        f"  {'':{width}}  before    (quartiles)   after    (quartiles)  ratio   (interval)"
        "  difference      (interval)  stored"
    )
    for row in measured:
        ratio, difference = row.ratio, row.difference
        print(
            f"  {row.transition:{width}} {_shown(row.before)} {_shown(row.after)}  {ratio.median:5.2f}"
            f" {f'({ratio.low:.2f}-{ratio.high:.2f})':>12}  {difference.median:+10.0f}"
            f" {f'({difference.low:+.0f} to {difference.high:+.0f})':>15}  {_stored(row)}"
        )


def _shown(times: Times) -> str:
    return f"{times.median:7.0f} {f'({times.lower_quartile:.0f}-{times.upper_quartile:.0f})':>14}"


def _stored(row: Row) -> str:
    before, after = row.before.stored, row.after.stored
    return before if before == after else f"{before}; after: {after}"


def run_process(root: Path, other: Path, pairs: int, number: int) -> dict[str, Any]:
    """Let a process of its own load both trees and time them.

    Raises:
        CommandFailed: It failed, with what it said, or did not end.
    """
    command = [sys.executable, str(_CHILD), str(root), str(other), str(pairs), str(number)]
    limit = _LOADING + _PAIR * pairs
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        raise CommandFailed(
            f"{root} and {other} were not measured within {limit:g} s; a call may not return."
        ) from None
    if done.returncode:
        raise CommandFailed(done.stderr[-2000:].strip() or f"{_CHILD.name}: exit status {done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status is 0 unless a tree cannot be measured or the figures cannot be written."""
    options = _options(arguments)
    try:
        processes = []
        for number in range(options.processes):
            progress(f"process {number + 1} of {options.processes}")
            processes.append(run_process(options.root, options.other_root, options.pairs, number))
        progress("")
        measured = rows(processes)
    except CommandFailed as failure:
        progress("")
        print(failure, file=sys.stderr)
        return 1
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
    trees = [
        {"root": str(root), **tree}
        for root, tree in zip((options.root, options.other_root), processes[0]["trees"], strict=True)
    ]
    for name, tree in zip(("before", "after"), trees, strict=True):
        print(f"{name}: {tree['root']}, {tree['version'] or 'no version'}, modules {tree['sha256'][:12]}")
    print(f"Python {platform.python_version()}, {cores} cores, {options.processes} processes of {options.pairs} pairs")
    print(f"the loop, which is subtracted: {median(each['loop'] for each in processes):.1f} ns")
    show("Nanoseconds of one update_status(room, status), stored status -> written status", measured)
    if options.json is not None:
        report = {
            "python": platform.python_version(),
            "machine": platform.machine(),
            "cores": cores,
            "confidence": _CONFIDENCE,
            "pairs": options.pairs,
            "before": trees[0],
            "after": trees[1],
            "transitions": [asdict(row) for row in measured],
            "processes": processes,
        }
        return _write(options.json, report)
    return 0


def _write(path: Path, report: Mapping[str, Any]) -> int:
    try:
        path.write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    except OSError as error:
        print(f"{path}: the figures cannot be written there: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Compares the status writer update_status() of the NixlKVManagers of two SGLang trees, in "
        "nanoseconds per call. It EXECUTES CODE OF BOTH TREES, with your rights, in child processes: their modules are "
        "loaded, with stand-ins for torch, NIXL, ZMQ and the network. See bench/README.md.",
    )
    parser.add_argument("root", type=Path, metavar="ROOT", help="the tree before: a checkout or an unpacked release")
    parser.add_argument("other_root", type=Path, metavar="OTHER_ROOT", help="the tree after, say after `kvlint fix`")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there as well, replacing the file")
    parser.add_argument("--pairs", type=_at_least(2), default=40, metavar="N", help="pairs per process (default: 40)")
    parser.add_argument(
        "--processes",
        type=_at_least(FEWEST_PROCESSES),
        default=12,
        metavar="N",
        help=f"how often to begin anew, in a process of its own: {FEWEST_PROCESSES} or more (default: 12)",
    )
    options = parser.parse_args(arguments)
    if options.json is not None and not options.json.parent.is_dir():
        parser.error(f"argument --json: {options.json.parent} is no folder; make it first")
    return options


def _at_least(fewest: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < fewest:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of {fewest} or more")
        return int(text)

    return number


if __name__ == "__main__":
    sys.exit(main())
