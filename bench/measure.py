"""Times commands in rounds, so that what is compared ran side by side; knows nothing of what the commands are."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from memory import PeakMemory

# Linters exit with 1 when they find something; anything above means that they did not do their work.
_WORKED = (0, 1)


class CommandFailed(Exception):
    """A measured command broke down, so its time means nothing."""


@dataclass(frozen=True, slots=True)
class Command:
    """What to run, with which variables besides the usual ones; if ``is_warm``, an earlier run must come first."""

    argv: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    is_warm: bool = False


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run took: wall-clock seconds, and the seconds that its processes kept a processor busy (0 on Windows)."""

    seconds: float
    processor: float


@dataclass(frozen=True, slots=True)
class Row:
    """One command over all rounds: medians, the median of the ratios to the first command, their range, peak MB."""

    name: str
    seconds: float
    processor: float
    ratio: float
    lowest: float
    highest: float
    megabytes: float


def run_once(command: Command, folder: Path, memory: PeakMemory | None = None) -> Spent:
    """Run ``command`` in ``folder`` and return what it took; raises CommandFailed with what it printed."""
    environment = {**os.environ, **command.environment}
    # Tools compile themselves to bytecode once; where that is forbidden, each run would be timed compiling.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryFile() as errors:
        busy, start = _processor_time(), time.perf_counter()
        process = subprocess.Popen(command.argv, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=errors)
        if memory is None:
            process.wait()
        else:
            memory.watch(process)
        spent = Spent(time.perf_counter() - start, _processor_time() - busy)
        if process.returncode not in _WORKED:
            errors.seek(0)
            said = errors.read().decode(errors="replace")[-2000:]
            raise CommandFailed(f"{' '.join(command.argv[:4])} …: exit status {process.returncode}\n{said}")
    return spent


def _processor_time() -> float:
    """The processor seconds of all children that have ended, and of theirs."""
    times = os.times()
    return times.children_user + times.children_system


def compare(commands: Mapping[str, Command], folder: Path, rounds: int) -> list[Row]:
    """Run every command once per round, in turn from either end; the first is what ratios refer to.

    A round that is not counted comes first: it fills the disk's cache and the
    tools', and is the one in which memory is watched, which takes time.
    """
    names = list(commands)
    spent: dict[str, list[Spent]] = {name: [] for name in names}
    peaks = {name: PeakMemory() for name in names}
    for number in range(-1, rounds):
        for name in names if number % 2 else reversed(names):
            progress(f"round {number + 1} of {rounds}: {name}")
            if number < 0:
                if commands[name].is_warm:
                    run_once(commands[name], folder)
                run_once(commands[name], folder, peaks[name])
            else:
                spent[name].append(run_once(commands[name], folder))
    progress("")
    return [_row(name, spent[name], spent[names[0]], peaks[name].megabytes) for name in names]


def _row(name: str, spent: Sequence[Spent], base: Sequence[Spent], megabytes: float) -> Row:
    ratios = [mine.seconds / other.seconds for mine, other in zip(spent, base, strict=True)]
    seconds = median(each.seconds for each in spent)
    processor = median(each.processor for each in spent)
    return Row(name, seconds, processor, median(ratios), min(ratios), max(ratios), megabytes)


def show(title: str, rows: Sequence[Row]) -> None:
    """Print one comparison."""
    width = max(len(row.name) for row in rows)
    print(f"\n{title}\n")
    print(f"  {'':{width}}  seconds  processor   ratio      (range)     memory")
    for row in rows:
        spread = f"({row.lowest:.2f}-{row.highest:.2f})"
        print(
            f"  {row.name:{width}}  {row.seconds:7.2f} {row.processor:10.2f} {row.ratio:7.2f} {spread:>15}"
            f" {row.megabytes:7.0f} MB",
            flush=True,
        )


def progress(text: str) -> None:
    """Show what is being run, on a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()
