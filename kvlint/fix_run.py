"""A fixing run: find, edit in memory until nothing more can be fixed, then replace the files on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kvlint.config import Config
from kvlint.diagnostics import Finding, FixPlan
from kvlint.engine import Diagnose, diagnoser, findings_or_raise
from kvlint.fixing.fixpoint import Change, fix_files
from kvlint.fixing.refusals import Refusal, WriteRefused
from kvlint.fixing.write import write_atomically
from kvlint.registry import selected_for_fixing
from kvlint.report.model import Report
from kvlint.source.discovery import discover
from kvlint.source.display import DisplayPaths, Target
from kvlint.source.text import read_bytes


@dataclass(frozen=True, slots=True)
class Fixed:
    """A changed file, and its path as the user gave it; that in ``change`` is absolute."""

    display: str
    change: Change


@dataclass(frozen=True, slots=True)
class FixRun:
    """What was changed (or would be), the report on what remains, and the edits that were refused and why."""

    changes: tuple[Fixed, ...]
    report: Report
    refused: tuple[Refusal, ...]


def fix(paths: Sequence[str], config: Config, *, unsafe: bool, write: bool, jobs: int | None = None) -> FixRun:
    """Fix the Python files that ``paths`` name or contain; raises PathError and AnalysisCrashed."""
    found = discover(paths, config)
    return fix_targets(found.targets, config, unsafe=unsafe, write=write, jobs=jobs, warnings=found.warnings)


def fix_targets(
    targets: Sequence[Target],
    config: Config,
    *,
    unsafe: bool,
    write: bool,
    jobs: int | None = None,
    warnings: tuple[str, ...] = (),
) -> FixRun:
    """As `fix`, for files that were found already; ``warnings`` go into the report."""
    wider = selected_for_fixing(config, unsafe=unsafe)
    run = _run(targets, unsafe, diagnoser(targets, wider, jobs=jobs), {}, config)
    if wider is not config and (run.report.findings or run.report.suppressed):
        run = _as_asked(run, diagnoser(targets, config, jobs=jobs))
    if write and run.changes:
        written, unwritten = _write(run.changes)
        if unwritten:
            # Not what was hoped for stands on disk now, so that is what has to be judged.
            run = FixRun(written, diagnoser(targets, config, jobs=jobs)({}), run.refused + unwritten)
    return replace(run, report=replace(run.report, warnings=warnings + run.report.warnings))


def fix_source(target: Target, data: bytes, config: Config, *, unsafe: bool) -> tuple[bytes, FixRun]:
    """The fixed content of ``data``, which stands for the content of ``target``; nothing is written."""
    base = {target.path: data}
    wider = selected_for_fixing(config, unsafe=unsafe)
    run = _run((target,), unsafe, diagnoser((target,), wider, base=base), base, config)
    if wider is not config and (run.report.findings or run.report.suppressed):
        run = _as_asked(run, diagnoser((target,), config, base=base))
    return (run.changes[0].change.after if run.changes else data), run


def _run(
    targets: Sequence[Target], unsafe: bool, report_on: Diagnose, base: Mapping[str, bytes], config: Config
) -> FixRun:
    reports: list[Report] = []

    def diagnose(overlay: Mapping[str, bytes]) -> list[Finding]:
        reports.append(report_on(overlay))
        # A file is never rewritten on the strength of half a diagnosis.
        return findings_or_raise(reports[-1])

    def read(path: str) -> bytes:
        return base[path] if path in base else read_bytes(path)

    def verify(plan: FixPlan, before: Mapping[str, bytes], after: Mapping[str, bytes]) -> str | None:
        from kvlint.analysis.verification import unintended

        return unintended(plan, {**base, **before}, {**base, **after}, config)

    paths = [target.path for target in targets]
    outcome = fix_files(paths, diagnose, unsafe=unsafe, verify=verify, read=read)
    names = DisplayPaths(targets)
    return FixRun(
        tuple(Fixed(names.of(change.path), change) for change in outcome.changes),
        replace(reports[-1], findings=outcome.remaining),
        tuple(replace(refusal, path=names.of(refusal.path)) for refusal in outcome.refused),
    )


def _as_asked(run: FixRun, report_on: Diagnose) -> FixRun:
    """``run`` with the report of those rules that the user asked for: opt-in ones were there for their fixes alone."""
    report = report_on({fixed.change.path: fixed.change.after for fixed in run.changes})
    findings_or_raise(report)
    return replace(run, report=report)


def _write(changes: Sequence[Fixed]) -> tuple[tuple[Fixed, ...], tuple[Refusal, ...]]:
    written, refused = [], []
    for fixed in changes:
        try:
            write_atomically(fixed.change.path, fixed.change.before, fixed.change.after)
        except WriteRefused as error:
            refused.append(Refusal(fixed.display, error.reason))
        else:
            written.append(fixed)
    return tuple(written), tuple(refused)
