"""The cache as commands see it: the options that choose or refuse it, and what is said where it cannot be used."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from kvlint.commands.streams import say, warn

if TYPE_CHECKING:
    from kvlint.cache.results import Results
    from kvlint.config import Config

cache_option = click.option(
    "--cache-dir",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Keep results in DIR.  [default: results in $KVLINT_CACHE, else among the user's caches]",
)


def chosen_folder(cache_dir: str | None) -> str | None:
    """The folder that the option or else the environment names; None where the user has no place for caches."""
    from kvlint.cache.location import results_folder

    if cache_dir == "":
        # To `abspath` that is the current folder, to whoever quoted an unset variable a mistake.
        raise click.UsageError("--cache-dir: an empty path was given; `.` is the current folder")
    return results_folder(os.environ) if cache_dir is None else os.path.abspath(cache_dir)


@contextlib.contextmanager
def kept_results(config: Config, no_cache: bool, cache_dir: str | None, *, verbose: bool) -> Iterator[Results | None]:
    """The results of earlier runs, None where they are not wanted or cannot be used.

    A folder that was asked for and cannot be used is worth a warning; otherwise
    the run only takes longer.
    """
    from kvlint.cache.location import is_off

    folder = None if no_cache or (cache_dir is None and is_off(os.environ)) else chosen_folder(cache_dir)
    if folder is None:
        yield None
        return
    from kvlint.cache.results import Results
    from kvlint.cache.store import CacheUnusable

    try:
        results = Results(folder, config)
    except CacheUnusable as error:
        if cache_dir is not None:
            warn([f"no results are kept: {error}"])
        elif verbose:
            say(f"no results are kept: {error}")
        yield None
        return
    if verbose:
        say(f"cache: {folder}")
    try:
        yield results
    finally:
        results.close()
