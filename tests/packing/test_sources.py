"""Where wheels come from, and which are chosen."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from nixl_pack import PackError
from nixl_pack.requirements import resolve
from nixl_pack.sources import FolderSource, PipSource
from nixl_pack.target import Target
from nixl_pack.wheels import Wheel
from packaging.requirements import Requirement

from .samples import PLATFORM, TARGET, wheel


def get(folder: Path, requirement: str, target: Target = TARGET) -> str:
    (found,) = FolderSource(folder, target).get([Requirement(requirement)])
    return found.path.name


def names(folder: Path, *roots: str, have: Sequence[Path] = (), without: Sequence[str] = ()) -> list[str]:
    source = FolderSource(folder, TARGET)
    given = [Wheel.open(path) for path in have]
    found = resolve([Requirement(root) for root in roots], given, source, TARGET, without)
    return [f"{w.name} {w.version}" for w in found]


def test_of_a_folder_the_newest_wheel_that_fits_is_taken(tmp_path: Path) -> None:
    for version in ("1.9", "1.10", "2.0rc1"):
        wheel(tmp_path, "a", version)
    wheel(tmp_path, "a", "1.10", tag=PLATFORM)
    wheel(tmp_path, "a", "3.0", tag="cp311-cp311-manylinux_2_28_x86_64")
    wheel(tmp_path, "a", "3.0", tag="cp312-cp312-manylinux_2_34_x86_64")
    wheel(tmp_path, "a", "3.0", tag="cp312-cp312-manylinux_2_28_aarch64")
    assert get(tmp_path, "a<2") == f"a-1.10-{PLATFORM}.whl"
    assert get(tmp_path, "A") == "a-2.0rc1-py3-none-any.whl"
    assert get(tmp_path, "a<1.10") == "a-1.9-py3-none-any.whl"
    assert get(tmp_path, "a", Target((3, 12), (2, 34), "x86_64")) == "a-3.0-cp312-cp312-manylinux_2_34_x86_64.whl"
    assert get(tmp_path, "a", Target((3, 12), (2, 28), "aarch64")) == "a-3.0-cp312-cp312-manylinux_2_28_aarch64.whl"


@pytest.mark.parametrize("tag", ["cp38-abi3-manylinux_2_17_x86_64", "cp312-cp312-manylinux2014_x86_64"])
def test_older_interfaces_fit(tmp_path: Path, tag: str) -> None:
    wheel(tmp_path, "a", tag=tag)
    assert get(tmp_path, "a") == f"a-1.0-{tag}.whl"


def test_a_folder_without_the_wheel_is_told(tmp_path: Path) -> None:
    with pytest.raises(PackError, match="cannot be read: No such file"):
        FolderSource(tmp_path / "none", TARGET)
    with pytest.raises(PackError, match="holds no wheels; fill it with --keep"):
        FolderSource(tmp_path, TARGET)
    wheel(tmp_path, "a")
    with pytest.raises(PackError, match=r"holds no wheel of a>2 for CPython 3\.12, x86_64, glibc 2\.28; download it"):
        get(tmp_path, "a>2")
    (tmp_path / "odd.whl").touch()
    with pytest.raises(PackError, match=r"odd\.whl: is not named as a wheel is"):
        get(tmp_path, "a")


def test_pip_is_asked_for_wheels_of_the_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index, saved = tmp_path / "index", tmp_path / "saved"
    index.mkdir()
    saved.mkdir()
    wheel(index, "a", "1.0", tag=PLATFORM, requires=["absent"])
    wheel(index, "a", "2.0", tag="cp311-cp311-manylinux_2_28_x86_64")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    source = PipSource(saved, TARGET)
    (found,) = source.get([Requirement('a>=1; python_version < "3"')])
    assert found.path == saved / f"a-1.0-{PLATFORM}.whl"
    with pytest.raises(PackError, match=r"pip downloaded no wheels of a>=2 for CPython 3\.12, .*: No matching dist"):
        source.get([Requirement("a>=2")])


def test_a_pip_that_does_not_start_or_says_nothing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = PipSource(tmp_path, TARGET)
    monkeypatch.setattr("nixl_pack.sources.sys.executable", str(tmp_path / "python"))
    with pytest.raises(PackError, match="pip cannot be run: No such file"):
        source.get([Requirement("a")])
    monkeypatch.setattr("subprocess.run", lambda command, **_: subprocess.CompletedProcess(command, 3, "", ""))
    with pytest.raises(PackError, match="exit status 3"):
        source.get([Requirement("a")])
    broken = "Traceback\nModuleNotFoundError: no pip\n"
    monkeypatch.setattr("subprocess.run", lambda command, **_: subprocess.CompletedProcess(command, 1, "", broken))
    with pytest.raises(PackError, match="ModuleNotFoundError: no pip; check"):
        source.get([Requirement("a")])


def test_requirements_are_followed_as_the_target_sees_them(tmp_path: Path) -> None:
    wheel(
        tmp_path,
        "a",
        requires=[
            "b[x]>=1",
            'old; python_version < "3.12"',
            'new; python_version >= "3.12" and sys_platform == "linux" and platform_machine == "x86_64"',
            'win; os_name == "nt"',
            'extra-only; extra == "unasked"',
            "host",
        ],
    )
    wheel(tmp_path, "b", requires=['c; extra == "x"', 'd; extra == "y"', "a"])
    wheel(tmp_path, "c", requires=["b[y]"])
    for name in ("d", "new"):
        wheel(tmp_path, name)
    assert names(tmp_path, "a", without=["Host"]) == ["a 1.0", "b 1.0", "c 1.0", "d 1.0", "new 1.0"]


def test_a_later_bound_replaces_an_earlier_choice(tmp_path: Path) -> None:
    wheel(tmp_path, "a", requires=["b", "c"])
    wheel(tmp_path, "b", requires=["c<2"])
    wheel(tmp_path, "c", "1.0")
    wheel(tmp_path, "c", "2.0", requires=["only-for-two"])
    wheel(tmp_path, "only-for-two")
    assert names(tmp_path, "a") == ["a 1.0", "b 1.0", "c 1.0"]


def test_wheels_at_hand_are_taken_pre_releases_too(tmp_path: Path) -> None:
    wheel(tmp_path, "a", "1.0")
    own = tmp_path / "own"
    own.mkdir()
    given = wheel(own, "a", "2.0.dev1")
    assert names(tmp_path, "a", have=[given]) == ["a 2.0.dev1"]
    with pytest.raises(PackError, match=r"a 2\.0\.dev1 does not fit what others require: a<2"):
        names(tmp_path, "a<2", have=[given])


def test_requirements_that_cannot_be_met_are_told(tmp_path: Path) -> None:
    wheel(tmp_path, "a", requires=["b @ https://example.org/b-1.0-py3-none-any.whl"])
    with pytest.raises(PackError, match=r"is required from an address, which is not followed; leave it out: --host b"):
        names(tmp_path, "a")
    # Each of the two excludes itself once it is taken.
    wheel(tmp_path, "c", "2.0", requires=["d==1.0"])
    wheel(tmp_path, "c", "1.0", requires=["d==2.0"])
    wheel(tmp_path, "d", "1.0", requires=["c==1.0"])
    wheel(tmp_path, "d", "2.0", requires=["c==2.0"])
    with pytest.raises(PackError, match="requirements of the wheels found exclude each other"):
        names(tmp_path, "c", "d")


@pytest.mark.parametrize(("name", "value"), [("python_full_version", "3.12.0"), ("sys_platform", "linux")])
def test_markers_see_the_target(name: str, value: str) -> None:
    assert TARGET.marker_environment()[name] == value
