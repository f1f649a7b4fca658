"""``kvlint rule``: the rules and their pages."""

from __future__ import annotations

import sys

import click

from kvlint.commands.streams import emit


@click.command(short_help="Explain a rule, or list them all.")
@click.argument("code", required=False, metavar="[CODE]")
@click.option(
    "--output-format",
    type=click.Choice(("text", "markdown", "json")),
    default="text",
    help="How it is written.  [default: text]",
)
def rule(code: str | None, output_format: str) -> None:
    """Print the page of the rule CODE; without a code the list of rules (all pages, as markdown)."""
    from kvlint.registry import known_codes, require_known, rule_of, rules
    from kvlint.report import pages

    if code is None:
        emit({"text": pages.listing, "markdown": pages.markdown, "json": pages.as_json}[output_format](rules()))
        return
    require_known((code.upper(),), "kvlint rule")
    if code.upper() not in known_codes():
        raise click.UsageError(f"kvlint rule: {code.upper()} is the beginning of several codes; give a whole one")
    found = rule_of(code.upper())
    if output_format == "json":
        emit(pages.as_json((found,)))
    elif output_format == "text" and _is_terminal():
        _print_rich(found.page)
    else:
        emit(found.page)


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def _print_rich(page: str) -> None:
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(page))
