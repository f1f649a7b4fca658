"""Times commands in rounds, so that what is compared ran side by side; knows nothing of what the commands are."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

# Linters exit with 1 when they find something; anything above means that they did not do their work.
_WORKED = (0, 1)


class CommandFailed(Exception):
    """A measured command broke down, so its time means nothing."""


@dataclass(frozen=True, slots=True)
class Run:
    """Wall-clock seconds, and the peak resident memory in MB of the largest process (children included)."""

    seconds: float
    megabytes: float


@dataclass(frozen=True, slots=True)
class Row:
    """One command over all rounds: medians, the median of the ratios to the first command, and their range."""

    name: str
    seconds: float
    ratio: float
    lowest: float
    highest: float
    megabytes: float


def run_once(command: Sequence[str], folder: Path) -> Run:
    """Run ``command`` in ``folder``; raises CommandFailed with what it printed."""
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.stderr.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in _WORKED:
        raise CommandFailed(f"{' '.join(command[:4])} …: exit status {process.returncode}\n{errors.decode()[-2000:]}")
    # Linux counts in kilobytes, macOS in bytes.
    return Run(seconds, usage.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10))


def compare(commands: Mapping[str, Sequence[str]], folder: Path, rounds: int) -> list[Row]:
    """Run every command once per round, in turn from either end; the first is what ratios refer to.

    A round that is not counted comes first and fills the disk cache.
    """
    names = list(commands)
    runs: dict[str, list[Run]] = {name: [] for name in names}
    for number in range(-1, rounds):
        for name in names if number % 2 else reversed(names):
            progress(f"round {number + 1} of {rounds}: {name}")
            found = run_once(commands[name], folder)
            if number >= 0:
                runs[name].append(found)
    progress("")
    return [_row(name, runs[name], runs[names[0]]) for name in names]


def _row(name: str, runs: Sequence[Run], base: Sequence[Run]) -> Row:
    ratios = [run.seconds / other.seconds for run, other in zip(runs, base, strict=True)]
    return Row(
        name,
        median(run.seconds for run in runs),
        median(ratios),
        min(ratios),
        max(ratios),
        max(run.megabytes for run in runs),
    )


def show(title: str, rows: Sequence[Row]) -> None:
    """Print one comparison."""
    width = max(len(row.name) for row in rows)
    print(f"\n{title}\n")
    print(f"  {'':{width}}  seconds   ratio      (range)     memory")
    for row in rows:
        spread = f"({row.lowest:.2f}-{row.highest:.2f})"
        print(
            f"  {row.name:{width}}  {row.seconds:7.2f} {row.ratio:7.2f} {spread:>15} {row.megabytes:7.0f} MB",
            flush=True,
        )


def progress(text: str) -> None:
    """Show what is being run, on a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()
