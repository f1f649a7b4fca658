"""The report for programs: version 1 of the format that ``schemas/report-v1.schema.json`` describes."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from kvlint.diagnostics import Finding, Location
from kvlint.report.model import Report
from kvlint.source.display import printable
from kvlint.version import __version__

VERSION = 1


def render(report: Report, colour: bool) -> str:
    """The whole report as one JSON document; ``colour`` does not apply."""
    document = {
        "version": VERSION,
        "tool": {"name": "kvlint", "version": __version__},
        "files": {"checked": report.files.checked, "parsed": report.files.parsed, "failed": report.files.failed},
        "findings": [_finding(finding) for finding in report.findings],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def schema() -> dict[str, Any]:
    """The JSON schema of the format."""
    text = files("kvlint.report").joinpath("schemas/report-v1.schema.json").read_text("utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


def _finding(finding: Finding) -> dict[str, Any]:
    span = finding.location.span
    plan = finding.plan
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "message": printable(finding.message),
        **_place(finding.location),
        "end_line": span.end_line,
        "end_column": span.end_column,
        "related": [{**_place(related.location), "message": printable(related.message)} for related in finding.related],
        "fix": None if plan is None else {"title": plan.TITLE, "applicability": plan.APPLICABILITY.value},
    }


def _place(location: Location) -> dict[str, Any]:
    return {"path": printable(location.path), "line": location.span.line, "column": location.span.column}
