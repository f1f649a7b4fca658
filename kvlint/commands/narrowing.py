"""``--baseline`` and ``--diff-base``: which of the findings a run is to report and to fail for."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

import click

from kvlint.commands.streams import say, write_file
from kvlint.source.display import counted, one_line

if TYPE_CHECKING:
    from collections import Counter

    from kvlint.baseline import Baseline
    from kvlint.commands.options import Selection
    from kvlint.config import Config
    from kvlint.diagnostics import Finding
    from kvlint.report.fingerprint import Identity
    from kvlint.report.model import Report
    from kvlint.source.changed_lines import Changes

Command = TypeVar("Command", bound=Callable[..., Any])


def baseline_options(command: Command) -> Command:
    """Which findings are known."""
    for option in reversed(
        (
            click.option("--baseline", type=click.Path(), metavar="FILE", help="Report only what FILE does not list."),
            click.option("--no-baseline", is_flag=True, help="Report what the configured baseline lists, too."),
        )
    ):
        command = option(command)
    return command


def narrowing_options(command: Command) -> Command:
    """Which findings are known, and which lines matter."""
    command = click.option(
        "--diff-base",
        metavar="REV",
        help="Report only what lies on lines changed since the working tree left REV, a branch or commit of Git.",
    )(command)
    command = click.option(
        "--write-baseline", is_flag=True, help="List the findings in the baseline, and report none of them."
    )(command)
    return baseline_options(command)


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowed:
    """The options of `narrowing_options`, or those of `baseline_options`, as they were given."""

    baseline: str | None
    no_baseline: bool
    write_baseline: bool = False
    diff_base: str | None = None

    @classmethod
    def taken_from(cls, options: dict[str, Any]) -> Self:
        """Those among ``options``, from which they are removed."""
        return cls(**{field.name: options.pop(field.name) for field in fields(cls) if field.name in options})


class Narrowing:
    """What is left out of a report, decided before the analysis so that a mistake costs no time."""

    def __init__(self, selection: Selection, config: Config, options: Narrowed, output: str | None) -> None:
        """Read the baseline and resolve the revision; raises BaselineError, RevisionError, GitError and UsageError."""
        baseline = options.baseline
        if baseline is not None and options.no_baseline:
            raise click.UsageError("--baseline names a baseline and --no-baseline wants none: give one of them")
        if baseline == "":
            raise click.UsageError("--baseline: an empty path was given")
        file = None if options.no_baseline else baseline or config.baseline_file
        if options.write_baseline:
            _require_whole_runs(selection, file, options.diff_base)
        if file is not None and output is not None and os.path.realpath(file) == os.path.realpath(output):
            raise click.UsageError(f"--output would overwrite the baseline {one_line(file)}: give another path")
        self._config = config
        self._writes = options.write_baseline
        self._revision = options.diff_base
        self._baseline = None if file is None else _baseline(file, config, baseline is None, self._writes)
        self._changes = None if self._revision is None else _changes(self._revision, selection)

    def describe(self) -> None:
        """Say what is left out."""
        if self._baseline is not None:
            say(f"baseline: {one_line(self._baseline.file)}")
        if self._revision is not None:
            say(f"changes since: {one_line(self._revision)}")

    def apply(self, report: Report, checked: Iterable[str], *, quiet: bool) -> Report:
        """``report`` without what is known and what lies elsewhere; ``checked`` are absolute paths of files.

        Writes the baseline if that was asked for and no file crashed the
        analysis.  Raises BaselineError, RevisionError and GitError.
        """
        if self._baseline is not None:
            report = self._without_known(report, self._baseline, checked, quiet)
        if self._changes is not None:
            report = _on_changed_lines(report, self._changes)
        return report

    def _without_known(self, report: Report, baseline: Baseline, checked: Iterable[str], quiet: bool) -> Report:
        from kvlint.baseline import compare

        if self._writes and not report.crashes:
            baseline = _write(report, baseline, checked, self._config, quiet)
        comparison = compare(report, baseline, checked, self._config)
        if comparison.gone and not quiet:
            _tell_gone(comparison.gone, baseline)
        return comparison.report


def _require_whole_runs(selection: Selection, file: str | None, diff_base: str | None) -> None:
    if file is None:
        raise click.UsageError("--write-baseline needs to know where: give --baseline FILE, or set `baseline`")
    if diff_base is not None:
        raise click.UsageError("--write-baseline lists all findings: leave --diff-base out")
    if selection.reads_stdin:
        raise click.UsageError("--write-baseline lists the findings of files: it cannot read standard input")


def _baseline(file: str, config: Config, is_configured: bool, may_be_missing: bool) -> Baseline:
    from kvlint.baseline import BaselineError, empty_baseline, read_baseline

    if may_be_missing and _holds_nothing(file):
        return empty_baseline(file)
    try:
        return read_baseline(file)
    except BaselineError as error:
        if not is_configured:
            raise
        raise BaselineError(f"{error} (`baseline` in {config.file} names it)") from error


def _holds_nothing(file: str) -> bool:
    """Whether nothing is lost by writing ``file``: it is not there yet, or has no content."""
    try:
        status = os.stat(file)
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        # What is wrong, reading it will tell.
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size == 0


def _changes(revision: str, selection: Selection) -> Changes:
    from kvlint.source.changed_lines import Changes

    if selection.reads_stdin:
        raise click.UsageError("--diff-base compares files: it cannot be combined with standard input")
    changes = Changes(revision)
    named = selection.paths or (() if selection.installed else (os.curdir,))
    folders = (path if os.path.isdir(path) else os.path.dirname(path) or os.curdir for path in named)
    # What is not there at all, the search for files will say.
    changes.require(os.path.abspath(folder) for folder in folders if os.path.isdir(folder))
    return changes


def _write(report: Report, baseline: Baseline, checked: Iterable[str], config: Config, quiet: bool) -> Baseline:
    from kvlint.baseline import BaselineError, rendered, updated

    after = updated(report, baseline, checked, config)
    try:
        write_file(baseline.file, rendered(after).encode())
    except OSError as error:
        reason = error.strerror or error
        raise BaselineError(f"{one_line(baseline.file)}: the baseline cannot be written: {reason}") from error
    if not quiet:
        added, removed = (after.known - baseline.known).total(), (baseline.known - after.known).total()
        findings = counted(after.known.total(), "finding")
        say(f"Wrote {one_line(baseline.file)}: {findings} ({added} added, {removed} removed).")
    return after


def _tell_gone(gone: Counter[Identity], baseline: Baseline) -> None:
    count = gone.total()
    say(
        f"{counted(count, 'finding')} of the baseline {'is' if count == 1 else 'are'} gone; "
        f"update {one_line(baseline.file)} with --write-baseline."
    )


def _on_changed_lines(report: Report, changes: Changes) -> Report:
    from kvlint.touched import Touched

    touched = Touched(changes, report.read_source)
    kept: list[Finding] = []
    others: list[Finding] = []
    for finding in report.findings:
        (kept if touched.is_touched(finding) else others).append(finding)
    return replace(
        report,
        findings=tuple(kept),
        elsewhere=report.elsewhere + len(others),
        left_out=(*report.left_out, *others),
    )
