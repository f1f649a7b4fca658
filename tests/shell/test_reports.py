from __future__ import annotations

import io
import json

import jsonschema
import pytest

from kvlint import __version__
from kvlint.diagnostics import Finding, Location, Related, Severity, Span, StickyTerminal
from kvlint.report import FORMATS, render
from kvlint.report.colour import wants_colour
from kvlint.report.json_report import schema
from kvlint.report.model import FileCounts, Report

PLAN = StickyTerminal("/abs/a.py", 3, "update_status", "self.status", ("KVPoll.Failed",))
FULL = Finding(
    "KVL004",
    "overwritable-terminal-status",
    Severity.ERROR,
    "Failed is replaced",
    Location("a b/c.py", Span(3, 5, 3, 18)),
    (Related(Location("base.py", Span(10, 1, 12, 4)), "stored here"),),
    PLAN,
)
ODD = Finding(
    "KVL900",
    "unreadable-source",
    Severity.WARNING,
    "100%: caf\udce9,\nbad",
    Location("x\n:y,\udcff.py", Span(1, 1, 2, 1)),
)
REPORT = Report((FULL, ODD), FileCounts(7, 2, 1))
EMPTY = Report((), FileCounts())


def test_text() -> None:
    assert render(REPORT, "text") == (
        "a b/c.py:3:5: KVL004 Failed is replaced\n"
        "    base.py:10:1: stored here\n"
        "x\\n:y,\\xff.py:1:1: KVL900 100%: caf\\xe9,\nbad\n"
    )
    assert render(EMPTY, "text") == ""


def test_text_in_colour() -> None:
    lines = render(REPORT, "text", colour=True).splitlines()
    assert lines[0] == "\x1b[1ma b/c.py:3:5\x1b[0m: \x1b[1;31mKVL004\x1b[0m Failed is replaced"
    assert lines[1] == "    \x1b[2mbase.py:10:1\x1b[0m: stored here"
    assert "\x1b[1;33mKVL900\x1b[0m" in lines[2]


def test_json() -> None:
    document = json.loads(render(REPORT, "json", colour=True).encode("utf-8"))
    jsonschema.validate(document, schema(), cls=jsonschema.Draft202012Validator)
    assert document["version"] == 1
    assert document["tool"] == {"name": "kvlint", "version": __version__}
    assert document["files"] == {"checked": 7, "parsed": 2, "failed": 1}
    assert document["findings"][0] == {
        "code": "KVL004",
        "name": "overwritable-terminal-status",
        "severity": "error",
        "message": "Failed is replaced",
        "path": "a b/c.py",
        "line": 3,
        "column": 5,
        "end_line": 3,
        "end_column": 18,
        "related": [{"path": "base.py", "line": 10, "column": 1, "message": "stored here"}],
        "fix": {"title": PLAN.TITLE, "applicability": "safe"},
    }
    assert document["findings"][1]["path"] == "x\n:y,\\xff.py"
    assert document["findings"][1]["fix"] is None


def test_an_empty_report_is_a_valid_document() -> None:
    document = json.loads(render(EMPTY, "json"))
    jsonschema.validate(document, schema(), cls=jsonschema.Draft202012Validator)
    assert document["findings"] == []


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


def test_github() -> None:
    first, second = render(REPORT, "github").splitlines()
    assert first == (
        "::error file=a b/c.py,line=3,endLine=3,col=5,endColumn=18,title=KVL004 overwritable-terminal-status"
        "::Failed is replaced%0Abase.py:10: stored here"
    )
    assert second == (
        "::warning file=x%0A%3Ay%2C\\xff.py,line=1,endLine=2,title=KVL900 unreadable-source::100%25: caf\\xe9,%0Abad"
    )


@pytest.mark.parametrize("output_format", FORMATS)
def test_every_format_is_utf_8_and_ends_its_last_line(output_format: str) -> None:
    text = render(REPORT, output_format)
    assert text.encode("utf-8").endswith(b"\n")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "on_terminal", "elsewhere"),
    [
        ({}, True, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": ""}, True, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": "0"}, False, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
        ({"TERM": "dumb"}, False, False),
    ],
)
def test_colour(environment: dict[str, str], on_terminal: bool, elsewhere: bool) -> None:
    assert wants_colour(Terminal(), environment) is on_terminal
    assert wants_colour(io.StringIO(), environment) is elsewhere
