"""``kvlint inspect``: the backend as kvlint understands it."""

from __future__ import annotations

from typing import Any

import click

from kvlint.commands.check import describe
from kvlint.commands.options import Selection, configuration, discovered, file_options
from kvlint.commands.streams import emit, warn


@click.command(short_help="Show a backend as kvlint understands it.")
@file_options
@click.option("--output", type=click.Path(), metavar="FILE", help="Write to FILE.")
@click.option(
    "--output-format",
    type=click.Choice(("text", "json")),
    default="text",
    help="How the model is written.  [default: text]",
)
def inspect(*, quiet: bool, verbose: bool, output: str | None, output_format: str, **selected: Any) -> None:
    """Show the statuses, writers and their transition tables, threads, abort handlers and pop sites of a backend.

    What could not be decided is shown as such.
    """
    from kvlint import engine
    from kvlint.report.inspect import render

    selection = Selection(**selected)
    config = configuration(selection)
    if verbose:
        describe(config)
    found = discovered(selection, config)
    inspected, failures = engine.inspect(found.targets, config)
    emit(render(inspected, output_format), output)
    warn(found.warnings + failures)
    if not inspected and not quiet:
        click.echo("No file speaks of a status protocol.", err=True)
