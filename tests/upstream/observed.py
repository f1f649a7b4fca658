"""What kvlint says about a tree, in the terms in which the ground truth is written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import kvlint

JUDGED = ("KVL001", "KVL002", "KVL003", "KVL004", "KVL005")
BACKENDS = "sglang/srt/disaggregation/"


def findings(root: Path) -> dict[str, Counter[str]]:
    """``backend/conn.py:line`` of every finding of a judged code, by code.

    A finding outside ``srt/disaggregation`` keeps its whole path, so that it
    can never equal an expected one.
    """
    seen: dict[str, Counter[str]] = {code: Counter() for code in JUDGED}
    for finding in kvlint.check([root]):
        if finding.code in seen:
            place = short(finding.location.path, root)
            seen[finding.code][f"{place}:{finding.location.span.line}"] += 1
    return seen


def tables(root: Path) -> dict[str, str]:
    """``backend/conn.py:line`` of every status writer, to its transition table in letters."""
    done = run("inspect", "--output-format", "json", ".", cwd=root)
    assert done.returncode == 0, done.stderr
    return {
        f"{short(writer['path'], root)}:{writer['line']}": writer["table"]
        for writer in json.loads(done.stdout)["writers"]
    }


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line in ``cwd``, with no configuration but its defaults."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(
        [sys.executable, "-m", "kvlint", *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def short(path: str, root: Path) -> str:
    """A reported path without the folders that every expectation shares."""
    inside = path.removeprefix(f"{root.as_posix()}/").removeprefix("./")
    return inside.removeprefix(BACKENDS)
