"""SARIF 2.1.0, as GitHub code scanning and editors read it (docs/formats.md says what is in it and why).

https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/sarif-v2.1.0-errata01-os-complete.html
https://docs.github.com/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any
from urllib.parse import quote

from kvlint.diagnostics import Applicability, Finding, Flow, Location, Related, Span
from kvlint.registry import rules
from kvlint.report.fingerprint import fingerprints_of
from kvlint.report.model import Crash, Details, Report
from kvlint.report.sarif_rules import LEVELS, driver
from kvlint.source.display import printable
from kvlint.source.excerpt import text_of
from kvlint.source.folders import from_folder, with_slash

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

#: The name of kvlint's own fingerprint, and the only one that code scanning looks at.
_FINGERPRINTS = ("kvlintFinding/v1", "primaryLocationLineHash")
_ROOT = "%SRCROOT%"
_Json = dict[str, Any]


def render(report: Report, colour: bool) -> str:
    """A log with one run; ``colour`` does not apply."""
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [_Run(report).as_json()]}
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


class _Run:
    """One run on its way into the log."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._details = report.details or Details(os.getcwd())
        self._rules = rules()
        self._indices = {rule.code: index for index, rule in enumerate(self._rules)}

    def as_json(self) -> _Json:
        return {
            "tool": {"driver": driver(self._rules)},
            "invocations": [self._invocation()],
            "language": "en-US",
            "defaultSourceLanguage": "python",
            "columnKind": "unicodeCodePoints",
            "newlineSequences": ["\r\n", "\n", "\r"],
            "originalUriBaseIds": {
                _ROOT: {
                    "uri": _file_uri(with_slash(self._details.root)),
                    "description": {"text": "The root of the checked project."},
                }
            },
            "results": self._results(),
        }

    # -- results ------------------------------------------------------------------

    def _results(self) -> list[_Json]:
        report = self._report
        prints = fingerprints_of(report, self._details.read_source, self._named)
        reported = zip(report.findings, prints.reported, repeat(False))
        suppressed = zip(report.suppressed, prints.suppressed, repeat(True))
        listed = sorted((*reported, *suppressed), key=lambda entry: entry[0].sort_key)
        return [self._result(*entry) for entry in listed]

    def _result(self, finding: Finding, fingerprint: str, is_suppressed: bool) -> _Json:
        result: _Json = {
            "ruleId": finding.code,
            "ruleIndex": self._indices[finding.code],
            "level": LEVELS[finding.severity],
            "message": {"text": _linked(finding.message, finding.related)},
            "locations": [{"physicalLocation": self._physical(finding.location, with_snippet=True)}],
            "partialFingerprints": dict.fromkeys(_FINGERPRINTS, fingerprint),
        }
        if finding.related:
            result["relatedLocations"] = [
                self._location(related.location, related.message, id=number)
                for number, related in enumerate(finding.related, 1)
            ]
        if finding.flows:
            result["codeFlows"] = [self._code_flow(finding.flows)]
        if fix := self._fix(finding):
            result["fixes"] = [fix]
        if is_suppressed:
            result["suppressions"] = [{"kind": "inSource"}]
        return result

    def _code_flow(self, flows: Sequence[Flow]) -> _Json:
        return {
            "message": {"text": "A schedule that leads there, thread by thread."},
            "threadFlows": [
                {
                    "id": flow.thread,
                    "message": {"text": f"What the {flow.thread} does."},
                    "locations": [
                        {
                            "location": self._location(step.location, step.message),
                            "executionOrder": step.order,
                            "importance": "essential",
                        }
                        for step in flow.steps
                    ],
                }
                for flow in flows
            ],
        }

    def _fix(self, finding: Finding) -> _Json | None:
        plan = finding.plan
        if plan is None or plan not in self._details.edits:
            return None
        path, replacements = self._details.edits[plan]
        note = {
            Applicability.SAFE: "safe: correct programs keep their meaning",
            Applicability.UNSAFE: "unsafe: it needs a reader's judgement",
        }[plan.APPLICABILITY]
        return {
            "description": {"text": f"{plan.NAME}: {plan.TITLE} ({note})."},
            "artifactChanges": [
                {
                    "artifactLocation": self._artifact(path),
                    "replacements": [
                        {
                            "deletedRegion": _region(replacement.span),
                            **({"insertedContent": {"text": replacement.text}} if replacement.text else {}),
                        }
                        for replacement in replacements
                    ],
                }
            ],
        }

    # -- places -------------------------------------------------------------------

    def _location(self, location: Location, message: str, **more: int) -> _Json:
        return {**more, "physicalLocation": self._physical(location), "message": {"text": _plain(message)}}

    def _physical(self, location: Location, *, with_snippet: bool = False) -> _Json:
        region = _region(location.span)
        if (location.span.line, location.span.column) == (location.span.end_line, location.span.end_column):
            # A point names its whole line: an empty region would be an insertion point, and nothing to look at.
            region = {"startLine": location.span.line}
        source = self._details.sources.get(location.path)
        if with_snippet and source is not None and (text := text_of(location.span, source.lines)):
            region["snippet"] = {"text": printable(text)}
        return {"artifactLocation": self._artifact(location.path), "region": region}

    def _named(self, path: str) -> str:
        """``path`` from the root, absolute where it lies elsewhere: however the user gave it."""
        return from_folder(os.path.abspath(path), self._details.root)

    def _artifact(self, path: str) -> _Json:
        absolute, named = os.path.abspath(path), self._named(path)
        if named != absolute:
            return {"uri": _escaped(named), "uriBaseId": _ROOT}
        return {"uri": _file_uri(absolute)}

    # -- how the run went ---------------------------------------------------------

    def _invocation(self) -> _Json:
        report = self._report
        invocation: _Json = {"executionSuccessful": not report.crashes}
        notes = [self._crash(crash) for crash in report.crashes]
        notes += [{"level": "warning", "message": {"text": _plain(warning)}} for warning in report.warnings]
        if notes:
            invocation["toolExecutionNotifications"] = notes
        files = report.files
        invocation["properties"] = {"files": {"checked": files.checked, "parsed": files.parsed, "failed": files.failed}}
        return invocation

    def _crash(self, crash: Crash) -> _Json:
        kind, _, message = crash.reason.partition(": ")
        return {
            "level": "error",
            "message": {"text": _plain(f"kvlint failed on this file: {crash.reason}")},
            "locations": [{"physicalLocation": {"artifactLocation": self._artifact(crash.path)}}],
            "exception": {"kind": kind, "message": printable(message or crash.reason)},
        }


def _region(span: Span) -> _Json:
    return {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.end_line,
        "endColumn": span.end_column,
    }


def _escaped(path: str) -> str:
    """``path`` as a URI reference; bytes that are no UTF-8 go in as they are."""
    return quote(os.fsencode(path), safe="/")


def _file_uri(path: str) -> str:
    return f"file://{_escaped(path)}"


def _plain(text: str) -> str:
    r"""``text`` as a SARIF message: what would be read as an embedded link (``[a](b)``) is escaped."""
    return re.sub(r"\[(?=[^\]\n]*\]\()", r"\\[", printable(text))


def _linked(message: str, related: Iterable[Related]) -> str:
    """``message``; what it cites as ``folder/file.py:line`` leads to the related location of that line."""
    text = _plain(message)
    for number, place in enumerate(related, 1):
        folder, name = os.path.split(place.location.path)
        cited = printable(f"{os.path.basename(folder)}/{name}:{place.location.span.line}")
        found = re.search(rf"(?<![\w/\[]){re.escape(cited)}(?!\w)", text)
        if found is not None:
            text = f"{text[: found.start()]}[{cited}]({number}){text[found.end() :]}"
    return text
