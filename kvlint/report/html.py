"""One HTML page for people: findings with their source, how they come about, and the backends behind them.

The page is whole in itself: it refers to nothing outside, and a content security
policy keeps it so whatever the linted source holds.  Jinja, which no other format
loads, escapes everything that a template prints: pages of this size are easier to
read and to keep right as templates than as code, and nothing relies on each place
remembering to escape.  What the page looks like and does is in ``assets``.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kvlint.report.excerpts import shown
from kvlint.report.html_backends import MARKS, MEANINGS, backend_views
from kvlint.report.html_findings import crash_views, file_views, rule_views, suppressed_views
from kvlint.report.inspect_model import FileModel
from kvlint.report.model import Details, Report
from kvlint.source.display import counted, one_line
from kvlint.version import __version__

if TYPE_CHECKING:
    from jinja2 import Template

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
    style, script = _asset("report.css"), _asset("report.js")
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return _template().render(
        version=__version__,
        policy=policy,
        style=Markup(style),  # these two are kvlint's own, and must keep the bytes that the policy names
        script=Markup(script),
        meanings=MEANINGS,
        marks=MARKS,
        **values,
    )


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("kvlint.report", "assets"),
        autoescape=True,
        finalize=_cleaned,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("page.html.jinja")


def _cleaned(value: Any) -> Any:
    """What a template prints, free of characters that hide or reorder text; markup is kvlint's own."""
    return shown(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _asset(name: str) -> str:
    return files("kvlint.report").joinpath("assets", name).read_text("utf-8")


def _hash(text: str) -> str:
    """How a content security policy names inline text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
