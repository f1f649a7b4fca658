"""The model for programs: version 1 of the format that ``schemas/inspect-v1.schema.json`` describes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import msgspec

from kvlint.report.inspect_model import FileModel, Noun, WriterModel
from kvlint.version import __version__

VERSION = 1


def render(models: Sequence[FileModel], without: Sequence[str]) -> str:
    """One JSON document; ``without`` are the named files that speak of no protocol."""
    document = {
        "version": VERSION,
        "tool": {"name": "kvlint", "version": __version__},
        "files": [_file(model) for model in models],
        "writers": [_writer(writer) for model in models for writer in model.writers],
        "without_protocol": list(without),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def schema() -> dict[str, Any]:
    """The JSON schema of the format."""
    text = files("kvlint.report").joinpath("schemas/inspect-v1.schema.json").read_text("utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


def _file(model: FileModel) -> dict[str, Any]:
    document = _plain(model)
    del document["writers"]  # those of all files stand together at the end
    return document


def _writer(writer: WriterModel) -> dict[str, Any]:
    document = _plain(writer)
    del document["rows"]  # the cells, spelled for people
    return document


def _plain(noun: Noun) -> dict[str, Any]:
    document: dict[str, Any] = _without_briefs(msgspec.to_builtins(noun))
    return document


def _without_briefs(value: Any) -> Any:
    match value:
        case {"path": path, "line": line, "brief": _}:
            return {"path": path, "line": line}
        case dict():
            return {key: _without_briefs(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_without_briefs(inner) for inner in value]
        case _:
            return value
