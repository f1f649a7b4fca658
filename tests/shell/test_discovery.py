from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from kvlint.config import Config
from kvlint.source.discovery import PathError, discover
from kvlint.source.display import DisplayPaths, Target, one_line, printable


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def touch(*paths: str) -> None:
    for path in paths:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text("")


def shown(*paths: str, exclude: tuple[str, ...] = ()) -> list[str]:
    found = discover(paths, Config(exclude=exclude, folder=os.getcwd()))
    assert all(os.path.samefile(target.display, target.path) for target in found.targets)
    return [target.display for target in found.targets]


def warnings(*paths: str, exclude: tuple[str, ...] = ()) -> tuple[str, ...]:
    return discover(paths, Config(exclude=exclude, folder=os.getcwd())).warnings


def test_python_files_below_folders_in_order_and_once() -> None:
    touch("b/z.py", "b/a.pyi", "a/x.py", "a/x.txt", "a/script", "c.py", "a/sub/y.py", "a/folder.py/q.py")
    assert shown(".") == ["a/folder.py/q.py", "a/sub/y.py", "a/x.py", "b/a.pyi", "b/z.py", "c.py"]
    assert shown("b", "a/x.py", "b/z.py") == ["a/x.py", "b/a.pyi", "b/z.py"]


def test_paths_are_shown_as_given(here: Path) -> None:
    touch("a/x.py")
    assert shown("./a") == ["./a/x.py"]
    assert shown("a/") == ["a/x.py"]
    assert shown("a/../a") == ["a/../a/x.py"]
    assert shown(str(here)) == [f"{here}/a/x.py"]
    os.chdir("a")
    assert shown("..") == ["../a/x.py"]
    assert shown("../a/x.py") == ["../a/x.py"]


def test_a_named_file_needs_no_suffix() -> None:
    touch("script", "x.txt")
    assert shown("script") == ["script"]
    assert shown(".") == []


def test_an_empty_folder_holds_nothing() -> None:
    assert shown(".") == []
    assert warnings(".") == ()


def test_folders_that_hold_nothing_of_the_projects_own_are_skipped_unless_named() -> None:
    touch(".venv/a.py", "node_modules/a.py", "build/lib/a.py", "__pycache__/a.py", "env/pyvenv.cfg", "env/lib/a.py")
    touch("src/build.py")
    assert shown(".") == ["src/build.py"]
    assert shown("build") == ["build/lib/a.py"]
    assert shown("env") == ["env/lib/a.py"]


def test_nested_gitignore_files() -> None:
    touch("a.py", "gen/a.py", "src/gen.py", "src/local.py", "src/keep/local.py", "src/keep/other.py")
    Path(".gitignore").write_text("gen/\nlocal.py\n")
    Path("src/keep/.gitignore").write_text("!local.py\nother.py\n")
    assert shown(".") == ["a.py", "src/gen.py", "src/keep/local.py"]


def test_gitignore_files_above_a_named_folder_count_inside_a_repository() -> None:
    touch("src/gen.py", "src/a.py", "gen/a.py", "gen/b.py")
    Path(".gitignore").write_text("gen*\n")
    assert shown("src") == ["src/a.py", "src/gen.py"]
    subprocess.run(["git", "init", "--quiet"], check=True)
    assert shown("src") == ["src/a.py"]
    # But what is named is looked at.
    assert shown("gen") == ["gen/a.py", "gen/b.py"]
    assert shown("src/gen.py") == ["src/gen.py"]


def test_exclude() -> None:
    touch("a/x.py", "a/x_test.py", "third/lib.py", "a/third/lib.py", "b.py")
    assert shown(".", exclude=("third", "*_test.py")) == ["a/x.py", "b.py"]
    assert shown(".", exclude=("/third",)) == ["a/third/lib.py", "a/x.py", "a/x_test.py", "b.py"]
    # pre-commit names files one by one.
    assert shown("b.py", "third/lib.py", "third", exclude=("third",)) == ["b.py"]
    assert warnings("third/lib.py", exclude=("third",)) == ("skipped third/lib.py: it matches `exclude`",)


def test_exclude_in_a_folder_elsewhere(tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("third")
    touch(f"{elsewhere}/third/a.py", f"{elsewhere}/b.py")
    assert shown(str(elsewhere), exclude=("third*",)) == [f"{elsewhere}/b.py"]


def test_links_are_not_followed_unless_named(tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    touch("real/a.py", f"{elsewhere}/out.py")
    os.symlink(elsewhere, "real/out")
    os.symlink(elsewhere / "out.py", "real/out.py")
    os.symlink(".", "real/loop")
    os.symlink("itself", "real/itself")
    os.symlink("nowhere", "real/dangling.py")
    os.symlink("real", "link")
    assert shown(".") == ["real/a.py"]
    assert shown("link") == ["link/a.py"]
    assert shown("real/out.py") == ["real/out.py"]
    assert shown("real/loop/loop") == ["real/loop/loop/a.py"]
    with pytest.raises(PathError, match=r"no such file or folder: real/dangling\.py"):
        discover(["real/dangling.py"], Config())
    with pytest.raises(PathError, match=r"cannot look at real/itself: Too many levels"):
        discover(["real/itself"], Config())


def test_pipes_sockets_and_devices_are_skipped_and_refused_by_name() -> None:
    touch("a.py")
    os.mkfifo("pipe.py")
    os.mkfifo(".gitignore")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.py")
        assert shown(".") == ["a.py"]
        with pytest.raises(PathError, match=r"socket\.py is a socket"):
            discover(["socket.py"], Config())
    with pytest.raises(PathError, match=r"pipe\.py is a named pipe"):
        discover(["pipe.py"], Config())
    with pytest.raises(PathError, match="/dev/null is a device"):
        discover(["/dev/null"], Config())


@pytest.mark.parametrize("path", ["absent", "absent/x.py", "a.py/x.py", "a\0b"])
def test_a_path_that_is_not_there_is_named(path: str) -> None:
    touch("a.py")
    with pytest.raises(PathError) as caught:
        discover([path], Config())
    assert one_line(path) in str(caught.value)


def test_an_empty_path_is_not_the_current_folder() -> None:
    with pytest.raises(PathError, match="an empty path was given"):
        discover([""], Config())


def test_an_unreadable_folder_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    touch("a/x.py", "b/y.py")
    scandir = os.scandir

    def refusing(path: str) -> os._ScandirIterator[str]:
        if path.endswith("/a"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    assert shown(".") == ["b/y.py"]
    assert warnings(".") == ("cannot list a/: Permission denied",)


@pytest.mark.parametrize("name", ["with space.py", "line\nfeed.py", "caf\udce9.py", "tab\t.py", "-dash.py", "é.py"])
def test_odd_names(name: str) -> None:
    touch(f"folder\n{name}/{name}")
    assert shown(".") == [f"folder\n{name}/{name}"]


def test_odd_names_are_printable() -> None:
    assert printable("caf\udce9\n.py") == "caf\\xe9\n.py"
    assert one_line("caf\udce9\n\t é.py") == "caf\\xe9\\n\\t é.py"


def test_files_beside_a_target_are_shown_relative_to_it() -> None:
    names = DisplayPaths(
        [Target("a/b.py", "/x/a/b.py"), Target("/abs/c.py", "/abs/c.py"), Target("../d.py", "/x/d.py")]
    )
    assert names.of("/x/a/b.py") == "a/b.py"
    assert names.of("/x/c/base.py", "/x/a/b.py") == "c/base.py"
    assert names.of("/abs/lib/base.py", "/abs/c.py") == "/abs/lib/base.py"
    assert names.of("/x/e/base.py", "/x/d.py") == "../e/base.py"
    assert names.of("/else/where.py") == "/else/where.py"
    assert names.of("/else/where.py", "/no/target.py") == "/else/where.py"
