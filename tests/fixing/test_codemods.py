"""The LibCST commands: same edits as the fixpoint, only the named kind, for real through LibCST's own tool."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import libcst as cst
import pytest
from libcst.codemod import CodemodCommand, CodemodContext, TransformSkip, TransformSuccess, transform_module

from kvlint.diagnostics import AtomicStatus, Finding, FixPlan, Location, OpeningStatus, Severity, Span
from kvlint.fixing.edits import apply_plan
from kvlint.integrations import codemods

from .plans import PATH, STORED, drop, record, skip, sticky

ROOT = Path(__file__).parent.parent.parent
SOURCE = """\
class Poll:
    Failed = 0
    Bootstrapping = 1
    Success = 4

class Manager:
    def __init__(self):
        self.status = {}

    def update(self, room, status):
        self.status[room] = status

    def work(self):
        for room in self.rooms:
            if room not in self.infos: continue

    def abort(self, room):
        self.update(room, Poll.Failed)
        self.infos.pop(room, None)
"""
PLANS: dict[type[CodemodCommand], FixPlan] = {
    codemods.StickyTerminalCommand: sticky(10),
    codemods.RecordFailureCommand: record(10),
    codemods.SkipGuardCommand: skip(15, 40),
    codemods.DeferAbortCleanupCommand: drop(19, 9),
    codemods.OpeningStatusCommand: OpeningStatus(PATH, 10, "update", "status", STORED, ("Poll.Bootstrapping",)),
    codemods.AtomicStatusCommand: AtomicStatus(PATH, 10, 5, "self.lock", "update"),
}
PIN = '''\
"""A backend whose writer lets a stored failure be overwritten."""

import queue
import threading


class KVPoll:
    Failed = 0
    Bootstrapping = 1
    WaitingForInput = 2
    Transferring = 3
    Success = 4


class KVManager:
    def __init__(self):
        self.request_status = {}
        self.transfer_infos = {}
        self.queue = queue.Queue()
        threading.Thread(target=self.transfer_worker).start()

    def check_status(self, bootstrap_room):
        return self.request_status[bootstrap_room]

    def update_status(self, bootstrap_room, status):
        if bootstrap_room not in self.request_status:
            if status != KVPoll.Failed:
                self.request_status[bootstrap_room] = status
        elif status == KVPoll.Failed:
            self.request_status[bootstrap_room] = KVPoll.Failed
        else:
            self.request_status[bootstrap_room] = max(self.request_status[bootstrap_room], status)

    def transfer_worker(self):
        while True:
            chunk = self.queue.get()
            self.update_status(chunk.room, KVPoll.Transferring)
            if self.send(chunk):
                self.update_status(chunk.room, KVPoll.Success)
            else:
                self.update_status(chunk.room, KVPoll.Failed)
'''


def _stub(monkeypatch: pytest.MonkeyPatch, plans: list[FixPlan], path: Path) -> None:
    """A diagnosis that asks for ``plans`` as long as the text is `SOURCE`."""
    location = Location(str(path), Span(1, 1, 1, 1))

    def diagnose(overlay: Mapping[str, bytes]) -> list[Finding]:
        if overlay:
            return []
        return [Finding("KVL000", "name", Severity.ERROR, "message", location, plan=plan) for plan in plans]

    monkeypatch.setattr(codemods, "_diagnoser", lambda _path, _data: diagnose)


def _at(plan: FixPlan, path: Path) -> FixPlan:
    return type(plan)(**{name: getattr(plan, name) for name in type(plan).__dataclass_fields__} | {"path": str(path)})


@pytest.mark.parametrize("command", PLANS)
def test_command_applies_its_own_kind(
    command: type[CodemodCommand], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "conn.py"
    path.write_text(SOURCE)
    plans = {kind: _at(plan, path) for kind, plan in PLANS.items()}
    _stub(monkeypatch, list(plans.values()), path)
    result = transform_module(command(CodemodContext(filename=str(path))), SOURCE)
    assert isinstance(result, TransformSuccess)
    assert result.code.encode() == apply_plan(str(path), SOURCE.encode(), plans[command])


def test_file_without_findings_comes_back_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _stub(monkeypatch, [], tmp_path)
    tree = cst.parse_module(SOURCE)
    command = codemods.StickyTerminalCommand(CodemodContext())
    assert command.transform_module(tree).code == SOURCE


def test_fix_that_belongs_elsewhere_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _stub(monkeypatch, [_at(sticky(10), tmp_path / "base.py")], tmp_path)
    result = transform_module(codemods.StickyTerminalCommand(CodemodContext(filename="conn.py")), SOURCE)
    assert isinstance(result, TransformSuccess)
    assert result.code == SOURCE
    assert [warning.partition(": ")[2] for warning in result.warning_messages] == [
        "the fix is in this file, which is not among the paths given"
    ]


def test_edit_that_does_not_give_the_intended_table_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "conn.py"
    path.write_text(SOURCE)
    wrong = _at(sticky(10, terminals=("Poll.Failed", "Poll.Bootstrapping", "Poll.Success")), path)
    _stub(monkeypatch, [wrong], path)
    result = transform_module(codemods.StickyTerminalCommand(CodemodContext(filename=str(path))), SOURCE)
    assert isinstance(result, TransformSuccess)
    assert result.code == SOURCE
    assert [warning for warning in result.warning_messages if "would treat Bootstrapping differently" in warning]


def test_text_that_libcst_would_change_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "conn.py"
    path.write_bytes(b"x = 1\ry = 2\r")
    result = transform_module(codemods.StickyTerminalCommand(CodemodContext(filename=str(path))), "x = 1\ry = 2\r")
    assert isinstance(result, TransformSkip)


def _tool(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "libcst.tool", "codemod", "--jobs=1", "--hide-progress", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("configured", [False, True], ids=["by -x", "by configuration"])
def test_real_tool_fixes_a_folder(tmp_path: Path, configured: bool) -> None:
    (tmp_path / "conn.py").write_text(PIN)
    if configured:
        (tmp_path / ".libcst.codemod.yaml").write_text("modules: [kvlint.integrations]\nformatter: []\n")
        run = _tool(tmp_path, "--no-format", "codemods.StickyTerminalCommand", ".")
    else:
        run = _tool(tmp_path, "--no-format", "-x", "kvlint.integrations.codemods.StickyTerminalCommand", ".")
    assert run.returncode == 0, run.stderr
    assert "Transformed 1 files successfully" in run.stderr
    lines = (tmp_path / "conn.py").read_text().splitlines()
    added = [line for line in lines if line not in PIN.splitlines()]
    assert added[0].strip() == "# A stored terminal status is final."
    assert [line for line in lines if line not in added] == PIN.splitlines()


def test_a_command_of_a_rule_that_is_off_by_default_needs_no_configuration(tmp_path: Path) -> None:
    path = tmp_path / "conn.py"
    source = (
        PIN
        + """
    def clear(self, room):
        self.request_status.pop(room, None)
"""
    )
    path.write_text(source)
    result = transform_module(codemods.AtomicStatusCommand(CodemodContext(filename=str(path))), source)
    assert isinstance(result, TransformSuccess)
    assert result.code.count("with self._status_lock:") == 2
    assert "import queue\nimport threading\n" in result.code
