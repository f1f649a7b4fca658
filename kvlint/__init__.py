"""Finds and repairs failure states that get lost in KV-cache transfer backends.

The two functions here are the Python API; importing this package loads nothing
else until one of them is called.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kvlint.version import __version__

if TYPE_CHECKING:
    from kvlint.config import Config
    from kvlint.diagnostics import Finding
    from kvlint.fix_run import FixRun

__all__ = ["__version__", "check", "fix"]


def check(paths: Iterable[str | os.PathLike[str]], config: Config | None = None) -> list[Finding]:
    """Check files and folders, in this process.

    Args:
        paths: files, and folders to be searched for Python files.
        config: what to check for; None means the nearest configuration file, as for the command.

    Returns:
        The findings that no comment suppresses and no configured baseline knows, sorted by path, line, column and code.

    Raises:
        kvlint.config.KvlintError: a path or the configuration cannot be used, or the analysis of a file crashed.
    """
    from kvlint import baseline, engine

    names = _names(paths)
    config = config or _nearest(names)
    return engine.findings_or_raise(baseline.without_known(engine.check(names, config, jobs=1), config))


def fix(
    paths: Iterable[str | os.PathLike[str]],
    *,
    unsafe: bool = False,
    diff_only: bool = False,
    config: Config | None = None,
) -> FixRun:
    """Apply fixes to files and to the Python files in folders.

    Args:
        paths: files and folders; nothing else is written.
        unsafe: whether fixes that need a reader's judgement are applied too.
        diff_only: compute the changes and write nothing.
        config: as for `check`.

    Returns:
        The changes, the findings that remain (known ones too) and the fixes that were refused.

    Raises:
        kvlint.config.KvlintError: as for `check`.
    """
    from kvlint import fix_run

    names = _names(paths)
    return fix_run.fix(names, config or _nearest(names), unsafe=unsafe, write=not diff_only, jobs=1)


def _names(paths: Iterable[str | os.PathLike[str]]) -> tuple[str, ...]:
    return tuple(os.fspath(path) for path in paths)


def _nearest(names: tuple[str, ...]) -> Config:
    from kvlint.config import load_config

    return load_config(names[0] if names else os.curdir)
