"""The command: what it writes, what it says, and how it refuses."""

from __future__ import annotations

import hashlib
import lzma
import runpy
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from nixl_pack import PackError, command
from nixl_pack.bundle import Bundle, write
from nixl_pack.sources import FolderSource
from nixl_pack.wheels import Wheel

from .samples import PLATFORM, TARGET, arm_library, backend, backend_files, library, shim, wheel

SCRIPT = Path(__file__).parent.parent.parent / "tools" / "pack_nixl.py"
DRILL = ["nixl>=0.6", "pyzmq>=26", "torch", "flake8-kvlint[explore]", "numpy"]
REQUIRES = ["libcst>=1.8", "click>=8", *(f'{name}; extra == "drill"' for name in DRILL), 'greenlet; extra == "explore"']


@pytest.fixture
def kvlint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for kvlint's wheel, which is what the command gets from its checkout."""
    own = tmp_path / "own"
    own.mkdir()
    path = wheel(own, "flake8-kvlint", "0.1.0", {"kvlint/cli.py": b""}, requires=REQUIRES, metadata=METADATA)
    monkeypatch.setattr(command, "build_kvlint", lambda folder: Wheel.open(path))
    return path


METADATA = "Requires-Python: >=3.11\nLicense-Expression: Apache-2.0\n"


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """A folder with all that a bundle needs, in several versions."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    backend(folder)
    shim(folder)
    shim(folder, "1.5.2")
    backend(folder, "1.4.0")
    shim(folder, "1.4.0")
    backend(folder, cuda="13", files=backend_files("13"))
    wheel(folder, "click", "8.5", metadata="License-Expression: BSD-3-Clause\n")
    wheel(folder, "pyzmq", "27.0", {"zmq/__init__.py": b"", "zmq/_zmq.abi3.so": library("libc.so.6")}, tag=PLATFORM)
    return folder


def pack(kvlint: Path, wheels: Path, *arguments: str, cuda: str = "12") -> tuple[int, Path]:
    output = wheels.parent / "made.tar.xz"
    options = ["--python", "3.12", "--cuda", cuda, "--from", str(wheels), "--output", str(output)]
    return command.run([*options, *arguments]), output


def members(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as opened:
        return {m.name: file.read() for m in opened if (file := opened.extractfile(m)) is not None}


def test_a_bundle_is_made(kvlint: Path, wheels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, output = pack(kvlint, wheels)
    assert status == 0
    held = members(output)
    assert list(held) == ["README.txt", *sorted(set(held) - {"README.txt"})]
    assert {name.partition("/")[0] for name in held} == {
        ".nixl_cu12.mesonpy.libs", "README.txt", "click-8.5.dist-info", "click.py", "flake8_kvlint-0.1.0.dist-info",
        "kvlint", "nixl", "nixl-1.5.1.dist-info", "nixl_cu12", "nixl_cu12-1.5.1.dist-info", "nixl_cu12.libs",
        "pyzmq-27.0.dist-info", "zmq",
    }  # fmt: skip
    assert held["nixl_cu12.libs/libgrpc-3.so.48"] == library("libssl.so.3", "libcommon.so")
    assert "nixl_cu12-1.5.1.dist-info/licenses/LICENSE" in held
    assert not [name for name in held if name.endswith(("RECORD", ".la")) or "libibverbs" in name]

    said = capsys.readouterr().out
    assert "nixl-cu12 1.5.1        14 files" in said
    assert "modules of UCX: cma, cuda; left out: ib\nnot in this release: cuda_gdrcopy\n" in said
    assert "  libcuda.so.1, needed by libucm_cuda.so, libuct_cuda.so\n" in said
    assert "  C and C++ runtime: ld-linux-x86-64.so.2, libc.so.6, libm.so.6, libstdc++.so.6\n" in said
    assert said.splitlines()[-1].startswith(f"{output}: 0.0")


def test_the_readme_tells_how_it_is_used(kvlint: Path, wheels: Path) -> None:
    _, output = pack(kvlint, wheels, "--host", "Click")
    text = members(output)["README.txt"].decode()
    assert "mkdir -p nixl && tar -xJf ARCHIVE -C nixl\n    PYTHONPATH=nixl python3 -m kvlint drill" in text
    assert "For CPython 3.12, x86_64, glibc 2.28, CUDA 12. The host brings Python itself,\nnumpy, torch, click," in text
    assert "libcudart.so.12, needed by libucm_cuda.so\n" in text
    assert "flake8-kvlint 0.1.0: Apache-2.0\n" in text
    assert "pyzmq 27.0: licence not stated in METADATA\n" in text
    digest = hashlib.sha256((wheels / f"nixl_cu12-1.5.1-{PLATFORM}.whl").read_bytes()).hexdigest()
    assert f"    nixl_cu12-1.5.1-{PLATFORM}.whl\n    sha256 {digest}\n" in text
    assert "click 8.5" not in text
    assert max(map(len, text.splitlines())) < 80


def test_the_same_wheels_make_the_same_archive(kvlint: Path, wheels: Path) -> None:
    _, output = pack(kvlint, wheels)
    first = output.read_bytes()
    pack(kvlint, wheels)
    assert output.read_bytes() == first
    assert pack(kvlint, wheels, "--output", str(wheels / "other.tar.xz"))[0] == 0
    assert (wheels / "other.tar.xz").read_bytes() == first
    assert [path.name for path in wheels.parent.glob("made*")] == ["made.tar.xz"]
    with tarfile.open(output) as opened:
        kinds = {(m.mtime, m.uid, m.gid, m.uname, m.gname, m.mode, m.isreg()) for m in opened}
    assert kinds == {(315_532_800, 0, 0, "", "", 0o644, True)}


def test_a_version_and_modules_can_be_chosen(
    kvlint: Path, wheels: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    status, output = pack(kvlint, wheels, "--nixl", "1.4", "--modules", "ib,,cma,ib")
    assert status == 0
    assert {"nixl_cu12-1.4.0.dist-info/METADATA", "nixl_cu12.libs/libibverbs-4.so.1"} < set(members(output))
    assert "modules of UCX: cma, ib; left out: cuda\nfrom the host" in capsys.readouterr().out
    status, output = pack(kvlint, wheels, "--modules", "", cuda="13")
    assert status == 0
    assert "nixl_cu13-1.5.1.dist-info/METADATA" in members(output)
    assert "modules of UCX: none; left out: cma, cuda, ib\n" in capsys.readouterr().out
    monkeypatch.chdir(wheels)
    assert command.run(["--python", "3.12", "--cuda", "12", "--from", "."]) == 0
    assert (wheels / "kvlint-nixl-1.5.1-cu12-cp312-x86_64.tar.xz").is_file()


def test_wheels_come_from_pip_and_can_be_kept(
    kvlint: Path, wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    kept, output = tmp_path / "new" / "kept", tmp_path / "made.tar.xz"
    options = ["--python", "3.12", "--cuda", "12", "--output", str(output)]
    assert command.run([*options, "--keep", str(kept)]) == 0
    assert sorted(path.name for path in kept.iterdir()) == [
        "click-8.5-py3-none-any.whl",
        "nixl-1.5.1-py3-none-any.whl",
        f"nixl_cu12-1.5.1-{PLATFORM}.whl",
        f"pyzmq-27.0-{PLATFORM}.whl",
    ]
    first = output.read_bytes()
    assert command.run([*options, "--from", str(kept)]) == 0
    assert output.read_bytes() == first
    (tmp_path / "file").touch()
    assert command.run([*options, "--keep", str(tmp_path / "file")]) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nixl", "9"], "holds no wheel of nixl-cu12==9 for CPython 3.12"),
        (["--python", "3.10"], "kvlint needs Python >=3.11, and --python is 3.10"),
        (["--python", "3.13"], "holds no wheel of nixl-cu12 for CPython 3.13"),
        (["--machine", "aarch64"], "holds no wheel of nixl-cu12 for CPython 3.12, aarch64, glibc 2.28"),
        (["--glibc", "2.17"], "holds no wheel of nixl-cu12 for CPython 3.12, x86_64, glibc 2.17"),
        (["--modules", "cma,cud"], "--modules: the wheel of nixl-cu12 has no module cud of UCX; it has cma, cuda, ib"),
        (["--from", "absent"], "absent: cannot be read: No such file"),
        (["--output", "absent/made.tar.xz"], "absent/made.tar.xz: cannot be written: No such file"),
    ],
)
def test_what_cannot_be_made_is_told(
    kvlint: Path, wheels: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    status, output = pack(kvlint, wheels, *arguments)
    assert status == 2
    assert f"error: {message}" in capsys.readouterr().err.replace(f"{wheels}: ", "")
    assert not output.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--python", "3"], "'3' is no version such as 3.12"),
        (["--python", "2.7"], "'2.7' is no version"),
        (["--glibc", "2.5"], "'2.5' is no version such as 2.28, or older than 2.17"),
        (["--glibc", "musl"], "'musl' is no version"),
        (["--nixl", "one"], "'one' is no version such as 1.5.1"),
        (["--modules", "../x"], "'../x' is no name such as cuda"),
        (["--host", "-x"], "expected one argument"),
        (["--host", "a b"], "'a b' is no name of a distribution"),
        (["--host", "NIXL"], "NIXL is what the bundle is for; it stays in"),
        (["--cuda", "11"], "invalid choice"),
        (["--output", "made.zip"], "'made.zip' is no file name that ends in .tar.xz"),
        (["--output", "folder.tar.xz"], "'folder.tar.xz' is no file name"),
        (["--keep", "x"], "not allowed with argument --from"),
        (["--out", "x.tar.xz"], "unrecognized arguments"),
    ],
)
def test_bad_options_are_told(
    kvlint: Path,
    wheels: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.tar.xz").mkdir()
    with pytest.raises(SystemExit) as stopped:
        pack(kvlint, wheels, *arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_the_cuda_version_has_to_be_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.run([])
    assert "--cuda" in capsys.readouterr().err


def test_files_that_two_wheels_bring_must_agree(tmp_path: Path) -> None:
    bundle = Bundle(TARGET)
    bundle.add(Wheel.open(wheel(tmp_path, "a", files={"shared.py": b"1"})))
    bundle.add(Wheel.open(wheel(tmp_path, "b", files={"shared.py": b"1"})))
    with pytest.raises(PackError, match=r"c-1.* and a-1\.0-.* both bring shared\.py; leave .* out: --host c"):
        bundle.add(Wheel.open(wheel(tmp_path, "c", files={"shared.py": b"2"})))
    with pytest.raises(PackError, match=r"d-1.* and README\.txt both bring README\.txt"):
        bundle.add(Wheel.open(wheel(tmp_path, "d", files={"README.txt": b"2"})))


def test_a_library_for_another_processor_is_told(
    kvlint: Path, wheels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = backend_files() | {"nixl_cu12.libs/libgrpc-3.so.48": arm_library()}
    backend(wheels, files=files)
    status, _ = pack(kvlint, wheels)
    assert status == 2
    assert "nixl_cu12.libs/libgrpc-3.so.48: is for EM_AARCH64, not for EM_X86_64" in capsys.readouterr().err


def test_an_archive_that_is_not_finished_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "made.tar.xz"
    path.write_bytes(b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("nixl_pack.bundle._write_tar", full)
    with pytest.raises(PackError, match=r"made\.tar\.xz: cannot be written: No space left on device; choose another"):
        write(path, {"a": b""}, "x86_64")
    assert [(found.name, found.read_bytes()) for found in tmp_path.iterdir()] == [("made.tar.xz", b"old")]


def test_code_of_other_processors_is_packed_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "made.tar.xz"
    size = write(path, {"a/b.py": b"1\n"}, "aarch64")
    assert size == path.stat().st_size
    assert members(path) == {"a/b.py": b"1\n"}
    assert lzma.decompress(path.read_bytes())[:6] == b"a/b.py"


def test_an_interruption_is_told(
    kvlint: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(folder: Path) -> Wheel:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "build_kvlint", interrupted)
    assert command.run(["--cuda", "12"]) == 130
    assert capsys.readouterr().err == "interrupted; no archive was written\n"


def test_kvlint_is_packed_from_its_checkout(tmp_path: Path, wheels: Path) -> None:
    built = command.build_kvlint(tmp_path)
    assert {"kvlint/cli.py", "kvlint/bundle/fixes/manifest.toml"} < set(built.members)
    drill = {r.name for r in built.requirements if r.marker is not None and r.marker.evaluate({"extra": "drill"})}
    assert {"nixl", "pyzmq", "aiohttp", "requests", *command.HOST} - {"numpy"} <= drill
    required = {requirement.name for requirement in built.requirements}
    assert set(command.UNUSED) < required
    plan = command.Plan(TARGET, "12", None, (), tuple(required - {"nixl", "pyzmq", "click", "flake8-kvlint"}))
    bundle = command.collect(plan, built, FolderSource(wheels, TARGET))
    assert [part.wheel.name for part in bundle.parts] == ["click", "flake8-kvlint", "nixl", "nixl-cu12", "pyzmq"]


def test_a_checkout_that_does_not_build_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "ROOT", tmp_path)
    with pytest.raises(PackError, match="kvlint's wheel cannot be built"):
        command.build_kvlint(tmp_path)


def test_what_the_tool_needs_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    main = runpy.run_path(str(SCRIPT))["main"]
    monkeypatch.setitem(sys.modules, "nixl_pack.command", None)
    assert main(["--cuda", "12"]) == 2
    assert capsys.readouterr().err == "error: nixl_pack.command is needed: run `pip install -e '.[pack]'`\n"


def test_the_script_runs_from_anywhere(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--help"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "usage: pack_nixl.py" in done.stdout
    assert "--cuda {12,13}" in done.stdout
