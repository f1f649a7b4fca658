"""What every HTML page of kvlint's is: one file, its policy, its palette, and text that is escaped.

A page refers to nothing outside, and a content security policy keeps it so
whatever the shown source holds.  Jinja, which no other format loads, escapes
everything that a template prints: pages of this size are easier to read and to
keep right as templates than as code, and nothing relies on each place remembering
to escape.  What pages look like and do is in ``assets``.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kvlint.report.excerpts import shown
from kvlint.version import __version__

if TYPE_CHECKING:
    from jinja2 import Template

_HERE = "kvlint.report"


def page(template: str, *, package: str = _HERE, style: str = "", script: str = "", **values: Any) -> str:
    """The page that ``template`` of a package's assets makes of ``values``.

    ``style`` and ``script`` come after those of all pages; the template extends
    ``frame.html.jinja``, which uses ``title`` and ``heading``.
    """
    style, script = asset("report.css") + style, asset("report.js") + script
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return _template(package, template).render(
        version=__version__,
        policy=policy,
        style=Markup(style),  # these two are kvlint's own, and must keep the bytes that the policy names
        script=Markup(script),
        **values,
    )


def asset(name: str, package: str = _HERE) -> str:
    """The text of a file among a package's assets."""
    return files(package).joinpath("assets", name).read_text("utf-8")


@cache
def _template(package: str, name: str) -> Template:
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(source, "assets") for source in dict.fromkeys((package, _HERE))]),
        autoescape=True,
        finalize=_cleaned,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(name)


def _cleaned(value: Any) -> Any:
    """What a template prints, free of characters that hide or reorder text; markup is kvlint's own."""
    return shown(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _hash(text: str) -> str:
    """How a content security policy names inline text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
