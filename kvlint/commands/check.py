"""``kvlint check``: report findings."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from kvlint.commands.caching import cache_option, kept_results
from kvlint.commands.narrowing import Narrowed, Narrowing, narrowing_options
from kvlint.commands.options import (
    Selection,
    configuration,
    discovered,
    file_options,
    report_options,
    rule_options,
    wanted_details,
)
from kvlint.commands.streams import Progress, colour_for, count_by_rule, emit, say, warn
from kvlint.source.display import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kvlint.cache.results import Results
    from kvlint.config import Config
    from kvlint.report.model import Crash, Report
    from kvlint.source.display import Target


@click.command(short_help="Report where a failure status can get lost.")
@file_options
@rule_options
@report_options
@narrowing_options
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
    include_suppressed: bool,
    **options: Any,
) -> None:
    """Check Python files and the folders that hold them (the current one if no PATH is given).

    Exits with 0 if nothing is reported, 1 if something is, 2 if the command, the configuration or kvlint itself failed.
    """
    from kvlint.details import with_details
    from kvlint.report import render

    wanted = wanted_details(output_format, include_suppressed)
    narrowed = Narrowed.taken_from(options)
    selection = Selection(**options)
    config = configuration(selection)
    narrowing = Narrowing(selection, config, narrowed, output)
    if verbose:
        describe(config)
        narrowing.describe()
    with kept_results(config, no_cache, cache_dir, verbose=verbose) as results:
        report, targets, overlay = _run(selection, config, jobs, results)
    report = narrowing.apply(report, [target.path for target in targets], quiet=quiet)
    report = with_details(report, wanted, targets, config, overlay)
    emit(render(report, output_format, colour=colour_for(output)), output)
    explain(report, quiet=quiet, verbose=verbose, with_statistics=statistics)
    ctx.exit(2 if report.crashes else 1 if report.findings and not exit_zero else 0)


def _run(
    selection: Selection, config: Config, jobs: int | None, results: Results | None
) -> tuple[Report, Sequence[Target], dict[str, bytes]]:
    """The report, the files that it is on, and contents that stand in for the disk's."""
    from kvlint import engine
    from kvlint.source.display import Target

    if selection.reads_stdin:
        data = sys.stdin.buffer.read()
        target = Target(selection.stdin_path, os.path.abspath(selection.stdin_path))
        return engine.check_source(target.display, data, config), (target,), {target.path: data}
    found = discovered(selection, config)
    progress = Progress()
    try:
        report = engine.check_targets(
            found.targets, config, warnings=found.warnings, jobs=jobs, progress=progress, results=results
        )
    finally:
        progress.close()
    return report, found.targets, {}


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
