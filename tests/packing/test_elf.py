"""What is read of shared libraries, and which are taken with which."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from nixl_pack import PackError
from nixl_pack.elf import Closure, Dynamic, close, is_library, read_dynamic

from .samples import arm_library, library


def read(data: bytes) -> Dynamic:
    return read_dynamic("libx.so", data, "EM_X86_64")


def closure(root: str, files: dict[str, bytes]) -> Closure:
    return close([root], files, lambda name: read(files[name]))


def test_the_dynamic_section_is_read() -> None:
    made = read(library("liba.so", "libb.so.1", rpath="$ORIGIN:/usr/lib"))
    assert made == Dynamic(("liba.so", "libb.so.1"), ("$ORIGIN", "/usr/lib"))
    assert read(library("liba.so", rpath="/old", runpath="$ORIGIN/..")).search_path == ("$ORIGIN/..",)
    assert read(library()) == Dynamic()


def test_what_a_compiler_makes_is_read(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    (tmp_path / "a.c").write_text("int a(void) { return 1; }\n")
    (tmp_path / "b.c").write_text("int a(void); int b(void) { return a(); }\n")
    for command in (
        ["-o", "liba.so.1", "-Wl,-soname,liba.so.1", "a.c"],
        [
            "-o",
            "libb.so",
            "b.c",
            "-Wl,--no-as-needed",
            "-L.",
            "-l:liba.so.1",
            "-Wl,--enable-new-dtags,-rpath,$ORIGIN/x",
        ],
    ):
        subprocess.run([compiler, "-shared", "-fPIC", *command], cwd=tmp_path, check=True)
    from elftools.elf.elffile import ELFFile

    with (tmp_path / "libb.so").open("rb") as file:
        machine = ELFFile(file)["e_machine"]
    section = read_dynamic("libb.so", (tmp_path / "libb.so").read_bytes(), machine)
    assert section.needed[0] == "liba.so.1"
    assert section.search_path == ("$ORIGIN/x",)


def test_a_file_that_is_no_library_needs_nothing() -> None:
    assert read(b"INPUT(liba.so.1)\n") == Dynamic()
    assert read(b"") == Dynamic()


@pytest.mark.parametrize("length", [4, 5, 16, 40, 64, 100, 130, 180, 200])
def test_a_library_that_is_cut_off_is_told(length: int) -> None:
    with pytest.raises(PackError, match=r"libx\.so: is a damaged shared library"):
        read(library("liba.so", "libb.so")[:length])


def test_a_library_of_another_processor_is_told() -> None:
    with pytest.raises(PackError, match=r"libx\.so: is for EM_AARCH64, not for EM_X86_64; ask for another --machine"):
        read(arm_library("libc.so.6"))


def test_the_closure_holds_needs_of_needs_and_names_the_rest() -> None:
    files = {
        "p/top.so": library("liba.so", "libc.so.6", runpath="$ORIGIN/../libs"),
        "libs/liba.so": library("libb.so", "libc.so.6"),
        "libs/libb.so": library("liba.so"),
        "libs/libother.so": library("libz.so.1"),
    }
    made = closure("p/top.so", files)
    assert made.inside == {"p/top.so", "libs/liba.so", "libs/libb.so"}
    assert made.outside == {"libc.so.6": ("libs/liba.so", "p/top.so")}


def test_the_search_path_goes_before_the_name_alone() -> None:
    files = {
        "a/libx.so": library("libleft.so"),
        "b/libx.so": library(),
        "p/beside.so": library("libx.so", runpath="/usr/lib:$ORIGIN/../b:$ORIGIN/../a"),
        "p/braces.so": library("libx.so", rpath="${ORIGIN}/../b"),
        "p/lost.so": library("libx.so", runpath="$ORIGINAL/../b"),
    }
    assert closure("p/beside.so", files).inside == {"p/beside.so", "b/libx.so"}
    assert closure("p/braces.so", files).inside == {"p/braces.so", "b/libx.so"}
    assert closure("p/lost.so", files).outside == {"libleft.so": ("a/libx.so",)}


def test_a_search_path_may_lead_out_of_the_tree() -> None:
    assert closure("top.so", {"top.so": library("libx.so", runpath="$ORIGIN/../../etc")}).outside == {
        "libx.so": ("top.so",)
    }


@pytest.mark.parametrize(
    ("name", "answer"),
    [("a/libx.so", True), ("libx-1f.so.0.0.0", True), ("m.cpython-312.so", True), ("a.sort", False), ("x.la", False)],
)
def test_libraries_are_known_by_their_names(name: str, answer: bool) -> None:
    assert is_library(name) is answer
