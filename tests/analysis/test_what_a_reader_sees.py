"""Roles, threads, abort handlers and touches of tables, as they are found in small modules."""

from __future__ import annotations

import ast
import sys
import textwrap
from pathlib import Path

import pytest

import kvlint
from kvlint.analysis import interpreter
from kvlint.analysis.access import accesses
from kvlint.analysis.conclusions import Reach
from kvlint.analysis.evidence import enums_in
from kvlint.analysis.facts import Facts, facts_of
from kvlint.analysis.handlers import abort_handlers, thread_roots
from kvlint.analysis.infer import subject_of
from kvlint.analysis.removals import Verdict, removal_sites
from kvlint.analysis.roles import bases_in_doubt, readers_of, terminal_helpers_of
from kvlint.analysis.values import ABSENT, UNDECIDED
from kvlint.config import Config
from kvlint.semantics.hierarchy import ClassInfo, resolve_class
from kvlint.semantics.world import World

from .small_backends import behind_the_protocol

POLL = """\
import threading


class Poll:
    Failed = 0
    Waiting = 1
    Done = 2
"""
MANAGER = """

class Manager:
    def __init__(self):
        self.request_status = {}
        self.infos = {}

    def check_status(self, room):
        return self.request_status[room]

    def update_status(self, room, status: Poll):
        self.request_status[room] = status
"""


def facts(source: str) -> Facts:
    path = "/nowhere/backend.py"
    return facts_of(path, World(Config(), overlay={path: source.encode()}))


def a_class(of: Facts, name: str) -> ClassInfo:
    cls = resolve_class(of.world, of.module, name)
    assert cls is not None
    return cls


def test_marks_say_what_they_are() -> None:
    assert (repr(ABSENT), repr(UNDECIDED)) == ("ABSENT", "UNDECIDED")


# -- who touches which table ---------------------------------------------------------


TOUCHES = """

class Other:
    def check_status(self, room):
        return self.request_status.get(room)


class User:
    def __init__(self, manager: Manager, other: Other):
        self.manager = manager
        self.other = other

    def use(self, room, peer):
        self.manager.check_status(room)
        self.other.check_status(room)
        self.manager.request_status[room] = Poll.Waiting
        self.other.infos.pop(room)
        del self.manager.infos[room]
        self.manager.infos[room][peer] = 1
        self.manager.infos.get(room)[peer] = 2
        self.manager.infos.setdefault(room, {}).update(peer)
        made()[room] = 3
"""


def test_every_touch_of_a_table_is_told() -> None:
    source = POLL + MANAGER + TOUCHES
    found = facts(source)
    lines = source.splitlines()
    touches = {
        (lines[access.node.lineno - 1].strip(), access.table, access.touch.value)  # type: ignore[attr-defined]
        for access in accesses(found.world, (found.module,), a_class(found, "Manager"), frozenset({"infos"}))
        if access.place.name == "use"
    }
    assert touches == {
        ("self.manager.check_status(room)", "request_status", "read"),
        ("self.manager.request_status[room] = Poll.Waiting", "request_status", "written"),
        ("del self.manager.infos[room]", "infos", "removed"),
        ("self.manager.infos[room][peer] = 1", "infos", "written"),
        ("self.manager.infos.get(room)[peer] = 2", "infos", "written"),
        ("self.manager.infos.setdefault(room, {}).update(peer)", "infos", "written"),
    }


def test_an_object_s_own_status_is_no_table() -> None:
    source = POLL + "\n\nclass Session:\n    def update(self, status: Poll):\n        self.status = status\n"
    found = facts(source)
    assert accesses(found.world, (found.module,), a_class(found, "Session"), frozenset()) == ()


# -- threads and abort handlers ----------------------------------------------------------


def test_a_thread_subclass_is_a_root_that_no_call_starts() -> None:
    source = POLL + MANAGER + "\n\nclass Beat(threading.Thread):\n    def run(self):\n        print()\n"
    found = facts(source)
    (root,) = thread_roots(found.world, found.module)
    assert (root.place.qualified, root.thread.value, root.starts) == ("Beat.run", "background thread", ())


ABORTS = """
    def abort_all(self):
        def each(room):
            self.infos.pop(room)

        each(1)

    def listen(self, socket):
        while True:
            match socket.recv_multipart():
                case [b"ABORT", room]:
                    self._drop(room)
                    self.infos.clear()
                case [b"DONE", room]:
                    print(room)

            class Reason:
                text = "reason"

            tag = socket.recv()
            if tag != b"ABORT":
                continue
            self._drop(tag)
            print(tag)

    def _drop(self, room):
        self.infos.pop(room)
"""


def test_abort_handlers_are_told_with_their_lines_and_reasons() -> None:
    source = POLL + MANAGER + ABORTS
    found = facts(source)
    lines = source.splitlines()
    told = [
        (each.place.qualified, lines[each.first_line - 1].strip(), lines[each.last_line - 1].strip(), each.reason)
        for each in abort_handlers(found.world, found.module)
    ]
    assert told == [
        ("Manager.abort_all", "def abort_all(self):", "each(1)", "its name says so"),
        ("Manager.listen", "self._drop(room)", "self.infos.clear()", "it runs on the message tag b'ABORT'"),
        ("Manager.listen", "self._drop(tag)", "print(tag)", "it runs on the message tag b'ABORT'"),
        ("Manager._drop", "def _drop(self, room):", "self.infos.pop(room)", "an abort handler calls it"),
    ]


# -- roles ------------------------------------------------------------------------------


READERS = """

class Session:
    def __init__(self):
        self.status = Poll.Waiting

    def poll(self):
        return self.status

    def update(self, status: Poll):
        self.status = status


class Careful(Manager):
    def peek(self, room):
        return self.request_status[room] if room in self.request_status else None

    def a(self, room):
        self.b(room)

    def b(self, room):
        self.c(room)

    def c(self, room):
        self.d(room)

    def d(self, room):
        self.e(room)

    def e(self, room):
        self.update_status(room, Poll.Failed)


class Plain:
    limit = made()


class Unsure(Elsewhere):
    def fail(self):
        self.report(Poll.Failed)


class Unrelated(Elsewhere):
    def print(self):
        print(self)
"""


def test_readers_and_helpers_that_conclude() -> None:
    found = facts(POLL + MANAGER + READERS)
    assert [method.node.name for method in readers_of(a_class(found, "Session"))] == ["poll"]
    assert [method.node.name for method in readers_of(a_class(found, "Careful"))] == ["peek", "check_status"]
    helpers = {helper.method.node.name: helper.members for helper in terminal_helpers_of(a_class(found, "Careful"))}
    assert helpers == dict.fromkeys("bcde", ("Failed",))  # `a` is one call too far away
    for name in ("Plain", "Poll"):
        assert readers_of(a_class(found, name)) == ()
        assert terminal_helpers_of(a_class(found, name)) == ()
    assert terminal_helpers_of(a_class(found, "Session")) == ()


def test_bases_that_leave_a_class_in_doubt() -> None:
    found = facts(POLL + MANAGER + READERS)
    assert [cls.name for cls in bases_in_doubt(found.world, found.module)] == ["Unsure"]


def test_enums_are_found_once_and_need_a_success() -> None:
    unfinished = "\n\nclass Half:\n    Failed = 0\n    Waiting = 1\n"
    found = facts(POLL + unfinished + MANAGER + "\n\nclass Plain:\n    limit = made()\n")
    enums = enums_in(found.world, found.module)
    assert [enum.info.name for enum in enums] == ["Poll"]
    assert enums_in(found.world, found.module) is enums


def test_a_module_that_cannot_hold_a_protocol_is_not_searched(tmp_path: Path) -> None:
    (tmp_path / "engine.py").write_text(
        "class Engine:\n    def put(self, room, value):\n        self.a[room] = value\n"
    )
    (tmp_path / "backend.py").write_text("from engine import Engine\n" + POLL + MANAGER)
    found = facts_of(str(tmp_path / "backend.py"), World(Config()))
    assert subject_of(a_class(found, "Engine")) is None
    assert subject_of(a_class(found, "Manager")) is not None


def test_a_removal_where_no_status_is_known() -> None:
    source = POLL + MANAGER + "\n\nclass Other:\n    def forget(self, room):\n        self.infos.pop(room)\n"
    found = facts(source)
    (site,) = removal_sites(found.world, found.module, "infos", a_class(found, "Other"), Reach(found.world))
    assert (site.verdict, site.reason) == (Verdict.UNKNOWN, "no status table is known here")


def test_no_place_for_what_is_no_function() -> None:
    assert facts(POLL + MANAGER).place_of(ast.Pass()) is None


# -- what is too much ---------------------------------------------------------------------


WORKER = """
def worker(self):
    while True:
        chunk = self.chunks.get()
        if chunk.room not in self.infos:
            continue
        self.update_status(chunk.room, Poll.Done)
"""


def test_nothing_is_claimed_of_code_with_too_many_states(monkeypatch: pytest.MonkeyPatch) -> None:
    source = behind_the_protocol(WORKER)
    assert len(facts(source).drops) == 1
    monkeypatch.setattr(interpreter, "_MAX_STEPS", 2)
    tired = facts(source)
    assert tired.drops == ()
    (writer,) = tired.writers
    assert not any(cell.decided for cell in writer.table.cells.values())


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the statement is new in Python 3.12")
def test_a_type_statement_in_a_writer_is_a_name_like_any_other() -> None:
    found = facts(
        POLL
        + MANAGER.replace(
            "        self.request_status[room] =",
            "        type Rooms = dict[int, Poll]\n        self.request_status[room] =",
        )
    )
    (writer,) = found.writers
    assert writer.table.notation == "-:FWD F:FWD W:FWD D:FWD"


# -- drops that are excused or belong elsewhere ------------------------------------------------


def findings(folder: Path, name: str, **sources: str) -> list[tuple[str, str]]:
    for module, source in sources.items():
        (folder / f"{module}.py").write_text(textwrap.dedent(source))
    return [(finding.code, finding.message) for finding in kvlint.check([folder / f"{name}.py"])]


LASTING = (
    behind_the_protocol(WORKER)
    .replace("def forget", "def keep")
    .replace("pop(room, None)\n\n    def clear", "get(room)\n\n    def clear")
)


def test_a_drop_is_excused_where_every_removal_is_safe(tmp_path: Path) -> None:
    assert findings(tmp_path, "backend", backend=LASTING) == []


def test_a_drop_decided_by_a_table_and_the_status(tmp_path: Path) -> None:
    both = LASTING.replace(
        "not in self.infos:", "not in self.infos and self.check_status(chunk.room) != Poll.Transferring:"
    )
    ((code, message),) = findings(tmp_path, "backend", backend=both)
    assert code == "KVL002"
    assert "drops a work item because of infos and the status it reads" in message


def test_a_drop_with_two_causes_is_told_once(tmp_path: Path) -> None:
    either = behind_the_protocol(WORKER).replace(
        "not in self.infos:", "not in self.infos or self.check_status(chunk.room) == Poll.Waiting:"
    )
    assert len({drop.causes for drop in facts(either).drops}) == 2
    assert [code for code, _ in findings(tmp_path, "backend", backend=either)] == ["KVL002"]


def test_a_drop_in_a_helper_of_another_module_is_reported_there(tmp_path: Path) -> None:
    base = behind_the_protocol("""
        def serve(self, chunk):
            if chunk.room not in self.infos:
                return
            self.update_status(chunk.room, Poll.Done)
        """)
    backend = """
        from base import Manager, Poll


        class Backend(Manager):
            def worker(self):
                while True:
                    self.serve(self.chunks.get())

            def give_up(self, room):
                self.update_status(room, Poll.Failed)
        """
    assert findings(tmp_path, "backend", base=base, backend=backend) == []
    assert len(facts_of(str(tmp_path / "backend.py"), World(Config())).drops) == 1


def test_a_neighbour_that_cannot_be_parsed_is_left_out(tmp_path: Path) -> None:
    listener = """
        def abort(self, room):
            self.infos.pop(room, None)
        """
    sources = {
        "base": behind_the_protocol(listener),
        "broken": "from base import Manager\nPoll.Failed = update_status(\n",
    }
    assert findings(tmp_path, "base", **sources) == []
    worker = "from base import Manager, Poll\n\n\nclass Backend(Manager):" + textwrap.indent(WORKER, "    ")
    (found,) = findings(tmp_path, "base", **sources, backend=worker)
    assert found[0] == "KVL003"
