"""What shared libraries need of each other, as the dynamic linker reads it (ld.so(8), System V ABI)."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile

from nixl_pack import PackError

_MAGIC = b"\x7fELF"
_ORIGIN = ("$ORIGIN", "${ORIGIN}")


@dataclass(frozen=True, slots=True)
class Dynamic:
    """The dynamic section of a library: names it needs, and where it has them looked for (DT_RPATH, DT_RUNPATH)."""

    needed: tuple[str, ...] = ()
    search_path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Closure:
    """Libraries with all that they need."""

    #: Paths, those asked for included.
    inside: frozenset[str]
    #: Names that no library at hand has, with the paths of those that need them.
    outside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def is_library(name: str) -> bool:
    """Whether a file of that name is a shared library: ``libucs-14c218c5.so.0.0.0``, ``_bindings.cpython-311.so``."""
    base = posixpath.basename(name)
    return base.endswith(".so") or ".so." in base


def read_dynamic(name: str, data: bytes, machine: str) -> Dynamic:
    """The dynamic section of the library ``name``; empty for a file that is no ELF file, a linker script say.

    ``machine`` is what its header has to name, ``EM_X86_64``. Raises PackError
    for a library of another processor, and for one that cannot be read.
    """
    if not data.startswith(_MAGIC):
        return Dynamic()
    try:
        file = ELFFile(BytesIO(data))
        tags = list(_tags(file))
        actual = file["e_machine"]
    # pyelftools lets construct's and Python's own errors through where a file is cut off.
    except (ELFError, ValueError, LookupError, AttributeError, TypeError, AssertionError, OverflowError) as error:
        raise PackError(f"{name}: is a damaged shared library ({str(error) or type(error).__name__})") from error
    if actual != machine:
        raise PackError(f"{name}: is for {actual}, not for {machine}; ask for another --machine")
    needed = tuple(tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED")
    # Of both, the linker heeds DT_RUNPATH alone.
    runpath = [tag.runpath for tag in tags if tag.entry.d_tag == "DT_RUNPATH"]
    rpath = [tag.rpath for tag in tags if tag.entry.d_tag == "DT_RPATH"]
    return Dynamic(needed, tuple(entry for path in runpath or rpath for entry in path.split(":") if entry))


def _tags(file: ELFFile) -> Iterator[Any]:
    for segment in file.iter_segments("PT_DYNAMIC"):
        if isinstance(segment, DynamicSegment):
            yield from segment.iter_tags()


def close(roots: Iterable[str], libraries: Iterable[str], dynamic: Callable[[str], Dynamic]) -> Closure:
    """The libraries at ``roots``, and of ``libraries`` those that they need, and that these need.

    All are paths in one tree, read by ``dynamic``. A library is looked for in
    its needer's search path, then by its name alone: what an earlier one has
    loaded is not looked for again, and a DT_RPATH counts for needs of needs too.
    """
    paths = sorted(set(libraries))
    known = frozenset(paths)
    by_name: dict[str, str] = {}
    for path in paths:
        by_name.setdefault(posixpath.basename(path), path)
    inside: dict[str, None] = {}
    outside: dict[str, dict[str, None]] = {}
    waiting = sorted(roots)
    while waiting:
        path = waiting.pop()
        if path in inside:
            continue
        inside[path] = None
        section = dynamic(path)
        for name in section.needed:
            beside = (posixpath.join(folder, name) for folder in _folders(path, section))
            found = next((place for place in beside if place in known), by_name.get(name))
            if found is None:
                outside.setdefault(name, {})[path] = None
            else:
                waiting.append(found)
    return Closure(frozenset(inside), {name: tuple(sorted(outside[name])) for name in sorted(outside)})


def _folders(path: str, section: Dynamic) -> Iterator[str]:
    """The folders of its search path that lie in the tree."""
    for entry in section.search_path:
        for origin in _ORIGIN:
            if entry == origin or entry.startswith(f"{origin}/"):
                yield posixpath.normpath(posixpath.join(posixpath.dirname(path), entry[len(origin) :].lstrip("/")))
