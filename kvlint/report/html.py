"""One HTML page for people: findings with their source, how they come about, and the backends behind them.

The page is whole in itself, as `kvlint.report.frame` sees to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kvlint.report.frame import page
from kvlint.report.html_backends import MARKS, MEANINGS, backend_views
from kvlint.report.html_findings import crash_views, file_views, rule_views, suppressed_views
from kvlint.report.inspect_model import FileModel
from kvlint.report.model import Details, Report
from kvlint.source.display import counted, one_line

#: How many findings are shown with their evidence unfolded.
_UNFOLDED = 30


def render(report: Report, colour: bool) -> str:
    """The page of a run; ``colour`` does not apply."""
    details = report.details or Details("")
    number = len(report.findings)
    return _page(
        title=f"kvlint: {counted(number, 'finding')}",
        heading="kvlint report",
        counts=report.files,
        number=number,
        unfolded=number <= _UNFOLDED,
        rules=rule_views(report.findings),
        files=file_views(report, details),
        suppressed=suppressed_views(report.suppressed, details),
        crashes=crash_views(report.crashes),
        warnings=[one_line(warning) for warning in report.warnings],
        backends=backend_views(details.models),
        has_findings=True,
        has_models=report.details is not None,
    )


def render_models(models: Sequence[FileModel], without: Sequence[str]) -> str:
    """The page that ``kvlint inspect`` writes; ``without`` are the named files that speak of no protocol."""
    speaking = [model for model in models if model.takes_part]
    silent = [f"{one_line(path)}: no status protocol" for path in without]
    for model in models:
        if not model.takes_part:
            enums = " and ".join(enum.name for enum in model.enums)
            silent.append(f"{one_line(model.path)}: mentions {enums}, keeps and writes no status")
    return _page(
        title=f"kvlint: {counted(len(speaking), 'backend file')}",
        heading="kvlint inspection",
        counts=None,
        number=0,
        unfolded=True,
        rules=[],
        files=[],
        suppressed=[],
        crashes=[],
        warnings=silent,
        backends=backend_views(speaking),
        has_findings=False,
        has_models=True,
    )


def _page(**values: Any) -> str:
    return page("page.html.jinja", meanings=MEANINGS, marks=MARKS, **values)
