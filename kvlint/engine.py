"""Runs: which files are read, which of them are analysed and where, and the order in which findings come out.

The same input gives the same report whatever the number of processes: files
are checked independently and findings sorted at the end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kvlint.config import Config, KvlintError
from kvlint.diagnostics import Finding, Location
from kvlint.file_check import FileCheck, Outcome, crash_of
from kvlint.processes import check_files, worth_starting
from kvlint.report.model import Crash, FileCounts, Inspected, Inspection, Report
from kvlint.source.discovery import discover
from kvlint.source.display import DisplayPaths, Target, one_line
from kvlint.source.prefilter import is_candidate, may_name_codes
from kvlint.source.text import UnreadableSource, read_bytes

#: Called with the number of candidates done and their total.
Progress = Callable[[int, int], None]

#: From replaced contents, by absolute path, to the report on what would then be there.
Diagnose = Callable[[Mapping[str, bytes]], Report]


@dataclass(frozen=True, slots=True)
class _Scan:
    """Targets after the text test: what to analyse (path, size), what to read for its comments, what is unreadable."""

    candidates: tuple[tuple[str, int], ...]
    comments: tuple[str, ...]
    unreadable: tuple[UnreadableSource, ...]


def check(paths: Sequence[str], config: Config, *, jobs: int | None = None, progress: Progress | None = None) -> Report:
    """Check the Python files that ``paths`` name or contain; raises PathError.

    ``jobs`` is the largest number of processes, None for as many as pay off.
    """
    found = discover(paths, config)
    return check_targets(found.targets, config, warnings=found.warnings, jobs=jobs, progress=progress)


def check_targets(
    targets: Sequence[Target],
    config: Config,
    *,
    warnings: tuple[str, ...] = (),
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Check files that were found already; ``warnings`` come first among the report's."""
    scan = _scan(targets, config)
    check_file = FileCheck(config)
    outcomes = _outcomes_besides(scan, check_file)
    outcomes += _analyse(scan.candidates, check_file, jobs, progress)
    return _report(targets, outcomes, warnings)


def check_source(path: str, data: bytes, config: Config) -> Report:
    """Check ``data`` as the content of the file at ``path``, which need not exist."""
    target = Target(path, os.path.abspath(path))
    return _report((target,), [outcome_of_source(FileCheck(config, {target.path: data}), target.path, data)], ())


def outcome_of_source(check_file: FileCheck, path: str, data: bytes) -> Outcome:
    """What ``check_file`` makes of the file at absolute ``path``, whose content is ``data``, text test included."""
    if is_candidate(data, check_file.config.protocol):
        return check_file.check(path)
    return check_file.check_comments(path) if may_name_codes(data) else Outcome(path)


class AnalysisCrashed(KvlintError):
    """A defect of kvlint's own, where half a result would be worse than none."""


def findings_or_raise(report: Report) -> list[Finding]:
    """The findings of ``report``; raises AnalysisCrashed if they are incomplete."""
    for crash in report.crashes:
        raise AnalysisCrashed(f"{one_line(crash.path)}: {crash.reason}; this is a defect in kvlint, please report it")
    return list(report.findings)


def diagnoser(
    targets: Sequence[Target], config: Config, *, base: Mapping[str, bytes] | None = None, jobs: int | None = None
) -> Diagnose:
    """A function that checks ``targets`` again and again, each time with other contents in place of some files.

    ``base`` stands in for the disk.  Findings have display paths, their plans
    absolute ones.
    """
    scan = _scan(targets, config, base)

    def diagnose(overlay: Mapping[str, bytes]) -> Report:
        check_file = FileCheck(config, {**(base or {}), **overlay})
        outcomes = _outcomes_besides(scan, check_file)
        outcomes += _analyse(scan.candidates, check_file, jobs, None)
        return _report(targets, outcomes, ())

    return diagnose


def inspect(targets: Sequence[Target], config: Config, *, named: Iterable[str] = ()) -> Inspection:
    """The facts of those ``targets`` that are candidates or among ``named``, the paths that the user gave."""
    return _inspection(targets, _scan(targets, config), FileCheck(config), named)


def examine(targets: Sequence[Target], config: Config) -> tuple[Report, Inspection]:
    """The report on ``targets`` and the facts it rests on, in this process: one analysis where two would be needed."""
    scan = _scan(targets, config)
    check_file = FileCheck(config)
    outcomes = _outcomes_besides(scan, check_file)
    outcomes += (check_file.check(path) for path, _ in scan.candidates)
    return _report(targets, outcomes, ()), _inspection(targets, scan, check_file, ())


def _inspection(targets: Sequence[Target], scan: _Scan, check_file: FileCheck, named: Iterable[str]) -> Inspection:
    names = DisplayPaths(targets)
    asked = {os.path.abspath(path) for path in named}
    warnings = [f"{one_line(names.of(failure.path))}: {failure.reason}" for failure in scan.unreadable]
    files: list[Inspected] = []
    crashes: list[Crash] = []
    unread = {failure.path for failure in scan.unreadable}
    chosen = {path for path, _ in scan.candidates} | asked - unread
    for path in (target.path for target in targets if target.path in chosen):
        display = names.of(path)
        try:
            files.append(Inspected(display, check_file.facts(path), names, path in asked))
        except UnreadableSource as failure:
            warnings.append(f"{one_line(display)}: {failure.reason}")
        except Exception as error:
            crashes.append(crash_of(display, error))
    return Inspection(tuple(sorted(files, key=lambda file: file.display)), tuple(sorted(warnings)), _by_path(crashes))


def _scan(targets: Iterable[Target], config: Config, base: Mapping[str, bytes] | None = None) -> _Scan:
    candidates, comments, unreadable = [], [], []
    for target in targets:
        try:
            data = base[target.path] if base and target.path in base else read_bytes(target.path)
        except OSError as error:
            unreadable.append(UnreadableSource(target.path, f"cannot be read: {error.strerror or error}"))
            continue
        if is_candidate(data, config.protocol):
            candidates.append((target.path, len(data)))
        elif may_name_codes(data):
            comments.append(target.path)
    return _Scan(tuple(candidates), tuple(comments), tuple(unreadable))


def _outcomes_besides(scan: _Scan, check_file: FileCheck) -> list[Outcome]:
    """The outcomes of the files that need no analysis."""
    outcomes = [check_file.unreadable(failure.path, failure) for failure in scan.unreadable]
    return outcomes + [check_file.check_comments(path) for path in scan.comments]


def _analyse(
    candidates: Sequence[tuple[str, int]],
    check_file: FileCheck,
    jobs: int | None,
    progress: Progress | None,
) -> Iterator[Outcome]:
    workers = worth_starting(candidates, jobs)
    if workers > 1:
        outcomes = check_files(candidates, check_file, workers)
    else:
        outcomes = (check_file.check(path) for path, _ in candidates)
    for done, outcome in enumerate(outcomes, start=1):
        if progress is not None:
            progress(done, len(candidates))
        yield outcome


def _report(targets: Sequence[Target], outcomes: Sequence[Outcome], warnings: tuple[str, ...]) -> Report:
    names = DisplayPaths(targets)
    findings = [_shown(finding, names) for outcome in outcomes for finding in outcome.findings]
    more = [f"{one_line(names.of(outcome.path))}: {outcome.warning}" for outcome in outcomes if outcome.warning]
    crashes = [replace(outcome.crash, path=names.of(outcome.path)) for outcome in outcomes if outcome.crash]
    counts = FileCounts(
        checked=len(targets),
        parsed=sum(outcome.parsed for outcome in outcomes),
        failed=sum(outcome.failed for outcome in outcomes),
    )
    return Report(
        tuple(sorted(findings, key=lambda finding: finding.sort_key)),
        counts,
        warnings + tuple(sorted(more)),
        _by_path(crashes),
    )


def _by_path(crashes: Iterable[Crash]) -> tuple[Crash, ...]:
    return tuple(sorted(crashes, key=lambda crash: crash.path))


def _shown(finding: Finding, names: DisplayPaths) -> Finding:
    """``finding`` with display paths; its plan keeps the absolute ones."""
    anchor = finding.location.path

    def shown(location: Location) -> Location:
        return replace(location, path=names.of(location.path, anchor))

    related = tuple(replace(place, location=shown(place.location)) for place in finding.related)
    return replace(finding, location=shown(finding.location), related=related)
