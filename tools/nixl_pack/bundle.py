"""The bundle itself: the files of the chosen wheels as they lie below site-packages, and one archive of them."""

from __future__ import annotations

import lzma
import os
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import IO

from nixl_pack import PackError, elf
from nixl_pack.selection import Selection, installed_path, select_all, select_backend
from nixl_pack.target import Target
from nixl_pack.wheels import Wheel

README = "README.txt"

#: 1980-01-01, the oldest date that all archive formats know.
_MTIME = 315_532_800
_PRESET = 9 | lzma.PRESET_EXTREME


@dataclass(frozen=True, slots=True)
class Part:
    """A distribution in the bundle: its wheel, what was taken of it, and how many bytes that is."""

    wheel: Wheel
    selection: Selection
    size: int


@dataclass(slots=True)
class Bundle:
    """Files by their paths below site-packages, and what is to be told of them."""

    target: Target
    parts: list[Part] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    _origins: dict[str, Wheel] = field(default_factory=dict)

    def add(self, wheel: Wheel) -> None:
        """Add a distribution as it is installed. Raises PackError."""
        self._add(wheel, select_all(wheel))

    def add_backend(self, wheel: Wheel, modules: Sequence[str]) -> None:
        """Add what UCX transfers need of NIXL's wheel for one CUDA version. Raises PackError."""

        def dynamic(name: str) -> elf.Dynamic:
            return elf.read_dynamic(f"{wheel.path}: {name}", wheel.read(name), self.target.elf_machine)

        self._add(wheel, select_backend(wheel, modules, dynamic))

    def host_libraries(self) -> Mapping[str, tuple[str, ...]]:
        """Libraries that the bundle needs and has not got, with the files that need them. Raises PackError."""

        def dynamic(name: str) -> elf.Dynamic:
            return elf.read_dynamic(name, self.files[name], self.target.elf_machine)

        libraries = [name for name in self.files if elf.is_library(name)]
        return elf.close(libraries, libraries, dynamic).outside

    def _add(self, wheel: Wheel, selection: Selection) -> None:
        contents = wheel.read_all(selection.members)
        for name, data in contents.items():
            path = installed_path(name) or name
            other = self._origins.setdefault(path, wheel)
            if path == README or self.files.setdefault(path, data) != data:
                raise PackError(
                    f"{wheel.path.name} and {README if path == README else other.path.name} both bring {path}; leave "
                    f"one distribution out: --host {wheel.name}"
                )
        self.parts.append(Part(wheel, selection, sum(map(len, contents.values()))))


def write(path: Path, files: Mapping[str, bytes], machine: str) -> int:
    """Write an archive of ``files``, the same bytes for the same files, and give its size.

    An older file at ``path`` is replaced when the new one is complete. Raises
    PackError where the disk refuses.
    """
    unfinished = path.with_name(f"{path.name}.part")
    try:
        try:
            with unfinished.open("wb") as sink, lzma.open(sink, "wb", filters=_filters(machine)) as compressed:
                _write_tar(compressed, files)
            os.replace(unfinished, path)
            return path.stat().st_size
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise PackError(f"{path}: cannot be written: {error.strerror or error}; choose another --output") from error


def _filters(machine: str) -> list[dict[str, int]]:
    """Machine code packs better if xz makes its jumps absolute; for ARM64, older xz could not."""
    jumps = [{"id": lzma.FILTER_X86}] if machine == "x86_64" else []
    return [*jumps, {"id": lzma.FILTER_LZMA2, "preset": _PRESET}]


def _write_tar(sink: IO[bytes], files: Mapping[str, bytes]) -> None:
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in _in_order(files):
            member = tarfile.TarInfo(name)
            member.size = len(files[name])
            member.mtime = _MTIME
            archive.addfile(member, BytesIO(files[name]))


def _in_order(names: Iterable[str]) -> list[str]:
    """What is read first comes first."""
    return sorted(names, key=lambda name: (name != README, name))
