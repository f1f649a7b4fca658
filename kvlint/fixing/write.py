"""Replacing one file on disk, wholly or not at all; knows bytes and paths, nothing of Python source."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat

from kvlint.fixing.refusals import WriteRefused

#: What the temporaries of `write_atomically` are called; a run that was killed leaves one behind.
TEMPORARY_NAME = re.compile(r"\.kvlint-[0-9a-f]{16}\.tmp")

_ADVICE = {
    errno.ENOSPC: "free some disk space and run again",
    errno.EDQUOT: "free some of the disk quota and run again",
    errno.EROFS: "the file system is mounted read-only",
    errno.EACCES: "make the folder writable and run again",
    errno.EPERM: "make the folder writable and run again",
}


def write_atomically(path: str, before: bytes, after: bytes, *, root: str | None = None) -> None:
    """Replace the text of ``path`` by ``after`` if it is still ``before``.

    A reader, a crash or Ctrl-C sees the old text or the new one, never a mix.
    The file keeps its mode and, where permitted, its owner.  A symlink is
    written through to its real file as long as that lies under ``root``
    (default: the folder that holds the link).

    Raises:
        WriteRefused: the file changed meanwhile, is read-only, is no regular
            file, is a link to somewhere else, or the system refused; the old
            text is still in place.
    """
    if after == before:
        return
    try:
        real = _real_file(path, root)
        status = _writable_status(path, real)
        _require_unchanged(path, real, before)
        _replace(path, real, status, before, after)
    except OSError as error:
        raise WriteRefused(path, _explain(error)) from error


def _real_file(path: str, root: str | None) -> str:
    real = os.path.realpath(path)
    if not os.path.islink(path):
        return real
    allowed = os.path.realpath(root if root is not None else os.path.dirname(path) or os.curdir)
    if os.path.commonpath([real, allowed]) != allowed:
        raise WriteRefused(path, f"is a symlink to {real}, outside {allowed}; fix that file by its own path")
    return real


def _writable_status(path: str, real: str) -> os.stat_result:
    """The file's status, once nothing about the file or its folder forbids the write."""
    status = os.lstat(real)
    if stat.S_ISDIR(status.st_mode):
        raise WriteRefused(path, "is a folder, not a file")
    if not stat.S_ISREG(status.st_mode):
        raise WriteRefused(path, "is not a regular file")
    # The mode is asked as well as the system: the system lets a superuser write what its owner has locked.
    if not status.st_mode & stat.S_IWUSR or not os.access(real, os.W_OK):
        raise WriteRefused(path, "is read-only; make it writable and run again")
    folder = os.path.dirname(real)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise WriteRefused(path, f"its folder {folder} is read-only; make it writable and run again")
    return status


def _require_unchanged(path: str, real: str, before: bytes) -> None:
    with open(real, "rb") as file:
        if file.read() != before:
            raise WriteRefused(path, "was changed by someone else meanwhile; run again")


def _replace(path: str, real: str, status: os.stat_result, before: bytes, after: bytes) -> None:
    folder = os.path.dirname(real)
    # The name is fixed before the file exists, so that an interrupt at any point finds it in the clean-up.
    temporary = os.path.join(folder, f".kvlint-{secrets.token_hex(8)}.tmp")
    try:
        _write_durably(temporary, status, after)
        # Asked a second time: writing takes milliseconds on a slow disk, and an editor may have saved in them.
        _require_unchanged(path, real, before)
        os.replace(temporary, real)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
    # The new text stands from here on: a folder that cannot be synced must not be reported as a refusal.
    with contextlib.suppress(OSError):
        _sync_folder(folder)


def _write_durably(temporary: str, status: os.stat_result, data: bytes) -> None:
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        # Owner first: changing it clears the set-user-id bits of the mode.
        with contextlib.suppress(OSError):
            os.fchown(descriptor, status.st_uid, status.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _explain(error: OSError) -> str:
    what = error.strerror or str(error)
    advice = _ADVICE.get(error.errno or 0, "run again once that is mended")
    return f"cannot be written: {what}; nothing was changed; {advice}"
