"""What a report shows beyond the findings, looked up after the run: texts, the edits that would mend, the backends.

Only what the format asks for is looked up (`kvlint.report.details_of`), so that
no other format pays for it; LibCST is loaded where a finding has an edit to show.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from kvlint import engine
from kvlint.config import Config
from kvlint.diagnostics import Finding, FixPlan, Replacement
from kvlint.report.model import Detail, Details, Report
from kvlint.source.display import DisplayPaths, Target
from kvlint.source.folders import checkout_around, is_below
from kvlint.source.text import SourceText, UnreadableSource, read_source

_Edits = dict[FixPlan, tuple[str, tuple[Replacement, ...]]]


def with_details(
    report: Report,
    wanted: Detail,
    targets: Sequence[Target],
    config: Config,
    overlay: Mapping[str, bytes] | None = None,
) -> Report:
    """``report`` on ``targets`` with the details that are ``wanted``.

    ``overlay`` holds contents that stand in for the disk's, by absolute path.  A text
    that can no longer be read, and an edit that ``kvlint fix`` would refuse, are
    left out.  Suppressed findings stay only if they are wanted.
    """
    # What a report leaves out takes part, or the paths in it would depend on that.
    found = (*report.findings, *report.suppressed, *report.left_out)
    if Detail.SUPPRESSED not in wanted:
        report = replace(report, suppressed=())
    if not wanted:
        return report
    details = Details(project_root(map(os.path.abspath, dict.fromkeys(_paths(found)))))
    if Detail.SOURCES in wanted:
        paths = dict.fromkeys(_paths((*report.findings, *report.suppressed)))
        details = replace(details, sources=_sources(paths, overlay))
    if Detail.EDITS in wanted:
        details = replace(details, edits=_edits(report.findings, targets, config, overlay))
    crashes = report.crashes
    if Detail.MODELS in wanted:
        inspection = engine.inspect(targets, config, base=overlay)
        models = (item.model for item in inspection.files)
        details = replace(details, models=tuple(model for model in models if model.takes_part))
        # A file that could not be read or crashed is known from the check already.
        known = {crash.path for crash in crashes}
        crashes += tuple(crash for crash in inspection.crashes if crash.path not in known)
    return replace(report, details=details, crashes=crashes)


def project_root(files: Iterable[str]) -> str:
    """The folder that ``files`` (absolute paths) are best named from: a checkout that holds some, else the current one.

    A checkout is a folder with ``.git`` in it.  The one around the current
    folder comes first, then those around the files.
    """
    here = os.getcwd()
    listed = list(files)
    tops: dict[str, None] = {}
    for start in (here, *dict.fromkeys(os.path.dirname(file) for file in listed)):
        top = checkout_around(start)
        if top is not None:
            tops[top] = None
    for top in tops:
        if not listed or any(is_below(file, top) for file in listed):
            return top
    return here


def _paths(findings: Iterable[Finding]) -> Iterator[str]:
    """The display paths of all places that ``findings`` mention."""
    for finding in findings:
        yield finding.location.path
        yield from (related.location.path for related in finding.related)
        yield from (step.location.path for flow in finding.flows for step in flow.steps)


def _sources(paths: Iterable[str], overlay: Mapping[str, bytes] | None) -> dict[str, SourceText]:
    found = {}
    for path in paths:
        try:
            found[path] = read_source(os.path.abspath(path), overlay)
        except UnreadableSource:
            continue
    return found


def _edits(
    findings: Iterable[Finding], targets: Sequence[Target], config: Config, overlay: Mapping[str, bytes] | None
) -> _Edits:
    plans = dict.fromkeys(finding.plan for finding in findings if finding.plan is not None)
    if not plans:
        return {}
    names = DisplayPaths(targets)
    allowed = {os.path.realpath(target.path): target.path for target in targets}
    found: _Edits = {}
    for plan in plans:
        path = allowed.get(os.path.realpath(plan.path))
        changes = None if path is None else _edit(plan, path, config, overlay or {})
        if path is not None and changes:
            found[plan] = (names.of(path), changes)
    return found


def _edit(plan: FixPlan, path: str, config: Config, overlay: Mapping[str, bytes]) -> tuple[Replacement, ...]:
    """What ``plan`` alone changes, checked as ``kvlint fix`` checks it; empty where it would refuse."""
    from kvlint.analysis.verification import unintended
    from kvlint.fixing.edits import apply_plan, require_parses
    from kvlint.fixing.refusals import EditRefused
    from kvlint.fixing.replacements import replacements
    from kvlint.source.text import read_bytes

    try:
        before = overlay[path] if path in overlay else read_bytes(path)
        after = apply_plan(path, before, plan)
        require_parses(path, after)
        if unintended(plan, overlay, {**overlay, path: after}, config) is not None:
            return ()
        return replacements(path, before, after)
    except (EditRefused, OSError):
        return ()
