"""The pinned tree: its lines, kvlint's findings on it, and the tree after the fixes."""

from __future__ import annotations

import difflib
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from . import observed, pin

COMMON = "sglang/srt/disaggregation/common/conn.py"
NIXL = "sglang/srt/disaggregation/nixl/conn.py"

# Line of the private commit, and a fragment that our own or any such line has to have.
PLACES = {
    705: "if (",
    706: "not in self.transfer_infos",
    712: "continue",
    723: ".Transferring",
    725: "self.transfer_infos[",
    873: ".Success",
    875: "self.transfer_infos.pop(",
    886: ".Transferring",
    1868: "in self.request_status",
    1871: ".Failed",
    1874: "self.transfer_infos.pop(",
}
LEEWAY = 2

STICKY = "-:-BWTS F:FFFFF B:FBWTS W:FWWTS T:FTTTS S:SSSSS"


@dataclass(frozen=True, slots=True)
class Fixed:
    """A pinned tree after ``kvlint fix``, beside the texts from before."""

    root: Path
    before: dict[str, str]
    exit_code: int


@pytest.fixture(scope="module")
def fixed(pinned: Path, tmp_path_factory: pytest.TempPathFactory) -> Fixed:
    root = tmp_path_factory.mktemp("fixed")
    shutil.copytree(pinned / "sglang", root / "sglang")
    before = texts(root)
    return Fixed(root, before, observed.run("fix", ".", cwd=root).returncode)


def texts(root: Path) -> dict[str, str]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes().decode("utf-8", "surrogateescape")
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize(("line", "fragment"), PLACES.items())
def test_lines_are_those_of_the_commit(line: int, fragment: str, pinned: Path) -> None:
    lines = (pinned / NIXL).read_text(encoding="utf-8").splitlines()
    near = lines[line - 1 - LEEWAY : line + LEEWAY]
    assert any(fragment in text for text in near), near


def test_only_the_backend_file_differs(pinned: Path, release: Callable[[str], Path]) -> None:
    before, after = texts(release(pin.VERSION)), texts(pinned)
    assert [path for path in after if before.get(path) != after[path]] == [NIXL]
    assert before.keys() == after.keys()


def test_a_source_without_the_anchors_is_refused() -> None:
    with pytest.raises(pin.AnchorLost):
        pin.pinned_source("def transfer_worker(self):\n    pass\n")


def test_findings(pinned: Path) -> None:
    assert observed.findings(pinned) == {
        "KVL001": Counter(
            [
                "nixl/conn.py:723",
                "nixl/conn.py:886",
                "nixl/conn.py:1911",
                "mooncake/conn.py:1487",
                "common/conn.py:986",
            ]
        ),
        "KVL002": Counter(["nixl/conn.py:712"]),
        "KVL003": Counter(["nixl/conn.py:1874"]),
        "KVL004": Counter(["common/conn.py:214"]),
        "KVL005": Counter(),
    }


def test_fix_leaves_nothing(fixed: Fixed) -> None:
    assert fixed.exit_code == 0
    checked = observed.run("check", ".", cwd=fixed.root)
    assert (checked.returncode, checked.stdout) == (0, "")


def test_fix_changes_two_files_and_only_inserts(fixed: Fixed) -> None:
    after = texts(fixed.root)
    changed = [path for path in after if fixed.before.get(path) != after[path]]
    assert changed == [COMMON, NIXL]
    assert after.keys() == fixed.before.keys()
    for path in changed:
        matcher = difflib.SequenceMatcher(
            None, fixed.before[path].splitlines(), after[path].splitlines(), autojunk=False
        )
        assert {tag for tag, *_ in matcher.get_opcodes()} == {"equal", "insert"}


def test_fixing_again_changes_nothing(fixed: Fixed) -> None:
    before = texts(fixed.root)
    again = observed.run("fix", ".", cwd=fixed.root)
    assert again.returncode == 0
    assert texts(fixed.root) == before


def test_git_applies_the_diff(fixed: Fixed, pinned: Path, tmp_path: Path) -> None:
    shutil.copytree(pinned / "sglang", tmp_path / "sglang")
    before = texts(tmp_path)
    diff = observed.run("fix", "--diff", ".", cwd=tmp_path)
    assert texts(tmp_path) == before, "--diff wrote to the tree"
    subprocess.run(
        ["git", "apply", "-"],
        cwd=tmp_path,
        input=diff.stdout,
        text=True,
        check=True,
        env={**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)},
    )
    assert texts(tmp_path) == texts(fixed.root)


def test_fixed_writer_keeps_both_terminals(fixed: Fixed) -> None:
    tables = observed.tables(fixed.root)
    assert tables["common/conn.py:214"] == STICKY
