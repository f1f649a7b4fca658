"""A system that refuses to read or write, or somebody who does so meanwhile: nothing is lost, the other files go on."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kvlint import engine, fix_run
from kvlint.cli import cli
from kvlint.fixing.write import write_atomically
from kvlint.source.text import read_bytes

from .backends import BACKEND, FINDING, assert_only_inserted


def in_process(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments), catch_exceptions=False)


@pytest.fixture
def two_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "conn.py").write_text(BACKEND)
    return tmp_path


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (PermissionError(errno.EACCES, "Permission denied"), "Permission denied"),
        (OSError(errno.EIO, "Input/output error"), "Input/output error"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory"), "No such file or directory"),
    ],
)
def test_a_file_that_cannot_be_read(
    error: OSError, reason: str, two_files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> bytes:
        if path.endswith("a/conn.py"):
            raise error
        return read_bytes(path)

    monkeypatch.setattr(engine, "read_bytes", refuse)
    checked = in_process("check")
    assert checked.exit_code == 1
    first, second = checked.stdout.splitlines()
    assert first == f"a/conn.py:1:1: KVL900 cannot be read: {reason}; nothing in this file was checked"
    assert second.startswith(f"b/conn.py:{FINDING}")
    fixed = in_process("fix")
    assert fixed.exit_code == 1
    assert "fixed b/conn.py: " in fixed.stderr
    assert (two_files / "a" / "conn.py").read_text() == BACKEND
    assert f"warning: a/conn.py: cannot be read: {reason}" in in_process("inspect").stderr


def saved_by_an_editor(path: str) -> None:
    Path(path).write_text(BACKEND + "# new\n")


@pytest.mark.parametrize(
    ("meanwhile", "reason", "left"),
    [
        (saved_by_an_editor, "was changed by someone else meanwhile; run again", BACKEND + "# new\n"),
        (os.unlink, "cannot be written: No such file or directory; nothing was changed", None),
    ],
    ids=["saved", "removed"],
)
def test_a_file_that_changes_while_it_is_fixed(
    meanwhile: Callable[[str], None],
    reason: str,
    left: str | None,
    two_files: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def late(path: str, before: bytes, after: bytes) -> None:
        if path.endswith("a/conn.py"):
            meanwhile(path)
        write_atomically(path, before, after)

    monkeypatch.setattr(fix_run, "write_atomically", late)
    result = in_process("fix")
    assert result.exit_code == 1
    assert f"not fixed: a/conn.py: {reason}" in result.stderr
    assert "1 file changed, 1 finding left.\n" in result.stderr
    path = two_files / "a" / "conn.py"
    assert (path.read_text() if path.exists() else None) == left
    assert os.listdir(two_files / "a") == (["conn.py"] if left else [])
    assert_only_inserted(BACKEND.encode(), (two_files / "b" / "conn.py").read_bytes())


@pytest.mark.parametrize("room_for", [0, 10])
@pytest.mark.parametrize("full", ["a", "b"])
def test_a_full_disk(full: str, room_for: int, two_files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: dict[int, int] = {}
    system_open, system_write = os.open, os.write

    def open_noted(path: str, flags: int, mode: int = 0o777) -> int:
        descriptor = system_open(path, flags, mode)
        opened.pop(descriptor, None)
        if f"/{full}/.kvlint-" in path:
            opened[descriptor] = room_for
        return descriptor

    def write_until_full(descriptor: int, data: bytes) -> int:
        if descriptor not in opened:
            return system_write(descriptor, data)
        if not opened[descriptor]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        opened[descriptor] = 0
        return system_write(descriptor, data[:room_for])

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", open_noted)
        patched.setattr(os, "write", write_until_full)
        result = in_process("fix")
    assert result.exit_code == 1
    assert result.stdout.startswith(f"{full}/conn.py:{FINDING}")
    expected = f"not fixed: {full}/conn.py: cannot be written: No space left on device; nothing was changed; free some"
    assert expected in result.stderr
    for name in ("a", "b"):
        content = (two_files / name / "conn.py").read_bytes()
        assert os.listdir(two_files / name) == ["conn.py"]
        if name == full:
            assert content == BACKEND.encode()
        else:
            assert_only_inserted(BACKEND.encode(), content)
