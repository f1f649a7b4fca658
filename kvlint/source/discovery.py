"""Which files a run looks at: the paths that were named, and the Python files below the folders among them.

Deterministic, in one pass, without following a symbolic link below a named
folder: a link inside the folder leads to a file that is found anyway, one out
of it was not asked for.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass

from kvlint.config import Config, KvlintError
from kvlint.source.display import Target, one_line, slashed
from kvlint.source.folders import checkout_around, is_below, with_slash
from kvlint.source.ignore import Patterns

SUFFIXES = (".py", ".pyi")

#: Folders that hold no source of the project's own; skipped unless named.
SKIPPED_FOLDERS = frozenset(
    {
        ".bzr",
        ".direnv",
        ".eggs",
        ".git",
        ".hg",
        ".ipynb_checkpoints",
        ".mypy_cache",
        ".nox",
        ".pyenv",
        ".pytest_cache",
        ".pytype",
        ".ruff_cache",
        ".svn",
        ".tox",
        ".venv",
        ".vscode",
        "__pycache__",
        "__pypackages__",
        "_build",
        "build",
        "buck-out",
        "dist",
        "node_modules",
        "site-packages",
        "venv",
    }
)

_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class PathError(KvlintError):
    """A named path that cannot be checked."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """The files to check, ordered by display path and each once, and what had to be left out."""

    targets: tuple[Target, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Scope:
    """Patterns and the folder (absolute, with a trailing slash) that they are relative to."""

    folder: str
    patterns: Patterns

    def verdict(self, path: str, is_folder: bool) -> bool | None:
        return self.patterns.verdict(path[len(self.folder) :], is_folder)


class _Walk:
    """The files found so far; `name` adds what one named path stands for."""

    def __init__(self, config: Config) -> None:
        self.targets: dict[str, Target] = {}
        self.warnings: list[str] = []
        self._config = config
        self._exclude = Patterns(config.exclude)

    def name(self, named: str) -> None:
        if not named:
            # To `abspath` that is the current folder, to whoever quoted an unset variable a mistake.
            raise PathError("an empty path was given; `.` is the current folder")
        path = os.path.abspath(named)
        try:
            mode = os.stat(path).st_mode
        except (FileNotFoundError, NotADirectoryError) as error:
            raise PathError(f"no such file or folder: {one_line(named)}") from error
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise PathError(f"cannot look at {one_line(named)}: {reason}") from error
        is_folder = stat.S_ISDIR(mode)
        if not is_folder and not stat.S_ISREG(mode):
            kind = _KINDS.get(stat.S_IFMT(mode), "a special file")
            raise PathError(f"{one_line(named)} is {kind}; pipe source into `kvlint check -` to check it")
        exclude = self._exclude_scope(path if is_folder else os.path.dirname(path))
        below = path[len(exclude.folder) :]
        if below and exclude.patterns.covers(below, is_folder):
            self.warnings.append(f"skipped {one_line(named)}: it matches `exclude`")
        elif is_folder:
            self._walk(path, "" if named == "." else named.removesuffix("/") + "/", exclude)
        else:
            self._add(named, path)

    def _exclude_scope(self, root: str) -> _Scope:
        """`exclude`, relative to the configuration's folder, or to ``root`` where that lies elsewhere."""
        folder = self._config.folder
        return _Scope(with_slash(folder if is_below(with_slash(root), folder) else root), self._exclude)

    def _add(self, display: str, path: str) -> None:
        self.targets.setdefault(path, Target(slashed(display), path))

    def _walk(self, root: str, shown: str, exclude: _Scope) -> None:
        pending = [(root, shown, _outer_scopes(root))]
        while pending:
            folder, shown, ignores = pending.pop()
            try:
                with os.scandir(folder) as listing:
                    entries = sorted(listing, key=lambda entry: entry.name)
                pending += self._look_through(entries, shown, ignores, exclude, is_root=folder == root)
            except OSError as error:
                self.warnings.append(f"cannot list {one_line(shown or '.')}: {error.strerror or error}")

    def _look_through(
        self,
        entries: list[os.DirEntry[str]],
        shown: str,
        ignores: tuple[_Scope, ...],
        exclude: _Scope,
        *,
        is_root: bool,
    ) -> list[tuple[str, str, tuple[_Scope, ...]]]:
        """Add the files among ``entries`` and return the folders to go into."""
        for entry in entries:
            if entry.name == "pyvenv.cfg" and not is_root:
                return []
            if entry.name == ".gitignore" and entry.is_file(follow_symlinks=False):
                ignores = (*ignores, _read_scope(entry.path))
        folders = []
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            if is_folder:
                if entry.name in SKIPPED_FOLDERS or _is_left_out(entry.path, True, ignores, exclude):
                    continue
                folders.append((entry.path, f"{shown}{entry.name}/", ignores))
            elif (
                entry.name.endswith(SUFFIXES)
                and entry.is_file(follow_symlinks=False)
                and not _is_left_out(entry.path, False, ignores, exclude)
            ):
                self._add(shown + entry.name, entry.path)
        return folders


def discover(paths: Sequence[str], config: Config) -> Discovery:
    """The Python files that ``paths`` name or contain; raises PathError for a path that cannot be checked.

    ``exclude`` applies to named files too (pre-commit names every file), which
    a warning then says; the other filters do not.
    """
    walk = _Walk(config)
    for path in paths:
        walk.name(path)
    return Discovery(tuple(sorted(walk.targets.values())), tuple(walk.warnings))


def _is_left_out(path: str, is_folder: bool, ignores: tuple[_Scope, ...], exclude: _Scope) -> bool:
    if exclude.patterns and exclude.verdict(path, is_folder):
        return True
    for scope in reversed(ignores):
        # The nearest file that has an opinion decides.
        if (verdict := scope.verdict(path, is_folder)) is not None:
            return verdict
    return False


def _read_scope(file: str) -> _Scope:
    with open(file, encoding="utf-8", errors="surrogateescape", newline="\n") as stream:
        return _Scope(with_slash(os.path.dirname(file)), Patterns(stream))


def _outer_scopes(root: str) -> tuple[_Scope, ...]:
    """The repository's .gitignore files above ``root``; none if they ignore ``root``, which was asked for."""
    top = checkout_around(root)
    if top is None:
        return ()
    scopes: list[_Scope] = []
    folder = root
    while folder != top:
        folder = os.path.dirname(folder)
        file = os.path.join(folder, ".gitignore")
        if os.path.isfile(file) and not os.path.islink(file):
            scopes.insert(0, _read_scope(file))
    if any(scope.patterns.covers(root[len(scope.folder) :], is_folder=True) for scope in scopes):
        return ()
    return tuple(scopes)
