"""``--diff-base``, on real repositories made for each test."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]

CANDIDATE = "status = KVPoll.Failed\n"
FILE = CANDIDATE + "first = LOST\nmiddle = 1\nlast = LOST\n"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Git with nobody's settings."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Somebody")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "somebody@example.org")


def git(*arguments: str, folder: str = ".") -> str:
    command = ["git", "-c", "protocol.file.allow=always", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return os.fsdecode(done.stdout).strip()


def write(path: str, text: str | bytes) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text)


def commit(message: str = "more", folder: str = ".") -> None:
    git("add", "--all", folder=folder)
    git("commit", "--quiet", "--allow-empty", "--message", message, folder=folder)


def repository(folder: str = ".", **files: str | bytes) -> None:
    """A repository whose branch ``main`` has one commit of ``files`` (without their suffix)."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    git("init", "--quiet", "--initial-branch", "main", folder=folder)
    for name, text in files.items():
        write(f"{folder}/{name}.py", text)
    commit("base", folder)


def places(result: Result) -> list[str]:
    assert result.exit_code in (0, 1), result.stderr
    return re.findall(r"^(\S.*?:\d+):\d+: KVL", result.stdout, flags=re.MULTILINE)


def refusal(result: Result) -> str:
    assert (result.exit_code, result.stdout) == (2, "")
    return result.stderr


def test_only_changed_lines_are_reported(kvlint: Run) -> None:
    repository(a=FILE, b=FILE)
    clean = kvlint("check", "--diff-base", "main")
    assert (clean.exit_code, clean.stdout) == (0, "")
    assert clean.stderr == "No findings, 4 on unchanged lines (2 files checked, 2 with a status protocol).\n"
    write("a.py", FILE.replace("last", "newer").replace("middle", "\n\nmiddle"))
    result = kvlint("check", "--diff-base", "main")
    assert result.exit_code == 1
    assert places(result) == ["a.py:6"]
    assert result.stderr.startswith("1 finding, 3 on unchanged lines (2 files checked,")
    assert kvlint("check", "--diff-base", "main", "--exit-zero").exit_code == 0
    assert "changes since: main\n" in kvlint("check", "--diff-base", "main", "--verbose").stderr


def test_committed_staged_unstaged_and_untracked_changes_count(kvlint: Run) -> None:
    repository(a=FILE)
    git("switch", "--quiet", "--create", "topic")
    write("committed.py", FILE)
    commit()
    write("staged.py", FILE)
    write("a.py", FILE + "more = LOST\n")
    git("add", "staged.py", "a.py")
    write("a.py", FILE + "more = LOST\nand_more = LOST\n")
    write("intended.py", FILE)
    git("add", "--intent-to-add", "intended.py")
    write("untracked.py", FILE)
    write(".gitignore", "ignored.py\n")
    write("ignored.py", FILE)
    expected = ["a.py:5", "a.py:6"]
    for name in ("committed", "intended", "staged", "untracked"):
        expected += [f"{name}.py:2", f"{name}.py:4"]
    assert places(kvlint("check", "--diff-base", "main")) == expected
    # Named, it is checked; and all of it is new to the repository.
    assert places(kvlint("check", "ignored.py", "--diff-base", "main")) == ["ignored.py:2", "ignored.py:4"]
    git("rm", "--quiet", "--force", "--cached", "a.py")
    assert places(kvlint("check", "a.py", "--diff-base", "main"))[0] == "a.py:2"


def test_the_comparison_starts_where_the_branch_does(kvlint: Run) -> None:
    repository(a=FILE)
    git("branch", "topic")
    write("a.py", FILE.replace("first", "changed_on_main"))
    commit()
    git("switch", "--quiet", "topic")
    write("a.py", FILE.replace("last", "changed_here"))
    assert places(kvlint("check", "--diff-base", "main")) == ["a.py:4"]
    for revision in ("HEAD", "topic", "HEAD~0", git("rev-parse", "HEAD")[:10], "main~1"):
        assert places(kvlint("check", "--diff-base", revision)) == ["a.py:4"]


def test_a_deletion_touches_what_it_is_inside_of(kvlint: Run) -> None:
    call = "x = f(\n    1,\n    LOST,\n)\n"
    repository(a=CANDIDATE + "gone = 0\n" + call + "gone = 1\n")
    write("a.py", CANDIDATE + call)
    assert places(kvlint("check", "--diff-base", "main")) == []
    write("a.py", CANDIDATE + "gone = 0\n" + call.replace("    1,\n", "") + "gone = 1\n")
    assert places(kvlint("check", "--diff-base", "main")) == ["a.py:4"]


def test_a_finding_is_touched_by_what_it_rests_on(kvlint: Run) -> None:
    """The stand-in refers to the first line of base.py."""
    base = "def update_status(self, room, status):\n    if room:\n        return\n    self.table[room] = status\n"
    repository(a=FILE, base=base + "\n\ndef other():\n    pass\n", unrelated="x = 1\n")
    write("unrelated.py", "x = 2\n")
    write("base.py", base + "\n\ndef other():\n    return 1\n")
    assert places(kvlint("check", "--diff-base", "main")) == []
    # What was removed from the writer changes what its callers do.
    write("base.py", base.replace("    if room:\n        return\n", "") + "\n\ndef other():\n    pass\n")
    assert places(kvlint("check", "--diff-base", "main")) == ["a.py:2", "a.py:4"]
    assert places(kvlint("check", "a.py", "--diff-base", "main")) == ["a.py:2", "a.py:4"]


def test_a_place_in_a_file_that_cannot_be_decoded(kvlint: Run) -> None:
    repository(a=FILE, base=b"# coding: no-such\n\n")
    write("base.py", b"# coding: no-such\n\n# more\n")
    assert places(kvlint("check", "a.py", "--diff-base", "main")) == []
    write("base.py", b"# coding: unknown\n\n")
    assert places(kvlint("check", "a.py", "--diff-base", "main")) == ["a.py:2", "a.py:4"]


def test_an_unreadable_file_is_touched_by_any_change(kvlint: Run) -> None:
    repository(a=CANDIDATE + "(\n", b=CANDIDATE + "(\n")
    write("a.py", CANDIDATE + "(\n# more\n")
    assert places(kvlint("check", "--diff-base", "main")) == ["a.py:2"]
    write("a.py", "\n" + CANDIDATE + "(\n")
    assert places(kvlint("check", "--diff-base", "main")) == ["a.py:3"]


def test_renamed_copied_and_deleted_files(kvlint: Run) -> None:
    long = CANDIDATE + "".join(f"x{number} = {number}\n" for number in range(50)) + "old = LOST\n"
    repository(a=long, b=long.replace("x", "y"), c=long.replace("x", "z"))
    os.mkdir("sub")
    git("mv", "a.py", "sub/renamed.py")
    write("sub/renamed.py", long.replace("x7 ", "x7 = LOST") + "new = LOST\n")
    shutil.copy("c.py", "copied.py")
    git("add", "--all")
    os.remove("b.py")
    assert places(kvlint("check", "--diff-base", "main")) == ["copied.py:52", "sub/renamed.py:9", "sub/renamed.py:53"]
    git("config", "diff.renames", "copies")
    assert "sub/renamed.py:9" in places(kvlint("check", "--diff-base", "main"))
    git("config", "diff.renames", "false")
    assert "sub/renamed.py:52" not in places(kvlint("check", "--diff-base", "main"))


def test_modes_and_kinds(kvlint: Run) -> None:
    repository(a=FILE, b=FILE, c=FILE)
    os.chmod("a.py", os.stat("a.py").st_mode | stat.S_IXUSR)
    os.remove("b.py")
    os.symlink("c.py", "b.py")
    assert places(kvlint("check", "--diff-base", "main")) == []
    # A link is followed to the file that is checked.
    assert places(kvlint("check", "b.py", "--diff-base", "main")) == []
    write("c.py", FILE.replace("first", "changed"))
    assert places(kvlint("check", "b.py", "--diff-base", "main")) == ["b.py:2"]
    commit()
    os.remove("b.py")
    write("b.py", FILE)
    assert places(kvlint("check", "--diff-base", "HEAD")) == ["b.py:2", "b.py:4"]


def test_what_git_was_told_not_to_look_at(kvlint: Run) -> None:
    repository(a=FILE, b=FILE, c=FILE)
    git("update-index", "--assume-unchanged", "a.py")
    git("update-index", "--skip-worktree", "b.py")
    write("a.py", FILE.replace("first", "changed"))
    write("b.py", FILE.replace("first", "changed"))
    # Which lines changed nobody can tell, so all count.
    assert places(kvlint("check", "--diff-base", "main")) == ["a.py:2", "a.py:4", "b.py:2", "b.py:4"]


def test_line_ends(kvlint: Run) -> None:
    repository(a=FILE, b=FILE.replace("\n", "\r\n"), c=FILE.replace("\n", "\r"))
    write("a.py", FILE.replace("\n", "\r\n").replace("last", "changed"))
    write("b.py", FILE.replace("first", "changed"))
    assert places(kvlint("check", "--diff-base", "main")) == ["a.py:4", "b.py:2"]
    # To Git this is one line.
    write("c.py", FILE.replace("first", "changed").replace("\n", "\r"))
    assert places(kvlint("check", "c.py", "--diff-base", "main")) == ["c.py:2", "c.py:4"]


def test_what_git_takes_for_binary(kvlint: Run) -> None:
    repository(a=FILE, b=CANDIDATE.encode() + b"x = 'caf\xe9'\n# coding\nfirst = LOST\n")
    write(".gitattributes", "*.py -diff binary\n")
    write("a.py", FILE.replace("last", "changed"))
    assert places(kvlint("check", "--diff-base", "main")) == ["a.py:4"]
    write("b.py", b"# coding: latin-1\n" + CANDIDATE.encode() + b"x = 'caf\xe9'\nfirst = LOST\nsecond = LOST\n")
    assert places(kvlint("check", "b.py", "--diff-base", "main")) == ["b.py:5"]


@pytest.mark.parametrize(
    "name", ["with space", "é", 'quo"te', "line\nfeed", "tab\t", "caf\udce9", "-x", ":(top)y", "*"]
)
def test_odd_names(kvlint: Run, name: str) -> None:
    repository(**{name: FILE, "other": FILE})
    write(f"./{name}.py", FILE.replace("last", "changed"))
    result = kvlint("check", "--diff-base", "main")
    assert result.exit_code == 1
    assert [place.rpartition(":")[2] for place in places(result)] == ["4"]
    git("mv", "--", f"./{name}.py", f"./{name}2.py")
    assert [place.rpartition(":")[2] for place in places(kvlint("check", "--diff-base", "main"))] == ["4"]


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


def test_conflicts_of_a_merge(kvlint: Run) -> None:
    repository(a=FILE, b=FILE)
    git("switch", "--quiet", "--create", "topic")
    write("a.py", FILE.replace("middle = 1", "middle = 2"))
    commit()
    git("switch", "--quiet", "main")
    write("a.py", FILE.replace("middle = 1", "middle = 3"))
    commit()
    merged = subprocess.run(["git", "merge", "topic"], capture_output=True, check=False)
    assert merged.returncode == 1
    assert places(kvlint("check", "--diff-base", "main")) == ["a.py:3"]
    write("a.py", FILE.replace("middle = 1", "middle = 4").replace("last", "changed"))
    assert places(kvlint("check", "--diff-base", "main")) == ["a.py:4"]


def test_with_a_baseline(kvlint: Run) -> None:
    repository(a=FILE)
    kvlint("check", "--baseline", "known.json", "--write-baseline")
    write("a.py", FILE.replace("first", "changed").replace("last = LOST", "last = LOST  # touched") + "new = LOST\n")
    write("b.py", FILE)
    result = kvlint("check", "a.py", "--diff-base", "main", "--baseline", "known.json")
    assert places(result) == ["a.py:2", "a.py:5"]
    assert "1 finding of the baseline is gone" in result.stderr
    assert "2 new findings, 1 known (" in result.stderr
    commit()
    write("a.py", FILE.replace("first", "again"))
    result = kvlint("check", "--diff-base", "HEAD", "--baseline", "known.json")
    assert "1 new finding, 1 known, 2 on unchanged lines (2 files checked" in result.stderr


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


def test_a_crash_is_still_one(kvlint: Run) -> None:
    repository(a=CANDIDATE + "CRASH\n", b=FILE)
    assert kvlint("check", "--diff-base", "main").exit_code == 2


@pytest.mark.parametrize("output_format", ["json", "github", "gitlab"])
def test_every_format(kvlint: Run, output_format: str) -> None:
    repository(a=FILE)
    write("a.py", FILE.replace("last", "changed"))
    result = kvlint("check", "--diff-base", "main", "--output-format", output_format, "--statistics")
    assert result.exit_code == 1
    assert result.stdout.count("KVL001") == 1
    assert "     1  KVL001" in result.stderr
