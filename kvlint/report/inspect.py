"""The model of a backend as ``kvlint inspect`` shows it, in the format that was asked for."""

from __future__ import annotations

from collections.abc import Sequence

from kvlint.report import inspect_json, inspect_text
from kvlint.report.inspect_build import file_model
from kvlint.report.model import Inspected
from kvlint.source.display import printable


def render(
    inspected: Sequence[Inspected], output_format: str, *, without: Sequence[str] = (), colour: bool = False
) -> str:
    """The facts of all files, as ``text`` or ``json``.

    ``without`` are display paths of files that were asked for by name and are
    no candidates; a candidate that turns out to speak of no protocol is
    mentioned only if it was asked for by name, too.  Empty text means that no
    file speaks of one and none was named.
    """
    models = [file_model(item) for item in inspected]
    spoken = [model for model in models if model.speaks or model.takes_part]
    silent = {model.path for model, item in zip(models, inspected, strict=True) if item.is_named} - {
        model.path for model in spoken
    }
    missing = sorted(silent | {printable(path) for path in without})
    if output_format == "json":
        return inspect_json.render(spoken, missing)
    return inspect_text.render(spoken, missing, colour)
