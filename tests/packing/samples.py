"""Small wheels and shared libraries, made as the tests need them."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from nixl_pack.target import Target

TARGET = Target((3, 12), (2, 28), "x86_64")
PLATFORM = "cp312-cp312-manylinux_2_28_x86_64"

_X86_64, _AARCH64 = 62, 183
_DT_NULL, _DT_NEEDED, _DT_STRTAB, _DT_STRSZ, _DT_RPATH, _DT_RUNPATH = 0, 1, 5, 10, 15, 29
_PT_LOAD, _PT_DYNAMIC = 1, 2
_HEADER, _PROGRAM_HEADER = 64, 56


def library(*needed: str, runpath: str = "", rpath: str = "", machine: int = _X86_64) -> bytes:
    """A shared library with a dynamic section and nothing else (System V ABI, chapters 4 and 5)."""
    strings = bytearray(b"\0")
    tags: list[tuple[int, int]] = []
    texts = [(_DT_NEEDED, name) for name in needed]
    texts += [(tag, path) for tag, path in ((_DT_RPATH, rpath), (_DT_RUNPATH, runpath)) if path]
    for tag, text in texts:
        tags.append((tag, len(strings)))
        strings += text.encode() + b"\0"
    dynamic_at = _HEADER + 2 * _PROGRAM_HEADER
    strings_at = dynamic_at + 16 * (len(tags) + 3)
    tags += [(_DT_STRTAB, strings_at), (_DT_STRSZ, len(strings)), (_DT_NULL, 0)]
    dynamic = b"".join(struct.pack("<QQ", *tag) for tag in tags)
    size = strings_at + len(strings)
    header = struct.pack(
        "<4sBBBBB7xHHIQQQIHHHHHH",
        *(b"\x7fELF", 2, 1, 1, 0, 0, 3, machine, 1, 0, _HEADER, 0, 0, _HEADER, _PROGRAM_HEADER, 2, 64, 0, 0),
    )
    load = struct.pack("<IIQQQQQQ", _PT_LOAD, 5, 0, 0, 0, size, size, 4096)
    here = struct.pack("<IIQQQQQQ", _PT_DYNAMIC, 6, dynamic_at, dynamic_at, dynamic_at, len(dynamic), len(dynamic), 8)
    return header + load + here + dynamic + bytes(strings)


def arm_library(*needed: str) -> bytes:
    """A shared library for ARM64."""
    return library(*needed, machine=_AARCH64)


def wheel(
    folder: Path,
    name: str,
    version: str = "1.0",
    files: Mapping[str, bytes] | None = None,
    *,
    requires: Sequence[str] = (),
    metadata: str = "",
    tag: str = "py3-none-any",
) -> Path:
    """A wheel of one module, or of ``files``."""
    underscored = name.replace("-", "_")
    path = folder / f"{underscored}-{version}-{tag}.whl"
    about = f"{underscored}-{version}.dist-info"
    head = f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n{metadata}"
    head += "".join(f"Requires-Dist: {requirement}\n" for requirement in requires)
    members = {f"{underscored}.py": b"name = __name__\n"} if files is None else dict(files)
    members |= {f"{about}/METADATA": head.encode(), f"{about}/licenses/LICENSE": b"Do as you like.\n"}
    members[f"{about}/WHEEL"] = f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n".encode()
    members[f"{about}/RECORD"] = b"".join(f"{member},,\n".encode() for member in members)
    with zipfile.ZipFile(path, "w") as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    return path


def backend_files(cuda: str = "12") -> dict[str, bytes]:
    """The members of NIXL's wheel for a CUDA version, in the layout of 1.5.1."""
    package = f"nixl_cu{cuda}"
    own, libs = f".{package}.mesonpy.libs", f"{package}.libs"
    both = f"$ORIGIN/..:$ORIGIN/../../{libs}"
    ucx = "$ORIGIN/..:$ORIGIN:/usr/lib64"
    uct = ("libuct-2.so.0.0.0", "libc.so.6")
    return {
        f"{package}/__init__.py": b"from ._bindings import *\n",
        f"{package}/_bindings.cpython-312-x86_64-linux-gnu.so": library(
            "libnixl.so", "libstdc++.so.6", "libc.so.6", rpath=f"$ORIGIN/../{own}:$ORIGIN/../{libs}"
        ),
        f"{own}/libnixl.so": library("libcommon.so", "libgrpc-3.so.48", rpath=f"${{ORIGIN}}:$ORIGIN/../{libs}"),
        f"{own}/libcommon.so": library("libc.so.6", "ld-linux-x86-64.so.2"),
        f"{own}/libtest_utils.so": library("libnixl.so"),
        f"{own}/plugins/libplugin_UCX.so": library("libcommon.so", "libucp-1.so.0.0.0", rpath=both),
        f"{own}/plugins/libplugin_OBJ.so": library("libaws.so"),
        f"{libs}/nixl/libplugin_UCX.so": library("libcommon.so", "libucp-1.so.0.0.0", runpath="$ORIGIN/.."),
        f"{libs}/libcommon.so": library("libnever.so"),
        f"{libs}/libaws.so": library(),
        f"{libs}/libgrpc-3.so.48": library("libssl.so.3", "libcommon.so"),
        f"{libs}/libucp-1.so.0.0.0": library("libuct-2.so.0.0.0", rpath="$ORIGIN"),
        f"{libs}/libuct-2.so.0.0.0": library("libm.so.6", rpath="$ORIGIN"),
        f"{libs}/ucx/libuct_cma.so.0.0.0": library(*uct, runpath=ucx),
        f"{libs}/ucx/libuct_cma.la": b"# a libtool library file\n",
        f"{libs}/ucx/libuct_cuda.so.0.0.0": library(*uct, "libcuda.so.1", runpath=ucx),
        f"{libs}/ucx/libucm_cuda.so.0.0.0": library("libcudart.so.12", "libcuda.so.1", runpath=ucx),
        f"{libs}/ucx/libuct_ib.so.0.0.0": library(*uct, "libibverbs-4.so.1", runpath=ucx),
        f"{libs}/ucx/libucx_perftest_cuda.so.0.0.0": library("libgomp.so.1"),
        f"{libs}/libibverbs-4.so.1": library("libnl.so"),
        f"{libs}/libnl.so": library(),
        f"nixl_ep_cu{cuda}/kernels.so": library("libtorch.so"),
        f"{package}.scripts/nixl_example": b"\x7fELF",
    }


def backend(folder: Path, version: str = "1.5.1", cuda: str = "12", files: Mapping[str, bytes] | None = None) -> Path:
    """NIXL's wheel for a CUDA version."""
    members = backend_files(cuda) if files is None else files
    return wheel(folder, f"nixl-cu{cuda}", version, members, requires=["torch", "numpy"], tag=PLATFORM)


def shim(folder: Path, version: str = "1.5.1") -> Path:
    """The wheel of the package that dispatches."""
    files = {"nixl/__init__.py": b"import nixl_cu12\n", "nixl_ep/__init__.py": b"import nixl_ep_cu12\n"}
    requires = [f"nixl-cu12=={version}", f"nixl-cu13=={version}", f'nixl-cu12=={version}; extra == "cu12"']
    return wheel(folder, "nixl", version, files, requires=requires)
