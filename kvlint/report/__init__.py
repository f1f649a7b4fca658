"""Reports: one module per format, each a pure function from a `Report` to text."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from kvlint.report.model import Detail, Report

_NOTHING = Detail(0)


@dataclass(frozen=True, slots=True)
class _Format:
    """The module that renders a format, and what it shows beyond the findings."""

    module: str
    details: Detail = _NOTHING


_FORMATS = {
    "text": _Format("text"),
    "json": _Format("json_report"),
    "sarif": _Format("sarif", Detail.SOURCES | Detail.EDITS | Detail.SUPPRESSED),
    "github": _Format("github"),
    "gitlab": _Format("gitlab"),
    "html": _Format("html", ~_NOTHING),
    "junit": _Format("junit"),
}

#: The names that ``--output-format`` takes.
FORMATS = tuple(_FORMATS)


def details_of(output_format: str) -> Detail:
    """What a format of `FORMATS` shows beyond the findings, to be found in `Report.details`."""
    return _FORMATS[output_format].details


def render(report: Report, output_format: str, *, colour: bool = False) -> str:
    """``report`` in a format of `FORMATS`; ``colour`` is for terminals and heeded by text alone."""
    module = importlib.import_module(f"kvlint.report.{_FORMATS[output_format].module}")
    function: Callable[[Report, bool], str] = module.render
    return function(report, colour)
