"""``kvlint inspect``: the backend as kvlint understands it."""

from __future__ import annotations

from typing import Any

import click

from kvlint.commands.check import admit, describe
from kvlint.commands.options import Selection, configuration, discovered, file_options
from kvlint.commands.streams import colour_for, emit, say, warn


@click.command(short_help="Show a backend as kvlint understands it.")
@file_options
@click.option("--output", type=click.Path(), metavar="FILE", help="Write to FILE.")
@click.option(
    "--output-format",
    type=click.Choice(("text", "json", "html")),
    default="text",
    help="How the model is written.  [default: text]",
)
@click.pass_context
def inspect(
    ctx: click.Context, /, *, quiet: bool, verbose: bool, output: str | None, output_format: str, **selected: Any
) -> None:
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
    inspection = engine.inspect(found.targets, config, named=selection.paths)
    text = render(inspection.files, output_format, colour=colour_for(output))
    emit(text, output)
    warn(found.warnings + inspection.warnings)
    admit(inspection.crashes, verbose)
    if not text and not quiet:
        say("No file speaks of a status protocol.")
    ctx.exit(2 if inspection.crashes else 0)
