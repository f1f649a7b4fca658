"""Wheels, read as archives: nothing in them is run, and one with a path that leads elsewhere is refused."""

from __future__ import annotations

import hashlib
import re
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from email.message import Message
from email.parser import BytesHeaderParser
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, NormalizedName, parse_wheel_filename

from nixl_pack import PackError

if TYPE_CHECKING:
    from packaging.version import Version

#: Several times the largest member seen: 36 MB, a CUDA extension in nixl-cu12 1.5.1.
_MAX_MEMBER_BYTES = 1 << 30
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError)
#: The lists of a wheel's members, and their signatures.
_RECORDS = frozenset({"RECORD", "RECORD.jws", "RECORD.p7s"})
_LICENCE_NAME = re.compile(r"licen[cs]e|copying|notice|authors", re.IGNORECASE)


@dataclass(frozen=True)
class Wheel:
    """A wheel on disk, whose members have been looked at."""

    path: Path
    name: NormalizedName
    version: Version

    @classmethod
    def open(cls, path: Path) -> Wheel:
        """Raises PackError for a file that is no wheel, is damaged, or holds unsafe paths."""
        try:
            name, version, _, _ = parse_wheel_filename(path.name)
        except InvalidWheelFilename as error:
            raise PackError(f"{path}: is not named as a wheel is: {error}") from error
        wheel = cls(path, name, version)
        _ = wheel.members, wheel.metadata
        return wheel

    @cached_property
    def members(self) -> dict[str, int]:
        """Every file in it, by its path, with its size."""
        try:
            with zipfile.ZipFile(self.path) as archive:
                return dict(self._checked(archive.infolist()))
        except _BROKEN as error:
            raise self._damaged(error) from error

    @cached_property
    def metadata(self) -> Message:
        """Its METADATA file."""
        return BytesHeaderParser().parsebytes(self.read(f"{self.dist_info}/METADATA"))

    @cached_property
    def dist_info(self) -> str:
        """The name of its .dist-info folder."""
        found = {top for name in self.members if (top := name.partition("/")[0]).endswith(".dist-info")}
        if len(found) != 1 or f"{min(found)}/METADATA" not in self.members:
            raise PackError(f"{self.path}: is no wheel: it does not hold exactly one .dist-info folder with METADATA")
        return found.pop()

    @cached_property
    def sha256(self) -> str:
        """Of the file, in hexadecimal."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    @property
    def licence(self) -> str:
        """The licence as METADATA names it, one line; empty if it names none."""
        stated = self.metadata.get("License-Expression") or self.metadata.get("License") or ""
        if stated and "\n" not in stated.strip():
            return stated.strip()
        classifiers = self.metadata.get_all("Classifier", [])
        return ", ".join(c.rpartition(" :: ")[2] for c in classifiers if c.startswith("License :: "))

    @property
    def requirements(self) -> list[Requirement]:
        """What it requires, extras and other platforms included.

        Raises PackError for a requirement that cannot be read.
        """
        try:
            return [Requirement(line) for line in self.metadata.get_all("Requires-Dist", [])]
        except InvalidRequirement as error:
            raise PackError(f"{self.path}: METADATA has a requirement that cannot be read: {error}") from error

    def contents(self) -> list[str]:
        """Its members, less those that would no longer be true of a selection of them."""
        records = {f"{self.dist_info}/{name}" for name in _RECORDS}
        return [name for name in self.members if name not in records]

    def about(self) -> list[str]:
        """Members that describe the distribution, licences among them."""
        return [name for name in self.contents() if name.startswith(f"{self.dist_info}/")]

    def licence_files(self) -> list[str]:
        """Members of its .dist-info folder that hold licences and notices."""
        return [n for n in self.about() if "/licenses/" in n or _LICENCE_NAME.match(PurePosixPath(n).name)]

    def read(self, name: str) -> bytes:
        """The contents of one member; its checksum is verified. Raises PackError."""
        try:
            with zipfile.ZipFile(self.path) as archive:
                return archive.read(name)
        except (KeyError, *_BROKEN) as error:
            raise self._damaged(error) from error

    def read_all(self, names: Iterable[str]) -> dict[str, bytes]:
        """The contents of some members. Raises PackError."""
        try:
            with zipfile.ZipFile(self.path) as archive:
                return {name: archive.read(name) for name in names}
        except (KeyError, *_BROKEN) as error:
            raise self._damaged(error) from error

    def _checked(self, infos: list[zipfile.ZipInfo]) -> Iterator[tuple[str, int]]:
        seen: set[str] = set()
        for info in infos:
            name = info.orig_filename
            if not _is_safe(name):
                raise PackError(f"{self.path}: holds the unsafe path {name!r}; get the wheel anew from its index")
            if name in seen:
                raise PackError(f"{self.path}: holds {name!r} twice; get the wheel anew from its index")
            seen.add(name)
            if info.is_dir():
                continue
            if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
                raise PackError(f"{self.path}: {name!r} is a link or a device, which wheels do not have")
            if info.file_size > _MAX_MEMBER_BYTES:
                raise PackError(f"{self.path}: {name!r} is said to have {info.file_size} bytes; not unpacked")
            yield name, info.file_size

    def _damaged(self, error: Exception) -> PackError:
        if isinstance(error, OSError):
            return PackError(f"{self.path}: cannot be read: {error.strerror or error}")
        return PackError(f"{self.path}: is damaged ({str(error) or type(error).__name__}); get it anew from its index")


def _is_safe(name: str) -> bool:
    """Whether a member's path leads below the folder that it is unpacked in, on every system."""
    parts = name.removesuffix("/").split("/")
    return not {"", ".", ".."} & set(parts) and not {"\\", ":"} & set(name) and name.isprintable()
