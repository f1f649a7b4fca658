"""What is taken of NIXL's own wheel."""

from __future__ import annotations

from pathlib import Path

import pytest
from nixl_pack import PackError
from nixl_pack.elf import read_dynamic
from nixl_pack.selection import MODULES, Selection, select_backend
from nixl_pack.wheels import Wheel

from .samples import backend, backend_files

OWN, LIBS = ".nixl_cu12.mesonpy.libs", "nixl_cu12.libs"
ALWAYS = {
    "nixl_cu12/__init__.py",
    "nixl_cu12/_bindings.cpython-312-x86_64-linux-gnu.so",
    f"{OWN}/libnixl.so",
    f"{OWN}/libcommon.so",
    f"{OWN}/plugins/libplugin_UCX.so",
    f"{LIBS}/libgrpc-3.so.48",
    f"{LIBS}/libucp-1.so.0.0.0",
    f"{LIBS}/libuct-2.so.0.0.0",
    "nixl_cu12-1.5.1.dist-info/METADATA",
    "nixl_cu12-1.5.1.dist-info/WHEEL",
    "nixl_cu12-1.5.1.dist-info/licenses/LICENSE",
}


def select(path: Path, *modules: str) -> Selection:
    wheel = Wheel.open(path)
    return select_backend(wheel, modules, lambda name: read_dynamic(name, wheel.read(name), "EM_X86_64"))


def test_the_package_one_plugin_and_their_libraries_are_taken(tmp_path: Path) -> None:
    # libgrpc has no search path: its libcommon is the one that is loaded already.
    selection = select(backend(tmp_path))
    assert set(selection.members) == ALWAYS
    assert selection.modules == ()
    assert selection.left_out == ("cma", "cuda", "ib")


def test_modules_come_with_all_their_files(tmp_path: Path) -> None:
    selection = select(backend(tmp_path), *MODULES)
    ucx = f"{LIBS}/ucx"
    assert set(selection.members) - ALWAYS == {
        f"{ucx}/libuct_cma.so.0.0.0",
        f"{ucx}/libuct_cuda.so.0.0.0",
        f"{ucx}/libucm_cuda.so.0.0.0",
    }
    assert (selection.modules, selection.left_out) == (("cma", "cuda"), ("ib",))


def test_a_module_brings_its_libraries(tmp_path: Path) -> None:
    members = set(select(backend(tmp_path), "ib").members) - ALWAYS
    assert members == {f"{LIBS}/ucx/libuct_ib.so.0.0.0", f"{LIBS}/libibverbs-4.so.1", f"{LIBS}/libnl.so"}


def test_copies_in_place_of_links_are_taken_together(tmp_path: Path) -> None:
    files = backend_files()
    ucx = f"{LIBS}/ucx"
    files[f"{ucx}/libuct_cma.so"] = files[f"{ucx}/libuct_cma.so.0"] = files[f"{ucx}/libuct_cma.so.0.0.0"]
    members = select(backend(tmp_path, files=files), "cma").members
    assert [name for name in members if "libuct_cma" in name] == [
        f"{ucx}/libuct_cma.so",
        f"{ucx}/libuct_cma.so.0",
        f"{ucx}/libuct_cma.so.0.0.0",
    ]


def test_a_layout_that_is_not_known_is_told(tmp_path: Path) -> None:
    files = backend_files()
    del files[f"{OWN}/plugins/libplugin_UCX.so"]
    with pytest.raises(
        PackError, match=rf"is expected .* beside libnixl\.so, and is only in {LIBS}/nixl/libplugin_UCX"
    ):
        select(backend(tmp_path, files=files))
    with pytest.raises(PackError, match=r"and is nowhere; .* ask for another one with --nixl"):
        select(backend(tmp_path, files={"nixl_cu12/__init__.py": b""}))
    with pytest.raises(PackError, match="holds no package nixl_cu12"):
        select(backend(tmp_path, files={"nixl/__init__.py": b""}))
