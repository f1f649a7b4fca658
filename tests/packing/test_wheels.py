"""Wheels as they are read, and those that are refused."""

from __future__ import annotations

import stat
import warnings
import zipfile
from pathlib import Path

import pytest
from nixl_pack import PackError
from nixl_pack.selection import installed_path, select_all
from nixl_pack.wheels import Wheel

from .samples import wheel


def test_a_wheel_is_read(tmp_path: Path) -> None:
    opened = Wheel.open(wheel(tmp_path, "two-words", requires=["a>=2", 'b[x]; extra == "y"'], tag="py3-none-any"))
    assert (opened.name, str(opened.version), opened.dist_info) == ("two-words", "1.0", "two_words-1.0.dist-info")
    assert [str(requirement) for requirement in opened.requirements] == ["a>=2", 'b[x]; extra == "y"']
    assert opened.read("two_words.py") == b"name = __name__\n"
    assert opened.licence_files() == ["two_words-1.0.dist-info/licenses/LICENSE"]
    assert len(opened.sha256) == 64


@pytest.mark.parametrize(
    ("metadata", "licence"),
    [
        ("License-Expression: MIT\nLicense: old\n", "MIT"),
        ("License: BSD\n", "BSD"),
        ("License: Long\n        text\nClassifier: License :: OSI Approved :: MIT License\n", "MIT License"),
        ("Classifier: Framework :: Flake8\n", ""),
    ],
)
def test_the_licence_is_the_one_that_metadata_names(tmp_path: Path, metadata: str, licence: str) -> None:
    assert Wheel.open(wheel(tmp_path, "a", metadata=metadata)).licence == licence


@pytest.mark.parametrize(
    "name",
    ["../up.py", "/etc/passwd", "a/../../b.py", "a//b", "./a", "C:/a", "a\\b.py", "line\nfeed.py", "zero\0.py", "a/.."],
)
def test_an_unsafe_path_condemns_the_wheel(tmp_path: Path, name: str) -> None:
    path = wheel(tmp_path, "bad")
    with zipfile.ZipFile(path, "a") as archive:
        info = zipfile.ZipInfo("x")
        info.filename = info.orig_filename = name
        archive.writestr(info, b"")
    with pytest.raises(PackError, match=r"bad-1\.0-py3-none-any\.whl: holds the unsafe path '.*; get the wheel anew"):
        Wheel.open(path)


def test_a_path_that_comes_twice_condemns_the_wheel(tmp_path: Path) -> None:
    path = wheel(tmp_path, "bad")
    with zipfile.ZipFile(path, "a") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr("bad.py", b"other")
    with pytest.raises(PackError, match=r"holds 'bad\.py' twice"):
        Wheel.open(path)


def test_a_link_condemns_the_wheel(tmp_path: Path) -> None:
    path = wheel(tmp_path, "bad")
    info = zipfile.ZipInfo("link.py")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(info, b"/etc/passwd")
    with pytest.raises(PackError, match=r"'link\.py' is a link or a device"):
        Wheel.open(path)


def test_a_folder_and_a_file_with_permissions_are_fine(tmp_path: Path) -> None:
    path = wheel(tmp_path, "good")
    info = zipfile.ZipInfo("run.sh")
    info.external_attr = (stat.S_IFREG | 0o755) << 16
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(info, b"exit\n")
        archive.mkdir("folder")
    assert {"run.sh", "good.py"} < set(Wheel.open(path).members)
    assert "folder/" not in Wheel.open(path).members


def test_a_member_beyond_reason_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nixl_pack.wheels._MAX_MEMBER_BYTES", 100)
    with pytest.raises(PackError, match=r"'a\.py' is said to have 101 bytes; not unpacked"):
        Wheel.open(wheel(tmp_path, "a", files={"a.py": b"#" * 101}))


def test_a_damaged_wheel_is_told(tmp_path: Path) -> None:
    path = wheel(tmp_path, "a", files={"a.py": b"first contents"})
    opened = Wheel.open(path)
    path.write_bytes(path.read_bytes().replace(b"first contents", b"other contents"))
    with pytest.raises(PackError, match=r"is damaged \(Bad CRC-32 for file 'a\.py'\); get it anew"):
        opened.read("a.py")
    with pytest.raises(PackError, match="is damaged"):
        opened.read_all(["a.py"])
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(PackError, match="is damaged"):
        Wheel.open(path)


def test_what_is_no_wheel_is_told(tmp_path: Path) -> None:
    with pytest.raises(PackError, match="is not named as a wheel is"):
        Wheel.open(tmp_path / "a.whl")
    with pytest.raises(PackError, match=r"cannot be read: No such file"):
        Wheel.open(tmp_path / "a-1.0-py3-none-any.whl")
    with zipfile.ZipFile(tmp_path / "a-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("a-1.0.dist-info/RECORD", b"")
    with pytest.raises(PackError, match=r"is no wheel: it does not hold exactly one \.dist-info folder with METADATA"):
        Wheel.open(tmp_path / "a-1.0-py3-none-any.whl")


def test_a_requirement_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(PackError, match="METADATA has a requirement that cannot be read"):
        _ = Wheel.open(wheel(tmp_path, "a", requires=["b ??? 2"])).requirements


def test_a_distribution_is_taken_as_it_is_installed(tmp_path: Path) -> None:
    files = {
        "a/x.py": b"",
        "a-1.0.data/purelib/b.py": b"",
        "a-1.0.data/platlib/c.so": b"",
        "a-1.0.data/scripts/run": b"",
        "a-1.0.data/headers/h.h": b"",
        "nixl_ep/__init__.py": b"",
        "nixl_ep_cu12/big.so": b"",
        "nixl_epilogue.py": b"",
    }
    taken = select_all(Wheel.open(wheel(tmp_path, "a", files=files))).members
    assert [installed_path(name) for name in taken] == [
        "a/x.py",
        "b.py",
        "c.so",
        "nixl_epilogue.py",
        "a-1.0.dist-info/METADATA",
        "a-1.0.dist-info/licenses/LICENSE",
        "a-1.0.dist-info/WHEEL",
    ]
