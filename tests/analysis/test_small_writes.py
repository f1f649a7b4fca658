"""Writes of a few lines over a writer that lets a failure be replaced: which of them are exposed, and in what terms."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from .small_backends import expected, found

STATUSES = """\
import threading


class Poll:
    Failed = 0
    Waiting = 1
    Transferring = 2
    Done = 3


class Manager:
    def __init__(self, socket):
        self.socket = socket
        self.request_status = {}
        self.infos = {}
        self.lock = threading.Lock()
        self.chunks = []
"""
WRITER = """
    def update_status(self, room, status: Poll = Poll.Transferring):  # expect: KVL004
        self.request_status[room] = status

    def listen(self):
        while True:
            room = self.socket.recv()
            self.update_status(room, Poll.Failed)
"""
WORKER = """
    def worker(self):
        while True:
            chunk = self.chunks.get()
            room = chunk.room
"""
EXPOSED = {
    "keyword": "self.update_status(room=room, status=Poll.Transferring)  # expect: KVL001",
    "default": "self.update_status(room)  # expect: KVL001",
    "spread": "self.update_status(*(room, Poll.Transferring))",
    "too few arguments": "self.update_status()  # expect: KVL001",
    "bound method": """
        store = self.update_status
        store(room, Poll.Transferring)  # expect: KVL001
        """,
    "one of several methods": "chunk.writers[0](room, Poll.Transferring)",
    "conditional": "self.update_status(room, Poll.Done if chunk.last else Poll.Waiting)  # expect: KVL001",
    "ends only": "self.update_status(room, Poll.Done if chunk.last else Poll.Failed)",
    "one that cannot be told": "self.update_status(room, Poll.Done if chunk.last else chunk.status)",
    "deep": "self.update_status(room, 1 if a else 2 if b else 3 if c else Poll.Waiting if d else Poll.Done)",
    "narrowed by membership": """
        if chunk.status in (Poll.Waiting, Poll.Done) and room:
            status = chunk.status
        status = chunk.next
        if room and status in (Poll.Waiting, Poll.Done):
            self.update_status(room, status)  # expect: KVL001
        """,
    "narrowed by a negation": """
        status = chunk.status
        if not status != Poll.Waiting:
            self.update_status(room, status)  # expect: KVL001
        """,
    "narrowed by leaving": """
        status = chunk.status
        if status == Poll.Waiting:
            self.engine.note(room)
        else:
            continue
        self.update_status(room, status)  # expect: KVL001
        """,
    "narrowed by an other variable": """
        status = chunk.status
        if room in (1, 2) and chunk.kind == Poll.Waiting:
            self.update_status(room, status)
        """,
    "narrowed by a pattern": """
        status = chunk.status
        match status:
            case Poll.Waiting:
                self.update_status(room, status)  # expect: KVL001
            case Poll.Done | Poll.Failed:
                self.update_status(room, status)
        """,
    "nested function": """
        def later(status):
            self.update_status(room, Poll.Waiting)  # expect: KVL001
        later(None)
        """,
    "special method": "self.request_status.__setitem__(room, Poll.Waiting)  # expect: KVL001",
    "dict display": "self.request_status.update({room: Poll.Waiting, **chunk.others})  # expect: KVL001",
    "second name": """
        statuses = self.request_status
        statuses[room] = Poll.Waiting  # expect: KVL001
        """,
    "other tables": """
        self.infos[room] = chunk.status
        chunk.made()[room] = Poll.Waiting
        made = chunk.made()
        made[room] = Poll.Waiting
        chunk.infos.update({room: chunk.status})
        """,
    "absent rooms only": """
        if room not in self.request_status:
            self.request_status[room] = Poll.Waiting
        """,
}


def check(source: str, tmp_path: Path) -> None:
    path = tmp_path / "backend.py"
    path.write_text(source)
    assert found(path) == expected(source)


def indented(body: str, by: int) -> str:
    return textwrap.indent(textwrap.dedent(body).strip("\n"), " " * by) + "\n"


@pytest.mark.parametrize("case", EXPOSED)
def test_writes_of_a_worker(case: str, tmp_path: Path) -> None:
    check(STATUSES + WRITER + WORKER + indented(EXPOSED[case], 12), tmp_path)


def test_a_member_by_another_name(tmp_path: Path) -> None:
    (tmp_path / "names.py").write_text("from backend import Poll\n\nSENDING = Poll.Transferring\n")
    source = "from names import SENDING\n\n" + STATUSES.replace(
        "class Manager", "QUEUED = Poll.Waiting\n\n\nclass Manager"
    )
    body = """
        self.update_status(room, QUEUED)  # expect: KVL001
        self.update_status(room, SENDING)  # expect: KVL001
        """
    check(source + WRITER + WORKER + indented(body, 12), tmp_path)


WRITERS = {
    "second name of the table": """
        def open(self, room):
            self.request_status[room] = Poll.Waiting

        def update_status(self, room, status: Poll):  # expect: KVL004
            statuses = self.request_status
            statuses[room] = status
        """,
    "chosen by the parameter": """
        def update_status(self, room, ended):
            status = Poll.Done if ended else Poll.Waiting
            self.request_status[room] = status
        """,
    "given by callers": """
        def update_status(self, room, status):  # expect: KVL004
            self.request_status[room] = status

        def finish(self, room):
            self.update_status(room, Poll.Done)
        """,
    "compared by a match": """
        def update_status(self, room, status):  # expect: KVL004
            match status:
                case Poll.Failed:
                    self.infos.pop(room, None)
            self.request_status[room] = status
        """,
    "annotated table": """
        def reset(self):
            self.request_status: dict[int, Poll] = {}

        def update_status(self, room, status: Poll):  # expect: KVL004
            self.request_status[room] = status
        """,
    "stored by what it was given": """
        def update_status(self, room, how):
            self.infos[room] = how
            self.request_status[room] = Poll.Waiting
            last = None
            self.request_status[room] = last = how.status(self, last)
        """,
    "match without members": """
        def update_status(self, room, status):
            match status:
                case "failed":
                    return
                case self.infos.last:
                    return
            self.request_status[room] = status
            self.request_status[room] = Poll.Waiting
        """,
    "static": """
        @staticmethod
        def store(manager, room, status: Poll):
            manager.request_status[room] = status
        """,
    "keys by other means": """
        def update_status(self, room, status: Poll):  # expect: KVL004
            if self.request_status.get(room) is None or room in self.request_status:
                self.request_status[room] = status
        """,
}


@pytest.mark.parametrize("case", WRITERS)
def test_what_is_a_writer(case: str, tmp_path: Path) -> None:
    check(STATUSES + "\n" + indented(WRITERS[case], 4), tmp_path)


MODULES = {
    "lock inside the writer": """
        class Locking(Manager):
            def update_status(self, room, status: Poll):
                with self.lock:
                    if self.request_status.get(room) not in (Poll.Failed, Poll.Done):
                        self.request_status[room] = status

            def reopen(self, room):
                with self.lock:
                    if self.request_status.get(room) not in (Poll.Failed, Poll.Done):
                        self.request_status[room] = Poll.Waiting

            def listen(self):
                while True:
                    self.update_status(self.socket.recv(), Poll.Failed)
        """,
    "lock around some of the writer's stores": """
        class Locking(Manager):
            def update_status(self, room, status: Poll):  # expect: KVL004
                if status == Poll.Failed:
                    self.request_status[room] = status
                with self.lock:
                    self.request_status[room] = status

            def reopen(self, room):
                with self.lock:
                    if self.request_status.get(room) != Poll.Failed:
                        self.request_status[room] = Poll.Transferring  # expect: KVL001

            def listen(self):
                while True:
                    self.update_status(self.socket.recv(), Poll.Failed)
        """,
    "function outside of the class": """
        class Keeping(Manager):
            def update_status(self, room, status: Poll):  # expect: KVL004
                self.request_status[room] = status

        def reopen(manager: Keeping, room):
            if room in manager.infos:
                manager.update_status(room, Poll.Transferring)  # expect: KVL001
                manager.request_status[room] = Poll.Waiting  # expect: KVL001

        def fail(manager: Keeping, room):
            manager.update_status(room, Poll.Failed)
        """,
    "nobody fails a room": """
        class Storing(Manager):
            def reopen(self, room):
                self.request_status[room] = Poll.Waiting
                self.request_status[room] = Poll.Transferring
        """,
    "an abort handler reopens": """
        class Storing(Manager):
            def abort(self, room):
                self.request_status[room] = Poll.Waiting  # expect: KVL001

            def listen(self):
                while True:
                    self.request_status[self.socket.recv()] = Poll.Failed
        """,
    "record of one thread": """
        class Session:
            def __init__(self):
                self.status = Poll.Waiting

        def run(session):
            session.status = Poll.Transferring
            session.status = session.next
            session.status = Poll.Failed
        """,
    "failures that replace each other": """
        class Ends:
            Failed = 0
            Aborted = 1
            Waiting = 2
            Done = 3

        class Keeping:
            def __init__(self, socket):
                self.socket = socket
                self.ends = {}

            def update_ends(self, room, status: Ends):
                stored = self.ends.get(room)
                if stored in (Ends.Failed, Ends.Aborted):
                    self.ends[room] = Ends.Aborted
                elif stored != Ends.Done:
                    self.ends[room] = status

            def reopen(self, room):
                self.update_ends(room, Ends.Waiting)

            def listen(self):
                while True:
                    self.update_ends(self.socket.recv(), Ends.Failed)
        """,
    "helpers that only constructors call, too deep": """
        class Opening(Manager):
            def __init__(self, room):
                self.a(room)

            def a(self, room):
                self.b(room)

            def b(self, room):
                self.c(room)

            def c(self, room):
                self.d(room)

            def d(self, room):
                self.update_status(room, Poll.Transferring)  # expect: KVL001

            def update_status(self, room, status: Poll):  # expect: KVL004
                self.request_status[room] = status

            def fail(self, room):
                self.update_status(room, Poll.Failed)
        """,
    "parameters of an override that passes them on": """
        class Plain(Manager):
            def update_status(self, room, status: Poll):  # expect: KVL004
                self.request_status[room] = status

        class Sub(Plain):
            def update_status(self, key, value):  # expect: KVL004
                super().update_status(key, value)

        class SubSub(Sub):
            def update_status(self, room, value, *, force=False):  # expect: KVL004
                super().update_status(room, value)
        """,
    "failure becomes a success": """
        class Largest(Manager):
            def worker(self):
                while True:
                    chunk = self.chunks.get()
                    if chunk.room not in self.infos:
                        continue  # expect: KVL002
                    self.update_status(chunk.room, Poll.Transferring)  # expect: KVL001
                    self.update_status(chunk.room, Poll.Done)

            def give_up(self, room):
                self.request_status[room] = Poll.Failed
                self.infos.pop(room, None)

            def update_status(self, room, status: Poll):  # expect: KVL004
                if self.request_status.get(room) == Poll.Failed and status == Poll.Transferring:
                    self.request_status[room] = Poll.Done
                elif self.request_status.get(room) not in (Poll.Failed, Poll.Done):
                    self.request_status[room] = status

            def reopen(self, room):
                self.update_status(room, Poll.Transferring)  # expect: KVL001

            def fail(self, room):
                self.update_status(room, Poll.Failed)
        """,
}


@pytest.mark.parametrize("case", MODULES)
def test_writes_of_a_module(case: str, tmp_path: Path) -> None:
    check(STATUSES + "\n\n" + indented(MODULES[case], 0), tmp_path)
