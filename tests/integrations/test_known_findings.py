"""Baselines and changed lines with the real analysis, on fixtures: what an edit makes new, and what it leaves known."""

from __future__ import annotations

import os
import shutil
import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kvlint.cli import cli

ROOT = Path(__file__).parent.parent.parent
RULES = ROOT / "fixtures" / "rules"
SEVERAL_FILES = RULES / "kvl001_non_terminal_write_after_failed" / "cross_file_override"
SKIP = RULES / "kvl002_skip_without_terminal_write" / "bad.py"
WRITE = ("--baseline", "known.json", "--write-baseline")

Run = Callable[..., Result]


@pytest.fixture
def kvlint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return lambda *arguments: CliRunner().invoke(cli, ["check", "--jobs", "1", *arguments], catch_exceptions=False)


def committed() -> None:
    identity = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"]
    for command in (
        ["init", "--quiet", "--initial-branch", "main"],
        ["add", "--all"],
        ["commit", "--quiet", "-m", "base"],
    ):
        subprocess.run(["git", *identity, *command], check=True)


def codes(result: Result) -> list[str]:
    return [line.split()[1] for line in result.stdout.splitlines() if not line.startswith(" ")]


@pytest.mark.parametrize("fixture", sorted(RULES.glob("*/bad.py")), ids=lambda path: path.parent.name[:6])
def test_what_a_fixture_shows_is_known_after_every_edit_that_changes_nothing(kvlint: Run, fixture: Path) -> None:
    text = fixture.read_text(encoding="utf-8")
    Path("a.py").write_text(text, encoding="utf-8")
    asked = ("--extend-select", fixture.parent.name[:6])
    found = codes(kvlint(*asked))
    assert found
    assert kvlint(*asked, *WRITE).exit_code == 0
    moved = "# one\n\n# two\n" + text
    indented = "if True:\n" + textwrap.indent(text, "    ")
    wrapped = text.replace("\n", "\r\n")
    for edited in (moved, indented, wrapped, text.replace("\n\n\n", "\n\n\n\nunrelated = 1\n\n\n")):
        Path("a.py").write_bytes(edited.encode())
        result = kvlint(*asked, "--baseline", "known.json")
        assert codes(result) == []
        assert f"No new findings, {len(found)} known" in result.stderr
        assert "gone" not in result.stderr
    Path("a.py").write_text(text, encoding="utf-8")
    os.rename("a.py", "b.py")
    assert codes(kvlint(*asked, "--baseline", "known.json")) == []
    shutil.copy("b.py", "a.py")
    assert codes(kvlint(*asked, "--baseline", "known.json")) == found


def test_a_writer_that_changes_makes_news_of_old_writes(kvlint: Run) -> None:
    shutil.copytree(SEVERAL_FILES, ".", dirs_exist_ok=True)
    committed()
    everything = codes(kvlint())
    assert "KVL004" in everything
    assert codes(kvlint("--diff-base", "main")) == []
    with open("base.py", "a", encoding="utf-8") as stream:
        stream.write("\n\nunrelated = 1\n")
    assert codes(kvlint("--diff-base", "main")) == []
    lines = Path("base.py").read_text(encoding="utf-8").split("\n")
    writer = next(number for number, line in enumerate(lines) if "def update_status" in line)
    lines.insert(writer + 1, "        # A change in the writer.")
    Path("base.py").write_text("\n".join(lines), encoding="utf-8")
    assert codes(kvlint("--diff-base", "main")) == everything
    # A target that did not change at all is touched through its base.
    assert codes(kvlint("plain_backend.py", "--diff-base", "main")) == ["KVL001"]


def test_a_conclusion_that_is_removed_makes_a_skip_news(kvlint: Run) -> None:
    """Neither the decision nor the ``continue`` is a changed line then, but the branch between them is."""
    bad = SKIP.read_text(encoding="utf-8").split("\n")
    shutil.copy(SKIP, "a.py")
    (place,) = [line.split(":")[1] for line in kvlint("--select", "KVL002").stdout.splitlines() if " KVL002 " in line]
    skip = int(place) - 1
    assert bad[skip].strip().startswith("continue")
    good = [*bad[:skip], bad[skip].replace("continue", "self.conclude(room)"), *bad[skip:]]
    Path("a.py").write_text("\n".join(good), encoding="utf-8")
    committed()
    Path("a.py").write_text("\n".join(bad), encoding="utf-8")
    assert codes(kvlint("--select", "KVL002", "--diff-base", "main")) == ["KVL002"]
