"""Annotations for a GitHub Actions log, which shows them beside the lines of a pull request.

https://docs.github.com/actions/using-workflows/workflow-commands-for-github-actions (grammar and escapes),
https://github.com/actions/toolkit/blob/main/docs/problem-matchers.md#limitations (how many are shown),
https://docs.github.com/rest/checks/runs (how long a message may be, and that one of several lines has no columns)
"""

from __future__ import annotations

from collections import Counter

from kvlint.diagnostics import Finding, Severity
from kvlint.report.model import Report
from kvlint.source.display import one_line, printable

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}

#: How many annotations of a level GitHub shows of one step; the rest is in the log only.
SHOWN = 10

#: How many bytes of a message GitHub keeps.
_LONGEST = 64_000


def render(report: Report, colour: bool) -> str:
    """One workflow command per finding, and a note where GitHub will not show all; ``colour`` does not apply."""
    commands = [_command(finding) for finding in report.findings]
    levels = Counter(_LEVELS[finding.severity] for finding in report.findings)
    if any(count > SHOWN for count in levels.values()):
        told = (
            f"{len(report.findings)} findings; GitHub shows {SHOWN} of a level beside the code, this log has them all"
        )
        commands.append(f"::notice title=kvlint::{_data(told)}\n")
    return "".join(commands)


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
    message = finding.message + "".join(places)
    return f"::{_LEVELS[finding.severity]} {listed}::{_data(_shortened(message))}\n"


def _shortened(text: str) -> str:
    data = printable(text).encode()
    return text if len(data) <= _LONGEST else data[:_LONGEST].decode("utf-8", "ignore") + "…"


def _data(text: str) -> str:
    # A name with control characters must not write to the terminal of whoever reads the log.
    lines = (one_line(line) for line in printable(text).replace("%", "%25").split("\n"))
    return "%0A".join(lines)


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
