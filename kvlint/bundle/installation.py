"""Putting a release's patch on files on disk and taking it off: every file stays whole, old or new, whatever happens.

All files are looked at before any is written.  The original is kept beside the
file; a run that was killed is completed by the next one.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import hashlib
import importlib.util
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from kvlint.bundle import STALE_SECONDS, BundleError
from kvlint.bundle.manifest import FileEntry, ReleaseEntry
from kvlint.bundle.patches import FilePatch, PatchError, backward, forward, parse
from kvlint.fixing.refusals import WriteRefused
from kvlint.fixing.write import TEMPORARY_NAME, write_atomically

#: What the kept original of ``conn.py`` is called: ``conn.py.kvlint-orig``.
BACKUP_SUFFIX = ".kvlint-orig"

# The header of a .pyc: a magic number, flags, and eight bytes that say what it was compiled from.
_HEADER_BYTES = 16
_UNCHECKED_HASH = (0b01).to_bytes(4, "little")

_COPY_PREFIX, _COPY_SUFFIX = ".kvlint-", ".copy"
_COPY_NAME = re.compile(rf"{re.escape(_COPY_PREFIX)}[a-z0-9_]{{8}}{re.escape(_COPY_SUFFIX)}")

#: From a path relative to the folder that holds the package to where the file is on this disk.
Locate = Callable[[str], str]


class State(StrEnum):
    """What a file on disk is, told by its digest."""

    ORIGINAL = "original"
    PATCHED = "patched"
    CHANGED = "changed"
    MISSING = "missing"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Found:
    """A file of a release on this disk; ``note`` says why it is not as expected or what was not done to it."""

    entry: FileEntry
    path: str
    state: State
    note: str = ""


class _NotDone(BundleError):
    """``found`` are all files of the release, as they are on disk now."""

    def __init__(self, message: str, found: tuple[Found, ...]) -> None:
        super().__init__(message)
        self.found = found


class Refused(_NotDone):
    """Files are not those of the release, so that nothing was written."""


class Incomplete(_NotDone):
    """The system refused a write."""


def look(entry: ReleaseEntry, locate: Locate) -> tuple[Found, ...]:
    """The state of every file that the patch of ``entry`` concerns."""
    return tuple(_look_at(file, locate(file.path)) for file in entry.files)


def apply(entry: ReleaseEntry, locate: Locate, patch: bytes, *, dry_run: bool = False) -> tuple[Found, ...]:
    """Patch every file of the release that is not patched yet, and give the files as they were before.

    Raises Refused before anything is written where a file is neither the
    original nor patched; Incomplete; PatchError where the patch does not give
    what the manifest promises.
    """
    return _change(entry, locate, patch, _APPLYING, dry_run)


def revert(entry: ReleaseEntry, locate: Locate, patch: bytes, *, dry_run: bool = False) -> tuple[Found, ...]:
    """Restore every file that is patched, remove the kept originals, and give the files as they were before.

    Raises as `apply` does; a file that was changed since it was patched is refused.
    """
    return _change(entry, locate, patch, _REVERTING, dry_run)


def _change(entry: ReleaseEntry, locate: Locate, patch: bytes, way: _Way, dry_run: bool) -> tuple[Found, ...]:
    with contextlib.nullcontext() if dry_run else _locked(entry, locate):
        # Looked at under the lock: a run that had to wait finds what the other one made of the files.
        found = look(entry, locate)
        _require_known(entry, found, way.verb)
        texts = {item.path: _changed(item, _patch_of(entry, patch, item), way.change) for item in _in(way.start, found)}
        _require_writable(texts, found)
        if not dry_run:
            _write_all(found, texts, way)
    return found


def _in(state: State, found: Sequence[Found]) -> Iterator[Found]:
    return (item for item in found if item.state is state)


# -- looking ------------------------------------------------------------------------


def _look_at(entry: FileEntry, path: str) -> Found:
    try:
        if os.path.islink(path):
            target = os.path.realpath(path)
            return Found(
                entry, path, State.UNREADABLE, f"is a symlink to {target}, which others may use; patch it there"
            )
        digest = _digest(path)
    except FileNotFoundError:
        return Found(entry, path, State.MISSING, "is not there")
    except OSError as error:
        return Found(entry, path, State.UNREADABLE, f"cannot be read: {error.strerror or error}")
    if digest == entry.before:
        return Found(entry, path, State.ORIGINAL)
    if digest == entry.after:
        return Found(entry, path, State.PATCHED)
    return Found(entry, path, State.CHANGED, f"is neither the released file nor the patched one (SHA-256 {digest})")


def _digest(path: str) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _require_known(entry: ReleaseEntry, found: tuple[Found, ...], verb: str) -> None:
    odd = [item for item in found if item.note]
    if not odd:
        return
    lines = "".join(f"\n  {item.path}: {item.note}" for item in odd)
    if any(item.state is State.CHANGED for item in odd):
        advice = "a fork, another release or local edits are mended by `kvlint fix`, which reads the code itself"
        if verb == "reverted":
            advice = "a file that was changed since it was patched is left alone; reinstall the package to undo both"
    else:
        advice = "give the folder that holds the package"
    raise Refused(f"{entry.title}: nothing was {verb}:{lines}\n{advice}", found)


def _patch_of(entry: ReleaseEntry, patch: bytes, item: Found) -> FilePatch:
    for found in parse(f"{entry.patch}", patch):
        if found.path == item.entry.path:
            return found
    raise PatchError(f"{entry.patch}: holds nothing for {item.entry.path}; install flake8-kvlint again")


def _changed(item: Found, patch: FilePatch, change: Callable[[FilePatch, bytes], bytes]) -> tuple[bytes, bytes]:
    """The bytes of a file now and then; raises PatchError where they are not what the manifest promises."""
    now = Path(item.path).read_bytes()
    then = change(patch, now)
    wanted = item.entry.after if change is forward else item.entry.before
    if hashlib.sha256(then).hexdigest() != wanted:
        raise PatchError(f"{item.path}: the patch does not give the promised file; install flake8-kvlint again")
    return now, then


def _require_writable(new: Mapping[str, object], found: tuple[Found, ...]) -> None:
    refused = []
    for path in new:
        folder = os.path.dirname(path)
        if not os.access(folder, os.W_OK | os.X_OK):
            refused.append(f"\n  {path}: its folder cannot be written")
        elif not os.access(path, os.W_OK):
            refused.append(f"\n  {path}: cannot be written")
        elif note := _bad_backup(path, found):
            refused.append(f"\n  {path}{BACKUP_SUFFIX}: {note}")
    if refused:
        advice = "run as the owner of the installation, on a file system that is not mounted read-only"
        if all(BACKUP_SUFFIX in line for line in refused):
            advice = "move it away and run again"
        raise Incomplete(f"nothing was written:{''.join(refused)}\n{advice}", found)


def _bad_backup(path: str, found: Sequence[Found]) -> str | None:
    """Why a kept original must not be replaced, None where there is none or it is a released or patched file."""
    backup = path + BACKUP_SUFFIX
    if not os.path.lexists(backup):
        return None
    if os.path.islink(backup) or not os.path.isfile(backup):
        return "is no regular file"
    entry = next(item.entry for item in found if item.path == path)
    if _digest(backup) not in {entry.before, entry.after, *_released(entry.path)}:
        return "is there already and holds something else than a released file"
    return None


def _released(path: str) -> Iterator[str]:
    """The digests of the file at ``path`` in all releases of the bundle."""
    from kvlint.bundle.manifest import load

    for release in load().releases:
        for file in release.files:
            if file.path == path:
                yield from (file.before, file.after)


# -- writing ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Way:
    """Putting the patch on or taking it off: what files it starts from, and what is done with each."""

    verb: str
    start: State
    change: Callable[[FilePatch, bytes], bytes]
    write: Callable[[str, bytes, bytes], None]
    finish: Callable[[Found], None]


@contextlib.contextmanager
def _locked(entry: ReleaseEntry, locate: Locate) -> Iterator[None]:
    """Keep other runs out of the folders, and clear away what killed ones left there."""
    with contextlib.ExitStack() as stack:
        for folder in sorted({os.path.dirname(locate(file.path)) for file in entry.files}):
            try:
                descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except OSError:
                # Looking at its files tells what is wrong with it.
                continue
            stack.callback(os.close, descriptor)
            # Some network file systems have no locks; a file is still replaced only if it is the expected one.
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            _sweep(folder)
        yield


def _sweep(folder: str) -> None:
    """Remove what runs that were killed long ago left in ``folder``; a `kvlint fix` may be at work in it now."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            if TEMPORARY_NAME.fullmatch(name) or _COPY_NAME.fullmatch(name):
                path = os.path.join(folder, name)
                with contextlib.suppress(OSError):
                    if os.lstat(path).st_mtime < time.time() - STALE_SECONDS:
                        os.unlink(path)


def _write_all(found: tuple[Found, ...], texts: Mapping[str, tuple[bytes, bytes]], way: _Way) -> None:
    failures: list[str] = []
    for item in found:
        try:
            if item.path in texts:
                way.write(item.path, *texts[item.path])
            way.finish(item)
        except WriteRefused as error:
            failures.append(f"\n  {item.path}: {error.reason}")
        except OSError as error:
            failures.append(f"\n  {error.filename or item.path}: {error.strerror or error}")
    if failures:
        now = tuple(_look_at(item.entry, item.path) for item in found)
        states = "".join(f"\n  {item.path}: is {item.state.value}" for item in now)
        raise Incomplete(f"not everything could be written:{''.join(failures)}\nas it stands now:{states}", now)


def _patch_one(path: str, now: bytes, then: bytes) -> None:
    _keep(path, now)
    write_atomically(path, now, then)


def _finish_patched(item: Found) -> None:
    _forget_bytecode(item.path)


def _finish_reverted(item: Found) -> None:
    _forget_bytecode(item.path)
    backup = item.path + BACKUP_SUFFIX
    with contextlib.suppress(FileNotFoundError):
        # Only what is the same as the restored file; anything else may be somebody's.
        if not os.path.islink(backup) and _digest(backup) == item.entry.before:
            os.unlink(backup)


def _keep(path: str, data: bytes) -> None:
    """Keep the original, ``data``, beside the file: whole as soon as it has its name, whatever becomes of ``path``."""
    backup = path + BACKUP_SUFFIX
    if os.path.exists(backup):
        if _digest(backup) == hashlib.sha256(data).hexdigest():
            return
        os.unlink(backup)
    descriptor, temporary = tempfile.mkstemp(prefix=_COPY_PREFIX, suffix=_COPY_SUFFIX, dir=os.path.dirname(path))
    try:
        with open(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        # Not its times: by them a sweep tells that a temporary is in use.
        shutil.copymode(path, temporary)
        os.replace(temporary, backup)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _forget_bytecode(path: str) -> None:
    """Remove compiled copies of another text that are used unchecked (PEP 552); Python notices all others itself."""
    with open(path, "rb") as stream:
        digest = importlib.util.source_hash(stream.read())
    folder, name = os.path.split(path)
    stem = glob.escape(name.removesuffix(".py"))
    for compiled in glob.glob(os.path.join(glob.escape(os.path.join(folder, "__pycache__")), f"{stem}.*.pyc")):
        with contextlib.suppress(FileNotFoundError):
            with open(compiled, "rb") as stream:
                header = stream.read(_HEADER_BYTES)
            if header[4:8] == _UNCHECKED_HASH and header[8:] != digest:
                os.unlink(compiled)


_APPLYING = _Way("applied", State.ORIGINAL, forward, _patch_one, _finish_patched)
_REVERTING = _Way("reverted", State.PATCHED, backward, write_atomically, _finish_reverted)
