"""The edits that findings of small modules ask for, in the terms of the file to be edited."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

import kvlint
from kvlint.config import Config, ProtocolOverride
from kvlint.diagnostics import DeferAbortCleanup, FixPlan, RecordFailure, SkipGuard, StickyTerminal

POLL = """\
class Poll:
    Failed = 0
    Waiting = 1
    Transferring = 2
    Done = 3
"""
STICKY = """
    def update_status(self, room, status: Poll):
        if self.request_status.get(room) not in (Poll.Failed, Poll.Done):
            self.request_status[room] = status
"""
BASE = """
class Base:
    def __init__(self):
        self.request_status = {}
        self.infos = {}

    def forget(self, room):
        self.infos.pop(room, None)

    def open(self, room):
        self.infos[room] = None
        self.request_status[room] = Poll.Waiting
"""


def plans(folder: Path, name: str, code: str, config: Config | None = None, **sources: str) -> list[FixPlan | None]:
    """The plans of the findings ``code`` in the module ``name``."""
    for module, source in sources.items():
        (folder / f"{module}.py").write_text(textwrap.dedent(source))
    findings = kvlint.check([folder / f"{name}.py"], config or Config())
    return [finding.plan for finding in findings if finding.code == code]


def only(found: list[FixPlan | None]) -> FixPlan | None:
    (plan,) = found
    return plan


WRITER_OF_A_SUBCLASS = """
class Manager(Base):
    def update_status(self, room, status{annotation}):
        self.request_status[room] = {value}
"""


def test_the_enum_is_named_where_only_its_class_is_imported(tmp_path: Path) -> None:
    source = "from base import Base, Poll\n" + WRITER_OF_A_SUBCLASS.format(annotation=": Poll", value="status")
    plan = only(plans(tmp_path, "backend", "KVL004", base=POLL + BASE, backend=source))
    assert isinstance(plan, StickyTerminal)
    assert plan.terminals == ("Poll.Failed", "Poll.Done")
    assert plan.stored == "self.request_status.get(room)"


@pytest.mark.parametrize(("code", "value"), [("KVL004", "status"), ("KVL005", "max(status, 1)")])
def test_no_edit_where_the_enum_has_no_name(code: str, value: str, tmp_path: Path) -> None:
    base = POLL + BASE + STICKY
    source = "from base import Base\n" + WRITER_OF_A_SUBCLASS.format(annotation="", value=value)
    assert only(plans(tmp_path, "backend", code, base=base, backend=source)) is None


def test_the_wrong_definition_is_the_base_s(tmp_path: Path) -> None:
    source = (
        POLL
        + BASE
        + """
    def update_status(self, room, status: Poll):
        self.request_status[room] = status


class Middle(Base):
    def update_status(self, room, status: Poll):
        super().update_status(room, status)


class Manager(Middle):
    def update_status(self, room, status: Poll):
        super().update_status(room, status)

    def run(self, room):
        self.update_status(room, Poll.Transferring)

    def fail(self, room):
        self.update_status(room, Poll.Failed)
"""
    )
    plan = only(plans(tmp_path, "backend", "KVL001", backend=source))
    assert isinstance(plan, StickyTerminal)
    assert plan.line == source.splitlines().index("    def update_status(self, room, status: Poll):") + 1


def test_the_wrong_definition_is_the_override(tmp_path: Path) -> None:
    source = (
        POLL
        + BASE
        + STICKY
        + """

class Manager(Base):
    def update_status(self, room, status: Poll):
        super().update_status(room, status)
        if status == Poll.Transferring:
            self.request_status[room] = status

    def run(self, room):
        self.update_status(room, Poll.Transferring)

    def fail(self, room):
        self.update_status(room, Poll.Failed)
"""
    )
    plan = only(plans(tmp_path, "backend", "KVL001", backend=source))
    assert isinstance(plan, StickyTerminal)
    assert plan.line > source.splitlines().index("class Manager(Base):")


def test_a_status_that_the_object_keeps_for_itself(tmp_path: Path) -> None:
    source = (
        POLL
        + """

class Session:
    def __init__(self):
        self.status = Poll.Waiting

    def update(self, status: Poll):
        status = max(self.status, status)
        self.status = status

    def run(self):
        self.update(Poll.Transferring)

    def fail(self):
        self.update(Poll.Failed)
"""
    )
    (tmp_path / "backend.py").write_text(source)
    kinds = {finding.code: finding.plan for finding in kvlint.check([tmp_path / "backend.py"], Config())}
    sticky, record = kinds["KVL004"], kinds["KVL005"]
    assert isinstance(sticky, StickyTerminal)
    assert sticky.stored == "self.status"
    assert isinstance(record, RecordFailure)
    assert (record.store, record.calm) == ("self.status = Poll.Failed", ("Poll.Failed", "Poll.Done"))


WORKER = """
    def worker(self):
        while True:
            chunk = self.chunks.get()
            room = chunk.room
            if room not in self.infos:
                continue
            {conclude}
"""


def skip_guard(folder: Path, source: str, config: Config | None = None) -> SkipGuard:
    plan = only(plans(folder, "backend", "KVL002", config, backend=source))
    assert isinstance(plan, SkipGuard)
    return plan


def test_the_arguments_of_a_writer_in_another_order(tmp_path: Path) -> None:
    writer = STICKY.replace("room, status: Poll", "status: Poll, room")
    source = POLL + BASE + writer + WORKER.format(conclude="self.update_status(Poll.Done, room)")
    assert skip_guard(tmp_path, source).conclude == "self.update_status(room=room, status=Poll.Failed)"


def test_a_coroutine_is_awaited(tmp_path: Path) -> None:
    writer = STICKY.replace("def update", "async def update")
    worker = WORKER.replace("def worker", "async def worker").format(
        conclude="await self.update_status(room, Poll.Done)"
    )
    assert skip_guard(tmp_path, POLL + BASE + writer + worker).conclude == (
        "await self.update_status(room, Poll.Failed)"
    )


def test_a_protocol_without_a_writer_is_stored_into(tmp_path: Path) -> None:
    source = POLL + BASE + WORKER.format(conclude="self.request_status[room] = Poll.Done")
    assert skip_guard(tmp_path, source).conclude == "self.request_status[room] = Poll.Failed"


def test_a_helper_that_never_speaks_of_the_status(tmp_path: Path) -> None:
    worker = """
    def worker(self):
        while True:
            self.serve(self.chunks.get())

    def serve(self, chunk):
        if chunk.room not in self.infos:
            return
        self.finish(chunk.room)

    def finish(self, room):
        self.update_status(room, Poll.Done)
"""
    plan = skip_guard(tmp_path, POLL + BASE + STICKY + worker)
    assert plan.stored == "self.request_status.get(chunk.room)"
    assert plan.conclude == "self.update_status(chunk.room, Poll.Failed)"


def test_a_function_that_reads_the_table(tmp_path: Path) -> None:
    worker = """

def worker(manager: Base):
    while True:
        chunk = manager.chunks.get()
        if chunk.room not in manager.infos:
            continue
        print(manager.request_status.get(chunk.room))
        finish(manager, chunk)


def finish(manager: Base, chunk):
    manager.update_status(chunk.room, Poll.Done)
"""
    assert skip_guard(tmp_path, POLL + BASE + STICKY + worker).conclude == (
        "manager.update_status(chunk.room, Poll.Failed)"
    )


def test_a_function_that_names_no_owner_gets_no_guard(tmp_path: Path) -> None:
    worker = """

def worker(manager: Base):
    while True:
        chunk = manager.chunks.get()
        if chunk.room not in manager.infos:
            continue
        finish(manager, chunk)


def finish(manager: Base, chunk):
    manager.update_status(chunk.room, Poll.Done)
"""
    assert only(plans(tmp_path, "backend", "KVL002", backend=POLL + BASE + STICKY + worker)) is None


def test_the_first_writer_that_stores_is_called(tmp_path: Path) -> None:
    passing = """
    def conclude(self, room, status: Poll):
        self.update_status(room, status)
"""
    source = POLL + BASE + passing + STICKY + WORKER.format(conclude="self.conclude(room, Poll.Done)")
    assert skip_guard(tmp_path, source).conclude == "self.update_status(room, Poll.Failed)"


def test_a_table_of_the_same_name_elsewhere(tmp_path: Path) -> None:
    worker = """
    def worker(self):
        while True:
            chunk = self.chunks.get()
            if chunk.room not in self.infos:
                continue
            print(chunk.request_status, self.request_status)
            self.request_status[chunk.room] = Poll.Done
"""
    assert skip_guard(tmp_path, POLL + BASE + worker).conclude == "self.request_status[chunk.room] = Poll.Failed"


def test_a_writer_that_leaves_the_store_to_a_helper(tmp_path: Path) -> None:
    forcing = """

class Manager(Base):
    def update_status(self, room, status: Poll):
        if status == Poll.Transferring:
            self.force(room, status)
        else:
            super().update_status(room, status)

    def force(self, room, status):
        self.request_status[room] = status
"""
    plan = plans(tmp_path, "backend", "KVL004", backend=POLL + BASE + STICKY + forcing)[0]
    assert isinstance(plan, StickyTerminal)
    assert plan.stored == "self.request_status.get(room)"


RECORDERS = """
    def fail_note(self, room, reason):
        print(room, reason)

    def keep(self, room, reason):
        self.errors[room] = reason

    def record_error(self, room, reason):
        self.errors[room] = reason
"""


def test_the_reason_is_recorded_by_what_keeps_it(tmp_path: Path) -> None:
    source = POLL + BASE + STICKY + RECORDERS + WORKER.format(conclude="self.update_status(room, Poll.Done)")
    record = skip_guard(tmp_path, source).record
    assert record is not None
    assert record.startswith('self.record_error(room, "')
    config = Config(protocol=(ProtocolOverride(failure_recorder="nowhere"), ProtocolOverride(failure_recorder="keep")))
    record = skip_guard(tmp_path, source, config).record
    assert record is not None
    assert record.startswith('self.keep(room, "')


ABORT = """
    def abort(self, room):
        self.infos.pop(room, None)
"""


def test_a_removal_is_deferred_only_if_another_one_follows(tmp_path: Path) -> None:
    worker = WORKER.format(conclude="self.update_status(room, Poll.Done)")
    lasting = POLL + BASE.replace("forget", "keep").replace("self.infos.pop(room, None)", "pass") + STICKY
    assert only(plans(tmp_path, "backend", "KVL003", backend=lasting + ABORT + worker)) is None
    clearing = """
    def clear(self, room):
        self.request_status.pop(room, None)
        self.infos.pop(room, None)
"""
    plan = only(plans(tmp_path, "backend", "KVL003", backend=lasting + ABORT + clearing + worker))
    assert isinstance(plan, DeferAbortCleanup)


def test_roles_from_the_configuration(tmp_path: Path) -> None:
    source = """
        class Poll:
            Lost = 0
            Waiting = 1
            Over = 2


        class Phase:
            Failed = 0
            Waiting = 1
            Done = 2


        class Manager:
            def __init__(self):
                self.table = {}
                self.phase = Phase.Waiting
                self.others = {}

            def put(self, room, poll):
                self.table[room] = poll

            def touch(self, room, end):
                print(room, end)

            def note(self, room, poll: Poll):
                self.others[room] = poll
                self.others[room] = Poll.Waiting
        """
    config = Config(
        protocol=(
            ProtocolOverride(status_enum="Poll", failure=("Lost",), success=("Over",), table="table", writer="put"),
        )
    )
    assert plans(tmp_path, "backend", "KVL004", backend=source) == []
    plan = only(
        plans(tmp_path, "backend", "KVL004", config, backend=source.replace("room, poll):", "room, poll: Poll):"))
    )
    assert isinstance(plan, StickyTerminal)
    assert (plan.function, plan.terminals) == ("put", ("Poll.Lost", "Poll.Over"))
    nothing = Config(
        protocol=(ProtocolOverride(status_enum="Poll", failure=("Lost",), success=("Over",), writer="touch"),)
    )
    plan = only(plans(tmp_path, "backend", "KVL004", nothing))
    assert isinstance(plan, StickyTerminal)
    assert plan.function == "note"
