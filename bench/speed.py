"""Compares kvlint's speed and memory with other tools' on a released SGLang package; see bench/README.md."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

from measure import CommandFailed, compare, show

from kvlint.source.prefilter import is_candidate

BENCH = Path(__file__).resolve().parent
SEMGREP = "semgrep>=1.100"
#: Without --full, flake8 reads every sixteenth file.
SAMPLE = 16


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
    files = sorted(path.relative_to(tree).as_posix() for path in tree.rglob("*.py"))
    candidates = [name for name in files if is_candidate((tree / name).read_bytes())]
    _describe(options, tree, files, candidates)
    try:
        _whole_package(tree, options.rounds)
        _candidates_only(tree, candidates, options.rounds)
        _flake8(tree, files, candidates, options)
        _semgrep(tree, options, releases.cache_root().parent / "bench")
    except CommandFailed as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--release", default="0.5.23", help="an SGLang version pinned in tests/upstream/releases.toml")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="counted rounds of the fast commands")
    parser.add_argument("--slow-rounds", type=int, default=2, metavar="N", help="counted rounds of flake8 and semgrep")
    parser.add_argument("--full", action="store_true", help="let flake8 read the whole package (many minutes)")
    parser.add_argument(
        "--without", action="append", default=[], choices=("flake8", "semgrep"), help="leave a tool out"
    )
    return parser.parse_args()


def _describe(options: argparse.Namespace, tree: Path, files: Sequence[str], candidates: Sequence[str]) -> None:
    lines = sum((tree / name).read_bytes().count(b"\n") for name in files)
    print(f"sglang {options.release}: {len(files):,} Python files, {lines:,} lines; kvlint parses {len(candidates)}")
    tools = ", ".join(f"{name} {metadata.version(name)}" for name in ("flake8-kvlint", "ruff", "flake8", "libcst"))
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
    print(f"{tools}; Python {platform.python_version()}, {cores} cores")
    print("Ratios are medians of each round's time over that of the first line; memory is the largest process's peak.")


def _python(*arguments: str) -> list[str]:
    return [sys.executable, *arguments]


def _kvlint(*arguments: str) -> list[str]:
    return _python("-m", "kvlint", "check", "--isolated", "--exit-zero", "--quiet", *arguments)


def _whole_package(tree: Path, rounds: int) -> None:
    commands = {
        "ruff check --select F,E9": _python(
            *("-m", "ruff", "check", "--isolated", "--select", "F,E9", "--no-cache", "--exit-zero", "--quiet", "sglang")
        ),
        "kvlint check": _kvlint("sglang"),
        "kvlint check --jobs 1": _kvlint("--jobs", "1", "sglang"),
        "kvlint check --jobs 2": _kvlint("--jobs", "2", "sglang"),
    }
    show("The whole package, nothing cached by the tools", compare(commands, tree, rounds))


def _candidates_only(tree: Path, candidates: Sequence[str], rounds: int) -> None:
    parse = str(BENCH / "parse.py")
    commands = {
        "ast.parse": _python(parse, "ast", *candidates),
        "libcst.parse_module": _python(parse, "libcst", *candidates),
        "  and PositionProvider": _python(parse, "libcst-positions", *candidates),
        "kvlint check --jobs 1": _kvlint("--jobs", "1", *candidates),
    }
    title = f"The {len(candidates)} files that pass the text test (start-up of the interpreter included)"
    show(title, compare(commands, tree, rounds))


def _flake8(tree: Path, files: Sequence[str], candidates: Sequence[str], options: argparse.Namespace) -> None:
    if "flake8" in options.without:
        return
    chosen = list(files) if options.full else files[::SAMPLE]
    held = len(set(chosen) & set(candidates))
    flags = ["--isolated", "--exit-zero", "--quiet", "--quiet"]
    commands = {
        "flake8": _python(str(BENCH / "flake8_alone.py"), *flags, *chosen),
        "flake8 with kvlint": _python("-m", "flake8", *flags, *chosen),
    }
    title = f"flake8 on {len(chosen):,} of {len(files):,} files, {held} of {len(candidates)} candidates among them"
    show(title, compare(commands, tree, options.slow_rounds))


def _semgrep(tree: Path, options: argparse.Namespace, home: Path) -> None:
    if "semgrep" in options.without:
        return
    try:
        semgrep = _installed_semgrep(home)
    except (OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", None) or str(error)
        print(f"\nsemgrep: left out, it could not be installed: {reason.strip().splitlines()[-1]}")
        return
    flags = ["--metrics", "off", "--disable-version-check", "--no-git-ignore", "--quiet", "--jobs", "1"]
    commands: Mapping[str, Sequence[str]] = {
        "kvlint check --jobs 1": _kvlint("--jobs", "1", "sglang"),
        "semgrep --jobs 1": [str(semgrep), "scan", *flags, "--config", str(BENCH / "semgrep.yml"), "sglang"],
    }
    show("Three textual rules of the same intent, one process", compare(commands, tree, options.slow_rounds))


def _installed_semgrep(home: Path) -> Path:
    """The semgrep command in an environment of its own below ``home``, made on first use; raises what pip ends with."""
    environment = home / "semgrep"
    command = environment / "bin" / "semgrep"
    if not command.exists():
        venv.create(environment, clear=True)
        pip = _python("-m", "pip", "--python", str(environment / "bin" / "python"), "install", "--quiet", "--no-input")
        subprocess.run([*pip, SEMGREP], check=True, capture_output=True, text=True)
    return command


if __name__ == "__main__":
    sys.exit(main())
