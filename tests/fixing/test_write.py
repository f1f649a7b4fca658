"""Atomic writing: the old text or the new one, never a mix, a stray file or a changed mode."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kvlint.fixing.refusals import WriteRefused
from kvlint.fixing.write import write_atomically

OLD, NEW = b"old\r\n", b"\xef\xbb\xbfnew"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with the old text, alone in its folder."""
    path = tmp_path / "conn.py"
    path.write_bytes(OLD)
    return path


def _refused(file: Path, **options: Any) -> str:
    """The reason of a refusal that left everything as it was."""
    before = file.read_bytes() if file.is_file() else None
    names = sorted(os.listdir(file.parent))
    with pytest.raises(WriteRefused) as refusal:
        write_atomically(str(file), OLD, NEW, **options)
    assert refusal.value.path == str(file)
    assert (file.read_bytes() if file.is_file() else None) == before
    assert sorted(os.listdir(file.parent)) == names
    return refusal.value.reason


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o4755])
def test_text_is_replaced_and_the_mode_kept(file: Path, mode: int) -> None:
    file.chmod(mode)
    write_atomically(str(file), OLD, NEW)
    assert file.read_bytes() == NEW
    assert stat.S_IMODE(file.stat().st_mode) == mode
    assert os.listdir(file.parent) == [file.name]


@pytest.mark.skipif(os.geteuid() != 0, reason="only a superuser can give a file another owner")
def test_owner_is_kept(file: Path) -> None:
    os.chown(file, 1234, 4321)
    write_atomically(str(file), OLD, NEW)
    assert (file.stat().st_uid, file.stat().st_gid) == (1234, 4321)


def test_unchanged_text_is_not_written(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "open", None)
    write_atomically(str(file), OLD, OLD)


def test_relative_name(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    write_atomically(file.name, OLD, NEW)
    assert file.read_bytes() == NEW


def test_longest_name_leaves_room_for_the_temporary_one(tmp_path: Path) -> None:
    file = tmp_path / ("n" * 252 + ".py")
    file.write_bytes(OLD)
    write_atomically(str(file), OLD, NEW)
    assert file.read_bytes() == NEW


def test_short_writes_are_continued(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:2]))
    write_atomically(str(file), OLD, NEW)
    assert file.read_bytes() == NEW


def test_race_with_an_editor(file: Path) -> None:
    file.write_bytes(b"edited")
    assert "changed by someone else" in _refused(file)


def test_race_with_an_editor_during_the_write(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sync = os.fsync

    def edit(descriptor: int) -> None:
        sync(descriptor)
        file.write_bytes(b"edited")

    monkeypatch.setattr(os, "fsync", edit)
    with pytest.raises(WriteRefused, match="changed by someone else"):
        write_atomically(str(file), OLD, NEW)
    assert file.read_bytes() == b"edited"
    assert os.listdir(file.parent) == [file.name]


def test_removed_file(file: Path) -> None:
    file.unlink()
    assert "No such file" in _refused(file)


def test_read_only_file(file: Path) -> None:
    file.chmod(0o444)
    assert "read-only" in _refused(file)


@pytest.mark.parametrize("part", ["file", "folder"])
def test_what_the_system_locks(file: Path, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    locked = str(file if part == "file" else file.parent)
    monkeypatch.setattr(os, "access", lambda path, _mode: str(path) != locked)
    reason = _refused(file)
    assert ("its folder" in reason) is (part == "folder")
    assert "make it writable" in reason


def test_folder_and_pipe(tmp_path: Path) -> None:
    folder = tmp_path / "folder.py"
    folder.mkdir()
    assert "is a folder" in _refused(folder)
    pipe = tmp_path / "pipe.py"
    os.mkfifo(pipe)
    with pytest.raises(WriteRefused, match="not a regular file"):
        write_atomically(str(pipe), OLD, NEW)


def test_link_inside_the_root_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "links").mkdir()
    real = tmp_path / "real" / "conn.py"
    real.write_bytes(OLD)
    link = tmp_path / "links" / "conn.py"
    link.symlink_to("../real/conn.py")
    assert "outside" in _refused(link)
    write_atomically(str(link), OLD, NEW, root=str(tmp_path))
    assert link.is_symlink()
    assert real.read_bytes() == NEW


def test_link_beside_its_file_needs_no_root(file: Path) -> None:
    link = file.parent / "link.py"
    link.symlink_to(file.name)
    write_atomically(str(link), OLD, NEW)
    assert link.is_symlink()
    assert file.read_bytes() == NEW


@pytest.mark.parametrize("target", ["nowhere.py", "loop.py"])
def test_link_to_nothing(tmp_path: Path, target: str) -> None:
    link = tmp_path / "loop.py"
    link.symlink_to(target)
    assert _refused(link)


@pytest.mark.parametrize("call", ["open", "write", "fsync", "fchmod", "replace"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO])
def test_failing_call(file: Path, call: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_args: Any, **_options: Any) -> Any:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, fail)
    reason = _refused(file)
    assert os.strerror(code) in reason
    assert "nothing was changed" in reason
    if code == errno.ENOSPC:
        assert "free some disk space" in reason


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_interrupt_leaves_the_old_text(file: Path, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_args: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, call, interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(str(file), OLD, NEW)
    assert file.read_bytes() == OLD
    assert os.listdir(file.parent) == [file.name]


def test_interrupt_after_the_rename_leaves_the_new_text(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace = os.replace

    def interrupt(source: str, target: str) -> None:
        replace(source, target)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(str(file), OLD, NEW)
    assert file.read_bytes() == NEW
    assert os.listdir(file.parent) == [file.name]


def test_folder_that_cannot_be_synced_is_no_refusal(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sync = os.fsync

    def fail(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fail)
    write_atomically(str(file), OLD, NEW)
    assert file.read_bytes() == NEW


# Writes as kvlint does, halts before and after each call that changes a file, and says which it is. The new text is
# written in two halves, so that it is killed between the two as well.
HALTING = """\
import os, sys
from kvlint.fixing.write import write_atomically

def halting(name, call):
    def halted(*arguments, **keywords):
        print("before", name, flush=True)
        sys.stdin.readline()
        result = call(*arguments, **keywords)
        print("after", name, flush=True)
        sys.stdin.readline()
        return result
    return halted

write = os.write
os.write = lambda descriptor, data: write(descriptor, data[:15])
for name in ("open", "write", "fchown", "fchmod", "fsync", "close", "replace"):
    setattr(os, name, halting(name, getattr(os, name)))
write_atomically(sys.argv[1], b"o" * 20, b"n" * 30)
print("done", flush=True)
"""
OLD_TEXT, NEW_TEXT = b"o" * 20, b"n" * 30


def killed_at(file: Path, halt: int) -> str:
    """What a writer said when it was killed: at its ``halt``-th halt, or at its end if it has fewer."""
    command = [sys.executable, "-c", HALTING, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        said = process.stdout.readline()
        for _ in range(halt):
            if said == b"done\n":
                break
            process.stdin.write(b"\n")
            process.stdin.flush()
            said = process.stdout.readline()
        process.kill()
    return said.decode().strip()


def test_kill_leaves_one_text_or_the_other(file: Path) -> None:
    seen: list[str] = []
    while "done" not in seen:
        file.write_bytes(OLD_TEXT)
        seen.append(killed_at(file, len(seen)))
        replaced = "after replace" in seen
        assert file.read_bytes() == (NEW_TEXT if replaced else OLD_TEXT), seen
    assert seen.count("before write") > 1
    assert "after fsync" in seen[: seen.index("before replace")]
