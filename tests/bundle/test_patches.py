"""Patches insert, hold nothing of the file they are for, and are understood by other programs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlint.bundle.patches import (
    FilePatch,
    Insertion,
    PatchError,
    backward,
    difference,
    forward,
    line_before,
    parse,
    render,
)

LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"\n", b"+c\n", b"\r\n", b"--- a/x\n", b"\xff\n"]), max_size=12)


@given(old=LINES, new=st.data())
def test_insertions_lead_there_and_back(old: list[bytes], new: st.DataObject) -> None:
    grown = list(old)
    for position in sorted(new.draw(st.sets(st.integers(0, len(old)), max_size=4)), reverse=True):
        grown[position:position] = new.draw(LINES)
    before, after = b"".join(old), b"".join(grown)
    patch = difference("p/a.py", before, after)
    assert forward(patch, before) == after
    assert backward(patch, after) == before
    assert b"".join(line for insertion in patch.insertions for line in insertion.lines).count(b"\n") == len(
        grown
    ) - len(old)
    if patch.insertions:
        assert parse("x.patch", render("head\n\n", [patch])) == (patch,)
    numbered = [b"%d\n" % number for number, _ in enumerate(old, start=1)]
    lines = forward(patch, b"".join(numbered)).splitlines(keepends=True)
    places = [line_before(patch, number) for number, _ in enumerate(lines, start=1)]
    assert places == sorted(places)
    assert all(numbered[place - 1] == line for line, place in zip(lines, places, strict=True) if line in numbered)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (b"a\nb\n", b"a\n", "changes or removes line 2"),
        (b"a\nb\n", b"a\nc\n", "changes or removes line 2"),
        (b"a", b"a\nb\n", "changes or removes line 1"),
        (b"a\n", b"a\nb", "last line without an end"),
    ],
)
def test_what_is_no_insertion(before: bytes, after: bytes, said: str) -> None:
    with pytest.raises(PatchError, match=said):
        difference("p/a.py", before, after)


def test_the_matcher_s_long_runs_do_not_hide_insertions() -> None:
    before, after = b"x\na\nb\nc\ny\n", b"x\ny\na\nb\nc\nx\na\nb\nc\ny\n"
    patch = difference("p/a.py", before, after)
    assert forward(patch, before) == after


def test_where_a_line_was() -> None:
    patch = FilePatch("p/a.py", (Insertion(0, (b"x\n",)), Insertion(2, (b"y\n", b"z\n"))))
    assert [line_before(patch, line) for line in range(1, 7)] == [1, 1, 2, 2, 2, 3]
    assert line_before(FilePatch("p/a.py", ()), 7) == 7


PATCH = render("head\n", [FilePatch("p/a.py", (Insertion(1, (b"x\n", b"y\n")), Insertion(3, (b"z\n",))))])


def test_the_text_of_a_patch() -> None:
    assert PATCH == b"head\n--- a/p/a.py\n+++ b/p/a.py\n@@ -1,0 +2,2 @@\n+x\n+y\n@@ -3,0 +6 @@\n+z\n"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b"--- a/", b"--- b/", "holds no diff"),
        (b"+++ b/p/a.py", b"+++ b/p/b.py", "two names"),
        (b"+++ b/p/a.py\n", b"", "two names"),
        (b"@@ -3,0 +6 @@", b"@@ -3 +6 @@", "not a hunk that inserts"),
        (b"+z", b"-z", "cut off"),
        (b"+z\n", b"", "cut off"),
        (b"+2,2 @@", b"+2,9 @@", "cut off"),
        (b"+2,2 @@", b"+2 @@", "not a hunk"),
        (b"@@ -3,0", b"@@ -0,0", "out of order"),
        (b"p/a.py", b"../a.py", "no plain relative path"),
        (b"p/a.py", b"/p/a.py", "no plain relative path"),
        (b"p/a.py", b"p/./a.py", "no plain relative path"),
        (b"p/a.py", b"p\\a.py", "no plain relative path"),
        (b"p/a.py", b"p a.py", "no plain relative path"),
    ],
)
def test_a_harmed_patch(old: bytes, new: bytes, said: str) -> None:
    assert old in PATCH
    with pytest.raises(PatchError, match=said):
        parse("x.patch", PATCH.replace(old, new))


def test_a_file_that_is_too_short() -> None:
    (patch,) = parse("x.patch", PATCH)
    with pytest.raises(PatchError, match="has 1 lines, the patch inserts after line 3"):
        forward(patch, b"a\n")


def test_insertions_that_are_not_there() -> None:
    (patch,) = parse("x.patch", PATCH)
    with pytest.raises(PatchError, match="are not there"):
        backward(patch, b"a\nx\nq\nb\n")


@pytest.mark.parametrize(
    "command",
    [["git", "apply", "--unidiff-zero", "-p1", "x.patch"], ["patch", "--batch", "-p1", "-i", "x.patch"]],
    ids=["git", "patch"],
)
def test_other_programs_take_it(command: list[str], tmp_path: Path) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    before = b"".join(b"line\n" for _ in range(9))
    after = b"first\n" + before[:20] + b"+ plus\n\n" + before[20:] + b"last\n"
    (tmp_path / "p").mkdir()
    (tmp_path / "p/a.py").write_bytes(before)
    (tmp_path / "x.patch").write_bytes(render("A head: --- not a file name\n\n", [difference("p/a.py", before, after)]))
    environment = {"PATH": "/usr/bin:/bin", "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    subprocess.run(command, cwd=tmp_path, check=True, env=environment)
    assert (tmp_path / "p/a.py").read_bytes() == after
