"""Reports: one module per format, each a pure function from a `Report` to text."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from kvlint.report.model import Report

_MODULES = {"text": "text", "json": "json_report", "github": "github", "gitlab": "gitlab"}

#: The names that ``--output-format`` takes.
FORMATS = tuple(_MODULES)


def render(report: Report, output_format: str, *, colour: bool = False) -> str:
    """``report`` in a format of `FORMATS`; ``colour`` is for terminals and heeded by text alone."""
    module = importlib.import_module(f"kvlint.report.{_MODULES[output_format]}")
    function: Callable[[Report, bool], str] = module.render
    return function(report, colour)
