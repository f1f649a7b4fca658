"""A writer is only edited if its re-computed transition table is the one that the edit promises."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import kvlint
from kvlint.analysis.verification import unintended
from kvlint.config import Config
from kvlint.diagnostics import AtomicStatus, FixPlan, OpeningStatus, RecordFailure, SkipGuard, StickyTerminal
from kvlint.fixing import edits
from kvlint.fixing.edits import apply_plan
from kvlint.fixing.region import Region
from kvlint.fixing.sticky_terminal import make_sticky

if TYPE_CHECKING:
    import libcst as cst

BACKEND = """\
import threading


class Poll:
    Failed = 0
    Bootstrapping = 1
    Transferring = 2
    Success = 3


class Manager:
    def __init__(self):
        self.statuses = {}
        threading.Thread(target=self.work).start()

    def check(self, room):
        return self.statuses[room]

    def update(self, room, status):
        self.statuses[room] = WRITTEN

    def work(self):
        while True:
            chunk = self.queue.get()
            self.update(chunk.room, Poll.Transferring)
            self.engine.send(chunk.pages)
            self.update(chunk.room, Poll.Success)
"""
WEAK = BACKEND.replace("WRITTEN", "status")
LOSING = BACKEND.replace("WRITTEN", "max(self.statuses.get(room, status), status)")
LINE = BACKEND[: BACKEND.index("def update")].count("\n") + 1
TERMINALS = ("Poll.Failed", "Poll.Success")
STORED = "self.statuses.get(room)"


def sticky(path: str, terminals: tuple[str, ...] = TERMINALS, function: str = "update") -> StickyTerminal:
    return StickyTerminal(path, LINE, function, STORED, terminals)


def recording(path: str, calm: tuple[str, ...] = ("None", *TERMINALS)) -> RecordFailure:
    return RecordFailure(
        path, LINE, "update", "status", STORED, calm, "Poll.Failed", "self.statuses[room] = Poll.Failed"
    )


def verdict(source: str, plan: FixPlan, after: str | None = None) -> str | None:
    """What verification says to ``plan`` carried out on ``source``, or to ``after`` as its outcome."""
    text = apply_plan(plan.path, source.encode(), plan) if after is None else after.encode()
    return unintended(plan, {plan.path: source.encode()}, {plan.path: text}, Config())


def test_an_edit_that_keeps_its_promise(tmp_path: Path) -> None:
    path = str(tmp_path / "a.py")
    assert verdict(WEAK, sticky(path)) is None
    assert verdict(LOSING, sticky(path)) is None
    assert verdict(LOSING, recording(path)) is None


def test_terminal_statuses_that_are_not_kept(tmp_path: Path) -> None:
    reason = verdict(WEAK, sticky(str(tmp_path / "a.py"), ("Poll.Success",)))
    assert reason is not None
    assert reason.startswith("update would not keep Failed: ")


def test_live_statuses_that_are_kept_as_well(tmp_path: Path) -> None:
    path = str(tmp_path / "a.py")
    reason = verdict(WEAK, sticky(path, (*TERMINALS, "Poll.Transferring")))
    assert reason is not None
    assert reason.startswith("update would treat Transferring differently: ")
    reason = verdict(WEAK, sticky(path, (*TERMINALS, "None")))
    assert reason is not None
    assert reason.startswith("update would treat an absent room differently: ")


def test_failures_that_are_still_lost(tmp_path: Path) -> None:
    reason = verdict(LOSING, recording(str(tmp_path / "a.py"), ("None", "Poll.Bootstrapping", *TERMINALS)))
    assert reason is not None
    assert reason.startswith("update still loses failures: ")


@pytest.mark.parametrize("after", ["class Manager(:\n", "x = 1\n", WEAK.replace("def update(", "def renamed(")])
def test_a_writer_that_is_gone(after: str, tmp_path: Path) -> None:
    assert verdict(WEAK, sticky(str(tmp_path / "a.py")), after) == "update is no status writer any more"


def test_other_edits_change_no_writer(tmp_path: Path) -> None:
    path = str(tmp_path / "a.py")
    plan = SkipGuard(path, 27, 13, False, STORED, ("None", *TERMINALS), None, "self.update(room, Poll.Failed)")
    assert verdict(WEAK, plan, "broken(") is None


def test_the_nearest_of_two_writers_is_meant(tmp_path: Path) -> None:
    twin = WEAK[WEAK.index("class Manager") :].replace("Manager", "Other")
    assert verdict(WEAK + "\n\n" + twin, sticky(str(tmp_path / "a.py"))) is None


def test_fix_drops_an_edit_that_breaks_its_promise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").write_text(WEAK)
    codes = {finding.code for finding in kvlint.check([tmp_path], Config())}
    assert codes == {"KVL001", "KVL004"}

    def keep_everything(region: Region, plan: StickyTerminal) -> cst.Module:
        return make_sticky(region, sticky(plan.path, (*plan.terminals, "Poll.Bootstrapping")))

    monkeypatch.setattr(edits, "make_sticky", keep_everything)
    run = kvlint.fix([tmp_path], config=Config())
    assert run.changes == ()
    assert {finding.code for finding in run.report.findings} == codes
    (refusal,) = run.refused
    assert refusal.path == str(tmp_path / "a.py")
    assert "would treat Bootstrapping differently" in refusal.reason
    assert (tmp_path / "a.py").read_text() == WEAK


def opening(path: str, *members: str) -> OpeningStatus:
    return OpeningStatus(path, LINE, "update", "status", STORED, members)


def test_rooms_that_are_still_created(tmp_path: Path) -> None:
    path = str(tmp_path / "a.py")
    assert verdict(WEAK, opening(path, "Poll.Bootstrapping")) is None
    reason = verdict(WEAK, opening(path, "Poll.Bootstrapping"), WEAK)
    assert reason is not None
    assert reason.startswith("update would still create a room from Failed: ")
    reason = verdict(WEAK, opening(path, "Poll.Bootstrapping"), WEAK.replace("= status", "= None"))
    assert reason is not None


def test_a_lock_that_changes_what_a_writer_does(tmp_path: Path) -> None:
    path = str(tmp_path / "a.py")
    plan = AtomicStatus(path, LINE, 5, "self.lock", "update")
    assert verdict(WEAK, plan) is None
    reason = verdict(WEAK, plan, LOSING)
    assert reason is not None
    assert reason.startswith("update would treat ")
    assert verdict(WEAK, AtomicStatus(path, LINE, 5, "self.lock"), LOSING) is None
