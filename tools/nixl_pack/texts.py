"""What is said of a bundle: its README.txt, and the summary on the terminal."""

from __future__ import annotations

import posixpath
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping

from nixl_pack.bundle import Bundle, Part

#: Libraries of the C and C++ runtime, which manylinux wheels may expect of every host (PEP 600).
_RUNTIME = re.compile(r"(lib(c|m|dl|pthread|rt|util|resolv|gcc_s|stdc\+\+)|ld-linux-[\w-]+)\.so\.\d+$")

_VERSION = re.compile(r"(?<=\.so)[.\d]+$")

_README = """\
kvlint with NIXL and UCX, for a host without a package index
============================================================

For {target}, CUDA {cuda}. The host brings Python itself,
{host}, and the libraries named below.

Unpack, and run:

    mkdir -p nixl && tar -xJf ARCHIVE -C nixl
    PYTHONPATH=nixl python3 -m kvlint drill PATH/TO/sglang

Without xz on the host: python3 -m tarfile -e ARCHIVE nixl

No other environment variable is needed: NIXL finds its plugins, and UCX its
modules, beside their own libraries. NIXL_PLUGIN_DIR and UCX_MODULE_DIR must
not point elsewhere. What stands on PYTHONPATH goes before what is installed.

The package nixl takes nixl_cu{cuda}, which is in here. If torch was built for
another CUDA version than {cuda}, make a bundle for that one.

{modules}

From the host
-------------
{libraries}

Distributions
-------------
{distributions}

Each has its METADATA and its licences in NAME-VERSION.dist-info. They are
their authors' work under their own terms; read these before you pass the
archive on.
"""

_MODULES = (
    "Modules of UCX: shared memory and TCP (in libuct), {}. Left out: {}; all other plugins of NIXL, its device API, "
    "and what kvlint needs only to repair and explore."
)


def readme(bundle: Bundle, cuda: str, host: tuple[str, ...]) -> bytes:
    """The text of the file README.txt."""
    modules, left_out = modules_of(bundle)
    text = _README.format(
        target=bundle.target,
        cuda=cuda,
        host=", ".join(host),
        modules=_wrapped(_MODULES.format(", ".join(modules) or "no others", ", ".join(left_out) or "none")),
        libraries="\n".join(_wrapped(line, "    ") for line in _library_lines(bundle.host_libraries())),
        distributions="\n".join(line for part in bundle.parts for line in _distribution_lines(part)),
    )
    return text.encode()


def summary(bundle: Bundle, requested: Iterable[str]) -> Iterator[str]:
    """Lines that tell what went in, what did not, and what the host has to bring."""
    width = max(len(f"{part.wheel.name} {part.wheel.version}") for part in bundle.parts)
    for part in bundle.parts:
        label = f"{part.wheel.name} {part.wheel.version}"
        note = "" if part.wheel.licence_files() else "  (its wheel has no licence file)"
        yield f"{label:{width}}  {len(part.selection.members):4} files  {_mebibytes(part.size)}{note}"
    modules, left_out = modules_of(bundle)
    yield f"modules of UCX: {', '.join(modules) or 'none'}; left out: {', '.join(left_out) or 'none'}"
    if absent := sorted(set(requested) - set(modules)):
        yield f"not in this release: {', '.join(absent)}"
    yield "from the host:"
    yield from (f"  {line}" for line in _library_lines(bundle.host_libraries()))


def modules_of(bundle: Bundle) -> tuple[list[str], list[str]]:
    """Modules of UCX that are in the bundle, and those that its wheel has besides."""
    selections = [part.selection for part in bundle.parts]
    return [m for s in selections for m in s.modules], [m for s in selections for m in s.left_out]


def _library_lines(libraries: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """The C and C++ runtime in one line, each other library with those that need it."""
    runtime = [name for name in libraries if _RUNTIME.match(name)]
    if runtime:
        yield f"C and C++ runtime: {', '.join(runtime)}"
    for name, needers in libraries.items():
        if name not in runtime:
            # Copies of one library in place of links differ in the version alone.
            short = dict.fromkeys(_VERSION.sub("", posixpath.basename(needer)) for needer in needers)
            yield f"{name}, needed by {', '.join(short)}"


def _distribution_lines(part: Part) -> Iterator[str]:
    wheel = part.wheel
    yield f"{wheel.name} {wheel.version}: {wheel.licence or 'licence not stated in METADATA'}"
    yield f"    {wheel.path.name}"
    yield f"    sha256 {wheel.sha256}"


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, width=78, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _mebibytes(size: int) -> str:
    return f"{size / (1 << 20):7.2f} MiB"
