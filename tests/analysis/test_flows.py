"""The schedules that findings tell of: who does what, in which order, on which thread."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

import kvlint
from kvlint.config import default_config
from kvlint.diagnostics import Finding

RULES = Path(__file__).parent.parent.parent / "fixtures" / "rules"

HEAD = """\
import threading


class Poll:
    Failed = 0
    Waiting = 1
    Transferring = 2
    Success = 3


class Manager:
    def __init__(self):
        self.request_status = {}
        self.transfer_infos = {}
        threading.Thread(target=self.worker).start()
        threading.Thread(target=self.listener).start()
"""
WEAK = """\
    def update_status(self, room, status: Poll):
        if room in self.request_status and status != Poll.Failed:
            status = max(self.request_status[room], status)
        self.request_status[room] = status
"""
STICKY = """\
    def update_status(self, room, status: Poll):
        if self.request_status.get(room) not in (Poll.Failed, Poll.Success):
            self.request_status[room] = status
"""
QUIET_LISTENER = """\
    def listener(self):
        while True:
            self.socket.recv_multipart()
"""
FAILING_LISTENER = """\
    def listener(self):
        while True:
            message = self.socket.recv_multipart()
            self.update_status(int(message[1]), Poll.Failed)
"""
POPPING_LISTENER = """\
    def listener(self):
        while True:
            message = self.socket.recv_multipart()
            if message[0] == b"ABORT":
                self.transfer_infos.pop(int(message[1]), None)
"""


def findings(tmp_path: Path, *parts: str) -> dict[str, Finding]:
    """The first finding of each code in the backend that ``parts`` make."""
    path = tmp_path / "conn.py"
    path.write_text("\n".join((HEAD, *parts)))
    found = kvlint.check([str(path)], config=default_config())
    return {finding.code: finding for finding in reversed(found)}


def told(finding: Finding, tmp_path: Path) -> list[tuple[int, str, str, str]]:
    """(order, thread, source line, message) of each step, in order."""
    lines = (tmp_path / "conn.py").read_text().split("\n")
    return sorted(
        (step.order, flow.thread, lines[step.location.span.line - 1].strip(), step.message)
        for flow in finding.flows
        for step in flow.steps
    )


def worker(body: str) -> str:
    return "    def worker(self):\n        while True:\n            chunk = self.queue.get()\n" + textwrap.indent(
        textwrap.dedent(body), " " * 12
    )


TRANSFER = """\
    self.update_status(chunk.room, Poll.Transferring)
    if chunk.is_last:
        self.update_status(chunk.room, Poll.Success)
"""


def test_another_thread_stores_the_failure_that_a_write_replaces(tmp_path: Path) -> None:
    found = findings(tmp_path, WEAK, FAILING_LISTENER, worker(TRANSFER))
    assert told(found["KVL001"], tmp_path) == [
        (1, "listener", "self.update_status(int(message[1]), Poll.Failed)", "Manager.listener stores Failed"),
        (2, "worker", "self.update_status(chunk.room, Poll.Transferring)", "Manager.worker writes Transferring"),
        (
            3,
            "worker",
            "def update_status(self, room, status: Poll):",
            "Manager.update_status lets Transferring replace Failed",
        ),
    ]


def test_one_thread_may_do_both(tmp_path: Path) -> None:
    body = TRANSFER + "    if chunk.bad:\n        self.update_status(chunk.room, Poll.Failed)\n"
    finding = findings(tmp_path, WEAK, QUIET_LISTENER, worker(body))["KVL001"]
    (flow,) = finding.flows
    assert flow.thread == "worker"
    assert [step.order for step in flow.steps] == [1, 2, 3]
    assert flow.steps[0].message == "Manager.worker stores Failed"


def test_no_schedule_where_nobody_is_known_to_store_the_failure(tmp_path: Path) -> None:
    finding = findings(tmp_path, WEAK, QUIET_LISTENER, worker(TRANSFER))["KVL001"]
    assert finding.flows == ()


def test_a_direct_store_has_no_writer_to_tell_of(tmp_path: Path) -> None:
    body = TRANSFER.replace(
        "self.update_status(chunk.room, Poll.Transferring)", "self.request_status[chunk.room] = Poll.Transferring"
    )
    steps = told(findings(tmp_path, STICKY, FAILING_LISTENER, worker(body))["KVL001"], tmp_path)
    assert steps[1:] == [
        (
            2,
            "worker",
            "self.request_status[chunk.room] = Poll.Transferring",
            "Manager.worker writes Transferring straight into request_status: Failed is replaced",
        )
    ]


DROP = """\
    if chunk.room not in self.transfer_infos:
        continue
    self.update_status(chunk.room, Poll.Success)
"""


@pytest.mark.parametrize("code", ["KVL002", "KVL003"])
def test_a_removal_and_the_drop_that_it_makes(code: str, tmp_path: Path) -> None:
    steps = told(findings(tmp_path, STICKY, POPPING_LISTENER, worker(DROP))[code], tmp_path)
    assert [step[:3] for step in steps] == [
        (1, "listener", "self.transfer_infos.pop(int(message[1]), None)"),
        (2, "worker", "chunk = self.queue.get()"),
        (3, "worker", "if chunk.room not in self.transfer_infos:"),
        (4, "worker", "continue"),
    ]
    assert steps[0][3].startswith("Manager.listener removes the room from transfer_infos: ")
    assert steps[2][3] == "Manager.worker finds the room missing from transfer_infos"
    assert steps[3][3].startswith("Manager.worker gives the item up while the status may be Waiting or Transferring: ")


def test_the_worker_itself_may_remove_the_room(tmp_path: Path) -> None:
    body = "    if chunk.is_stale:\n        self.transfer_infos.pop(chunk.room, None)\n        continue\n" + DROP
    found = findings(tmp_path, STICKY, QUIET_LISTENER, worker(body))
    (flow,) = found["KVL002"].flows
    assert flow.thread == "worker"
    assert [step.order for step in flow.steps] == [1, 2, 3, 4]
    assert "removes the room" in flow.steps[0].message


def test_a_caught_exception_drops_the_item(tmp_path: Path) -> None:
    body = """\
    try:
        self.engine.post(chunk.pages)
        self.update_status(chunk.room, Poll.Success)
    except Exception:
        log()
        continue
"""
    steps = told(findings(tmp_path, STICKY, QUIET_LISTENER, worker(body))["KVL002"], tmp_path)
    assert [step[:2] for step in steps] == [(1, "worker"), (2, "worker"), (3, "worker")]
    assert steps[1][3] == "Manager.worker catches an exception"


def test_the_status_decides(tmp_path: Path) -> None:
    body = """\
    if self.request_status.get(chunk.room) == Poll.Waiting:
        continue
    self.update_status(chunk.room, Poll.Success)
"""
    steps = told(findings(tmp_path, STICKY, QUIET_LISTENER, worker(body))["KVL002"], tmp_path)
    assert steps[1][3] == "Manager.worker decides by the status"


def test_an_item_that_is_dropped_by_falling_through_has_no_step_for_it(tmp_path: Path) -> None:
    body = "    if chunk.room in self.transfer_infos:\n        self.update_status(chunk.room, Poll.Success)\n"
    steps = told(findings(tmp_path, STICKY, POPPING_LISTENER, worker(body))["KVL002"], tmp_path)
    assert [step[2] for step in steps[1:]] == ["chunk = self.queue.get()", "if chunk.room in self.transfer_infos:"]
    assert "gives the item up" in steps[-1][3]


def test_a_worker_that_is_started_for_one_item(tmp_path: Path) -> None:
    body = """\
    def submit(self, chunk):
        self.executor.submit(self.transfer, chunk)

    def transfer(self, chunk):
        if chunk.room not in self.transfer_infos:
            return
        self.update_status(chunk.room, Poll.Success)
"""
    steps = told(findings(tmp_path, STICKY, POPPING_LISTENER, body)["KVL002"], tmp_path)
    assert steps[1][2:] == (
        "def transfer(self, chunk):",
        "Manager.transfer is started for a work item of the room",
    )


def test_the_schedules_of_all_fixtures_are_in_order() -> None:
    """Steps are numbered from 1 without a gap, each thread acts in order, and the finding's own place is among them."""
    found = kvlint.check([str(RULES)], config=default_config())
    with_flows = [finding for finding in found if finding.flows]
    assert {finding.code for finding in with_flows} == {"KVL001", "KVL002", "KVL003"}
    for finding in with_flows:
        orders = [[step.order for step in flow.steps] for flow in finding.flows]
        assert all(thread == sorted(thread) for thread in orders)
        assert sorted(order for thread in orders for order in thread) == list(range(1, sum(map(len, orders)) + 1))
        assert len({flow.thread for flow in finding.flows}) == len(finding.flows)
        assert finding.location in [step.location for flow in finding.flows for step in flow.steps]
    assert all(finding.flows for finding in found if finding.code in {"KVL002", "KVL003"})
