"""What the HTML page shows of a run's findings: plain data for its templates, no markup."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from textwrap import shorten

from kvlint.diagnostics import Applicability, Finding, Flow, Location, Replacement
from kvlint.properties import SECTION
from kvlint.registry import Rule, rule_of
from kvlint.report.excerpts import Line, common_indentation, excerpt
from kvlint.report.fingerprint import fingerprints_of
from kvlint.report.model import Crash, Details, Report
from kvlint.source.display import one_line
from kvlint.source.excerpt import text_of
from kvlint.source.text import SourceText

_AROUND = 3  # lines of context around a finding
_AROUND_RELATED = 1
_LONGEST_STEP = 160  # characters of source shown with a step


@dataclass(frozen=True, slots=True)
class RuleView:
    """A rule that reports something; ``sections`` are title and paragraphs of its page, code left out."""

    code: str
    name: str
    severity: str
    count: int
    sections: tuple[tuple[str, tuple[tuple[tuple[bool, str], ...], ...]], ...]


@dataclass(frozen=True, slots=True)
class PlaceView:
    """A place with a note on it and the lines around it."""

    place: str
    message: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class StepView:
    """A row of a schedule: the number of the thread (from 0) that acts, what it does, where, and the source there."""

    order: int
    thread: int
    message: str
    place: str
    source: str


@dataclass(frozen=True, slots=True)
class ScheduleView:
    """Threads side by side, and their steps in the order in which they happen."""

    threads: tuple[str, ...]
    steps: tuple[StepView, ...]


@dataclass(frozen=True, slots=True)
class FixView:
    """An edit: its name, what it does, whether it is safe, and ``(path:line, removed lines, new lines)`` for each spot.

    ``changes`` is empty where the edit could not be worked out.
    """

    name: str
    title: str
    is_safe: bool
    changes: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class FindingView:
    """A finding; ``anchor`` is an identifier for the page that stays when lines move."""

    anchor: str
    code: str
    name: str
    severity: str
    line: int
    column: int
    message: str
    lines: tuple[Line, ...]
    schedule: ScheduleView | None
    related: tuple[PlaceView, ...]
    fix: FixView | None


@dataclass(frozen=True, slots=True)
class FileView:
    """A file with findings; ``anchor`` is an identifier for the page."""

    anchor: str
    path: str
    findings: tuple[FindingView, ...]


def rule_views(findings: Sequence[Finding]) -> list[RuleView]:
    """The rules of ``findings``, the busiest first."""
    first = {finding.code: finding for finding in reversed(findings)}
    counts = Counter(finding.code for finding in findings)
    return [
        RuleView(code, first[code].name, first[code].severity.value, count, tuple(_sections(code, first[code].name)))
        for code, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]


def file_views(report: Report, details: Details) -> list[FileView]:
    """The findings of ``report``, which come sorted by path, file by file."""
    anchors = (f"finding-{print_}" for print_ in fingerprints_of(report, details.read_source).reported)
    return [
        FileView(
            f"file-{number}",
            one_line(path),
            tuple(_finding(finding, next(anchors), details) for finding in found),
        )
        for number, (path, found) in enumerate(groupby(report.findings, lambda item: item.location.path), 1)
    ]


def suppressed_views(findings: Sequence[Finding], details: Details) -> list[PlaceView]:
    """The findings that comments silence, each as a place."""
    return [
        PlaceView(
            _place(finding.location),
            f"{finding.code} {finding.message}",
            _excerpt(details, finding.location, 0),
        )
        for finding in findings
    ]


def crash_views(crashes: Sequence[Crash]) -> list[tuple[str, str, str]]:
    """Path, reason and traceback of what kvlint failed on."""
    return [(one_line(crash.path), crash.reason, crash.traceback) for crash in crashes]


def _finding(finding: Finding, anchor: str, details: Details) -> FindingView:
    span = finding.location.span
    return FindingView(
        anchor,
        finding.code,
        finding.name,
        finding.severity.value,
        span.line,
        span.column,
        finding.message,
        _excerpt(details, finding.location, _AROUND),
        _schedule(finding.flows, details),
        tuple(
            PlaceView(
                _place(related.location),
                related.message,
                _excerpt(details, related.location, _AROUND_RELATED),
            )
            for related in finding.related
        ),
        _fix(finding, details),
    )


def _excerpt(details: Details, location: Location, around: int) -> tuple[Line, ...]:
    return excerpt(details.sources.get(location.path), location.span, around)


def _place(location: Location) -> str:
    return f"{one_line(location.path)}:{location.span.line}"


def _schedule(flows: Sequence[Flow], details: Details) -> ScheduleView | None:
    if not flows:
        return None
    steps = [
        StepView(
            step.order,
            thread,
            step.message,
            _place(step.location),
            _source_of(details, step.location),
        )
        for thread, flow in enumerate(flows)
        for step in flow.steps
    ]
    return ScheduleView(
        tuple(flow.thread for flow in flows), tuple(sorted(steps, key=lambda step: (step.order, step.thread)))
    )


def _source_of(details: Details, location: Location) -> str:
    source = details.sources.get(location.path)
    text = "" if source is None else text_of(location.span, source.lines)
    return shorten(text, _LONGEST_STEP, placeholder=" …")


def _fix(finding: Finding, details: Details) -> FixView | None:
    plan = finding.plan
    if plan is None:
        return None
    path, replacements = details.edits.get(plan, ("", ()))
    source = details.sources.get(path)
    changes = tuple(_change(path, source, replacement) for replacement in replacements)
    return FixView(plan.NAME, plan.TITLE, plan.APPLICABILITY is Applicability.SAFE, changes)


def _change(
    path: str, source: SourceText | None, replacement: Replacement
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Where an edit begins, the whole lines that it takes away and those that it puts there, moved left together.

    It ends where a line starts, or where a text without a line end does.
    """
    span = replacement.span
    old = () if source is None else source.lines[span.line - 1 : span.end_line - (span.end_column == 1)]
    # Not splitlines(), which knows more line ends than Python's own reader.
    new = re.split(r"\r\n|\r|\n", re.sub(r"(\r\n|\r|\n)\Z", "", replacement.text)) if replacement.text else []
    cut = common_indentation((*old, *new))
    removed, added = (tuple(line[cut:] for line in lines) for lines in (old, new))
    return f"{one_line(path)}:{span.line}", removed, added


def _sections(code: str, name: str) -> Iterator[tuple[str, tuple[tuple[tuple[bool, str], ...], ...]]]:
    """Title and paragraphs of the parts of a rule's page that explain; a paragraph is text in pieces, code or not."""
    rule = _known(code, name)
    if rule is None:
        return
    for title in ("What it does", "Why is this bad?", "Fix", SECTION):
        text = rule.page.partition(f"## {title}\n")[2].partition("\n## ")[0].strip()
        paragraphs = (" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
        pieces = tuple(
            tuple((bool(index % 2), piece) for index, piece in enumerate(paragraph.split("`")) if piece)
            for paragraph in paragraphs
            if paragraph
        )
        if pieces:
            yield title, pieces


def _known(code: str, name: str) -> Rule | None:
    try:
        rule = rule_of(code)
    except KeyError:
        return None
    return rule if rule.name == name else None
