"""The model of a backend as ``kvlint inspect`` shows it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from kvlint.report.model import Inspected
from kvlint.source.display import one_line, printable


def render(inspected: Sequence[Inspected], output_format: str) -> str:
    """The facts of all files, as ``text`` or ``json``."""
    if output_format == "json":
        return json.dumps([_document(item) for item in inspected], indent=2, ensure_ascii=False) + "\n"
    return "\n".join(_text(item) for item in inspected)


def _document(item: Inspected) -> dict[str, Any]:
    return {"path": printable(item.display)}


def _text(item: Inspected) -> str:
    return one_line(item.display) + "\n"
