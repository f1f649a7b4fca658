"""``kvlint demo``: the whole story on an embedded backend."""

from __future__ import annotations

import click


@click.command(short_help="Show the whole story on a small backend, offline.")
def demo() -> None:
    """Lint, inspect and fix a small backend that comes with kvlint; nothing is read or written elsewhere."""
    from rich.console import Console

    from kvlint.demo import run

    run(Console())
