"""``--diff-base`` in several repositories, submodules and linked working trees, whatever Git's settings say."""

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


@pytest.mark.parametrize(
    "settings",
    [
        {"diff.external": "false"},
        {"color.ui": "always", "color.diff": "always", "diff.colorMoved": "zebra"},
        {"diff.noprefix": "true"},
        {"diff.mnemonicPrefix": "true", "diff.context": "9", "diff.interHunkContext": "9"},
        {"diff.relative": "true", "diff.orderFile": "/no/such/file"},
        {"core.pager": "false", "pager.diff": "true"},
        {"diff.python.textconv": "false", "diff.python.command": "false"},
        {"core.fsmonitor": "./no-such-program", "core.quotePath": "true"},
        {"diff.algorithm": "patience", "diff.indentHeuristic": "false", "diff.ignoreSubmodules": "none"},
        {"core.autocrlf": "true"},
        {"alias.diff": "!false", "diff.wordRegex": ".", "diff.dirstat": "lines"},
    ],
)
def test_nobodys_settings_matter(kvlint: Run, settings: dict[str, str]) -> None:
    repository(**{"sub/a": FILE})
    write(".gitattributes", "*.py diff=python\n")
    for name, value in settings.items():
        git("config", name, value)
    write("sub/a.py", FILE.replace("last", "changed"))
    write("sub/é.py", FILE)
    os.chdir("sub")
    assert places(kvlint("check", "--diff-base", "main")) == ["a.py:4", "é.py:2", "é.py:4"]


def test_the_environment_of_a_hook_does_not_matter(
    kvlint: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    repository("one", a=FILE)
    repository("two", a=FILE)
    write("one/a.py", FILE.replace("last", "changed"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "two" / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "two"))
    monkeypatch.setenv("GIT_INDEX_FILE", "no such index")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    monkeypatch.setenv("GIT_DIFF_OPTS", "--unified=99")
    monkeypatch.setenv("GIT_LITERAL_PATHSPECS", "0")
    monkeypatch.setenv("LANGUAGE", "de")
    assert places(kvlint("check", "one", "--diff-base", "main")) == ["one/a.py:4"]


def test_a_linked_worktree(kvlint: Run) -> None:
    repository("main tree", a=FILE)
    git("worktree", "add", "--quiet", "-b", "topic", "../linked", folder="main tree")
    write("linked/a.py", FILE.replace("last", "changed"))
    assert places(kvlint("check", "linked", "main tree", "--diff-base", "main")) == ["linked/a.py:4"]


def test_several_repositories_and_paths_through_links(kvlint: Run, tmp_path: Path) -> None:
    repository("one", a=FILE)
    repository("two", a=FILE)
    repository("one/nested", a=FILE)
    write("one/a.py", FILE.replace("last", "changed"))
    write("one/nested/a.py", FILE.replace("first", "changed"))
    os.symlink("one", "link")
    found = places(kvlint("check", "one", "two", "--diff-base", "main"))
    assert found == ["one/a.py:4", "one/nested/a.py:2"]
    assert places(kvlint("check", "link/a.py", str(tmp_path / "link"), "--diff-base", "main"))[-1] == "link/a.py:4"


def test_submodules(kvlint: Run) -> None:
    repository("library", a=FILE)
    repository("outer", b=FILE)
    git("submodule", "--quiet", "add", "../library", "lib", folder="outer")
    assert places(kvlint("check", "outer", "--diff-base", "main")) == ["outer/lib/a.py:2", "outer/lib/a.py:4"]
    commit(folder="outer")
    assert places(kvlint("check", "outer", "--diff-base", "main")) == []
    write("outer/lib/a.py", FILE.replace("last", "changed"))
    commit(folder="outer/lib")
    write("outer/lib/a.py", FILE.replace("last", "changed").replace("first", "edited"))
    assert places(kvlint("check", "outer", "--diff-base", "main")) == ["outer/lib/a.py:2", "outer/lib/a.py:4"]
    # Seen from inside, the submodule's own branches count.
    os.chdir("outer/lib")
    assert places(kvlint("check", "--diff-base", "main")) == ["a.py:2"]


def test_a_submodule_in_a_new_submodule(kvlint: Run) -> None:
    repository("inner", a=FILE)
    repository("library", b="x = 1\n")
    git("submodule", "--quiet", "add", "../inner", "in", folder="library")
    commit(folder="library")
    repository("outer", c=FILE)
    git("submodule", "--quiet", "add", "../library", "lib", folder="outer")
    git("submodule", "--quiet", "update", "--init", "--recursive", folder="outer")
    expected = ["outer/lib/in/a.py:2", "outer/lib/in/a.py:4"]
    assert places(kvlint("check", "outer", "--diff-base", "main")) == expected
    assert places(kvlint("check", "outer/lib/in", "--diff-base", "main")) == expected


def test_a_submodule_that_lacks_the_commit(kvlint: Run) -> None:
    repository("library", a=FILE)
    write("library/a.py", FILE + "more = LOST\n")
    commit(folder="library")
    repository("outer", b=FILE)
    git("submodule", "--quiet", "add", "../library", "lib", folder="outer")
    git("-C", "lib", "checkout", "--quiet", "HEAD~1", folder="outer")
    commit(folder="outer")
    shutil.rmtree("outer/lib")
    shutil.rmtree("outer/.git/modules/lib")
    write("library/a.py", FILE + "even = LOST\n")
    commit(folder="library")
    source = Path("library").resolve().as_uri()
    git("clone", "--quiet", "--depth", "1", source, "lib", folder="outer")
    git("submodule", "--quiet", "absorbgitdirs", folder="outer")
    said = refusal(kvlint("check", "outer", "--diff-base", "main"))
    assert "outer/lib: the submodule lacks commit" in said
