"""Wheels and a source of releases, made of kvlint's own demo backend: no index, no SGLang."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import kvlint
from kvlint.bundle import BundleError
from kvlint.bundle.cache import Archive
from kvlint.bundle.fetch import NoSuchRelease
from kvlint.bundle.requirements import version_of
from kvlint.config import Config

if TYPE_CHECKING:
    from packaging.version import Version

DEMO = Path(kvlint.__file__).parent / "demo_backend"

#: A backend with findings of KVL001 to KVL004.
AFFECTED = {f"kvdemo/{path.name}": path.read_bytes() for path in sorted(DEMO.glob("*.py"))}

BYPASSED_LINES = (62, 74)

#: The same with two stores that bypass the writer, which no safe fix mends; in backend.py at `BYPASSED_LINES`.
BYPASSING = AFFECTED | {
    "kvdemo/backend.py": AFFECTED["kvdemo/backend.py"].replace(
        b"self.update_status(room, Poll.Transferring)", b"self.request_status[room] = Poll.Transferring"
    )
}


def mended(files: Mapping[str, bytes], folder: Path, *, unsafe: bool) -> dict[str, bytes]:
    """``files`` after ``kvlint fix``; ``folder`` is used up for it."""
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    kvlint.fix([folder], unsafe=unsafe, config=Config(folder=str(folder)))
    return {name: (folder / name).read_bytes() for name in files}


def wheel(path: Path, files: Mapping[str, bytes]) -> Path:
    """A wheel (a zip archive) at ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def sdist(path: Path, files: Mapping[str, bytes]) -> Path:
    """A source distribution (a tar archive) at ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


@dataclass(frozen=True)
class FolderReleases:
    """Releases that lie in ``folder`` as ``NAME/VERSION/FILE``; those called ``fail`` cannot be had."""

    folder: Path
    fail: tuple[str, ...] = ()
    offline: bool = False

    def versions(self, name: str) -> tuple[Version, ...]:
        """Every version there is."""
        if self.offline:
            raise BundleError(f"{name}: no package index answered")
        found = [version for path in (self.folder / name).glob("*") if (version := version_of(path.name))]
        if not found:
            raise NoSuchRelease(f"{name}: the package index knows no such name")
        return tuple(sorted(found))

    def archive(self, name: str, version: str) -> Archive:
        """The only file of the release."""
        if version in self.fail:
            raise BundleError(f"{name}=={version}: the cable is cut")
        files = sorted((self.folder / name / version).glob("*"))
        if not files:
            raise NoSuchRelease(f"{name}=={version}: there is no such release")
        return Archive(files[0], hashlib.sha256(files[0].read_bytes()).hexdigest())

    def add(self, name: str, version: str, files: Mapping[str, bytes]) -> Path:
        """Put a wheel there."""
        return wheel(self.folder / name / version / f"{name}-{version}-py3-none-any.whl", files)
