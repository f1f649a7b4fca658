"""``kvlint explore`` as it is typed."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result
from loading import minitree

from kvlint.cli import cli
from kvlint.commands.explore_progress import ExploreProgress
from kvlint.explore import run as run_module
from kvlint.explore.events import Alive, Loaded, Progress
from kvlint.explore.results import Exploration
from kvlint.explore.run import explore
from kvlint.explore.scenarios import SCENARIOS
from kvlint.properties import PROPERTIES

from . import results
from .trees import ROOT, SESSION, in_worker

Invoke = Callable[..., Result]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The small tree, explored by the session of `fake_session`; the current folder is the one that holds it."""
    session = functools.partial(explore, session=SESSION, path=[*sys.path, str(ROOT)])
    monkeypatch.setattr(run_module, "explore", session)
    monkeypatch.chdir(tmp_path)
    return minitree.write(tmp_path / "tree")


@pytest.fixture
def invoke() -> Invoke:
    return lambda *arguments: CliRunner().invoke(cli, ["explore", *arguments])


def test_a_violation_is_status_1(tree: Path, invoke: Invoke) -> None:
    result = invoke("tree")
    assert result.exit_code == 1
    assert result.stderr == ""
    verdicts = [line.split() for line in result.stdout.splitlines() if line.startswith(("HOLDS  ", "VIOLATED  "))]
    assert [words[:2] for words in verdicts] == [
        ["VIOLATED" if entry.name == "transfer-error" else "HOLDS", f"{entry.name}:"] for entry in SCENARIOS
    ]


def test_the_current_folder_is_the_default(tree: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    result = invoke("--scenario", "abort")
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, ".")


def test_scenarios_are_taken_in_the_order_of_the_command_line(tree: Path, invoke: Invoke) -> None:
    result = invoke("tree", "--scenario=two-rooms", "--scenario=abort", "--scenario=two-rooms", "--output-format=json")
    assert result.exit_code == 0
    assert [entry["scenario"] for entry in json.loads(result.stdout)["scenarios"]] == ["two-rooms", "abort"]


def test_without_the_scheduler_what_needs_it_is_left_out(tree: Path, invoke: Invoke) -> None:
    result = invoke("tree", "--no-scheduler", "--output-format=json")
    found = json.loads(result.stdout)
    assert [entry["scenario"] for entry in found["scenarios"]] == ["abort", "transfer-error", "two-rooms"]
    assert found["scheduler"] is False
    refused = invoke("tree", "--no-scheduler", "--scenario=room-reuse")
    assert refused.exit_code == 2
    assert "--scenario room-reuse is about what the scheduler does: leave --no-scheduler out" in refused.stderr


def test_quick_is_never_enough(tree: Path, invoke: Invoke) -> None:
    result = invoke("tree", "--quick", "--scenario=abort")
    assert result.exit_code == 3
    assert "INCONCLUSIVE: nothing was found to be broken" in result.stdout


def test_options_reach_the_request(tree: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def spy(request: Any, limits: Any, progress: Any) -> Any:
        seen.append((request, limits))
        return explore(request, limits, progress, session=SESSION, path=[*sys.path, str(ROOT)])

    monkeypatch.setattr(run_module, "explore", spy)
    arguments = "--time-limit=7.5 --max-states=10 --max-steps=20 --memory-limit=600 --strategy=partial-order --quick"
    invoke("tree", "--scenario=abort", *arguments.split())
    invoke("tree", "--scenario=abort", "--memory-limit=0")
    (request, limits), (plain, unlimited) = seen
    assert (request.seconds, request.states, request.steps) == (7.5, 10, 20)
    assert (request.strategy, request.preemptions, request.complete) == ("partial-order", 2, False)
    assert (limits.memory, unlimited.memory) == (600 << 20, 0)
    assert (plain.seconds, plain.states, plain.steps) == (60.0, 2_000_000, 5_000)
    assert (plain.strategy, plain.preemptions, plain.complete) == ("states", None, True)


def test_a_replay_that_confirms_is_status_1(tree: Path, invoke: Invoke) -> None:
    result = invoke("tree", "--replay", results.WITNESS.token, "--threads")
    assert result.exit_code == 1
    assert "\nconfirmed: the schedule was run on real threads and broke its property\n" in result.stdout


def test_a_replay_that_confirms_nothing_is_status_3(tree: Path, invoke: Invoke) -> None:
    result = invoke("tree", "--replay", "1.other", "--output-format=json")
    assert result.exit_code == 3
    assert json.loads(result.stdout)["replayed"]["confirmed"] is False


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("bad", "error: --replay bad: this is no token\n"),
        ("silent", "error: the exploration ended without a result"),
        ("broken", "error: ZeroDivisionError: the session is broken\n  this is a defect in kvlint; please report it"),
    ],
)
def test_a_replay_that_fails_is_status_2(tree: Path, invoke: Invoke, token: str, words: str) -> None:
    result = invoke("tree", "--replay", token)
    assert result.exit_code == 2
    assert words in result.stderr


def test_a_defect_is_shown_in_full_if_asked_for(tree: Path, invoke: Invoke) -> None:
    result = invoke("tree", "--replay", "broken", "--verbose")
    assert "Traceback (most recent call last):" in result.stderr
    assert "fake_session.py" in result.stderr


@pytest.mark.parametrize("name", ["nowhere", "sub"])
def test_a_tree_that_cannot_be_loaded_is_status_2(tree: Path, invoke: Invoke, name: str) -> None:
    (tree.parent / "sub").mkdir()
    result = invoke(name)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: {name}: there is no ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--threads"], "--threads runs one schedule on real threads: give its token with --replay"),
        (["--replay=x", "--scenario=abort"], "leave --scenario out"),
        (["--replay=x", "--quick"], "leave --quick out"),
        (["--replay=x", "--output-format=html"], "--replay has no page: take the format text or json"),
        (["--scenario=abrt"], "--scenario abrt: there is no such scenario; did you mean abort?"),
        (["--scenario=x"], "--scenario x: there is no such scenario; `kvlint explore --list-scenarios` lists them"),
        (["--installed=sglang", "tree"], "ROOT and --installed name a tree each: give one of them"),
        (["--memory-limit=10"], "--memory-limit 10: nothing can be loaded in less than 256 MiB"),
        (["--time-limit=inf"], "--time-limit inf: give a number of seconds"),
        (["--time-limit=nan"], "--time-limit nan: give a number of seconds"),
        (["--time-limit=0"], "0.0 is not in the range x>0"),
        (["--max-states=0"], "0 is not in the range x>=1"),
        (["a", "b"], "unexpected extra argument"),
    ],
)
def test_wrong_usage_is_status_2_and_runs_nothing(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.setattr(run_module, "explore", lambda *_: pytest.fail("it was run"))
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ({"greenlet"}, "kvlint explore needs greenlet: pip install 'flake8-kvlint[explore]'"),
        ({"greenlet", "numpy"}, "kvlint explore needs greenlet and numpy: pip install 'flake8-kvlint[explore]'"),
    ],
)
def test_a_missing_extra_is_named(
    tree: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch, missing: set[str], words: str
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name in missing else real(name))
    result = invoke("tree")
    assert result.exit_code == 2
    assert words in result.stderr


def test_scenarios_and_properties_are_listed(invoke: Invoke) -> None:
    result = invoke("--list-scenarios")
    assert result.exit_code == 0
    words = [line.split()[0] for line in result.stdout.splitlines() if line.startswith("  ")]
    assert words == [*(entry.name for entry in SCENARIOS), *PROPERTIES]
    assert "(needs the scheduler)" in result.stdout


def test_what_the_tree_prints_is_a_warning(tree: Path, invoke: Invoke) -> None:
    minitree.write(tree, in_worker("import sys\nsys.stdout.write('hello\\n')\nsys.stdout.flush()\n"))
    plain = invoke("tree", "--scenario=abort")
    assert (plain.exit_code, plain.stderr) == (0, "warning: the tree's code printed 6 bytes (1 line)\n")
    assert invoke("tree", "--scenario=abort", "--verbose").stderr == plain.stderr + "hello\n"
    assert invoke("tree", "--scenario=abort", "--quiet").stderr == ""


def test_a_limit_is_status_3(tree: Path, invoke: Invoke) -> None:
    minitree.write(tree, in_worker("import os\nos._exit(5)\n"))
    result = invoke("tree", "--scenario=abort")
    assert result.exit_code == 3
    assert "\n  the tree's code ended the process, with exit status 5\n" in result.stdout


def test_a_process_that_cannot_be_started_is_status_2(
    tree: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tree / "python"))
    result = invoke("tree", "--scenario=abort")
    assert result.exit_code == 2
    assert result.stderr == "error: the process that explores cannot be started: No such file or directory\n"


def test_an_interrupt_is_status_130(tree: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run_module, "explore", interrupted)
    result = invoke("tree")
    assert (result.exit_code, result.stdout) == (130, "")


def test_a_page_is_made_by_its_module(tree: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    def render_html(exploration: Exploration) -> str:
        return f"<p>{exploration.tree}</p>"

    monkeypatch.setitem(sys.modules, "kvlint.explore.report.html", SimpleNamespace(render_html=render_html))
    result = invoke("tree", "--scenario=abort", "--output-format=html", "--output=page.html")
    assert (result.exit_code, result.stdout) == (0, "")
    assert Path("page.html").read_text() == "<p>tree</p>"


def test_an_installed_distribution_is_found(tree: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [importlib.metadata.PackagePath(f"sglang/{minitree.CONN}")]
    found = SimpleNamespace(files=files, locate_file=lambda file: tree / file)
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: found)
    result = invoke("--installed=sglang", "--scenario=abort")
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "tree/sglang")
    found.files = []
    result = invoke("--installed=sglang")
    assert result.exit_code == 2
    assert "--installed sglang: its metadata lists no srt/disaggregation/nixl/conn.py" in result.stderr


def test_a_distribution_that_is_not_installed_is_named(invoke: Invoke) -> None:
    result = invoke("--installed=no-such-thing")
    assert result.exit_code == 2
    assert "--installed no-such-thing: no distribution of that name is installed beside kvlint" in result.stderr


def test_the_help_says_that_code_is_run(invoke: Invoke) -> None:
    assert "THIS EXECUTES CODE OF THE TREE" in invoke("--help").stdout
    assert "executes its code" in CliRunner().invoke(cli, ["--help"]).stdout


@pytest.mark.parametrize("arguments", [["--help"], ["explore", "--help"], ["explore", "--list-scenarios"]])
def test_nothing_heavy_is_loaded_for_it(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom kvlint.cli import cli\n"
        f"cli({arguments!r}, standalone_mode=False)\n"
        "assert not {'greenlet', 'numpy', 'msgspec', 'rich', 'libcst'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)


# -- progress ---------------------------------------------------------------------


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)


def test_progress_comes_after_a_second_and_goes_away(terminal: None, capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.stderr, "isatty", lambda: True)
        with ExploreProgress(clock=lambda: now[0]) as progress:
            progress(Loaded(None, "", (), ()))
            assert capsys.readouterr().err == ""
            now[0] = 1.5
            progress(Alive())
            assert capsys.readouterr().err == "\r\x1b[Kthe tree is being loaded, 2 s"
            now[0] = 61.0
            progress(Progress("abort", 12_345, 6_789, 60.0))
            assert capsys.readouterr().err == "\r\x1b[Kabort: 12,345 states, 6,789 runs, 61 s"
        assert capsys.readouterr().err == "\r\x1b[K"


def test_progress_is_not_drawn_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    with ExploreProgress(clock=lambda: now[0]) as progress:
        now[0] = 5.0
        progress(Alive())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.stderr, "isatty", lambda: True)
        with ExploreProgress(quiet=True, clock=lambda: now[0]) as progress:
            now[0] = 9.0
            progress(Alive())
    assert capsys.readouterr().err == ""
