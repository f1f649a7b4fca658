"""The model of a backend as ``kvlint inspect`` shows it, in the format that was asked for."""

from __future__ import annotations

from collections.abc import Sequence

from kvlint.report import inspect_json, inspect_text
from kvlint.report.model import Inspected


def render(inspected: Sequence[Inspected], output_format: str, *, colour: bool = False) -> str:
    """The facts of all files, as ``text``, ``json`` or ``html``.

    A file that turns out to speak of no protocol is mentioned only if it was
    asked for by name, so that the text may be empty.
    """
    models = [(item.model, item.is_named) for item in inspected]
    speaking = [model for model, _ in models if model.speaks]
    silent = [model.path for model, is_named in models if is_named and not model.speaks]
    if output_format == "json":
        return inspect_json.render(speaking, silent)
    if output_format == "html":
        from kvlint.report import html  # Jinja is loaded for nothing else

        return html.render_models(speaking, silent)
    return inspect_text.render(speaking, silent, colour)
