"""``kvlint fix``: mend what can be mended by a codemod."""

from __future__ import annotations

import os
import sys
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from kvlint.commands.check import describe
from kvlint.commands.narrowing import Narrowed, Narrowing, baseline_options
from kvlint.commands.options import (
    Selection,
    configuration,
    discovered,
    file_options,
    report_options,
    rule_options,
    wanted_details,
)
from kvlint.commands.streams import colour_for, count_by_rule, emit, say, warn
from kvlint.source.display import counted, one_line

if TYPE_CHECKING:
    from kvlint.config import Config
    from kvlint.fix_run import FixRun
    from kvlint.report.model import Detail


@click.command(short_help="Apply fixes in place.")
@file_options
@rule_options
@baseline_options
@click.option("--diff", is_flag=True, help="Print the changes as a unified diff and write nothing.")
@click.option(
    "--unsafe-fixes",
    is_flag=True,
    help="Apply fixes that need a reader's judgement, too; with them those of rules that are off by default, unless "
    "rules are selected by hand or the code is ignored.",
)
@report_options
@click.pass_context
def fix(
    ctx: click.Context,
    /,
    *,
    diff: bool,
    unsafe_fixes: bool,
    jobs: int | None,
    quiet: bool,
    verbose: bool,
    statistics: bool,
    exit_zero: bool,
    output: str | None,
    output_format: str,
    include_suppressed: bool,
    **options: Any,
) -> None:
    """Fix Python files and those in folders (the current one if no PATH is given); what remains is reported.

    Exits with 0 if nothing remains, 1 if something does, 2 if the command, the configuration or kvlint itself failed.
    """
    narrowed = Narrowed.taken_from(options)
    selection = Selection(**options)
    _require_applicable(output_format, selection, diff)
    wanted = wanted_details(output_format, include_suppressed)
    config = configuration(selection)
    narrowing = Narrowing(selection, config, narrowed, output)
    if verbose:
        describe(config)
        narrowing.describe()
    if selection.reads_stdin:
        run, checked = _fix_stdin(selection, config, unsafe_fixes, diff)
    else:
        run, checked = _fix_files(selection, config, unsafe_fixes, diff, output, jobs, wanted)
    # What a diff would mend is not gone yet.
    run = replace(run, report=narrowing.apply(run.report, checked, quiet=quiet or diff))
    if diff or selection.reads_stdin:
        # Standard output holds the diff or the new source, and nothing but it.
        click.echo(_rendered(run, "text", colour=False), err=True, nl=False)
    else:
        emit(_rendered(run, output_format, colour=colour_for(output)), output)
    _explain(run, diff=diff, quiet=quiet, with_statistics=statistics)
    ctx.exit(1 if run.report.findings and not exit_zero else 0)


def _require_applicable(output_format: str, selection: Selection, diff: bool) -> None:
    if output_format == "text":
        return
    if diff:
        raise click.UsageError("--diff prints a diff, to which --output-format does not apply: leave one of them out")
    if selection.reads_stdin:
        raise click.UsageError(
            "--output-format does not apply to standard input, whose fixed text is what is printed: leave it out"
        )


def _fix_files(
    selection: Selection, config: Config, unsafe: bool, diff: bool, output: str | None, jobs: int | None, wanted: Detail
) -> tuple[FixRun, list[str]]:
    from kvlint.details import with_details
    from kvlint.fix_run import fix_targets

    found = discovered(selection, config)
    run = fix_targets(found.targets, config, unsafe=unsafe, write=not diff, jobs=jobs, warnings=found.warnings)
    if diff:
        emit(_diffs(run), output)
    else:
        run = replace(run, report=with_details(run.report, wanted, found.targets, config))
    return run, [target.path for target in found.targets]


def _fix_stdin(selection: Selection, config: Config, unsafe: bool, diff: bool) -> tuple[FixRun, list[str]]:
    from kvlint.fix_run import fix_source
    from kvlint.source.display import Target

    data = sys.stdin.buffer.read()
    target = Target(selection.stdin_path, os.path.abspath(selection.stdin_path))
    after, run = fix_source(target, data, config, unsafe=unsafe)
    emit(_diffs(run) if diff else after)
    return run, [target.path]


def _diffs(run: FixRun) -> bytes:
    from kvlint.fixing.diff import unified

    return b"".join(unified(fixed.change, fixed.display) for fixed in run.changes)


def _rendered(run: FixRun, output_format: str, *, colour: bool) -> str:
    from kvlint.report import render

    return render(run.report, output_format, colour=colour)


def _explain(run: FixRun, *, diff: bool, quiet: bool, with_statistics: bool) -> None:
    warn(run.report.warnings)
    for refusal in run.refused:
        say(f"not fixed: {one_line(refusal.path)}: {refusal.reason}")
    remaining = len(run.report.findings)
    if with_statistics and remaining:
        click.echo(count_by_rule(run.report.findings), err=True, nl=False)
    if quiet:
        return
    for fixed in run.changes:
        for title, times in Counter(fixed.change.titles).items():
            often = f" ({times} times)" if times > 1 else ""
            say(f"{'would fix' if diff else 'fixed'} {one_line(fixed.display)}: {title}{often}")
    changed = counted(len(run.changes), "file")
    known = f", {run.report.known} known" if run.report.known else ""
    say(f"{changed} {'would be ' if diff else ''}changed, {counted(remaining, 'finding')} left{known}.")
