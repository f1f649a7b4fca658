"""The exploration as programs read it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from kvlint.explore.events import Failed, FailureKind, Replayed
from kvlint.explore.parent import Printed
from kvlint.explore.report.json_report import render, schema
from kvlint.explore.run import Outcome
from kvlint.properties import PROPERTIES

from . import results

WHOLE = Outcome(
    results.exploration(results.violated(), results.scenario("two-rooms")), None, None, Printed(12, 3, b"x")
)
REPLAY = Outcome(results.exploration(), Replayed(results.WITNESS, True, True), None, Printed())
FAILED = replace(WHOLE, failure=Failed(FailureKind.CRASH, "why"))


def document(outcome: Outcome) -> Any:
    found = json.loads(render(outcome))
    jsonschema.validate(found, schema(), cls=jsonschema.Draft202012Validator)
    return found


def test_the_schema_is_one_and_knows_every_property() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    assert schema()["$defs"]["property"]["enum"] == list(PROPERTIES)


@pytest.mark.parametrize("outcome", [WHOLE, REPLAY, FAILED], ids=["whole", "replay", "failed"])
def test_it_fits_its_schema(outcome: Outcome) -> None:
    found = document(outcome)
    assert found["verdict"] == "VIOLATED"
    assert found["tree"] == "tree"
    assert found["release"] == "0.5.14"


def test_a_scenario_has_its_witness() -> None:
    found = document(WHOLE)
    assert found["printed"] == {"bytes": 12, "lines": 3}
    abort, two_rooms = found["scenarios"]
    assert (abort["schedules"], abort["quick_seconds"]) == (6_662_462, 0.02)
    assert two_rooms["verdict"] == "HOLDS"
    pinned = abort["properties"][0]
    assert pinned["rules"] == ["KVL001", "KVL002", "KVL003", "KVL005"]
    assert pinned["witness"]["replay"] == "kvlint explore --replay 1.abort.0-0-1-1 tree"
    assert pinned["witness"]["steps"][2]["place"] is None
    assert pinned["witness"]["steps"][0]["place"]["line"] == 1310
    assert (found["replayed"], found["error"]) == (None, None)


def test_a_replay_and_a_failure_are_told() -> None:
    assert document(REPLAY)["replayed"]["with_threads"] is True
    assert document(FAILED)["error"] == {"kind": "crash", "message": "why"}


@pytest.mark.parametrize("key", ["verdict", "scenarios", "error"])
def test_the_schema_is_closed(key: str) -> None:
    found = document(WHOLE)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**found, "more": 1}, schema())
    del found[key]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(found, schema())
