"""The report for people: one line per finding, and below it the places that it rests on."""

from __future__ import annotations

from kvlint.diagnostics import Finding, Location, Severity
from kvlint.report.colour import BOLD, CYAN, DIM, RED, YELLOW, paint
from kvlint.report.model import Report
from kvlint.source.display import one_line, printable

_STYLES = {Severity.ERROR: RED, Severity.WARNING: YELLOW, Severity.INFO: CYAN}


def render(report: Report, colour: bool) -> str:
    """``path:line:column: CODE message`` for each finding, related places indented."""
    return "".join(lines(finding, colour) for finding in report.findings)


def lines(finding: Finding, colour: bool) -> str:
    """The lines that tell of one finding, each with its end."""
    code = paint(finding.code, _STYLES[finding.severity], colour)
    told = [f"{paint(_place(finding.location), BOLD, colour)}: {code} {printable(finding.message)}"]
    told += (
        f"    {paint(_place(related.location), DIM, colour)}: {printable(related.message)}"
        for related in finding.related
    )
    return "".join(line + "\n" for line in told)


def _place(location: Location) -> str:
    return f"{one_line(location.path)}:{location.span.line}:{location.span.column}"
