"""Archives are read, never believed."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from kvlint.bundle import BundleError, archives
from kvlint.bundle.archives import BadArchive, unpack

from .samples import sdist, wheel


def zip_of(path: Path, *members: tuple[str | zipfile.ZipInfo, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return path


def zip_link(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


def tar_of(path: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for info in members:
            archive.addfile(info, io.BytesIO(b"x" * info.size) if info.isreg() else None)
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, size, link
    return info


def files_in(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_python_files_of_a_wheel(tmp_path: Path) -> None:
    made = wheel(tmp_path / "a.whl", {"p/a.py": b"A = 1\n", "p/b.pyi": b"", "p/lib.so": b"\x7fELF", "p/data/": b""})
    assert unpack(made, tmp_path / "out") == ("p/a.py", "p/b.pyi")
    assert files_in(tmp_path / "out") == ["p/a.py", "p/b.pyi"]
    assert (tmp_path / "out/p/a.py").read_bytes() == b"A = 1\n"


def test_python_files_of_a_source_distribution(tmp_path: Path) -> None:
    made = sdist(tmp_path / "p-1.tar.gz", {"p-1/python/p/a.py": b"A = 1\n", "p-1/setup.cfg": b"", "./p-1/b.py": b""})
    assert unpack(made, tmp_path / "out") == ("p-1/b.py", "p-1/python/p/a.py")


@pytest.mark.parametrize("name", ["/etc/a.py", "../a.py", "p/../../a.py", "p\\..\\a.py", "C:/a.py", "../a.txt", "../p/",
                                  "/etc/passwd", zip_link("l.py")])  # fmt: skip
def test_a_zip_member_that_leaves_the_folder(name: str | zipfile.ZipInfo, tmp_path: Path) -> None:
    made = zip_of(tmp_path / "a.whl", (name, b"x"))
    with pytest.raises(BadArchive, match="not unpacked"):
        unpack(made, tmp_path / "out")
    assert files_in(tmp_path) == ["a.whl"]


@pytest.mark.parametrize(
    "info",
    [
        member("/etc/a.py"),
        member("../a.py"),
        member("../a.txt"),
        member("/etc/cron.d", tarfile.DIRTYPE),
        member("p/../../data", tarfile.SYMTYPE, link="elsewhere"),
        member("a.py", tarfile.SYMTYPE, link="/etc/passwd"),
        member("a.py", tarfile.LNKTYPE, link="../b"),
        member("a.py", tarfile.FIFOTYPE),
        member("a.py", tarfile.CHRTYPE),
    ],
    ids=lambda info: f"{info.name} {info.type!r}",
)
def test_a_tar_member_that_is_no_plain_file_below_the_folder(info: tarfile.TarInfo, tmp_path: Path) -> None:
    made = tar_of(tmp_path / "a.tar.gz", info)
    with pytest.raises(BadArchive, match="not unpacked"):
        unpack(made, tmp_path / "out")
    assert files_in(tmp_path) == ["a.tar.gz"]


def test_other_members_may_be_links(tmp_path: Path) -> None:
    made = tar_of(
        tmp_path / "a.tar.gz", member("data", tarfile.SYMTYPE, link="elsewhere"), member("p", tarfile.DIRTYPE)
    )
    assert unpack(made, tmp_path / "out") == ()


@pytest.mark.parametrize("mode", ["w:gz", "w:bz2", "w:xz"])
def test_no_more_is_decompressed_than_source_code_needs(
    mode: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Skipping a member decompresses it."""
    with tarfile.open(tmp_path / "a.tar.gz", mode) as archive:
        archive.addfile(member("data.bin", size=1 << 20), io.BytesIO(bytes(1 << 20)))
        archive.addfile(member("a.py"))
    assert unpack(tmp_path / "a.tar.gz", tmp_path / "out") == ("a.py",)
    monkeypatch.setattr(archives, "MAX_TAR_BYTES", 1 << 20)
    with pytest.raises(BadArchive, match=r"a\.tar\.gz: unpacks to more than 1048576 bytes; not unpacked"):
        unpack(tmp_path / "a.tar.gz", tmp_path / "other")


@pytest.mark.parametrize("first", [(), (member("a.py"),)])
def test_a_header_too_large_for_the_memory(
    first: tuple[tarfile.TarInfo, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MAX_FILE_BYTES", 1000)
    made = tar_of(tmp_path / "a.tar.gz", *first, member("b" * 50_000 + ".py"))
    with pytest.raises(BadArchive, match=r"a\.tar\.gz: has a header of \d+ bytes"):
        unpack(made, tmp_path / "out")


def test_a_tar_archive_that_is_not_compressed(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.addfile(member("p/a.py", size=3), io.BytesIO(b"A=1"))
    assert unpack(tmp_path / "a.tar", tmp_path / "out") == ("p/a.py",)


def test_a_file_too_large_for_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_FILE_BYTES", 10)
    with pytest.raises(BadArchive, match="too large"):
        unpack(wheel(tmp_path / "a.whl", {"a.py": b" " * 11}), tmp_path / "out")


def test_a_tree_too_large_for_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_TREE_BYTES", 15)
    with pytest.raises(BadArchive, match="too large"):
        unpack(wheel(tmp_path / "a.whl", {"a.py": b" " * 10, "b.py": b" " * 10}), tmp_path / "out")


@pytest.mark.parametrize("limit", ["MAX_FILES", "MAX_MEMBERS"])
@pytest.mark.parametrize("make", [wheel, sdist])
def test_too_many_files(limit: str, make: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, limit, 1)
    made = make(tmp_path / ("a.whl" if make is wheel else "a.tar.gz"), {"a.py": b"", "b.py": b""})  # type: ignore[operator]
    with pytest.raises(BadArchive, match="more than 1"):
        unpack(made, tmp_path / "out")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_comes_twice(tmp_path: Path) -> None:
    with pytest.raises(BadArchive, match="twice"):
        unpack(zip_of(tmp_path / "a.whl", ("a.py", b"1"), ("a.py", b"2")), tmp_path / "out")


@pytest.mark.parametrize("name", ["a.whl", "a.zip", "a.tar.gz"])
def test_what_is_no_archive(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"<html>not found</html>")
    with pytest.raises(BadArchive, match=r"remove .* and run again"):
        unpack(tmp_path / name, tmp_path / "out")


def test_a_wheel_cut_off(tmp_path: Path) -> None:
    made = wheel(tmp_path / "a.whl", {"a.py": b"A = 1\n" * 1000})
    made.write_bytes(made.read_bytes()[:-40])
    with pytest.raises(BadArchive):
        unpack(made, tmp_path / "out")


def test_a_wheel_with_a_damaged_member(tmp_path: Path) -> None:
    made = wheel(tmp_path / "a.whl", {"a.py": bytes(range(256)) * 20})
    data = bytearray(made.read_bytes())
    data[60:80] = bytes(20)
    made.write_bytes(bytes(data))
    with pytest.raises(BadArchive, match="damaged"):
        unpack(made, tmp_path / "out")


def test_a_wheel_with_a_name_that_is_no_utf_8(tmp_path: Path) -> None:
    made = wheel(tmp_path / "a.whl", {"\xe4\xe4.py": b""})
    made.write_bytes(made.read_bytes().replace("\xe4\xe4".encode(), b"\xff\xff\xff\xff"))
    with pytest.raises(BadArchive, match="is damaged"):
        unpack(made, tmp_path / "out")


def test_a_source_distribution_cut_off(tmp_path: Path) -> None:
    made = sdist(tmp_path / "a.tar.gz", {"a.py": bytes(range(256)) * 2000})
    made.write_bytes(made.read_bytes()[:-600])
    with pytest.raises(BadArchive, match="damaged"):
        unpack(made, tmp_path / "out")


def test_a_member_that_lies_about_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = wheel(tmp_path / "a.whl", {"a.py": b"x"})
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda self, info: io.BytesIO(b"more than was promised"))
    with pytest.raises(BadArchive, match="not of the size"):
        unpack(made, tmp_path / "out")


def test_an_archive_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="cannot be read"):
        unpack(tmp_path / "none.tar.gz", tmp_path / "out")


def test_a_full_disk(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"a file where a folder has to be")
    with pytest.raises(BundleError, match="set TMPDIR"):
        unpack(wheel(tmp_path / "a.whl", {"a.py": b"x"}), tmp_path / "out")
