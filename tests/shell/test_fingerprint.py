"""Identities and fingerprints of findings, and the format that prints them."""

from __future__ import annotations

import json

import pytest

from kvlint.diagnostics import Finding, Location, Severity, Span
from kvlint.report import render
from kvlint.report.fingerprint import Identity, fingerprints, fingerprints_of, identities
from kvlint.report.model import FileCounts, Report
from kvlint.source.text import SourceText, UnreadableSource, decode

TEXT = "class M:\n    def worker(self):\n        self.set(A)\n        self.set(A)\n        self.set(B)\n"


def finding(line: int, path: str = "a.py", code: str = "KVL001", message: str = "lost at b.py:7") -> Finding:
    return Finding(code, "a-name", Severity.ERROR, message, Location(path, Span(line, 9, line, 12)))


def reading(text: str = TEXT) -> dict[str, SourceText]:
    return {path: decode(path, text.encode()) for path in ("a.py", "./a.py", "b.py")}


def test_equal_statements_have_one_identity_and_two_fingerprints() -> None:
    found = [finding(3), finding(4), finding(5)]
    assert identities(found, reading().__getitem__) == [
        Identity("a.py", "KVL001", "M.worker", "self.set(A)"),
        Identity("a.py", "KVL001", "M.worker", "self.set(A)"),
        Identity("a.py", "KVL001", "M.worker", "self.set(B)"),
    ]
    keys = fingerprints(found, reading().__getitem__)
    assert len(set(keys)) == 3
    assert all(len(key) == 32 and int(key, 16) for key in keys)


def test_fingerprints_do_not_change_between_releases() -> None:
    """Whoever stored one must find it again: a change here is a change of the format."""
    assert fingerprints([finding(3)], reading().__getitem__) == ["13cf9d99d9de397c4cfb38f891a000cd"]


def test_lines_messages_and_spelling_of_paths_do_not_count() -> None:
    moved = reading("# new\n\n" + TEXT).__getitem__
    before = fingerprints([finding(3)], reading().__getitem__)
    assert fingerprints([finding(5, "./a.py", message="lost at b.py:9")], moved) == before


@pytest.mark.parametrize("other", [finding(5), finding(3, "b.py"), finding(3, code="KVL002")])
def test_what_does_count(other: Finding) -> None:
    read = reading().__getitem__
    assert fingerprints([finding(3)], read) != fingerprints([other], read)


def test_a_file_that_cannot_be_read_counts_as_empty() -> None:
    def fail(path: str) -> SourceText:
        raise UnreadableSource(path, "gone")

    assert identities([finding(3, "caf\udce9.py")], fail) == [Identity("caf\\xe9.py", "KVL001", "", "")]


def test_what_is_left_out_or_suppressed_changes_no_fingerprint() -> None:
    first, second, other, elsewhere = finding(3), finding(4), finding(5), finding(3, "b.py")
    read = reading().__getitem__
    whole = fingerprints_of(Report((first, second, other, elsewhere), FileCounts()), read)
    assert whole.reported == fingerprints([first, second, other, elsewhere], read)
    narrowed = Report((second,), FileCounts(), left_out=(elsewhere, other, first))
    assert fingerprints_of(narrowed, read).reported == [whole.reported[1]]
    marked = fingerprints_of(Report((second, other), FileCounts(), suppressed=(first, elsewhere)), read)
    assert marked.reported == fingerprints_of(Report((second, other), FileCounts()), read).reported
    assert len({*marked.reported, *marked.suppressed}) == 4


def test_findings_that_are_the_same_in_everything_get_two_fingerprints() -> None:
    twice = fingerprints_of(Report((finding(3), finding(3)), FileCounts()), reading().__getitem__)
    assert len(set(twice.reported)) == 2


def test_a_file_of_which_nothing_is_reported_is_not_read() -> None:
    report = Report((finding(3),), FileCounts(), left_out=(finding(3, "gone.py"),))
    assert fingerprints_of(report, reading().__getitem__).reported == fingerprints([finding(3)], reading().__getitem__)


def test_gitlab() -> None:
    overlay = {"./a.py": TEXT.encode(), "caf\udce9.py": b"("}
    odd = Finding("KVL900", "b-name", Severity.WARNING, "caf\udce9,\nbad", Location("caf\udce9.py", Span(1, 1, 1, 1)))
    mild = Finding("KVL901", "c-name", Severity.INFO, "unused", Location("caf\udce9.py", Span(1, 1, 2, 2)))
    report = Report((finding(3, "./a.py"), finding(4, "./a.py"), odd, mild), FileCounts(), overlay=overlay)
    issues = json.loads(render(report, "gitlab").encode())
    assert issues[0] == {
        "check_name": "KVL001",
        "description": "lost at b.py:7",
        "fingerprint": fingerprints(report.findings, report.read_source)[0],
        "severity": "major",
        "location": {"path": "a.py", "lines": {"begin": 3, "end": 3}},
    }
    assert issues[2]["description"] == "caf\\xe9,\nbad"
    assert issues[2]["location"]["path"] == "caf\\xe9.py"
    assert [issue["severity"] for issue in issues] == ["major", "major", "minor", "info"]
    assert len({issue["fingerprint"] for issue in issues}) == 4
    assert render(Report((), FileCounts()), "gitlab") == "[]\n"
