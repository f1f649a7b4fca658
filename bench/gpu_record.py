"""Puts together what bench/gpu_drill.sh has found out: one JSON file, one line for each part, and the exit status.

Needs the standard library alone, since the host may be at fault.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

VERSION = 1
PARTS = ("before", "after", "comparison")
_TRIALS = ("two-processes", "one-process")
_LOGGED = 4000  # characters, from the end
_QUERY = ("--query-gpu=name,driver_version,memory.total", "--format=csv,noheader")
#: What the packages of nixl are called: the second and third are what it consists of.
_NIXL = ("nixl", "nixl-cu12", "nixl-cu13")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the file.

    Returns:
        0 if the fixed tree passes, 1 if something is wrong with it, 2 if a drill could not be run to its end.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scratch", type=Path, help="the folder that has what each part left")
    parser.add_argument("output", type=Path)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--one-process", action="store_true", help="this is how the trees were drilled")
    options = parser.parse_args(arguments)
    parts = {name: part(options.scratch, name) for name in PARTS}
    trials = {name: part(options.scratch, name) for name in _TRIALS}
    document = {
        "version": VERSION,
        "host": host(),
        "trees": {"before": options.before, "after": options.after},
        "processes": processes(trials, options.one_process),
        **parts,
    }
    write(options.output, document)
    for name in PARTS:
        print(f"{name}: {words(parts[name])}")
    print(f"written: {options.output}")
    return verdict(parts)


def part(scratch: Path, name: str) -> dict[str, Any] | None:
    """What is known of a part; None if it was not run."""
    try:
        status, seconds = (int((scratch / f"{name}.{what}").read_text()) for what in ("status", "seconds"))
    except (OSError, ValueError):
        return None
    log = (scratch / f"{name}.log").read_text("utf-8", "replace")
    try:
        drill = json.loads((scratch / f"{name}.json").read_text("utf-8"))
    except (OSError, ValueError):
        drill = None
    return {"status": status, "seconds": seconds, "log": log[-_LOGGED:], "drill": drill}


def processes(trials: dict[str, dict[str, Any] | None], one: bool) -> dict[str, Any]:
    """In how many processes a tree was drilled, and what came of trying two first."""
    reason = "two processes work"
    two = trials["two-processes"]
    if two is None or two["status"]:
        reason = f"two processes do not work here: {words(two)}"
        if not one:
            reason = f"one process does not work, either: {words(trials['one-process'])}"
    return {"count": 1 if one else 2, "reason": reason, "trials": trials}


def words(found: dict[str, Any] | None) -> str:
    """A part in one line."""
    if found is None:
        return "not run"
    if found["status"] in (124, 137):
        return f"ended after {found['seconds']} s: it took too long"
    if found["status"] not in (0, 1) or found["drill"] is None:
        last = (found["log"].strip().splitlines() or ["nothing was said"])[-1]
        return f"exit status {found['status']}: {last}"
    drill = found["drill"]
    faults = [fault for tree in drill.get("faults", []) for fault in tree]
    comparison = drill.get("drill", {}).get("comparison")
    ratio = f", {comparison['median']:.3f} times the throughput" if comparison else ""
    return ("; ".join(faults) or "passed") + ratio


def verdict(parts: dict[str, dict[str, Any] | None]) -> int:
    """The exit status. What is wrong with the tree before the fix is no fault of the other's."""
    for found in parts.values():
        if found is None or found["status"] not in (0, 1) or found["drill"] is None:
            return 2
    assert parts["after"] is not None
    assert parts["comparison"] is not None
    faults = parts["comparison"]["drill"].get("faults", [])
    return int(parts["after"]["status"] != 0 or bool(faults and faults[-1]))


def host() -> dict[str, Any]:
    """What the drills ran on."""
    return {
        "gpus": gpus(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "torch": release("torch"),
        "nixl": next((found for found in map(release, _NIXL) if found), None),
    }


def gpus() -> list[dict[str, str]] | None:
    """Each GPU's name, driver and memory as nvidia-smi tells them; None if it does not."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    try:
        done = subprocess.run([program, *_QUERY], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    rows = [[field.strip() for field in line.split(",")] for line in done.stdout.splitlines() if line.strip()]
    return [dict(zip(("name", "driver", "memory"), row, strict=False)) for row in rows]


def release(distribution: str) -> str | None:
    """The installed release of a distribution, or None."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def write(output: Path, document: dict[str, Any]) -> None:
    """Write the file, or leave the one that was there."""
    temporary = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        temporary.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        temporary.replace(output)
    finally:
        temporary.unlink(missing_ok=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(f"gpu_record.py: {error}", file=sys.stderr)
        sys.exit(2)
