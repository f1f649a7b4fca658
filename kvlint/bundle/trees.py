"""The sources of a release, unpacked for as long as they are read."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kvlint.bundle import BundleError
from kvlint.bundle.archives import unpack
from kvlint.bundle.cache import Archive
from kvlint.bundle.fetch import Releases


@dataclass(frozen=True, slots=True)
class Tree:
    """An unpacked release: ``files`` are its Python files, relative to ``folder``."""

    archive: Archive
    folder: Path
    files: tuple[str, ...]


@contextmanager
def unpacked(releases: Releases, name: str, version: str) -> Iterator[Tree]:
    """Fetch and unpack a release below the folder for temporary files; raises BundleError."""
    archive = releases.archive(name, version)
    try:
        scratch = tempfile.TemporaryDirectory(prefix="kvlint-", ignore_cleanup_errors=True)
    except OSError as error:
        raise BundleError(
            f"{name}=={version}: cannot be unpacked: {error.strerror or error}; set TMPDIR to a folder with space"
        ) from error
    with scratch as folder:
        # Paths of findings are compared with those of the analysis, which knows no links.
        home = Path(folder).resolve() / "tree"
        yield Tree(archive, home, unpack(archive.path, home))
