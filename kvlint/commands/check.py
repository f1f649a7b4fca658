"""``kvlint check``: report findings."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from kvlint.commands.caching import cache_option, kept_results
from kvlint.commands.narrowing import Narrowing, narrowing_options
from kvlint.commands.options import Selection, configuration, discovered, file_options, rule_options
from kvlint.commands.streams import Progress, colour_for, count_by_rule, emit, say, warn
from kvlint.source.display import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kvlint.cache.results import Results
    from kvlint.config import Config
    from kvlint.report.model import Crash, Report


@click.command(short_help="Report where a failure status can get lost.")
@file_options
@rule_options
@narrowing_options
@click.option(
    "--output-format",
    type=click.Choice(("text", "json", "github", "gitlab")),
    default="text",
    help="How findings are written.  [default: text]",
)
@click.option("--no-cache", is_flag=True, help="Neither use nor keep the results of earlier runs.")
@cache_option
@click.pass_context
def check(
    ctx: click.Context,
    /,
    *,
    jobs: int | None,
    quiet: bool,
    verbose: bool,
    statistics: bool,
    exit_zero: bool,
    output: str | None,
    output_format: str,
    no_cache: bool,
    cache_dir: str | None,
    baseline: str | None,
    no_baseline: bool,
    write_baseline: bool,
    diff_base: str | None,
    **selected: Any,
) -> None:
    """Check Python files and the folders that hold them (the current one if no PATH is given).

    Exits with 0 if nothing is reported, 1 if something is, 2 if the command, the configuration or kvlint itself failed.
    """
    from kvlint.report import render

    selection = Selection(**selected)
    config = configuration(selection)
    narrowing = Narrowing(
        selection,
        config,
        baseline=baseline,
        no_baseline=no_baseline,
        output=output,
        write_baseline=write_baseline,
        diff_base=diff_base,
    )
    if verbose:
        describe(config)
        narrowing.describe()
    with kept_results(config, no_cache, cache_dir, verbose=verbose) as results:
        report, checked = _run(selection, config, jobs, results)
    report = narrowing.apply(report, checked, quiet=quiet)
    emit(render(report, output_format, colour=colour_for(output)), output)
    explain(report, quiet=quiet, verbose=verbose, with_statistics=statistics)
    ctx.exit(2 if report.crashes else 1 if report.findings and not exit_zero else 0)


def _run(selection: Selection, config: Config, jobs: int | None, results: Results | None) -> tuple[Report, list[str]]:
    """The report and the absolute paths of the files that it is on."""
    from kvlint import engine

    if selection.reads_stdin:
        data = sys.stdin.buffer.read()
        return engine.check_source(selection.stdin_path, data, config), [os.path.abspath(selection.stdin_path)]
    found = discovered(selection, config)
    progress = Progress()
    try:
        report = engine.check_targets(
            found.targets, config, warnings=found.warnings, jobs=jobs, progress=progress, results=results
        )
    finally:
        progress.close()
    return report, [target.path for target in found.targets]


def describe(config: Config) -> None:
    """Say which settings are used."""
    from kvlint.registry import selected

    say(f"configuration: {config.file or 'none'}")
    say("rules: " + ", ".join(rule.code for rule in selected(config)))


def explain(report: Report, *, quiet: bool, verbose: bool, with_statistics: bool) -> None:
    """Say on standard error what the findings alone do not tell."""
    warn(report.warnings)
    admit(report.crashes, verbose)
    if with_statistics and report.findings:
        click.echo(count_by_rule(report.findings), err=True, nl=False)
    if not quiet:
        say(summary(report))


def admit(crashes: Iterable[Crash], verbose: bool) -> None:
    """Say which files kvlint failed on."""
    for crash in crashes:
        say(f"error: {one_line(crash.path)}: kvlint failed on this file: {crash.reason}")
        say(crash.traceback if verbose else "  this is a defect in kvlint; please report it with what --verbose prints")


def summary(report: Report) -> str:
    """One line on the whole run."""
    files = report.files
    if not files.checked:
        return "No Python files found."
    looked = f"{counted(files.checked, 'file')} checked, {files.parsed} with a status protocol"
    if files.failed:
        looked += f", {files.failed} unreadable"
    found = len(report.findings)
    new = "new finding" if report.known else "finding"
    parts = [counted(found, new) if found else f"No {new}s"]
    if report.known:
        parts.append(f"{report.known} known")
    if report.elsewhere:
        parts.append(f"{report.elsewhere} on unchanged lines")
    fixable = sum(finding.plan is not None for finding in report.findings)
    hint = f"; `kvlint fix` can mend {fixable}" if fixable else ""
    return f"{', '.join(parts)} ({looked}){hint}."


def counted(number: int, noun: str) -> str:
    """``number`` and ``noun``, in the plural where it has to be."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
