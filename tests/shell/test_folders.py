"""Where paths lie, and how they are counted and named from a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvlint.source.display import counted
from kvlint.source.folders import checkout_around, from_folder, is_below, with_slash


@pytest.mark.parametrize(
    ("path", "folder", "seen"),
    [
        ("/a/b", "/a", "b"),
        ("/a/b", "/a/", "b"),
        ("/a/b/c", "/a", "b/c"),
        ("/a/b", "/", "a/b"),
        ("/ab/c", "/a", None),
        ("/a", "/a", None),
        ("/a", "/a/b", None),
    ],
)
def test_what_lies_below_a_folder(path: str, folder: str, seen: str | None) -> None:
    assert is_below(path, folder) is (seen is not None)
    assert from_folder(path, folder) == (path if seen is None else seen)


def test_one_slash() -> None:
    assert [with_slash(folder) for folder in ("/", "/a", "/a/")] == ["/", "/a/", "/a/"]


def test_the_nearest_checkout(tmp_path: Path) -> None:
    nested = tmp_path / "outer" / "sub" / "inner"
    (nested / "deep").mkdir(parents=True)
    assert checkout_around(str(nested)) is None
    (tmp_path / "outer" / ".git").mkdir()
    assert checkout_around(str(nested / "deep")) == str(tmp_path / "outer")
    # That of a submodule or a linked working tree is a file.
    (nested / ".git").write_text("gitdir: elsewhere\n")
    assert checkout_around(str(nested / "deep")) == checkout_around(str(nested)) == str(nested)


def test_counts() -> None:
    assert [counted(number, "file") for number in (0, 1, 2)] == ["0 files", "1 file", "2 files"]
