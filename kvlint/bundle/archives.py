"""The Python files of a wheel or source distribution, read without unpacking tricks: nothing is built or run.

A member that would leave the folder condemns the archive; so does a Python file
that is a link or a device, or larger than source code gets.  Other members are
never written, and may be links, which honest source distributions have.
"""

from __future__ import annotations

import gzip
import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from kvlint.bundle import BundleError
from kvlint.source.discovery import SUFFIXES
from kvlint.source.display import one_line

# Several times what the largest release read so far (SGLang 0.5.23: 4,719 Python
# files, 80 MB of them, the largest under 1 MB) needs.
MAX_MEMBERS = 200_000
MAX_FILES = 50_000
MAX_FILE_BYTES = 16 << 20
MAX_TREE_BYTES = 512 << 20
# A tar archive is decompressed from its start to the last member, wanted or not.
MAX_TAR_BYTES = 8 << 30

_BROKEN = (zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, lzma.LZMAError, zlib.error, EOFError,
           NotImplementedError, RuntimeError, ValueError)  # fmt: skip


class BadArchive(BundleError):
    """An archive that is damaged, or must not be unpacked."""


@dataclass(frozen=True, slots=True)
class _Member:
    name: str
    size: int
    is_folder: bool
    is_file: bool
    open: Callable[[], IO[bytes]]


def unpack(archive: Path, destination: Path) -> tuple[str, ...]:
    """Write the Python files of ``archive`` below ``destination``, and give their paths in it, sorted.

    Raises BadArchive; BundleError where the disk refuses.
    """
    written: dict[str, None] = {}
    total = 0
    for member in _members(archive):
        name = _safe_name(archive, member)
        if member.is_folder or not member.name.endswith(SUFFIXES):
            continue
        _require_regular(archive, member)
        total += member.size
        if member.size > MAX_FILE_BYTES or total > MAX_TREE_BYTES:
            raise BadArchive(f"{archive.name}: {one_line(member.name)} is too large to be a source file; not unpacked")
        if name in written:
            raise BadArchive(f"{archive.name}: holds {one_line(name)} twice; not unpacked")
        _write(archive, member, destination / name)
        written[name] = None
        if len(written) > MAX_FILES:
            raise BadArchive(f"{archive.name}: holds more than {MAX_FILES} Python files; not unpacked")
    return tuple(sorted(written))


def _write(archive: Path, member: _Member, target: Path) -> None:
    try:
        with member.open() as source:
            # One byte more than promised shows a member that lies about its size.
            data = source.read(member.size + 1)
    except _BROKEN as error:
        raise _damaged(archive, error) from error
    if len(data) != member.size:
        raise BadArchive(f"{archive.name}: {one_line(member.name)} is not of the size that the archive tells")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as sink:
            sink.write(data)
    except OSError as error:
        raise BundleError(
            f"{archive.name}: cannot be unpacked below {target.parent}: {error.strerror or error}; free some space "
            "there, or set TMPDIR to another folder"
        ) from error


def _members(archive: Path) -> Iterator[_Member]:
    """Every member, each of which is to be read before the next is asked for."""
    try:
        if zipfile.is_zipfile(archive):
            yield from _zip_members(archive)
        elif archive.name.endswith((".whl", ".zip")):
            raise BadArchive(f"{archive.name}: is no zip archive; remove {archive} and run again")
        else:
            yield from _tar_members(archive)
    except _BROKEN as error:
        raise _damaged(archive, error) from error
    except OSError as error:
        raise BundleError(f"{archive.name}: cannot be read: {error.strerror or error}") from error


def _zip_members(archive: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(archive) as opened:
        infos = opened.infolist()
        _require_few(archive, len(infos))
        for info in infos:
            kind = stat.S_IFMT(info.external_attr >> 16)

            def read(info: zipfile.ZipInfo = info) -> IO[bytes]:
                return opened.open(info)

            yield _Member(info.filename, info.file_size, info.is_dir(), kind in (0, stat.S_IFREG), read)


def _tar_members(archive: Path) -> Iterator[_Member]:
    with _BoundedTar.open(archive) as opened:
        for count, info in enumerate(opened, start=1):
            _require_few(archive, count)

            def read(info: tarfile.TarInfo = info) -> IO[bytes]:
                stream = opened.extractfile(info)
                if stream is None:
                    raise tarfile.ReadError(f"{info.name} cannot be read")
                return stream

            yield _Member(info.name, info.size, info.isdir(), info.isreg() and not info.sparse, read)


class _BoundedTar(tarfile.TarFile):
    """A tar archive of which no more is decompressed than source code can need, whatever its headers tell."""

    def __init__(self, name: Any, mode: Any = "r", fileobj: Any = None, **options: Any) -> None:
        # Without a stream, nothing is to be decompressed.
        bounded: Any = None if fileobj is None else _BoundedStream(os.path.basename(name), fileobj)
        super().__init__(name, mode, bounded, **options)


class _BoundedStream:
    """What `tarfile` uses of a decompressing stream; raises BadArchive rather than read too much of it."""

    def __init__(self, name: str, stream: IO[bytes]) -> None:
        self._name = name
        self._stream = stream
        self.tell = stream.tell
        self.close = stream.close

    def read(self, size: int) -> bytes:
        """Read ``size`` bytes, which have to fit into memory: a header tells how long its extension is."""
        if size > MAX_FILE_BYTES + tarfile.RECORDSIZE:
            raise BadArchive(f"{self._name}: has a header of {size} bytes; not unpacked")
        return self._stream.read(size)

    def seek(self, position: int) -> int:
        """Go to ``position``; all bytes before it are decompressed for that."""
        if position > MAX_TAR_BYTES:
            raise BadArchive(f"{self._name}: unpacks to more than {MAX_TAR_BYTES} bytes; not unpacked")
        return self._stream.seek(position)


def _require_few(archive: Path, count: int) -> None:
    if count > MAX_MEMBERS:
        raise BadArchive(f"{archive.name}: holds more than {MAX_MEMBERS} files; not unpacked")


def _safe_name(archive: Path, member: _Member) -> str:
    name = PurePosixPath(member.name)
    if name.is_absolute() or ".." in name.parts:
        raise _unsafe(archive, member)
    return os.fspath(name)


def _require_regular(archive: Path, member: _Member) -> None:
    if any(character in member.name for character in "\\:\0"):
        raise _unsafe(archive, member)
    if not member.is_file:
        raise BadArchive(f"{archive.name}: {one_line(member.name)} is no regular file; not unpacked")


def _unsafe(archive: Path, member: _Member) -> BadArchive:
    return BadArchive(f"{archive.name}: holds the unsafe path {one_line(member.name)!r}; not unpacked")


def _damaged(archive: Path, error: Exception) -> BadArchive:
    why = one_line(str(error)) or type(error).__name__
    return BadArchive(f"{archive.name}: is damaged ({why}); remove {archive} and run again")
