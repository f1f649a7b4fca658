"""A drill as programs read it."""

from __future__ import annotations

import json

import jsonschema
import pytest

from kvlint.drill.report.json_report import made_schema, published_schema, render
from kvlint.drill.results import DrillResult
from kvlint.drill.statistics import Interval

from . import made

RESULTS = {
    "clean": made.result(made.clean_storm(), made.throughput(1.0, 2.0)),
    "broken": made.result(made.broken_storm()),
    "comparison": made.comparison(1.0, 2.0, interval=Interval(1.0, 2.0, 0.96)),
    "short": made.comparison(1.0),
    "odd path": made.result(root="tree\udcff\n"),
}


def test_the_published_schema_is_what_is_written() -> None:
    schema = json.loads(published_schema())
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema == made_schema(), "write json.dumps(made_schema(), indent=2) to drill-v1.schema.json"


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_it_fits_its_schema(result: DrillResult) -> None:
    found = json.loads(render(result))
    jsonschema.validate(found, json.loads(published_schema()), cls=jsonschema.Draft202012Validator)
    assert (found["version"], found["tool"]["name"]) == (1, "kvlint")
    assert found["faults"] == [tree.faults() for tree in result.trees]


def test_what_is_missing_is_refused() -> None:
    found = json.loads(render(RESULTS["broken"]))
    del found["drill"]["trees"][0]["storm"]["pinned"]
    with pytest.raises(jsonschema.ValidationError, match="pinned"):
        jsonschema.validate(found, made_schema())


def test_numbers_of_rooms_are_keys() -> None:
    storm = json.loads(render(RESULTS["broken"]))["drill"]["trees"][0]["storm"]
    assert storm["zombies"] == {"9": "Success"}
    assert storm["integrity"]["wrong"] == {"2": 8, "3": 1}
    assert storm["pinned"][0] == {"room": 6, "status": "Transferring", "has_metadata": False, "queue": "inflight"}


def test_a_path_that_is_no_text_is_kept() -> None:
    text = render(RESULTS["odd path"])
    assert text.isascii()
    assert json.loads(text)["drill"]["trees"][0]["root"] == "tree\udcff\n"
