"""Blobs on disk: whole or absent, whatever stands in the folder and whoever else uses it."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kvlint.cache import store as module
from kvlint.cache.store import CacheUnusable, Store, cleared

NAME = "a" * 64
OTHER = "b" * 64


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "cache"


@pytest.fixture
def store(folder: Path) -> Iterator[Store]:
    opened = Store(str(folder))
    yield opened
    opened.close()


def blob_file(folder: Path, name: str = NAME) -> Path:
    return folder / "kvlint-v1" / name


def test_what_was_put_is_found_by_a_later_run(store: Store, folder: Path) -> None:
    assert store.get(NAME) is None
    store.put(NAME, b"one")
    store.put(NAME, b"two")
    later = Store(str(folder))
    assert later.get(NAME) == b"two"
    assert later.get(OTHER) is None
    later.close()
    assert blobs(folder) == [NAME]


def test_the_folder_is_private_and_marked_as_a_cache(store: Store, folder: Path) -> None:
    store.put(NAME, b"")
    assert stat.S_IMODE((folder / "kvlint-v1").stat().st_mode) == 0o700
    assert stat.S_IMODE(blob_file(folder).stat().st_mode) == 0o600
    assert (
        (folder / "kvlint-v1" / "CACHEDIR.TAG")
        .read_bytes()
        .startswith(b"Signature: 8a477f597d28d172789f06886806bc55\n")
    )
    assert b"\n*\n" in (folder / "kvlint-v1" / ".gitignore").read_bytes()


def blobs(folder: Path) -> list[str]:
    """Everything but the marks."""
    return sorted({*os.listdir(folder / "kvlint-v1")} - {"CACHEDIR.TAG", ".gitignore"})


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def flip(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


def as_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def as_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def as_link(file: Path) -> None:
    content = file.with_name("elsewhere")
    file.rename(content)
    file.symlink_to(content)


def as_giant(file: Path) -> None:
    with file.open("r+b") as stream:
        stream.truncate(1 << 30)


@pytest.mark.parametrize(
    "damage", [truncate, flip, as_folder, as_pipe, as_link, as_giant, lambda file: file.write_bytes(b"")]
)
def test_a_damaged_blob_is_absent(store: Store, folder: Path, damage: Callable[[Path], object]) -> None:
    store.put(NAME, b"content")
    damage(blob_file(folder))
    assert store.get(NAME) is None


@pytest.mark.parametrize("damage", [truncate, flip, as_pipe, as_link])
def test_a_damaged_blob_is_replaced(store: Store, folder: Path, damage: Callable[[Path], object]) -> None:
    store.put(NAME, b"content")
    damage(blob_file(folder))
    store.put(NAME, b"content")
    assert store.get(NAME) == b"content"
    assert blob_file(folder).is_file()
    assert not blob_file(folder).is_symlink()


def test_a_blob_that_cannot_be_replaced_is_only_not_kept(store: Store, folder: Path) -> None:
    blob_file(folder).mkdir()
    (blob_file(folder) / "file").touch()
    store.put(NAME, b"content")
    assert store.get(NAME) is None
    assert blobs(folder) == [NAME]


def test_a_giant_blob_is_not_kept(store: Store, folder: Path) -> None:
    store.put(NAME, bytes(5 << 20))
    assert blobs(folder) == []


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_disk_that_takes_nothing(store: Store, folder: Path, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put(OTHER, b"before")
    replaced = []

    def refuse(*arguments: object, **options: object) -> None:
        replaced.append(arguments)
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "replace", refuse)
    store.put(NAME, b"content")
    store.put(NAME, b"content")
    assert len(replaced) == 1
    assert blobs(folder) == [OTHER]
    assert store.get(OTHER) == b"before"


def test_an_interrupt_leaves_no_half_written_file(store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        store.put(NAME, b"content")
    assert blobs(folder) == []


def test_a_folder_removed_under_a_run_costs_only_the_results(store: Store, folder: Path) -> None:
    shutil.rmtree(folder / "kvlint-v1")
    store.put(NAME, b"content")
    assert store.get(NAME) is None


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CacheUnusable, match="file: "):
        Store(str(tmp_path / "file"))
    with pytest.raises(CacheUnusable):
        Store(str(tmp_path / "file" / "below"))
    with pytest.raises(CacheUnusable, match="null"):
        Store("a\0b")


def test_a_link_in_place_of_the_inner_folder(folder: Path, tmp_path: Path) -> None:
    folder.mkdir(parents=True)
    (tmp_path / "real").mkdir(mode=0o700)
    (folder / "kvlint-v1").symlink_to(tmp_path / "real")
    with pytest.raises(CacheUnusable):
        Store(str(folder))


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_can_write_to(folder: Path, mode: int) -> None:
    Store(str(folder)).close()
    (folder / "kvlint-v1").chmod(mode)
    with pytest.raises(CacheUnusable, match="can be written to by other users"):
        Store(str(folder))


def test_a_folder_of_another_user(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Store(str(folder)).close()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(CacheUnusable, match="belongs to another user"):
        Store(str(folder))


def age(file: Path, days: float) -> None:
    moment = file.stat().st_mtime - days * 24 * 60 * 60
    os.utime(file, (moment, moment))


def test_what_is_not_used_for_a_month_goes(store: Store, folder: Path) -> None:
    for name in (NAME, OTHER):
        store.put(name, name.encode())
        age(blob_file(folder, name), 31)
    half_written = folder / "kvlint-v1" / f".{'0' * 16}.tmp"
    half_written.touch()
    age(half_written, 2)
    foreign = folder / "kvlint-v1" / "README"
    foreign.touch()
    age(foreign, 1000)
    assert store.get(OTHER) == OTHER.encode()
    store.prune()
    assert blobs(folder) == ["README", OTHER]


def test_a_later_run_that_writes_prunes(store: Store, folder: Path) -> None:
    store.put(NAME, b"old")
    age(blob_file(folder), 31)
    later = Store(str(folder))
    later.put(OTHER, b"new")
    later.close()
    assert blobs(folder) == [OTHER]


@pytest.mark.parametrize("bound", ["_MAX_BLOBS", "_MAX_BYTES"])
def test_what_is_too_much_goes_the_longest_unused_first(
    store: Store, folder: Path, bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"{number:064}" for number in range(5)]
    for number, name in enumerate(names):
        store.put(name, b"x")
        age(blob_file(folder, name), 5 - number)
    monkeypatch.setattr(module, bound, 2 if bound == "_MAX_BLOBS" else 70)
    store.prune()
    assert blobs(folder) == names[3:]


def test_clearing_takes_blobs_and_nothing_else(folder: Path) -> None:
    assert cleared(str(folder)) == (0, 0)
    assert not folder.exists()
    store = Store(str(folder))
    store.put(NAME, b"12")
    store.put(OTHER, b"3")
    store.close()
    (folder / "kvlint-v1" / f".{'0' * 16}.tmp").touch()
    (folder / "kvlint-v1" / "README").touch()
    assert cleared(str(folder)) == (2, 2 * 32 + 3)
    assert blobs(folder) == ["README"]


def test_a_folder_that_cannot_be_cleared(folder: Path) -> None:
    Store(str(folder)).close()
    blob_file(folder).mkdir()
    with pytest.raises(CacheUnusable):
        cleared(str(folder))


WRITER = """
import sys
from kvlint.cache.store import Store
store = Store(sys.argv[1])
for number in range(300):
    blob = sys.argv[2].encode() * (number + 1)
    store.put("a" * 64, blob)
    found = store.get("a" * 64)
    assert found is not None and len(set(found)) == 1, found
"""


def test_runs_at_the_same_time_never_see_half_a_blob(folder: Path) -> None:
    root = str(Path(__file__).parent.parent.parent)
    command = [sys.executable, "-c", WRITER, str(folder)]
    running = [
        subprocess.Popen([*command, letter], env={**os.environ, "PYTHONPATH": root}, stderr=subprocess.PIPE)
        for letter in "xyz"
    ]
    for process in running:
        _, errors = process.communicate()
        assert (process.returncode, errors) == (0, b"")
    assert blobs(folder) == [NAME]
