"""A report for GitLab's Code Quality widget, which compares those of two branches by fingerprint.

https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
"""

from __future__ import annotations

import json
import posixpath
from typing import Any

from kvlint.diagnostics import Finding, Severity
from kvlint.report.fingerprint import fingerprints_of
from kvlint.report.model import Report
from kvlint.source.display import printable

# Of info, minor, major, critical and blocker.
_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.INFO: "info"}


def render(report: Report, colour: bool) -> str:
    """One issue per finding; ``colour`` does not apply.

    GitLab takes paths to be relative to the repository's root, so that is where
    to run kvlint.
    """
    keys = fingerprints_of(report, report.read_source).reported
    issues = [_issue(finding, key) for finding, key in zip(report.findings, keys, strict=True)]
    return json.dumps(issues, indent=2, ensure_ascii=False) + "\n"


def _issue(finding: Finding, fingerprint: str) -> dict[str, Any]:
    span = finding.location.span
    return {
        "check_name": finding.code,
        "description": printable(finding.message),
        "fingerprint": fingerprint,
        "severity": _SEVERITIES[finding.severity],
        "location": {
            "path": printable(posixpath.normpath(finding.location.path)),
            "lines": {"begin": span.line, "end": span.end_line},
        },
    }
