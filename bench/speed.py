"""Compares kvlint's speed and memory with other tools' on a released SGLang package; see bench/README.md."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from statistics import median

from growth import copies, exponent, repeated
from measure import Command, CommandFailed, Row, compare, run_once, show

from kvlint.source.prefilter import is_candidate
from tools import BENCH, Missing, Tool, find_command, find_module

#: Without --full, flake8 and fixit read every sixteenth file.
SAMPLE = 16
TABLES = ("package", "parsers", "slow", "flake8", "large", "growth")
BACKEND = BENCH.parent / "fixtures" / "rules" / "kvl002_skip_without_terminal_write" / "bad.py"


class Bench:
    """One session: what is measured on, how often, and with which tools."""

    def __init__(self, options: argparse.Namespace, tree: Path, scratch: Path) -> None:
        self.options = options
        self.tree = tree
        self.scratch = scratch
        self.files = sorted(path.relative_to(tree).as_posix() for path in tree.rglob("*.py"))
        self.candidates = [name for name in self.files if is_candidate((tree / name).read_bytes())]
        self.ruff = find_module("ruff")
        self.flake8 = find_module("flake8")
        self.semgrep = find_command("semgrep", options.tools)
        self.fixit = find_command("fixit", options.tools)

    def describe(self) -> None:
        """Say what is compared, and what is left out and how to get it."""
        lines = sum((self.tree / name).read_bytes().count(b"\n") for name in self.files)
        size = f"{len(self.files):,} Python files, {lines:,} lines; kvlint parses {len(self.candidates)}"
        print(f"sglang {self.options.release}: {size}")
        tools = (self.ruff, self.flake8, self.semgrep, self.fixit)
        names = [f"{tool.name} {tool.version}" for tool in tools if isinstance(tool, Tool)]
        cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
        print(f"{', '.join((*names, _version('libcst')))}; Python {platform.python_version()}, {cores} cores")
        for tool in tools:
            if isinstance(tool, Missing):
                print(f"skipped: {tool.name} is not installed; to have it: {tool.advice}")
        print("Ratios are medians of each round's time over that of the first line, with their range.")
        print("Memory is the peak of all processes of a command together.")

    def package(self) -> None:
        """The whole package."""
        show(
            "The whole package: ruff cold, kvlint cold and warm",
            compare(self._fast("sglang", "warm"), self.tree, self.options.rounds),
        )

    def parsers(self) -> None:
        """Parsing alone."""
        script = str(BENCH / "parse.py")
        commands = {
            "ast.parse": _python(script, "ast", *self.candidates),
            "libcst.parse_module": _python(script, "libcst", *self.candidates),
            "  and PositionProvider": _python(script, "libcst-positions", *self.candidates),
            "kvlint check --jobs 1": _kvlint("--no-cache", "--jobs", "1", *self.candidates),
        }
        title = f"The {len(self.candidates)} files that pass the text test (start-up of the interpreter included)"
        show(title, compare(commands, self.tree, self.options.rounds))

    def slow(self) -> None:
        """Other linters with rules of one's own."""
        commands = {"kvlint check, one process": _kvlint("--no-cache", "--jobs", "1", "sglang")}
        if isinstance(self.semgrep, Tool):
            flags = ["--metrics", "off", "--disable-version-check", "--no-git-ignore", "--quiet", "--jobs", "1"]
            rules = ["--config", str(BENCH / "semgrep.yml")]
            commands["semgrep, three rules, one process"] = Command(
                [*self.semgrep.command, "scan", *flags, *rules, "sglang"]
            )
            show("Rules of the same intent in semgrep, on the whole package", self._slowly(commands))
        if isinstance(self.fixit, Tool):
            chosen = self._sample()
            commands = {
                "kvlint check, one process": _kvlint("--no-cache", "--jobs", "1", *chosen),
                "fixit, three rules, all cores": Command(
                    [*self.fixit.command, "--rules", "fixit_rules", "lint", *chosen], {"PYTHONPATH": str(BENCH)}
                ),
            }
            show(f"Rules of the same intent in fixit, on {self._share(chosen)}", self._slowly(commands))

    def with_flake8(self) -> None:
        """flake8 with and without the plugin."""
        if isinstance(self.flake8, Missing):
            return
        chosen = self._sample()
        flags = ["--isolated", "--exit-zero", "--quiet", "--quiet"]
        cache = {"KVLINT_NO_CACHE": "", "KVLINT_CACHE": str(self.scratch / "flake8")}
        commands = {
            "flake8": _python(str(BENCH / "flake8_alone.py"), *flags, *chosen),
            "flake8 with kvlint, cold": _python("-m", "flake8", *flags, *chosen, environment={"KVLINT_NO_CACHE": "1"}),
            "flake8 with kvlint, warm": Command([sys.executable, "-m", "flake8", *flags, *chosen], cache, is_warm=True),
        }
        show(f"flake8 on {self._share(chosen)}", self._slowly(commands))

    def _sample(self) -> list[str]:
        """What the tools read that take minutes of processor time for a thousand files."""
        return self.files if self.options.full else self.files[::SAMPLE]

    def _share(self, chosen: Sequence[str]) -> str:
        held = len(set(chosen) & set(self.candidates))
        files = f"{len(chosen):,} of {len(self.files):,} files"
        return f"{files}, {held} of {len(self.candidates)} candidates among them"

    def large(self) -> None:
        """A tree ten times that size."""
        number = self.options.copies
        tree = copies(self.tree / "sglang", number, self.scratch / "large")
        rows = compare(self._fast(".", "warm-large"), tree, self.options.slow_rounds)
        show(f"The package {number} times ({number * len(self.files):,} files)", rows)

    def growth(self) -> None:
        """How time grows."""
        print("\nHow the time of `kvlint check` grows (medians, one process)\n")
        largest = self.options.copies
        sizes = sorted({1, max(1, largest // 4), max(1, largest // 2), largest})
        tree = copies(self.tree / "sglang", largest, self.scratch / "files")
        rows: list[tuple[float, list[float]]] = []
        for size in sizes:
            folders = [f"copy_{index:02}" for index in range(size)]
            cached = ["--cache-dir", str(self.scratch / f"growth-{size}")]
            times = [self._time(_kvlint("--jobs", "1", *flags, *folders), tree) for flags in (["--no-cache"], cached)]
            rows.append((float(size * len(self.files)), times))
        _show_growth("files", ("cold", "warm"), rows)
        rows = []
        for lines in (1_000, 2_000, 4_000, 8_000):
            text = repeated(BACKEND.read_text(encoding="utf-8"), lines)
            file = self.scratch / f"lines_{lines}.py"
            file.write_text(text, encoding="utf-8")
            rows.append((text.count("\n"), [self._time(_kvlint("--no-cache", file.name), self.scratch)]))
        _show_growth("lines of one candidate", ("cold",), rows)

    def _fast(self, target: str, cache: str) -> dict[str, Command]:
        commands = {}
        if isinstance(self.ruff, Tool):
            flags = ("--isolated", "--select", "F,E9", "--no-cache", "--exit-zero", "--quiet")
            commands["ruff check --select F,E9"] = Command([*self.ruff.command, "check", *flags, target])
        return commands | {
            "kvlint check, cold": _kvlint("--no-cache", target),
            "kvlint check, warm": replace(_kvlint("--cache-dir", str(self.scratch / cache), target), is_warm=True),
            "kvlint check, cold, --jobs 1": _kvlint("--no-cache", "--jobs", "1", target),
        }

    def _slowly(self, commands: dict[str, Command]) -> list[Row]:
        return compare(commands, self.tree, self.options.slow_rounds)

    def _time(self, command: Command, folder: Path) -> float:
        run_once(command, folder)
        return median(run_once(command, folder).seconds for _ in range(self.options.slow_rounds))


def main() -> int:
    """Run the command; the exit status is 0 unless a tool broke down."""
    options = _options()
    sys.path.insert(0, str(BENCH.parent / "tests"))
    from upstream import releases

    try:
        tree = releases.tree(options.release)
    except releases.IndexUnreachable as reason:
        print(f"nothing to measure on: {reason}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="kvlint-bench-") as scratch:
        bench = Bench(options, tree, Path(scratch))
        bench.describe()
        tables = (bench.package, bench.parsers, bench.slow, bench.with_flake8, bench.large, bench.growth)
        try:
            for name, table in zip(TABLES, tables, strict=True):
                if name in (options.only or TABLES):
                    table()
        except CommandFailed as failure:
            print(failure, file=sys.stderr)
            return 1
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--release", default="0.5.23", help="an SGLang version pinned in tests/upstream/releases.toml")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="counted rounds of the fast commands")
    parser.add_argument("--slow-rounds", type=int, default=2, metavar="N", help="counted rounds of the slow ones")
    parser.add_argument("--copies", type=int, default=10, metavar="N", help="size of the large tree, in packages")
    parser.add_argument("--full", action="store_true", help="let flake8 and fixit read all files (an hour)")
    parser.add_argument("--tools", type=Path, metavar="DIR", help="a virtual environment that holds semgrep and fixit")
    parser.add_argument("--only", action="append", choices=TABLES, help="print this table (may be repeated)")
    return parser.parse_args()


def _python(*arguments: str, environment: dict[str, str] | None = None) -> Command:
    return Command([sys.executable, *arguments], environment or {})


def _kvlint(*arguments: str) -> Command:
    return _python("-m", "kvlint", "check", "--isolated", "--exit-zero", "--quiet", *arguments)


def _version(name: str) -> str:
    return f"{name} {metadata.version(name)}"


def _show_growth(what: str, names: Sequence[str], rows: Sequence[tuple[float, list[float]]]) -> None:
    print(f"  {what:>24}" + "".join(f"{name:>10}" for name in names))
    for size, times in rows:
        print(f"  {size:24,.0f}" + "".join(f"{time:8.2f} s" for time in times))
    powers = [exponent((size, times[index]) for size, times in rows) for index in range(len(names))]
    print(f"  {'grows with the power':>24}" + "".join(f"{power:10.2f}" for power in powers) + "\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
