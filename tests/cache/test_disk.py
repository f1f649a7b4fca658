"""What the disk answers when it is asked for modules."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvlint.semantics import disk as module
from kvlint.semantics.disk import FOLDER, Disk


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("a/x.py", "a/y.py", "a/z.txt", "b/x.py", "c/sub/x.py"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"class Name: pass  # {name}\n")
    return tmp_path


def test_the_nearest_module_upwards_is_found_after_the_roots(tree: Path) -> None:
    inside = str(tree / "c" / "sub")
    assert Disk(()).finds(inside, "x") == str(tree / "c" / "sub" / "x")
    assert Disk(()).finds(inside, "a.x") == str(tree / "a" / "x")
    assert Disk((str(tree / "b"),)).finds(inside, "x") == str(tree / "b" / "x")
    assert Disk(()).finds(inside, "no_such_module") is None


def test_the_standard_library_is_never_looked_for(tree: Path) -> None:
    (tree / "logging.py").touch()
    assert Disk(()).finds(str(tree), "logging") is None


def test_what_stands_at_a_stem(tree: Path) -> None:
    assert Disk(()).stands(str(tree / "a" / "x")) == str(tree / "a" / "x.py")
    assert Disk(()).stands(str(tree / "a")) == FOLDER
    assert Disk(()).stands(str(tree / "q")) is None
    extra = {str(tree / "q.py")}
    assert Disk((), extra).stands(str(tree / "q")) == str(tree / "q.py")


def test_a_question_is_asked_once(tree: Path) -> None:
    disk = Disk(())
    assert disk.stands(str(tree / "q")) is None
    (tree / "q.py").touch()
    assert disk.stands(str(tree / "q")) is None
    assert Disk(()).stands(str(tree / "q")) == str(tree / "q.py")


def test_neighbours_mention_a_name_and_stand_nearby(tree: Path) -> None:
    (tree / "b" / "other.py").write_text("x = 1\n")
    (tree / "b" / "folder.py").mkdir()
    (tree / "b" / "gone.py").symlink_to(tree / "nowhere")
    found = Disk(()).neighbours(str(tree / "a" / "x.py"), frozenset({"Name"}))
    assert found == (str(tree / "a" / "y.py"), str(tree / "b" / "x.py"))


def test_what_cannot_be_read_does_not_count(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise PermissionError(13, "Permission denied")

    assert Disk(()).neighbours(str(tree / "missing" / "folder" / "x.py"), frozenset({"Name"})) == ()
    monkeypatch.setattr("builtins.open", refuse)
    assert Disk(()).neighbours(str(tree / "a" / "x.py"), frozenset({"Name"})) == ()


def test_neighbours_are_bounded(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_NEIGHBOURS", 2)
    assert Disk(()).neighbours(str(tree / "a" / "x.py"), frozenset({"Name"})) == (str(tree / "a" / "y.py"),)
