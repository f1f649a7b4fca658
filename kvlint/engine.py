"""Runs: which files are read, which of them are analysed and where, and the order in which findings come out.

The same input gives the same report whatever the number of processes: files
are checked independently and findings sorted at the end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kvlint.config import Config, KvlintError
from kvlint.diagnostics import Finding, Location
from kvlint.file_check import FileCheck, Outcome
from kvlint.processes import Crew, collecting_rarely
from kvlint.report.model import Crash, FileCounts, Inspected, Inspection, Report
from kvlint.source.discovery import discover
from kvlint.source.display import DisplayPaths, Target, one_line
from kvlint.source.prefilter import is_candidate, may_name_codes
from kvlint.source.text import UnreadableSource, read_bytes

if TYPE_CHECKING:
    from kvlint.cache.results import Results

#: Called with the number of candidates done and their total.
Progress = Callable[[int, int], None]

#: From replaced contents, by absolute path, to the report on what would then be there.
Diagnose = Callable[[Mapping[str, bytes]], Report]


@dataclass(frozen=True, slots=True)
class _Scan:
    """Targets after the text test.

    What is known from an earlier run, what to analyse (path, size), whose
    comments to look at (path, content), and what is unreadable.
    """

    known: tuple[Outcome, ...]
    candidates: tuple[tuple[str, int], ...]
    comments: tuple[tuple[str, bytes], ...]
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
    results: Results | None = None,
) -> Report:
    """Check files that were found already; ``warnings`` come first among the report's.

    ``results`` spare the analysis of files for which it holds what an earlier
    run found, and keeps what this one finds.
    """
    check_file = FileCheck(config)
    with collecting_rarely(), _crew(check_file, jobs, results) as crew:
        scan = _scan(targets, config, results=results, found=crew.add)
        outcomes = _outcomes_besides(scan, check_file, results)
        outcomes += _collected(crew, len(scan.candidates), progress)
    return _report(targets, outcomes, warnings)


def check_source(path: str, data: bytes, config: Config) -> Report:
    """Check ``data`` as the content of the file at ``path``, which need not exist."""
    target = Target(path, os.path.abspath(path))
    overlay = {target.path: data}
    outcome = outcome_of_source(FileCheck(config, overlay), target.path, data)
    return _report((target,), [outcome], (), overlay)


def outcome_of_source(check_file: FileCheck, path: str, data: bytes, results: Results | None = None) -> Outcome:
    """What ``check_file`` makes of the file at absolute ``path``, whose content is ``data``, text test included.

    ``results`` are for files whose content is ``data`` on disk as well.
    """
    is_promising = is_candidate(data, check_file.config.protocol)
    if not is_promising and not may_name_codes(data):
        return Outcome(path)
    if results is None:
        return check_file.check(path) if is_promising else check_file.check_comments(path, data)
    if (known := results.find(path, data)) is not None:
        return known
    return results.check(check_file, path) if is_promising else results.check_comments(check_file, path, data)


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
        with collecting_rarely(), _crew(check_file, jobs) as crew:
            for path, size in scan.candidates:
                crew.add(path, size)
            outcomes += _collected(crew, len(scan.candidates))
        return _report(targets, outcomes, (), check_file.overlay)

    return diagnose


def inspect(
    targets: Sequence[Target],
    config: Config,
    *,
    named: Iterable[str] = (),
    base: Mapping[str, bytes] | None = None,
) -> Inspection:
    """The facts of those ``targets`` that are candidates or among ``named``, the paths that the user gave.

    ``base`` stands in for the disk.
    """
    return _inspection(targets, _scan(targets, config, base), FileCheck(config, base), named)


def examine(targets: Sequence[Target], config: Config) -> tuple[Report, Inspection]:
    """The report on ``targets`` and the facts it rests on, in this process: one analysis where two would be needed."""
    scan = _scan(targets, config)
    check_file = FileCheck(config)
    outcomes = _outcomes_besides(scan, check_file)
    with collecting_rarely():
        outcomes += (check_file.check(path) for path, _ in scan.candidates)
        return _report(targets, outcomes, ()), _inspection(targets, scan, check_file, ())


def _inspection(targets: Sequence[Target], scan: _Scan, check_file: FileCheck, named: Iterable[str]) -> Inspection:
    from kvlint.report.inspect_build import file_model  # loads the analysis

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
            facts = check_file.facts(path)
            files.append(Inspected(display, facts, names, file_model(facts, display, names), path in asked))
        except UnreadableSource as failure:
            warnings.append(f"{one_line(display)}: {failure.reason}")
        except Exception as error:
            crashes.append(Crash.of(display, error))
    return Inspection(tuple(sorted(files, key=lambda file: file.display)), tuple(sorted(warnings)), _by_path(crashes))


def _scan(
    targets: Iterable[Target],
    config: Config,
    base: Mapping[str, bytes] | None = None,
    results: Results | None = None,
    found: Callable[[str, int], None] | None = None,
) -> _Scan:
    """Sort ``targets``; ``found`` is told of each candidate at once."""
    known, candidates, comments, unreadable = [], [], [], []
    for target in targets:
        try:
            data = base[target.path] if base and target.path in base else read_bytes(target.path)
        except OSError as error:
            unreadable.append(UnreadableSource(target.path, f"cannot be read: {error.strerror or error}"))
            continue
        is_promising = is_candidate(data, config.protocol)
        if not is_promising and not may_name_codes(data):
            continue
        if results is not None and (outcome := results.find(target.path, data)) is not None:
            known.append(outcome)
        elif is_promising:
            candidates.append((target.path, len(data)))
            if found is not None:
                found(target.path, len(data))
        else:
            comments.append((target.path, data))
    return _Scan(tuple(known), tuple(candidates), tuple(comments), tuple(unreadable))


def _outcomes_besides(scan: _Scan, check_file: FileCheck, results: Results | None = None) -> list[Outcome]:
    """The outcomes of the files that need no analysis."""
    outcomes = [*scan.known, *(check_file.unreadable(failure.path, failure) for failure in scan.unreadable)]
    for path, data in scan.comments:
        if results is None:
            outcomes.append(check_file.check_comments(path, check_file.overlay.get(path, data)))
        else:
            outcomes.append(results.check_comments(check_file, path, data))
    return outcomes


def _crew(check_file: FileCheck, jobs: int | None, results: Results | None = None) -> Crew:
    return Crew(check_file, jobs) if results is None else Crew(check_file, jobs, results.folder, results.check)


def _collected(crew: Crew, total: int, progress: Progress | None = None) -> Iterator[Outcome]:
    for done, outcome in enumerate(crew.outcomes(), start=1):
        if progress is not None:
            progress(done, total)
        yield outcome


def _report(
    targets: Sequence[Target],
    outcomes: Sequence[Outcome],
    warnings: tuple[str, ...],
    overlay: Mapping[str, bytes] | None = None,
) -> Report:
    names = DisplayPaths(targets)
    findings = [_shown(finding, names) for outcome in outcomes for finding in outcome.findings]
    more = [f"{one_line(names.of(outcome.path))}: {outcome.warning}" for outcome in outcomes if outcome.warning]
    crashes = [replace(outcome.crash, path=names.of(outcome.path)) for outcome in outcomes if outcome.crash]
    counts = FileCounts(
        checked=len(targets),
        parsed=sum(outcome.parsed for outcome in outcomes),
        failed=sum(outcome.failed for outcome in outcomes),
    )
    silenced = [_shown(finding, names) for outcome in outcomes for finding in outcome.silenced]
    return Report(
        _in_order(findings),
        counts,
        warnings + tuple(sorted(more)),
        _by_path(crashes),
        _in_order(silenced),
        overlay={names.of(path): data for path, data in (overlay or {}).items()},
    )


def _in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda finding: finding.sort_key))


def _by_path(crashes: Iterable[Crash]) -> tuple[Crash, ...]:
    return tuple(sorted(crashes, key=lambda crash: crash.path))


def _shown(finding: Finding, names: DisplayPaths) -> Finding:
    """``finding`` with display paths; its plan keeps the absolute ones."""
    anchor = finding.location.path

    def shown(location: Location) -> Location:
        return replace(location, path=names.of(location.path, anchor))

    related = tuple(replace(place, location=shown(place.location)) for place in finding.related)
    flows = tuple(
        replace(flow, steps=tuple(replace(step, location=shown(step.location)) for step in flow.steps))
        for flow in finding.flows
    )
    return replace(finding, location=shown(finding.location), related=related, flows=flows)
