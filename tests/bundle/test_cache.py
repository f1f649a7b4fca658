"""The cache gives back what was put in, or nothing."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kvlint.bundle import BundleError
from kvlint.bundle.cache import Cache, cache_folder
from kvlint.cache.location import results_folder


def put(cache: Cache, name: str = "p", version: str = "1.0", data: bytes = b"wheel") -> str:
    with cache.scratch() as folder:
        downloaded = folder / f"{name}-{version}-py3-none-any.whl"
        downloaded.write_bytes(data)
        return cache.keep(name, version, downloaded).sha256


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache", "index")


def test_what_was_kept_is_found(cache: Cache) -> None:
    digest = put(cache)
    found = cache.find("p", "1.0")
    assert found is not None
    assert (found.sha256, found.filename) == (digest, "p-1.0-py3-none-any.whl")
    assert hashlib.sha256(found.path.read_bytes()).hexdigest() == digest == found.path.parent.name
    assert list(cache.folder.glob("download-*")) == []


def test_what_was_not_kept_is_not(cache: Cache) -> None:
    assert cache.find("p", "1.0") is None


def test_another_index_may_have_other_files(cache: Cache) -> None:
    put(cache)
    assert Cache(cache.folder, "another").find("p", "1.0") is None


def test_a_harmed_archive_is_removed(cache: Cache) -> None:
    put(cache)
    found = cache.find("p", "1.0")
    assert found is not None
    found.path.write_bytes(b"harmed")
    assert cache.find("p", "1.0") is None
    assert not found.path.exists()
    put(cache)
    assert cache.find("p", "1.0") is not None


@pytest.mark.parametrize(
    "note",
    ["", "{", "[]", "null", "{}", '{"file": "../x", "sha256": "' + "a" * 64 + '"}', '{"file": "x", "sha256": "../.."}',
     '{"file": 1, "sha256": 2}'],
)  # fmt: skip
def test_a_harmed_note_is_as_none(note: str, cache: Cache) -> None:
    put(cache)
    (path,) = cache.folder.glob("releases/*/p/1.0.json")
    path.write_text(note, encoding="utf-8")
    assert cache.find("p", "1.0") is None


def test_a_newer_download_takes_the_older_one_s_place(cache: Cache) -> None:
    put(cache)
    digest = put(cache, data=b"other")
    found = cache.find("p", "1.0")
    assert found is not None
    assert found.sha256 == digest


def test_leftovers_of_killed_runs_are_swept(cache: Cache) -> None:
    old, young = cache.folder / "download-old", cache.folder / "download-young"
    for folder in (old, young):
        folder.mkdir(parents=True)
    os.utime(old, (0, 0))
    put(cache)
    assert not old.exists()
    assert young.exists()


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "cache").write_bytes(b"")
    cache = Cache(tmp_path / "cache", "index")
    with pytest.raises(BundleError, match="set KVLINT_CACHE"), cache.scratch():
        pass
    with pytest.raises(BundleError, match="set KVLINT_CACHE"), cache.lock("p", "1"):
        pass


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_note_that_cannot_be_written_leaves_nothing(
    error: BaseException, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace

    def refuse(source: Path, target: Path) -> None:
        if Path(target).suffix == ".json":
            raise error
        replace(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises((BundleError, KeyboardInterrupt)):
        put(cache)
    assert [path for path in cache.folder.glob("releases/**/*") if path.is_file()] == []


HAMMER = """
import sys
from pathlib import Path
from kvlint.bundle.cache import Cache
cache = Cache(Path(sys.argv[1]), "index")
for _ in range(20):
    with cache.lock("p", "1.0"), cache.scratch() as folder:
        downloaded = folder / "p-1.0-py3-none-any.whl"
        downloaded.write_bytes(sys.argv[2].encode())
        cache.keep("p", "1.0", downloaded)
    found = cache.find("p", "1.0")
    assert found is not None and found.path.read_bytes() in (b"one", b"two", b"three")
"""


def test_runs_side_by_side(cache: Cache) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", HAMMER, str(cache.folder)]
    runs = [subprocess.Popen([*command, number], env=environment) for number in ("one", "two", "three")]
    assert [process.wait() for process in runs] == [0, 0, 0]
    (note,) = cache.folder.glob("releases/*/p/1.0.json")
    assert json.loads(note.read_bytes())["file"] == "p-1.0-py3-none-any.whl"


@pytest.mark.parametrize("variables", [{"KVLINT_CACHE": "/x/y"}, {"XDG_CACHE_HOME": "/x"}, {}])
def test_it_lies_beside_that_of_results(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KVLINT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert str(cache_folder() / "results") == results_folder(os.environ)


def test_without_a_home_there_is_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KVLINT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(BundleError, match=r"no home folder.*\$KVLINT_CACHE"):
        cache_folder()
