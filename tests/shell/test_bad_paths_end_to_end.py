"""Whatever the named paths are, the real command says clearly what it made of them and loses nothing."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import kvlint as package

from .backends import BACKEND, FINDING, assert_only_inserted, kvlint


def test_an_empty_folder_and_an_empty_file(tmp_path: Path) -> None:
    done = kvlint(tmp_path, "check", ".")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"No Python files found.\n")
    (tmp_path / "empty.py").touch()
    done = kvlint(tmp_path, "fix", "empty.py")
    assert (done.returncode, done.stderr) == (0, b"0 files changed, 0 findings left.\n")


@pytest.mark.parametrize("command", ["check", "fix", "inspect"])
def test_a_missing_path_is_an_error_before_anything_is_done(command: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(BACKEND)
    done = kvlint(tmp_path, command, "a.py", "absent.py")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"no such file or folder: absent.py" in done.stderr
    assert (tmp_path / "a.py").read_text() == BACKEND


def test_a_read_only_file_stays_as_it_is(tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(BACKEND)
    (tmp_path / "a.py").chmod(0o444)
    done = kvlint(tmp_path, "fix", ".")
    assert done.returncode == 1
    assert done.stdout.decode().startswith(f"a.py:{FINDING}")
    assert b"not fixed: a.py: is read-only; make it writable and run again\n" in done.stderr
    assert b"1 file changed, 1 finding left.\n" in done.stderr
    assert (tmp_path / "a.py").read_text() == BACKEND
    assert stat.S_IMODE((tmp_path / "a.py").stat().st_mode) == 0o444
    assert_only_inserted(BACKEND.encode(), (tmp_path / "b.py").read_bytes())


def test_links_that_lead_nowhere_or_back(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(BACKEND)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "back").symlink_to("..", target_is_directory=True)
    (tmp_path / "sub" / "loop.py").symlink_to("loop.py")
    (tmp_path / "sub" / "dangling.py").symlink_to("absent.py")
    done = kvlint(tmp_path, "check", ".")
    assert (done.returncode, done.stdout.count(b"KVL004")) == (1, 1)
    assert b"1 file checked" in done.stderr
    named = kvlint(tmp_path, "check", "a.py", "sub/loop.py")
    assert (named.returncode, named.stdout) == (2, b"")
    assert b"cannot look at sub/loop.py: Too many levels of symbolic links" in named.stderr
    assert b"no such file or folder: sub/dangling.py" in kvlint(tmp_path, "check", "sub/dangling.py").stderr


def test_pipes_and_sockets_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").write_text(BACKEND)
    os.mkfifo(tmp_path / "pipe.py")
    # A socket's path has to be short.
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket.py")
        done = kvlint(tmp_path, "check", ".")
        assert (done.returncode, done.stdout.count(b"KVL004")) == (1, 1)
        for name, kind in (("pipe.py", b"a named pipe"), ("socket.py", b"a socket")):
            named = kvlint(tmp_path, "check", name)
            assert (named.returncode, named.stdout) == (2, b"")
            assert name.encode() + b" is " + kind in named.stderr


@pytest.mark.parametrize("name", [b"two words.py", b"line\nbreak.py", b"caf\xe9.py", "日本.py".encode(), b"-dash.py"])
def test_any_path_will_do(name: bytes, tmp_path: Path) -> None:
    path = os.path.join(os.fsencode(tmp_path), name)
    try:
        with open(path, "xb") as file:
            file.write(BACKEND.encode())
    except OSError:
        pytest.skip("this file system takes no such name")
    done = kvlint(tmp_path, "check", ".")
    assert (done.returncode, done.stdout.count(b"\n")) == (1, 1)
    assert f":{FINDING}".encode() in done.stdout
    (finding,) = json.loads(kvlint(tmp_path, "check", "--output-format", "json", ".").stdout)["findings"]
    assert finding["code"] == "KVL004"
    assert kvlint(tmp_path, "check", "--", name).returncode == 1
    diff = kvlint(tmp_path, "fix", "--diff", ".").stdout
    assert kvlint(tmp_path, "fix", ".").returncode == 0
    with open(path, "rb") as file:
        assert_only_inserted(BACKEND.encode(), file.read())
    # What is printed is a patch of the same edit, also to git, whatever quoting the name needs.
    outside = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    subprocess.run(["git", "apply", "--reverse", "-"], input=diff, cwd=tmp_path, env=outside, check=True)
    with open(path, "rb") as file:
        assert file.read() == BACKEND.encode()
    assert os.listdir(os.fsencode(tmp_path)) == [name]


def test_the_current_folder_is_gone(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = (
        "import os, sys; os.rmdir(os.getcwd()); from kvlint.cli import main; sys.argv = ['kvlint', 'check']; main()"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(package.__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-c", script], cwd=gone, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: the current folder cannot be used (No such file or directory)")
