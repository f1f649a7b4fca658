"""``--diff-base``: which lines count as changed, on real repositories made for each test."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Callable

import pytest
from click.testing import Result

from .repositories import CANDIDATE, FILE, commit, git, places, repository, write

Run = Callable[..., Result]

pytestmark = pytest.mark.usefixtures("nobodys_git")


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
