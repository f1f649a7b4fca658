"""The fetcher refuses what it must not unpack, and skips only when no index answers."""

from __future__ import annotations

import hashlib
import stat
import subprocess
import zipfile
from pathlib import Path

import pytest

from . import releases

PIN = releases.Pin("1.0", "sglang-1.0-cp311-cp311-manylinux_2_34_x86_64.whl", "0" * 64)


def wheel_of(tmp_path: Path, *members: tuple[str | zipfile.ZipInfo, bytes]) -> Path:
    path = tmp_path / "sglang-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return path


def link_member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


def test_only_python_files_are_unpacked(tmp_path: Path) -> None:
    wheel = wheel_of(tmp_path, ("sglang/a.py", b"A = 1\n"), ("sglang/lib.so", b"\x7fELF"))
    releases.extract(wheel, tmp_path / "out")
    found = [p.relative_to(tmp_path / "out") for p in (tmp_path / "out").rglob("*") if p.is_file()]
    assert found == [Path("sglang/a.py")]


@pytest.mark.parametrize(
    "name",
    [
        "/etc/a.py",
        "../a.py",
        "sglang/../../a.py",
        "sglang\\..\\a.py",
        "C:/a.py",
        link_member("l.py"),
    ],
)
def test_a_member_that_leaves_the_folder_is_refused(name: str | zipfile.ZipInfo, tmp_path: Path) -> None:
    wheel = wheel_of(tmp_path, (name, b"target"))
    with pytest.raises(releases.BadWheel):
        releases.extract(wheel, tmp_path / "out")
    assert not [p for p in (tmp_path / "out").rglob("*") if p.is_file()]


def test_a_zip_bomb_is_refused(tmp_path: Path) -> None:
    wheel = wheel_of(tmp_path, ("sglang/a.py", b" " * (releases.MAX_FILE_BYTES + 1)))
    with pytest.raises(releases.BadWheel, match="too large"):
        releases.extract(wheel, tmp_path / "out")


def test_too_many_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "MAX_FILES", 1)
    wheel = wheel_of(tmp_path, ("a.py", b""), ("b.py", b""))
    with pytest.raises(releases.BadWheel, match="2 Python files"):
        releases.extract(wheel, tmp_path / "out")


def fake_pip(monkeypatch: pytest.MonkeyPatch, *, stderr: str = "", data: bytes | None = None) -> list[list[str]]:
    """Stand in for pip: print ``stderr`` and fail, or leave ``data`` as the wheel."""
    calls = []

    def download(pin: releases.Pin, folder: Path, options: list[str]) -> subprocess.CompletedProcess[str]:
        calls.append(options)
        if data is not None:
            (folder / pin.wheel).write_bytes(data)
        return subprocess.CompletedProcess([], 0 if data is not None else 1, "", stderr)

    monkeypatch.setattr(releases, "_pip_download", download)
    monkeypatch.setattr(releases, "load_pins", lambda: {PIN.version: PIN})
    return calls


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("KVLINT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "upstream"


def test_other_bytes_than_the_pinned_ones_are_refused(monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> None:
    fake_pip(monkeypatch, data=b"something else")
    with pytest.raises(releases.BadWheel, match="SHA-256"):
        releases.tree("1.0")
    assert [p for p in own_cache.iterdir() if p.suffix != ".lock"] == []


def test_an_index_that_does_not_answer_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_pip(monkeypatch, stderr="connection broken by NewConnectionError(...)\nNo matching dist")
    with pytest.raises(releases.IndexUnreachable):
        releases.tree("1.0")


def test_a_missing_version_is_an_error_not_a_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = fake_pip(monkeypatch, stderr="No matching distribution found")
    with pytest.raises(releases.BadWheel, match="No matching distribution"):
        releases.tree("1.0")
    assert calls[0][:2] == ["--platform", "manylinux_2_34_x86_64"]
    assert calls[1] == []


def test_a_release_is_fetched_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_cache: Path) -> None:
    data = wheel_of(tmp_path, ("sglang/a.py", b"A = 1\n")).read_bytes()
    calls = fake_pip(monkeypatch, data=data)
    pin = releases.Pin(PIN.version, PIN.wheel, hashlib.sha256(data).hexdigest())
    monkeypatch.setattr(releases, "load_pins", lambda: {pin.version: pin})
    first = releases.tree("1.0")
    assert releases.tree("1.0") == first
    assert len(calls) == 1
    assert (first / "sglang/a.py").read_bytes() == b"A = 1\n"
    assert first.is_relative_to(own_cache)


def test_a_version_without_a_pin_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        releases.tree("0.0.0")
