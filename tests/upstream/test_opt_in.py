"""The rules that are off by default on released packages: what was read and found true, and what fixing leaves."""

from __future__ import annotations

import shutil
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import kvlint
from kvlint.config import Config

from . import observed

TRUTH = tomllib.loads(Path(__file__).with_name("opt_in.toml").read_text(encoding="utf-8"))["release"]
CODES = ("KVL006", "KVL008")

Release = Callable[[str], Path]


def reported(root: Path) -> dict[str, Counter[str]]:
    seen: dict[str, Counter[str]] = {code: Counter() for code in CODES}
    for finding in kvlint.check([root], Config(select=CODES)):
        seen[finding.code][f"{observed.short(finding.location.path, root)}:{finding.location.span.line}"] += 1
    return seen


@pytest.mark.parametrize("version", TRUTH)
def test_findings_are_those_that_were_read(version: str, release: Release) -> None:
    assert reported(release(version)) == {code: Counter(TRUTH[version][code]) for code in CODES}


def test_all_fixes_of_the_pinned_tree(pinned: Path, tmp_path: Path) -> None:
    backends = Path(observed.BACKENDS)
    shutil.copytree(pinned / backends, tmp_path / backends)
    run = kvlint.fix([tmp_path], unsafe=True, config=Config())
    assert (run.report.findings, run.refused) == ((), ())
    for fixed in run.changes:
        compile(fixed.change.after, fixed.display, "exec")
    tables = {table for table in observed.tables(tmp_path).values() if table.startswith("-:")}
    assert tables == {"-:-BW-- F:FFFFF B:FBWTS W:FWWTS T:FTTTS S:SSSSS"}
    left = reported(tmp_path)
    assert left["KVL006"] == Counter()
    # Two of the scheduler's against a lost node, one of a worker's snapshot, two of listeners that make a room known.
    assert Counter(place.partition("/")[0] for place in left["KVL008"]) == {"common": 2, "mooncake": 2, "nixl": 1}
    assert kvlint.fix([tmp_path], unsafe=True, config=Config()).changes == ()
