"""Annotations for a GitHub Actions log, which shows them beside the lines of a pull request.

https://docs.github.com/actions/using-workflows/workflow-commands-for-github-actions
"""

from __future__ import annotations

from kvlint.diagnostics import Finding, Severity
from kvlint.report.model import Report
from kvlint.source.display import printable

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render(report: Report, colour: bool) -> str:
    """One workflow command per finding; ``colour`` does not apply."""
    return "".join(_command(finding) for finding in report.findings)


def _command(finding: Finding) -> str:
    span = finding.location.span
    properties = {
        "file": finding.location.path,
        "line": str(span.line),
        "endLine": str(span.end_line),
        # GitHub refuses columns on annotations of several lines.
        **({"col": str(span.column), "endColumn": str(span.end_column)} if span.line == span.end_line else {}),
        "title": f"{finding.code} {finding.name}",
    }
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    places = (
        f"\n{related.location.path}:{related.location.span.line}: {related.message}" for related in finding.related
    )
    return f"::{_LEVELS[finding.severity]} {listed}::{_data(finding.message + ''.join(places))}\n"


def _data(text: str) -> str:
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
