"""``--diff-base`` where there is no answer: the command says why, and what to do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from .repositories import FILE, commit, git, places, refusal, repository, write

Run = Callable[..., Result]

pytestmark = pytest.mark.usefixtures("nobodys_git")


def test_revisions_that_are_none(kvlint: Run) -> None:
    repository(a=FILE)
    for revision in ("", "-x", "--output=x", "--help"):
        assert "is no revision" in refusal(kvlint("check", f"--diff-base={revision}"))
    assert sorted(os.listdir()) == [".git", "a.py"]
    for revision in ("no-such", "main..HEAD", "main:a.py", "HEAD~9", "a b", "x;touch y", "$(touch y)", "'"):
        said = refusal(kvlint("check", "--diff-base", revision))
        assert f"names no commit in {os.getcwd()}; is it fetched?" in said
    assert "names no commit" in refusal(kvlint("check", "--diff-base", "new\nline"))
    assert sorted(os.listdir()) == [".git", "a.py"]


def test_revisions_are_looked_up_before_anything_is_analysed(kvlint: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    repository(a="x = 1\n")
    monkeypatch.setattr("kvlint.engine.check_targets", None)
    assert "names no commit" in refusal(kvlint("check", "--diff-base", "no-such"))
    assert "no such file or folder: missing" in refusal(kvlint("check", "missing", "--diff-base", "main"))


def test_a_repository_without_commits(kvlint: Run) -> None:
    git("init", "--quiet", "--initial-branch", "main")
    write("a.py", FILE)
    assert "'HEAD' names no commit" in refusal(kvlint("check", "--diff-base", "HEAD"))
    commit()
    git("switch", "--quiet", "--orphan", "empty")
    write("a.py", FILE)
    assert "has no commit on its current branch yet" in refusal(kvlint("check", "--diff-base", "main"))
    commit("another root")
    assert "'main' and HEAD have no commit in common" in refusal(kvlint("check", "--diff-base", "main"))


def test_a_shallow_clone(kvlint: Run) -> None:
    repository("origin", a=FILE)
    git("branch", "topic", folder="origin")
    write("origin/b.py", FILE)
    commit(folder="origin")
    git("switch", "--quiet", "topic", folder="origin")
    write("origin/c.py", FILE)
    commit(folder="origin")
    source = Path("origin").resolve().as_uri()
    git("clone", "--quiet", "--depth", "1", "--branch", "topic", source, "clone")
    said = refusal(kvlint("check", "clone", "--diff-base", "origin/main"))
    assert "'origin/main' names no commit" in said
    assert "`fetch-depth: 0`" in said
    git("fetch", "--quiet", "--depth", "1", "origin", "main:refs/remotes/origin/main", folder="clone")
    said = refusal(kvlint("check", "clone", "--diff-base", "origin/main"))
    assert "have no commit in common" in said
    assert "`fetch-depth: 0`" in said
    git("fetch", "--quiet", "--unshallow", folder="clone")
    assert places(kvlint("check", "clone", "--diff-base", "origin/main")) == ["clone/c.py:2", "clone/c.py:4"]


def test_no_repository(kvlint: Run, tmp_path: Path) -> None:
    write("a.py", FILE)
    assert f"error: {tmp_path} lies in no Git repository\n" in refusal(kvlint("check", "--diff-base", "main"))
    git("init", "--quiet", "--bare", "bare")
    said = refusal(kvlint("check", "bare", "--diff-base", "main"))
    assert f"{tmp_path}/bare lies in a Git repository, but not in a working tree" in said
    repository("full", a=FILE)
    assert "not in a working tree of it" in refusal(kvlint("check", "full/.git", "--diff-base", "main"))


def test_a_repository_that_git_refuses(kvlint: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    repository(a=FILE)
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    write(
        "program/git", "#!/bin/sh\necho \"fatal: detected dubious ownership in repository at '$PWD'\" >&2\nexit 128\n"
    )
    os.chmod("program/git", 0o755)
    monkeypatch.setenv("PATH", f"{os.getcwd()}/program", prepend=os.pathsep)
    assert "git says: fatal: detected dubious ownership" in refusal(kvlint("check", "--diff-base", "main"))


def test_git_is_not_there_or_fails(kvlint: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    repository(a=FILE)
    program = shutil.which("git")
    write("program/git", f'#!/bin/sh\ncase "$*" in *" diff "*) exit 3;; esac\nexec {program} "$@"\n')
    os.chmod("program/git", 0o755)
    monkeypatch.setenv("PATH", f"{os.getcwd()}/program")
    assert "git diff failed in" in refusal(kvlint("check", "--diff-base", "main"))
    write("program/git", f'#!/bin/sh\ncase "$*" in *" ls-files "*) exit 3;; esac\nexec {program} "$@"\n')
    assert "git ls-files failed in" in refusal(kvlint("check", "--diff-base", "main"))
    os.chmod("program/git", 0o644)
    assert "git cannot be run in" in refusal(kvlint("check", "--diff-base", "main"))
    os.remove("program/git")
    assert "git was not found" in refusal(kvlint("check", "--diff-base", "main"))


def test_standard_input_has_no_history(kvlint: Run) -> None:
    repository(a=FILE)
    said = refusal(kvlint("check", "--stdin-filename", "a.py", "--diff-base", "main", stdin=b""))
    assert "--diff-base compares files" in said


def test_installed_distributions_have_none_either(kvlint: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository("here", a=FILE)
    write("library/pkg/a.py", FILE)
    write("library/pkg-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: pkg\nVersion: 1.0\n")
    write("library/pkg-1.0.dist-info/RECORD", "pkg/a.py,,\n")
    monkeypatch.syspath_prepend(tmp_path / "library")
    assert "library/pkg lies in no Git repository" in refusal(
        kvlint("check", "--installed", "pkg", "--diff-base", "main")
    )
