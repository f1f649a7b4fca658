"""GitHub's limits: how many annotations it shows, and how long one may be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvlint.diagnostics import Location, Severity, Span
from kvlint.report import render
from kvlint.report.model import FileCounts, Report

from .small import SKIPPED


def commands(number: int, severity: Severity = Severity.ERROR) -> list[str]:
    findings = tuple(
        replace(SKIPPED, severity=severity, location=Location("a.py", Span(line, 1, line, 2)))
        for line in range(1, number + 1)
    )
    return render(Report(findings, FileCounts()), "github").rstrip("\n").split("\n")


@pytest.mark.parametrize("severity", list(Severity))
def test_more_than_github_shows_is_said(severity: Severity) -> None:
    assert len(commands(10, severity)) == 10
    *_, last = commands(11, severity)
    assert last.startswith("::notice title=kvlint::11 findings; ")


def test_a_message_is_cut_where_github_would_refuse_it() -> None:
    long = replace(SKIPPED, message="ä" * 40_000, related=())
    (command,) = render(Report((long,), FileCounts()), "github").rstrip("\n").split("\n")
    assert command.endswith("ä…")
    assert len(command.encode()) < 65_536


def test_a_path_cannot_end_the_command() -> None:
    odd = replace(SKIPPED, location=Location("a\n::error::b,line=1::c.py", Span(1, 1, 1, 2)), related=())
    (command,) = render(Report((odd,), FileCounts()), "github").rstrip("\n").split("\n")
    assert command.startswith("::error file=a%0A%3A%3Aerror%3A%3Ab%2Cline=1%3A%3Ac.py,line=1,")
