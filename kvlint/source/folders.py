"""Where an absolute path lies: below which folder, in which checkout; asks names and the disk, never Git."""

from __future__ import annotations

import os


def is_below(path: str, folder: str) -> bool:
    """Whether absolute ``path`` lies in absolute ``folder``, by their names."""
    return path.startswith(with_slash(folder))


def from_folder(path: str, folder: str) -> str:
    """Absolute ``path`` as seen from absolute ``folder``, as it is where it lies elsewhere."""
    return path.removeprefix(with_slash(folder))


def with_slash(folder: str) -> str:
    """``folder`` with a slash at its end, which the root of all folders has already."""
    return folder.rstrip(os.sep) + os.sep


def checkout_around(folder: str) -> str | None:
    """The nearest of absolute ``folder`` and those above it that has ``.git`` in it; None if there is none."""
    while not os.path.exists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    return folder
