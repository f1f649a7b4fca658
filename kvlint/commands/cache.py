"""``kvlint cache``: where results of earlier runs are kept, and their removal."""

from __future__ import annotations

import click

from kvlint.commands.caching import cache_option, chosen_folder
from kvlint.commands.streams import say
from kvlint.source.display import counted, printable


@click.group(short_help="Show or clear the kept results of earlier runs.")
def cache() -> None:
    """Manage the results that `kvlint check` and the flake8 plugin keep, so that unchanged files need no analysis."""


@cache.command(short_help="Print the folder.")
@cache_option
def path(cache_dir: str | None) -> None:
    """Print the folder in which results are kept; it need not exist."""
    click.echo(printable(_required(cache_dir)))


@cache.command(short_help="Remove everything in it.")
@cache_option
def clear(cache_dir: str | None) -> None:
    """Remove all kept results; files of other origin in the folder are left alone."""
    from kvlint.cache.store import CacheUnusable, cleared
    from kvlint.config import KvlintError

    folder = _required(cache_dir)
    try:
        number, size = cleared(folder)
    except CacheUnusable as error:
        raise KvlintError(f"the cache cannot be cleared: {error}") from error
    say(f"Removed {counted(number, 'result')} ({size / 1000:.0f} kB) from {folder}.")


def _required(cache_dir: str | None) -> str:
    from kvlint.config import KvlintError

    folder = chosen_folder(cache_dir)
    if folder is None:
        raise KvlintError("there is no home folder to keep results in; name a folder with --cache-dir or $KVLINT_CACHE")
    return folder
