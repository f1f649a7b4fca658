"""The bundle in fixes/ is whole: manifest, patches and page of releases agree, and no patch holds a foreign line."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from kvlint.bundle import CLEARED
from kvlint.bundle.manifest import ReleaseEntry, load, render
from kvlint.bundle.patches import parse

ROOT = Path(__file__).parent.parent.parent
FIXES = ROOT / "fixes"
RELEASES = load(FIXES).releases
PATCHED = [entry for entry in RELEASES if entry.patch is not None]

each_patch = pytest.mark.parametrize("entry", PATCHED, ids=lambda entry: entry.version)


def test_the_manifest_is_as_the_tool_writes_it() -> None:
    assert (FIXES / "manifest.toml").read_text(encoding="utf-8") == render(RELEASES)


def test_every_file_is_in_the_manifest_and_the_other_way_round() -> None:
    assert {path.name for path in FIXES.iterdir()} == {"manifest.toml", *(entry.patch for entry in PATCHED)}


@each_patch
def test_a_patch_is_for_the_files_of_its_entry(entry: ReleaseEntry) -> None:
    text = (FIXES / str(entry.patch)).read_bytes()
    assert [patch.path for patch in parse(str(entry.patch), text)] == [file.path for file in entry.files]
    head = text.partition(b"--- a/")[0].decode()
    assert re.findall(r"^File: (\S+)\nSHA-256 before: (\S+)\nSHA-256 after:  (\S+)$", head, flags=re.MULTILINE) == [
        (file.path, file.before, file.after) for file in entry.files
    ]


@each_patch
def test_a_patch_only_inserts(entry: ReleaseEntry) -> None:
    _, mark, diffs = (FIXES / str(entry.patch)).read_text(encoding="utf-8").partition("--- a/")
    assert all(line.startswith(("+", "--- a/", "@@ ")) for line in (mark + diffs).splitlines())


@each_patch
def test_a_patched_writer_keeps_its_terminal_statuses(entry: ReleaseEntry) -> None:
    for writer in entry.writers:
        rows = dict(row.split(":") for row in writer.after.split())
        assert rows["F"] == "F" * len(rows["F"])
        assert rows["S"] == "S" * len(rows["S"])
        assert writer.before != writer.after


def test_a_patched_release_is_clean() -> None:
    assert [entry.title for entry in PATCHED if not set(CLEARED).isdisjoint(entry.remaining)] == []


def test_an_affected_release_without_patch_says_why() -> None:
    """Early releases have stores that bypass the writer, which no safe fix mends."""
    stuck = [entry for entry in RELEASES if entry.affected and entry.patch is None]
    assert [(entry.version, list(entry.insufficient)) for entry in stuck] == [
        (version, ["KVL001"]) for version in ("0.4.5.post3", "0.4.6", "0.4.6.post1", "0.4.6.post2", "0.4.6.post3")
    ]
    assert {load(FIXES).clean_since(entry) for entry in stuck} == {"0.5.20"}


def test_the_page_has_every_release() -> None:
    page = (ROOT / "docs" / "releases.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (sglang) (\S+) \|", page, flags=re.MULTILINE)
    assert list(dict.fromkeys(rows)) == [(entry.package, entry.version) for entry in RELEASES]


@pytest.mark.parametrize("entry", RELEASES, ids=lambda entry: entry.version)
def test_the_page_agrees_with_the_manifest(entry: ReleaseEntry) -> None:
    page = (ROOT / "docs" / "releases.md").read_text(encoding="utf-8")
    rows = re.findall(rf"^\| {entry.package} {re.escape(entry.version)} \|.*$", page, flags=re.MULTILINE)
    assert ("an abort can be lost" in rows[0]) == entry.affected


def test_the_bundle_is_in_the_wheel(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"kvlint/bundle/fixes/{path.name}" for path in FIXES.iterdir()} <= names
