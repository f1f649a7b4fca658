"""The files of an installed distribution, from its metadata alone: nothing of it is imported."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import metadata

from kvlint.config import Config
from kvlint.source.discovery import SUFFIXES, PathError
from kvlint.source.display import Target, slashed
from kvlint.source.ignore import Patterns


def files_of(name: str, config: Config) -> Iterator[Target]:
    """The Python files that the distribution ``name`` installed, but for those that ``config`` excludes.

    Raises PathError if it is not installed or has no Python files.
    """
    exclude = Patterns(config.exclude)
    distribution = _distribution(name)
    found = False
    for file in distribution.files or ():
        path = os.path.abspath(str(distribution.locate_file(file)))
        if path.endswith(SUFFIXES) and os.path.isfile(path):
            found = True
            if not exclude.covers(file.as_posix()):
                yield Target(_display(path), path)
    if not found:
        raise PathError(
            f"--installed {name}: its metadata lists no Python file; if it is installed in editable mode, "
            "give the path of its source instead"
        )


def folder_of(name: str, inside: str) -> str:
    """The folder below which the distribution ``name`` has installed a file ``inside``.

    Raises PathError if it is not installed or lists no such file.
    """
    distribution = _distribution(name)
    for file in distribution.files or ():
        path = os.path.abspath(str(distribution.locate_file(file)))
        if path.endswith(os.path.join(os.sep, inside)) and os.path.isfile(path):
            return _display(path.removesuffix(os.path.join(os.sep, inside)))
    raise PathError(
        f"--installed {name}: its metadata lists no {slashed(inside)}; if it is installed in editable mode, "
        "give the path of its source instead"
    )


def _distribution(name: str) -> metadata.Distribution:
    try:
        return metadata.distribution(name)
    except (metadata.PackageNotFoundError, ValueError) as error:
        raise PathError(f"--installed {name}: no distribution of that name is installed beside kvlint") from error


def _display(path: str) -> str:
    relative = os.path.relpath(path)
    return slashed(path if relative.startswith(os.pardir) else relative)
