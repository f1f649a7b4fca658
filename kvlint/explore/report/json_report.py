"""The exploration for programs: version 1 of the format that ``explore-v1.schema.json`` (of `report`) describes."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import msgspec

from kvlint.explore.report.pointers import replay_command, rules_that_find
from kvlint.explore.results import PropertyResult, ScenarioResult, Witness
from kvlint.explore.run import Outcome
from kvlint.source.display import printable, slashed
from kvlint.version import __version__

VERSION = 1


def render(outcome: Outcome) -> str:
    """All that came of a request, as one JSON document."""
    exploration, replayed = outcome.exploration, outcome.replayed
    tree, scheduler = exploration.tree, exploration.scheduler

    def witness(shown: Witness) -> dict[str, Any]:
        document: dict[str, Any] = msgspec.to_builtins(shown)
        for step in document["steps"]:
            if step["place"] is not None:
                step["place"]["path"] = slashed(step["place"]["path"])
        return {**document, "replay": replay_command(tree, scheduler, shown.token)}

    def entry(result: PropertyResult) -> dict[str, Any]:
        document: dict[str, Any] = msgspec.to_builtins(result)
        document["rules"] = rules_that_find(result.property)
        document["witness"] = None if result.witness is None else witness(result.witness)
        return document

    def scenario(result: ScenarioResult) -> dict[str, Any]:
        document: dict[str, Any] = msgspec.to_builtins(result)
        document["properties"] = [entry(found) for found in result.properties]
        return document

    document = {
        "version": VERSION,
        "tool": {"name": "kvlint", "version": __version__},
        "tree": slashed(tree),
        "release": exploration.version,
        "digest": exploration.digest,
        "loaded": list(exploration.loaded),
        "stubbed": list(exploration.stubbed),
        "scheduler": scheduler,
        "printed": {"bytes": outcome.printed.size, "lines": outcome.printed.lines},
        "verdict": outcome.verdict.value,
        "scenarios": [scenario(result) for result in exploration.scenarios],
        "replayed": None
        if replayed is None
        else {
            "confirmed": replayed.confirmed,
            "with_threads": replayed.with_threads,
            "witness": witness(replayed.witness),
        },
        "error": None
        if outcome.failure is None
        else {"kind": outcome.failure.kind.value, "message": outcome.failure.message},
    }
    return printable(json.dumps(document, indent=2, ensure_ascii=False)) + "\n"


def schema() -> dict[str, Any]:
    """The JSON schema of the format."""
    text = files("kvlint.report").joinpath("schemas/explore-v1.schema.json").read_text("utf-8")
    document: dict[str, Any] = json.loads(text)
    return document
