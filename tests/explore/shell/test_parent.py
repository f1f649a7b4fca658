"""What the process that explores gets from the one that starts it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import kvlint
from kvlint.explore.events import FailureKind
from kvlint.explore.parent import Limits, Printed, Process, StartError
from kvlint.explore.request import Request
from kvlint.explore.results import Verdict
from kvlint.explore.run import explore
from kvlint.loading.processes import environment, import_path

from .trees import SESSION, Explore, in_worker


def test_the_environment_is_short_and_its_own() -> None:
    given = {"PATH": "/bin", "LC_ALL": "C", "SECRET": "x", "PYTHONPATH": "y", "PYTHONHASHSEED": "7", "TMPDIR": "/tmp"}
    made = environment(given, "/folder")
    assert made["PATH"] == "/bin"
    assert made["LC_ALL"] == "C"
    assert made["TMPDIR"] == "/folder"
    assert made["PYTHONHASHSEED"] == "0"
    assert not {"SECRET", "PYTHONPATH"} & made.keys()


def test_the_current_folder_is_not_imported_from(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = str(Path(kvlint.__file__).parent.parent)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), "/elsewhere"])
    assert import_path() == ["/elsewhere", own]
    monkeypatch.setattr(sys, "path", [own, "/elsewhere"])
    assert import_path() == [own, "/elsewhere"]
    # In a checkout of kvlint it has to be, and goes last.
    monkeypatch.chdir(own)
    assert import_path() == ["/elsewhere", own]


def test_a_module_of_the_current_folder_is_not_taken(
    explored: Explore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "faulthandler.py").write_text("raise RuntimeError('taken from the current folder')")
    (tmp_path / "kvlint.py").write_text("raise RuntimeError('taken from the current folder')")
    monkeypatch.chdir(tmp_path)
    assert explored().verdict is Verdict.HOLDS


def test_the_tree_sees_another_current_folder_no_less(explored: Explore, tmp_path: Path) -> None:
    code = f"import os\nassert os.getcwd() == {os.getcwd()!r}\n"
    assert explored(in_worker(code)).verdict is Verdict.HOLDS


def test_a_process_that_cannot_start_is_a_defect(tmp_path: Path) -> None:
    outcome = explore(Request(root=str(tmp_path), scenarios=("abort",)), session=SESSION, path=["/nowhere"])
    assert outcome.failure is not None
    assert outcome.failure.kind is FailureKind.CRASH
    assert outcome.failure.message.startswith("the process that explores could not start: it ended with")
    assert "Error" in outcome.failure.details
    assert outcome.printed.size == 0


def test_an_interpreter_that_is_not_there_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    refused = pytest.raises(StartError, match="cannot be started: No such file or directory")
    with refused, Process(Request(root="x", scenarios=()), Limits(), Printed()):
        pytest.fail("it was entered")
    assert not before or len(os.listdir("/proc/self/fd")) == before


def test_the_beginning_of_what_is_printed_is_kept() -> None:
    printed = Printed()
    for _ in range(3):
        printed.add(b"a" * 3000 + b"\n")
    assert (printed.size, printed.lines, len(printed.head)) == (9003, 3, 4096)


def test_a_session_that_tells_too_little_is_a_defect(explored: Explore) -> None:
    outcome = explored(session="tests.explore.shell.silent_session")
    assert outcome.failure is not None
    assert outcome.failure.kind is FailureKind.CRASH
    (result,) = outcome.exploration.scenarios
    assert result.verdict is Verdict.INCONCLUSIVE


def test_a_defect_of_a_session_ends_it(explored: Explore) -> None:
    outcome = explored(None, "abort", "two-rooms", session="no_such_session")
    assert outcome.failure is not None
    assert outcome.failure.kind is FailureKind.CRASH
    assert outcome.exploration.scenarios == ()


def test_a_replay_that_ends_otherwise_is_told(explored: Explore) -> None:
    from .trees import at_import

    outcome = explored(at_import("import os\nos._exit(4)\n"), replay="good")
    assert outcome.failure is not None
    assert outcome.failure.kind is FailureKind.LIMIT
    assert outcome.failure.message == "the tree's code ended the process, with exit status 4"
