"""JUnit XML: what GitLab and Jenkins count, and characters that XML cannot hold."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from kvlint.diagnostics import Location, Span
from kvlint.report import render
from kvlint.report.model import FileCounts, Report

from .small import SKIPPED, small


def suite_of(report: Report) -> ET.Element:
    root = ET.fromstring(render(report, "junit").encode())
    assert root.tag == "testsuites"
    (suite,) = root
    cases = suite.findall("testcase")
    for element in (root, suite):
        assert element.get("tests") == str(len(cases))
        assert element.get("failures") == str(len(suite.findall("testcase/failure")))
        assert element.get("errors") == str(len(suite.findall("testcase/error")))
    return suite


def test_a_clean_run_is_a_suite_that_passes() -> None:
    suite = suite_of(Report((), FileCounts(12, 3)))
    (case,) = suite.findall("testcase")
    assert case.attrib == {"classname": "kvlint", "name": "files without findings"}
    assert list(case) == []
    assert suite.findtext("system-out") == "12 files checked, 3 with a status protocol, 0 unreadable\n"


def test_a_file_with_findings_is_one_failing_case(tmp_path: Path) -> None:
    suite = suite_of(small(tmp_path))
    case = suite.findall("testcase")[0]
    assert case.get("name") == case.get("file") == "nixl/conn.py"
    (failure,) = case
    assert (failure.tag, failure.get("type")) == ("failure", "KVL002")
    assert failure.get("message") == "KVL001 (3 times), KVL002, KVL003"
    assert failure.text is not None
    assert "nixl/conn.py:7:13: KVL001 Poll.Transferring written" in failure.text
    assert "\n    common/base class.py:2:5: the writer\n" in failure.text


def test_a_crash_is_an_error(tmp_path: Path) -> None:
    suite = suite_of(small(tmp_path))
    (error,) = suite.findall("testcase/error")
    assert error.get("type") == "ZeroDivisionError"
    assert error.text == "Traceback\n  ZeroDivisionError\\x00\n"


def test_no_two_cases_have_one_name(tmp_path: Path) -> None:
    names = [case.get("name") for case in suite_of(small(tmp_path)).findall("testcase")]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("\x00\x0b\x1b", "\\x00\\x0b\\x1b"),
        ("\ufffe\uffff", "\\ufffe\\uffff"),
        ("\ud800", "\\ud800"),
        ("\udcff", "\\xff"),
        ("a\r\nb", "a\\r\nb"),
        ("]]> <![CDATA[ & <b/>", "]]> <![CDATA[ & <b/>"),
        ("\N{GRINNING FACE}\t", "\N{GRINNING FACE}\t"),
    ],
)
def test_any_text_can_be_read_back(text: str, read: str) -> None:
    location = Location("a.py", Span(1, 1, 1, 2))
    report = Report((replace(SKIPPED, message=f"<{text}>", location=location, related=()),), FileCounts())
    assert suite_of(report).findtext("testcase/failure") == f"a.py:1:1: KVL002 <{read}>\n"


def test_any_path_is_a_name() -> None:
    location = Location('a"\n<\x01\udcff>.py', Span(1, 1, 1, 2))
    (case, _) = suite_of(Report((replace(SKIPPED, location=location),), FileCounts())).findall("testcase")
    assert case.get("name") == 'a"\\n<\\x01\\xff>.py'
