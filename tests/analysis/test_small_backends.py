"""Listeners, threads and writes of a few lines behind one protocol, each with the findings that it must give."""

from __future__ import annotations

from pathlib import Path

import pytest

from .small_backends import behind_the_protocol, expected, found

WORKER = """
        def worker(self):
            while True:
                chunk = self.chunks.get()
                if chunk.room not in self.infos:
                    continue  # expect: KVL002
                self.update_status(chunk.room, Poll.Done)
"""

ABORTS = {
    "else of a negative test": """
        def listen(self):
            while True:
                tag, room = self.socket.recv_multipart()
                if tag != b"ABORT":
                    self.engine.beat(room)
                else:
                    self.infos.pop(room, None)  # expect: KVL003
        """,
    "one condition of several": """
        def listen(self):
            while True:
                tag, room = self.socket.recv_multipart()
                if tag == b"ABORT" and room in self.infos:
                    del self.infos[room]  # expect: KVL003
        """,
    "one of two conditions": """
        def listen(self):
            while True:
                tag, room = self.socket.recv_multipart()
                if tag == b"ABORT" or tag == b"DONE":
                    self.infos.pop(room, None)
        """,
    "not a negative test": """
        def listen(self):
            while True:
                tag, room = self.socket.recv_multipart()
                if not tag != b"ABORT":
                    self.infos.pop(room, None)  # expect: KVL003
        """,
    "start of a message": """
        def listen(self):
            while True:
                message = self.socket.recv()
                if message.startswith(b"ABORT"):
                    self.infos.pop(message[5:], None)  # expect: KVL003
        """,
    "message of another kind": """
        def listen(self):
            while True:
                message = self.socket.recv()
                if message.startswith(b"DONE"):
                    self.infos.pop(message[5:], None)
        """,
    "pattern of a sequence": """
        def listen(self):
            while True:
                match self.socket.recv_multipart():
                    case [b"ABORT", room]:
                        self.infos.pop(room, None)  # expect: KVL003
                    case [b"DONE" as tag, room] | [tag, room]:
                        self.infos.pop(room, None)
        """,
    "pattern with a name": """
        def listen(self):
            while True:
                message = self.socket.recv_multipart()
                match message[0]:
                    case b"ABORT" | b"CANCEL" as tag:
                        self.infos.pop(message[1], None)  # expect: KVL003
                    case b"DONE" | b"ABORT":
                        self.infos.pop(message[1], None)
                    case _:
                        self.infos.pop(message[1], None)
        """,
    "pattern of a class": """
        def listen(self):
            while True:
                match self.socket.recv_pyobj():
                    case AbortRequest(room=room):
                        self.infos.pop(room, None)  # expect: KVL003
                    case Request(room=room):
                        self.infos.pop(room, None)
        """,
    "nested function in a listener": """
        def listen(self):
            while True:
                tag, room = self.socket.recv_multipart()

                def note(tag):
                    if tag == b"ABORT":
                        self.infos.pop(room, None)  # expect: KVL003

                note(tag)
        """,
    "private helper of the handler": """
        def listen(self):
            while True:
                tag, room = self.socket.recv_multipart()
                if tag == b"ABORT":
                    self._drop(room)

        def _drop(self, room):
            self._drop_now(room)

        def _drop_now(self, room):
            self.infos.pop(room, None)  # expect: KVL003
        """,
    "removal under another name": """
        def abort(self, room):
            get = self.infos.get
            drop = self.infos.pop
            other = made().pop
            last = self.later
            if get(room):
                drop(room)  # expect: KVL003
            other(room, None)
            del last[0], made()[room], room
        """,
    "the whole backend ends": """
        def abort_and_shutdown(self):
            self.infos.clear()
        """,
    "code that is never reached": """
        def abort(self, room):
            return
            self.infos.pop(room, None)
        """,
    "status that is no member": """
        def abort(self, room):
            self.request_status[room] = 77
            self.infos.pop(room, None)
        """,
    "helpers that call each other": """
        def abort(self, room):
            self._drop(room, 1)

        def _drop(self, room, left):
            if left:
                self._again(room, left)
            self.infos.pop(room, None)  # expect: KVL003

        def _again(self, room, left):
            self._drop(room, left - 1)
        """,
    "helper far below the handler": """
        def abort(self, room):
            self._a(room)

        def _a(self, room):
            self._b(room)

        def _b(self, room):
            self._c(room)

        def _c(self, room):
            self._d(room)

        def _d(self, room):
            self._e(room)

        def _e(self, room):
            self.infos.pop(room, None)  # expect: KVL003
        """,
}

THREADS = {
    "iter with a sentinel": """
        def worker(self):
            for chunk in iter(self.chunks.get, None):
                if chunk.room not in self.infos:
                    continue  # expect: KVL002
                self.update_status(chunk.room, Poll.Done)
        """,
    "iter over something else": """
        def worker(self):
            for chunk in iter(self.engine.pages, None):
                if chunk.room not in self.infos:
                    continue
                self.update_status(chunk.room, Poll.Done)
        """,
    "batch in a variable": """
        def worker(self):
            while True:
                batch = self.chunks.get_many()
                for chunk in batch:
                    if chunk.room not in self.infos:
                        continue  # expect: KVL002
                    self.update_status(chunk.room, Poll.Done)
        """,
    "batch that begins with a take": """
        def worker(self):
            while True:
                for chunk in [self.chunks.get(), *self.engine.more()]:
                    if chunk.room not in self.infos:
                        continue  # expect: KVL002
                    self.update_status(chunk.room, Poll.Done)
        """,
    "awaited batch": """
        async def worker(self):
            while True:
                for chunk in await self.chunks.get():
                    if chunk.room not in self.infos:
                        continue  # expect: KVL002
                    self.update_status(chunk.room, Poll.Done)
        """,
    "batch that a helper collects": """
        def collect(self):
            batch = []
            while len(batch) < 8:
                batch.append(self.chunks.get())
            return batch

        def worker(self):
            while True:
                for chunk in self.collect():
                    if chunk.room not in self.infos:
                        continue  # expect: KVL002
                    self.update_status(chunk.room, Poll.Done)
        """,
    "helper that keeps what it takes": """
        def collect(self):
            batch, others = [], []
            others.append(self.chunks.get())
            return batch

        def worker(self):
            while True:
                for chunk in self.collect():
                    if chunk.room not in self.infos:
                        continue
                    self.update_status(chunk.room, Poll.Done)
        """,
    "helper that takes nothing": """
        def rooms(self):
            return list(self.infos)

        def worker(self):
            while True:
                for chunk in self.rooms():
                    if chunk not in self.infos:
                        continue
                    self.update_status(chunk, Poll.Done)
        """,
    "take behind two helpers": """
        def obtain(self):
            return self.next()

        def next(self):
            return self.chunks.get()

        def worker(self):
            while True:
                chunk = self.obtain()
                if chunk.room not in self.infos:
                    continue  # expect: KVL002
                self.update_status(chunk.room, Poll.Done)
        """,
    "take behind more helpers than are followed": """
        def obtain(self):
            return self.next()

        def next(self):
            return self.first()

        def first(self):
            return self.very_first()

        def very_first(self):
            return self.chunks.get()

        def worker(self):
            while True:
                chunk = self.obtain()
                if chunk.room not in self.infos:
                    continue
                self.update_status(chunk.room, Poll.Done)
        """,
    "pool of threads": """
        def submit(self, loop, chunk):
            loop.run_in_executor(None, self.serve, chunk)
            threading.Thread(target=self.engine.run, args=(chunk,)).start()

        def serve(self, chunk):
            if chunk.room not in self.infos:
                return  # expect: KVL002
            self.update_status(chunk.room, Poll.Done)
        """,
    "partial and lambda": """
        def submit(self, chunk, other):
            threading.Thread(target=functools.partial(self.serve, chunk), args=(chunk,)).start()
            threading.Thread(target=lambda each: self.serve_later(each), args=(other,)).start()

        def serve(self, chunk):
            if chunk.room not in self.infos:
                return  # expect: KVL002
            self.update_status(chunk.room, Poll.Done)

        def serve_later(self, chunk):
            if chunk.room not in self.infos:
                return  # expect: KVL002
            self.update_status(chunk.room, Poll.Done)
        """,
}


def check(source: str, tmp_path: Path) -> None:
    path = tmp_path / "backend.py"
    path.write_text(source)
    assert found(path) == expected(source)


@pytest.mark.parametrize("case", ABORTS)
def test_removals_of_an_abort_handler(case: str, tmp_path: Path) -> None:
    check(behind_the_protocol(WORKER + ABORTS[case]), tmp_path)


@pytest.mark.parametrize("case", THREADS)
def test_what_runs_as_a_worker(case: str, tmp_path: Path) -> None:
    check(behind_the_protocol(THREADS[case]), tmp_path)
