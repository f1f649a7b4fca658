"""JUnit XML, as GitLab and Jenkins read it: a test case per file with findings, one for each crash, one for the rest.

A file passes or fails as a whole, so that its test case keeps its name when
findings come and go; what is found in it stands in the one ``failure`` (both
services show the first only).  The last test case stands for the files in which
nothing was found: it passes, so that a clean run is a passing suite rather than
an empty one, which Jenkins takes for a mistake.

https://docs.gitlab.com/ci/testing/unit_test_reports/
https://github.com/jenkinsci/xunit-plugin/blob/master/src/main/resources/org/jenkinsci/plugins/xunit/types/model/xsd/junit-10.xsd
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from xml.etree import ElementTree as ET

from kvlint.diagnostics import Finding
from kvlint.report.model import Crash, Report
from kvlint.report.text import lines
from kvlint.source.display import one_line, printable

_SUITE = "kvlint"
_REST = "files without findings"

# What XML 1.0 cannot hold, not even as a reference; a carriage return would be read back as a line feed.
_ILLEGAL = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report, colour: bool) -> str:
    """One suite; ``colour`` does not apply."""
    by_file = [(path, list(found)) for path, found in groupby(report.findings, lambda item: item.location.path)]
    counts = {
        "tests": str(len(by_file) + len(report.crashes) + 1),
        "failures": str(len(by_file)),
        "errors": str(len(report.crashes)),
    }
    root = ET.Element("testsuites", {"name": _SUITE, **counts})
    suite = ET.SubElement(root, "testsuite", {"name": _SUITE, **counts, "skipped": "0"})
    for path, found in by_file:
        _failed(suite, path, found)
    for crash in report.crashes:
        _crashed(suite, crash)
    ET.SubElement(suite, "testcase", {"classname": _SUITE, "name": _REST})
    files = report.files
    told = [f"{files.checked} files checked, {files.parsed} with a status protocol, {files.failed} unreadable"]
    told += (f"warning: {warning}" for warning in report.warnings)
    ET.SubElement(suite, "system-out").text = _legal("".join(f"{line}\n" for line in told))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _failed(suite: ET.Element, path: str, findings: Sequence[Finding]) -> None:
    counts = Counter(finding.code for finding in findings)
    codes = ", ".join(f"{code} ({count} times)" if count > 1 else code for code, count in sorted(counts.items()))
    failure = ET.SubElement(_case(suite, path), "failure", {"type": findings[0].code, "message": codes})
    failure.text = _legal("".join(lines(finding, colour=False) for finding in findings))


def _crashed(suite: ET.Element, crash: Crash) -> None:
    kind = crash.reason.partition(":")[0]
    attributes = {"type": _legal(kind), "message": _legal(f"kvlint failed on this file: {crash.reason}")}
    error = ET.SubElement(_case(suite, crash.path), "error", attributes)
    error.text = _legal(crash.traceback)


def _case(suite: ET.Element, path: str) -> ET.Element:
    shown = _legal(one_line(path))
    return ET.SubElement(suite, "testcase", {"classname": _SUITE, "name": shown, "file": shown})


def _legal(text: str) -> str:
    r"""``text`` with what XML cannot hold written ``\x0b``."""
    return _ILLEGAL.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), printable(text))
