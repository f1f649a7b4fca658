"""The cache of downloaded archives: by the SHA-256 of their bytes, which are verified whenever they are used again.

Every file appears by a rename, so that runs side by side and killed runs leave
whole files or none.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from kvlint.bundle import STALE_SECONDS, BundleError
from kvlint.cache.location import FOLDER_VARIABLE, caches_folder

_SCRATCH = "download-"
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Archive:
    """A downloaded wheel or source distribution."""

    path: Path
    sha256: str

    @property
    def filename(self) -> str:
        """Its name, as the index has it."""
        return self.path.name


def cache_folder() -> Path:
    """The folder of kvlint's caches, made when first written to; raises BundleError where there is no place for it."""
    folder = caches_folder(os.environ)
    if folder is None:
        raise BundleError(f"there is no home folder to keep archives in; name a folder with ${FOLDER_VARIABLE}")
    return Path(folder)


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal; raises OSError."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class Cache:
    """Archives below ``folder``.

    ``archives/DIGEST/FILE`` holds them, ``releases/INDEX/NAME/VERSION.json``
    says which of them a release is; ``index`` tells indexes apart that may
    serve different files under one name.
    """

    def __init__(self, folder: Path, index: str) -> None:
        self.folder = folder
        self._index = hashlib.sha256(index.encode()).hexdigest()[:16]

    def find(self, name: str, version: str) -> Archive | None:
        """The archive of a release if it is here and unharmed; a harmed one is removed."""
        try:
            note = json.loads(self._note(name, version).read_bytes())
            digest, filename = note["sha256"], note["file"]
            if not _DIGEST.fullmatch(digest) or os.path.basename(filename) != filename:
                return None
            archive = Archive(self.folder / "archives" / digest / filename, digest)
            if sha256_of(archive.path) == digest:
                return archive
        except (OSError, ValueError, TypeError, KeyError):
            return None
        shutil.rmtree(archive.path.parent, ignore_errors=True)
        return None

    def keep(self, name: str, version: str, downloaded: Path) -> Archive:
        """Take in ``downloaded``, a file of a folder that `scratch` gave; raises BundleError."""
        with _explained(self.folder):
            digest = sha256_of(downloaded)
            target = self.folder / "archives" / digest / downloaded.name
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(downloaded, target)
            note = self._note(name, version)
            note.parent.mkdir(parents=True, exist_ok=True)
            _replace(note, json.dumps({"file": downloaded.name, "sha256": digest}))
        return Archive(target, digest)

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder to download into, on the file system of the cache, gone afterwards; raises BundleError."""
        with _explained(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._sweep()
            folder = Path(tempfile.mkdtemp(prefix=_SCRATCH, dir=self.folder))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _sweep(self) -> None:
        """Remove what runs that were killed long ago left behind."""
        for folder in self.folder.glob(f"{_SCRATCH}*"):
            with suppress(OSError):
                if folder.stat().st_mtime < time.time() - STALE_SECONDS:
                    shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def lock(self, name: str, version: str) -> Iterator[None]:
        """Let one process at a time fetch a release; the kernel drops the lock of one that dies."""
        with _explained(self.folder):
            path = self.folder / "locks" / f"{name}-{version}.lock"
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = path.open("w")
        with handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def _note(self, name: str, version: str) -> Path:
        return self.folder / "releases" / self._index / name / f"{version}.json"


def _replace(path: Path, text: str) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with open(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BundleError(
            f"the cache {folder} cannot be written: {error.strerror or error}; free some space there, or set "
            f"{FOLDER_VARIABLE} to another folder"
        ) from error
