"""A drill for programs: version 1 of the format that ``drill-v1.schema.json`` beside this file describes."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any, Literal

import msgspec

from kvlint.drill.results import DrillResult
from kvlint.version import __version__

VERSION = 1


class Tool(msgspec.Struct, frozen=True):
    """What has written the document."""

    name: Literal["kvlint"]
    version: str


class Document(msgspec.Struct, frozen=True):
    """The document.

    Attributes:
        version: The format's.
        tool: What has written it.
        faults: What is wrong with each tree, in words, by the tree's number from 0; empty lists if nothing is.
        drill: All that was found out.
    """

    version: Literal[1]
    tool: Tool
    faults: tuple[tuple[str, ...], ...]
    drill: DrillResult


def document(result: DrillResult) -> Document:
    """A drill as a document."""
    return Document(1, Tool("kvlint", __version__), tuple(tuple(tree.faults()) for tree in result.trees), result)


def render(result: DrillResult) -> str:
    """A drill as one JSON document."""
    made = msgspec.to_builtins(document(result), str_keys=True)
    # A path need not be UTF-8: only escaped can it stand in a document that is.
    return json.dumps(made, indent=2) + "\n"


def made_schema() -> dict[str, Any]:
    """The schema of Document."""
    made = msgspec.json.schema(Document)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "kvlint drill, version 1", **made}


def published_schema() -> str:
    """The schema that is published."""
    return files("kvlint.drill.report").joinpath("drill-v1.schema.json").read_text("utf-8")
