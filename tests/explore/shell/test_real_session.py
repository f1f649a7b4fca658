"""The whole way with kvlint's own session, on the small tree: a command, a process, a search, a report, a replay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from loading import minitree

from kvlint.cli import cli
from kvlint.explore.child import SESSION
from kvlint.explore.events import FailureKind
from kvlint.explore.results import Verdict

from .trees import LIMITS, Explore, in_worker

STALLED = r"no step for 1.5 s: it runs in "


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    minitree.write(tmp_path / "tree")
    return "tree"


def test_what_is_found_can_be_replayed(tree: str) -> None:
    found = CliRunner().invoke(cli, ["explore", tree, "--scenario=abort", "--output-format=json"])
    assert found.exit_code == 1, found.output
    (scenario,) = json.loads(found.stdout)["scenarios"]
    shown = [entry["witness"] for entry in scenario["properties"] if entry["verdict"] == "VIOLATED"]
    assert shown
    for extra in ([], ["--threads"]):
        replay = ["--replay", shown[0]["token"], "--output-format=json"]
        again = CliRunner().invoke(cli, ["explore", tree, *replay, *extra])
        assert again.exit_code == 1, again.output
        replayed = json.loads(again.stdout)["replayed"]
        assert (replayed["confirmed"], replayed["with_threads"]) == (True, bool(extra))
        assert replayed["witness"]["steps"] == shown[0]["steps"]


@pytest.mark.parametrize("token", ["x", "kv1-", "kv1-AAAA", "kv1-eNo"])
def test_a_token_that_is_none_is_status_2(tree: str, token: str) -> None:
    result = CliRunner().invoke(cli, ["explore", tree, "--replay", token])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: --replay: ")


def test_the_quick_search_and_the_page(tree: str) -> None:
    result = CliRunner().invoke(cli, ["explore", tree, "--scenario=abort", "--quick", "--output-format=html"])
    assert result.exit_code == 1
    assert result.stdout.startswith("<!doctype html>")


def test_a_worker_that_loops_is_no_death_of_it(explored: Explore) -> None:
    (result,) = explored(in_worker("while True:\n    pass\n"), session=SESSION).exploration.scenarios
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.reason.startswith(STALLED)


def test_a_use_that_nobody_foresaw_is_no_death_of_a_worker(explored: Explore) -> None:
    (result,) = explored(in_worker("import zmq\nzmq.Foo.bar()\n"), session=SESSION).exploration.scenarios
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "zmq.Foo.bar is a stand-in that does not know this use" in result.reason


def test_a_use_that_is_swallowed_leaves_the_rest_open(explored: Explore) -> None:
    code = "try:\n    import zmq\n    zmq.Foo.bar()\nexcept BaseException:\n    pass\n"
    (result,) = explored(in_worker(code), session=SESSION).exploration.scenarios
    assert "zmq.Foo.bar is a stand-in that does not know this use" in result.reason
    assert Verdict.HOLDS not in {entry.verdict for entry in result.properties}


def test_a_tree_that_is_none_is_an_error_of_loading(explored: Explore) -> None:
    outcome = explored({minitree.COMMON: "def odd(:\n"}, session=SESSION)
    assert outcome.failure is not None
    assert outcome.failure.kind is FailureKind.LOAD
    assert "common/conn.py:1: " in outcome.failure.message


def test_a_time_limit_is_told(explored: Explore) -> None:
    (result,) = explored(None, "two-rooms", limits=LIMITS, seconds=0.001, session=SESSION).exploration.scenarios
    assert result.reason
    assert Verdict.HOLDS not in {entry.verdict for entry in result.properties}
