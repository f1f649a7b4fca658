"""Named blobs in one folder: whole or absent, readable by their owner alone, and bounded in number, size and age.

The folder may be shared with other runs, left half-written by a power cut, or
prepared by somebody else in a world-writable place; none of that may change
what a run reports.  Hence every blob carries a checksum, replaces its
predecessor in one step, and is looked for only in a real folder of the user's
own that nobody else can write to.  What holds such blobs knows nothing of
what they mean.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import time
from dataclasses import dataclass

# A folder of its own, so that one which holds other things as well can be named.  Changes with its layout and with
# that of a blob's file.
_LAYOUT = "kvlint-v1"
_NAME = re.compile(r"[0-9a-f]{64}")
_TEMPORARY = re.compile(r"\.[0-9a-f]{16}\.tmp")
_DIGEST_SIZE = hashlib.sha256().digest_size

_LARGEST_BLOB = 4 << 20
_MAX_BYTES = 64 << 20
_MAX_BLOBS = 20_000
_DAY = 24 * 60 * 60
_MAX_AGE = 30 * _DAY

# https://bford.info/cachedir/: backups leave such folders out.
_TAG = b"Signature: 8a477f597d28d172789f06886806bc55\n# Results of kvlint; safe to delete.\n"
_MARKS = {"CACHEDIR.TAG": _TAG, ".gitignore": b"# Results of kvlint; safe to delete.\n*\n"}


class CacheUnusable(Exception):
    """Why results are not kept in a folder."""


def cleared(folder: str) -> tuple[int, int]:
    """Remove every blob below ``folder``: returns their number and size in bytes; raises CacheUnusable."""
    if not os.path.lexists(os.path.join(folder, _LAYOUT)):
        return 0, 0
    store = Store(folder)
    try:
        return store.clear()
    except OSError as error:
        raise CacheUnusable(f"{folder}: {error.strerror or error}") from error
    finally:
        store.close()


@dataclass(frozen=True, slots=True)
class _File:
    name: str
    size: int
    used: float


class Store:
    """The blobs below ``folder``, which is made if need be; raises CacheUnusable."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._wrote = False
        try:
            self._descriptor = _opened(folder)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise CacheUnusable(f"{folder}: {reason}") from error
        self._may_write = True

    def close(self) -> None:
        """Let go of the folder."""
        os.close(self._descriptor)

    def get(self, name: str) -> bytes | None:
        """The blob ``name``, None where there is none or it is damaged."""
        try:
            content = self._read(name)
        except OSError:
            return None
        if content is None or hashlib.sha256(content[_DIGEST_SIZE:]).digest() != content[:_DIGEST_SIZE]:
            return None
        return content[_DIGEST_SIZE:]

    def put(self, name: str, blob: bytes) -> None:
        """Keep ``blob`` under ``name``, 64 hexadecimal digits; does nothing where that cannot be done."""
        if not self._may_write or len(blob) > _LARGEST_BLOB:
            return
        try:
            if not self._wrote:
                self._wrote = True
                self.prune()
            self._write(name, hashlib.sha256(blob).digest() + blob)
        except OSError:
            # A full or read-only disk will not have changed by the next blob.
            self._may_write = False

    def prune(self, *, now: float | None = None) -> None:
        """Remove what was not used for a month, and the longest unused where there is too much; raises OSError."""
        now = time.time() if now is None else now
        kept: list[_File] = []
        for file in self._files():
            if now - file.used > (_DAY if _TEMPORARY.fullmatch(file.name) else _MAX_AGE):
                self._remove(file.name)
            else:
                kept.append(file)
        kept.sort(key=lambda file: file.used)
        total = sum(file.size for file in kept)
        while kept and (total > _MAX_BYTES or len(kept) > _MAX_BLOBS):
            oldest = kept.pop(0)
            total -= oldest.size
            self._remove(oldest.name)

    def clear(self) -> tuple[int, int]:
        """Remove every blob; returns how many there were and their size in bytes.  Raises OSError."""
        files = list(self._files())
        for file in files:
            os.unlink(file.name, dir_fd=self._descriptor)
        blobs = [file for file in files if _NAME.fullmatch(file.name)]
        return len(blobs), sum(file.size for file in blobs)

    def _read(self, name: str) -> bytes | None:
        # Not blocking: a pipe of that name would otherwise wait for a writer.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(name, flags, dir_fd=self._descriptor)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST_BLOB + _DIGEST_SIZE:
                return None
            content = os.read(descriptor, status.st_size)
            if time.time() - status.st_mtime > _DAY:
                # Used today, which keeps it from being pruned.
                with contextlib.suppress(OSError):
                    os.utime(descriptor)
            return content
        finally:
            os.close(descriptor)

    def _write(self, name: str, content: bytes) -> None:
        temporary = f".{os.urandom(8).hex()}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o600, dir_fd=self._descriptor)
        try:
            with open(descriptor, "wb") as stream:
                stream.write(content)
            os.replace(temporary, name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        except BaseException:
            self._remove(temporary)
            raise

    def _files(self) -> list[_File]:
        """The files of this store's making; raises OSError."""
        found = []
        with os.scandir(self._descriptor) as entries:
            for entry in entries:
                if _NAME.fullmatch(entry.name) or _TEMPORARY.fullmatch(entry.name):
                    with contextlib.suppress(FileNotFoundError):
                        status = entry.stat(follow_symlinks=False)
                        found.append(_File(entry.name, status.st_size, status.st_mtime))
        return found

    def _remove(self, name: str) -> None:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=self._descriptor)


def _opened(folder: str) -> int:
    """A descriptor of the folder for blobs below ``folder``; raises OSError for one that others could tamper with."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    inner = os.path.join(folder, _LAYOUT)
    try:
        os.mkdir(inner, 0o700)
    except FileExistsError:
        pass
    else:
        _mark(inner)
    descriptor = os.open(inner, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    status = os.fstat(descriptor)
    problem = None
    if status.st_uid != os.geteuid():
        problem = "belongs to another user"
    elif status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        problem = "can be written to by other users"
    if problem is not None:
        os.close(descriptor)
        raise PermissionError(0, problem)
    return descriptor


def _mark(folder: str) -> None:
    """Say to backups and to git that ``folder`` is not worth keeping; what stands there is left alone."""
    for name, content in _MARKS.items():
        with contextlib.suppress(OSError):
            descriptor = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "wb") as stream:
                stream.write(content)
