"""Finds the `sglang` package of a checkout, an unpacked wheel or an installation, without running any of it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kvlint.loading.errors import LoadError

#: The module that makes a tree one that can be explored, below the package.
BACKEND = Path("srt", "disaggregation", "nixl", "conn.py")

_VERSION = re.compile(r"""^(?:__version__|version)\b[^'"\n#]*=\s*['"]([^'"]+)['"]""", re.MULTILINE)
_METADATA = re.compile(r"^Version: *(\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Tree:
    """An `sglang` package on disk.

    Attributes:
        package: The folder `sglang`, as it was named by the user, so that messages show paths that the user knows.
    """

    package: Path

    def source(self, module: str) -> Path | None:
        """The file of one of the package's modules: `x.py` or `x/__init__.py`; None if there is no such file."""
        path = self._path(module)
        for candidate in (path / "__init__.py", path.with_suffix(".py")):
            if candidate.is_file():
                return candidate
        return None

    def folder(self, module: str) -> Path | None:
        """The folder of one of the package's packages, with or without an `__init__.py`; None if it is none."""
        path = self._path(module)
        return path if path.is_dir() else None

    def has(self, module: str) -> bool:
        """Whether the package has such a module or package, in whatever form."""
        path = self._path(module)
        return path.is_dir() or any(path.parent.glob(f"{path.name}.*"))

    def _path(self, module: str) -> Path:
        return self.package.joinpath(*module.split(".")[1:])


def find_tree(root: Path) -> Tree:
    """The `sglang` package that a path leads to.

    Args:
        root: A checkout (`python/sglang` below it), the folder that holds `sglang`, `sglang` itself, or a folder or
            file inside of it.

    Raises:
        LoadError: There is no such path, or no `sglang` package with a NIXL backend belongs to it.
    """
    if not root.exists():
        raise LoadError(f"{root}: there is no such file or folder.")
    if root.is_file() and root.suffix in {".whl", ".zip"}:
        raise LoadError(f"{root}: an archive cannot be explored; unpack it, and give the folder that holds `sglang`.")
    candidates = list(_candidates(root))
    for candidate in candidates:
        if (candidate / BACKEND).is_file():
            return Tree(candidate)
    sglang = [candidate for candidate in candidates if candidate.name == "sglang" and candidate.is_dir()]
    if sglang:
        raise LoadError(f"{sglang[0]}: this sglang has no NIXL backend: there is no {sglang[0] / BACKEND}.")
    raise LoadError(
        f"{root}: there is no NIXL backend here. Give an SGLang checkout, the folder that holds the package `sglang`, "
        f"or `sglang` itself; {Path('sglang') / BACKEND} must be below it."
    )


def _candidates(root: Path) -> Iterator[Path]:
    # `sglang` itself goes first: a checkout may well be called sglang and hold python/sglang.
    yield root
    yield root / "python" / "sglang"
    yield root / "sglang"
    for parent in (root if root.is_absolute() else Path.cwd() / root).parents:
        if parent.name == "sglang":
            yield _as_named(root, parent)


def _as_named(root: Path, parent: Path) -> Path:
    # Inside of a relative path the package keeps the user's words for it.
    return next((mine for mine in root.parents if mine.name and mine.absolute() == parent), parent)


def find_version(tree: Tree) -> str | None:
    """The release of a tree, as it says itself, or None.

    Sources: `_version.py` (releases from 0.5.8 on, written by the build), `version.py` (releases before), and the
    metadata of a distribution beside the package.
    """
    for name in ("_version.py", "version.py"):
        path = tree.package / name
        found = _VERSION.search(path.read_text("utf-8", "replace")) if path.is_file() else None
        if found:
            return found[1]
    for path in sorted(tree.package.absolute().parent.glob("sglang-*.dist-info/METADATA")):
        found = _METADATA.search(path.read_text("utf-8", "replace"))
        if found:
            return found[1]
    return None


def digest_of(sources: Mapping[str, bytes]) -> str:
    """The SHA-256 of modules: of their names and bytes, whatever the order in which they were loaded."""
    total = hashlib.sha256()
    for name in sorted(sources):
        total.update(f"{name}\0{hashlib.sha256(sources[name]).hexdigest()}\n".encode())
    return total.hexdigest()
