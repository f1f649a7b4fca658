"""Workers of a few lines, each with a statement or expression of Python that decides whether an item is dropped.

Every case is one class body, put behind the same protocol.  Its ``# expect:`` comments are the findings; whether
there is one follows from what Python does: may the round end with a live status stored, the item gone, and shared
state to blame?
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .small_backends import behind_the_protocol, expected, found

WORKERS = {
    "starred target": """
        def worker(self):
            while True:
                room, *rest = self.chunks.get()
                if room not in self.infos:
                    continue  # expect: KVL002
                self.update_status(room, Poll.Done)
        """,
    "local that decides nothing": """
        def worker(self):
            while True:
                chunk = self.chunks.get()
                started = time.monotonic()
                if chunk.room not in self.infos:
                    continue  # expect: KVL002
                elapsed = time.monotonic() - started
                self.update_status(chunk.room, Poll.Done)
        """,
    "item by index": """
        def worker(self):
            while True:
                chunk = self.chunks.get()
                room, take = chunk[0], chunk[1].pop
                if room in self.infos and take():  # expect: KVL002
                    self.update_status(room, Poll.Done)
                else:
                    self.engine.skip(room)
        """,
    "helper that raises again": """
        def again(self, room):
            self.request_status.get(room)
            raise

        def worker(self):
            while True:
                chunk = self.chunks.get()
                try:
                    if chunk.first:
                        try:
                            raise KeyError(chunk.room)
                        except KeyError:
                            self.again(chunk.room)
                    try:
                        raise ValueError(chunk.room)
                    except ValueError:
                        self.again(chunk.room)
                except KeyError:
                    self.update_status(chunk.room, Poll.Failed)
                except ValueError:
                    continue  # expect: KVL002
                self.update_status(chunk.room, Poll.Done)
        """,
    "expression of several states": """
        def worker(self):
            while True:
                chunk = self.chunks.get()
                info = self.infos.get(chunk.room) if chunk.first else None
                for part in chunk.parts:
                    if (last := part) is None:
                        info = None
                if info is None:
                    continue  # expect: KVL002
                self.engine.send(info, last)
                self.update_status(chunk.room, Poll.Done)
        """,
    "pop that raises": """
        def worker(self):
            while True:
                chunk = self.chunks.get()
                try:
                    info = self.infos.pop(chunk.room)
                except KeyError:
                    continue  # expect: KVL002
                else:
                    self.engine.send(info)
                self.update_status(chunk.room, Poll.Done)
        """,
    "try with else that concludes": """
        def worker(self):
            while True:
                chunk = self.chunks.get()
                try:
                    self.engine.send(chunk.pages)
                except ConnectionError:
                    self.update_status(chunk.room, Poll.Failed)
                else:
                    self.update_status(chunk.room, Poll.Done)
        """,
    "special methods and views of the table": """
        def worker(self):
            while True:
                chunk = self.chunks.get()
                if not self.infos.__contains__(chunk.room):
                    continue  # expect: KVL002
                if chunk.room not in self.infos.keys():
                    continue  # expect: KVL002
                self.update_status(chunk.room, Poll.Done)
        """,
    "removed without a default and with discard": """
        def worker(self):
            while True:
                chunk = self.chunks.get()
                del chunk.pages
                del self.engine.pages[chunk.room]
                self.infos.__delitem__(chunk.room)
                self.update_status(chunk.room, Poll.Done)
        """,
    "match on the status": """
        def worker(self):
            while True:
                chunk = self.chunks.get()
                match self.check_status(chunk.room):
                    case Poll.Waiting:
                        continue  # expect: KVL002
                    case Poll.Transferring | Poll.Done:
                        self.update_status(chunk.room, Poll.Done)
        """,
    "loop over what the table holds": """
        def worker(self):
            while True:
                chunk = self.chunks.get()
                for info in self.infos.get(chunk.room, ()):  # expect: KVL002
                    self.update_status(chunk.room, Poll.Done)
        """,
    "comprehension that concludes": """
        def worker(self):
            while True:
                chunk = self.chunks.get()
                if chunk.room not in self.infos:
                    [self.update_status(room, Poll.Failed) for room in (chunk.room,)]
                    continue
                pages = {chunk.room: [page for page in chunk.pages]}
                self.engine.send(pages)
                self.update_status(chunk.room, Poll.Done)
        """,
    "kept in a list for later": """
        def worker(self):
            while True:
                chunk = self.chunks.get()
                if chunk.room not in self.infos:
                    self.later.append(chunk)
                    continue
                self.update_status(chunk.room, Poll.Done)
        """,
    "answered through the item": """
        def worker(self):
            while True:
                chunk = self.chunks.get()
                if chunk.room not in self.infos:
                    chunk.finish()
                    continue
                self.update_status(chunk.room, Poll.Done)
        """,
    "given to whoever is registered": """
        def worker(self):
            while True:
                chunk = self.chunks.get()
                if chunk.room not in self.infos:
                    self.handlers[0](chunk)
                    continue
                self.update_status(chunk.room, Poll.Done)
        """,
    "given to a new object": """
        def worker(self):
            while True:
                chunk = self.chunks.get()
                if chunk.room not in self.infos:
                    Reply(chunk)
                    continue
                self.update_status(chunk.room, Poll.Done)
        """,
    "module functions": """
        def worker(self):
            while True:
                chunk = self.chunks.get()
                if not watch(self.infos, chunk.room):
                    fail(self, chunk.room)
                    continue
                if chunk.room not in self.infos:
                    describe(chunk.room)
                    continue  # expect: KVL002
                if costly(chunk) not in self.infos:
                    continue
                self.update_status(chunk.room, Poll.Done)
        """,
    "nested function that concludes": """
        def worker(self):
            while True:
                chunk = self.chunks.get()

                def give_up():
                    self.update_status(chunk.room, Poll.Failed)

                def length(pages, unit=1):
                    return len(pages)

                if chunk.room not in self.infos:
                    give_up()
                    continue
                self.engine.send(length(chunk.pages))
                self.update_status(chunk.room, Poll.Done)
        """,
    "nested function that does not": """
        def worker(self):
            while True:
                chunk = self.chunks.get()

                def note():
                    return len(chunk.pages)

                if chunk.room not in self.infos:
                    note()
                    continue  # expect: KVL002
                self.update_status(chunk.room, Poll.Done)
        """,
    "helpers with defaults": """
        def finish(self, chunk, status=Poll.Done, seen=[], names={}):
            seen.append(chunk.room)
            names[chunk.room] = status
            self.update_status(chunk.room, status)

        def worker(self):
            while True:
                chunk = self.chunks.get()
                if chunk.room not in self.infos:
                    continue  # expect: KVL002
                self.finish(chunk)
        """,
    "helper of the base": """
        def conclude(self, room):
            super().conclude(room)

        def worker(self):
            while True:
                chunk = self.chunks.get()
                if chunk.room not in self.infos:
                    self.conclude(chunk.room)
                    continue
                self.update_status(chunk.room, Poll.Done)
        """,
    "helper that hands over through a helper": """
        def requeue(self, chunk):
            self.put_back(chunk)

        def put_back(self, chunk):
            self.chunks.put(chunk)

        def worker(self):
            while True:
                chunk = self.chunks.get()
                if chunk.room not in self.infos:
                    self.requeue(chunk)
                    continue
                self.update_status(chunk.room, Poll.Done)
        """,
    "hook for subclasses": """
        def dropped(self, room):
            raise NotImplementedError

        def worker(self):
            while True:
                chunk = self.chunks.get()
                if chunk.room not in self.infos:
                    self.dropped(chunk.room)
                    continue
                self.update_status(chunk.room, Poll.Done)
        """,
    "status removed with the item": """
        def worker(self):
            while True:
                chunk = self.chunks.get()
                if chunk.room not in self.infos:
                    del self.request_status[chunk.room]
                    continue
                self.update_status(chunk.room, Poll.Done)
        """,
    "status stored by a special method": """
        def worker(self):
            while True:
                chunk = self.chunks.get()
                if chunk.room not in self.infos:
                    self.request_status.__setitem__(chunk.room, Poll.Failed)
                    continue
                self.update_status(chunk.room, Poll.Done)
        """,
    "raised to the caller": """
        def worker(self):
            while True:
                chunk = self.chunks.get()
                try:
                    if chunk.room not in self.infos:
                        raise LookupError(chunk.room)
                    self.update_status(chunk.room, Poll.Done)
                except LookupError:
                    self.update_status(chunk.room, Poll.Failed)
        """,
    "suppressed": """
        def worker(self):
            while True:
                chunk = self.chunks.get()
                with contextlib.suppress(KeyError), self.engine.lock:  # expect: KVL002
                    self.engine.send(self.infos[chunk.room])
                    self.update_status(chunk.room, Poll.Done)
        """,
    "worker nested in a method": """
        def start(self, engine):
            infos = self.infos
            limit = 3
            pages = engine.pages

            def run():
                while True:
                    chunk = self.chunks.get()
                    if chunk.room not in infos:
                        continue  # expect: KVL002
                    self.update_status(chunk.room, Poll.Done)

            threading.Thread(target=run).start()
        """,
    "unknown code in between": """
        def worker(self):
            while True:
                chunk = self.chunks.get()
                ready = self.engine.poll().ready
                with self.engine.session():
                    super(threading.Thread, self).flush()
                    if chunk.room not in self.infos and ready():
                        continue  # expect: KVL002
                    self.update_status(chunk.room, Poll.Done)
        """,
    "kept in whatever list there is": """
        def worker(self):
            while True:
                chunk = self.chunks.get()
                if chunk.room not in self.infos:
                    ([] if self.check_status(chunk.room) == Poll.Failed else self.later).append(chunk)
                    continue
                self.update_status(chunk.room, Poll.Done)
        """,
    "helpers that matter to no room": """
        def note(self, room):
            note(self, room)

        def count(self, chunk):
            self.missing(chunk)
            return describe(chunk)

        def look(self, chunk):
            self.glance(chunk)

        def run(self):
            exec("0")

        def glance(self, chunk):
            return len(chunk.pages)

        def worker(self):
            while True:
                chunk = self.chunks.get()
                if chunk.room not in self.infos:
                    self.note(chunk.room)
                    self.look(chunk)
                    self.run()
                    continue  # expect: KVL002
                self.count(chunk.room)
                self.update_status(chunk.room, Poll.Done)
        """,
    "abstract hook": """
        @abc.abstractmethod
        def dropped(self, room):
            print(room)

        def worker(self):
            while True:
                chunk = self.chunks.get()
                if chunk.room not in self.infos:
                    self.dropped(chunk.room)
                    continue
                self.update_status(chunk.room, Poll.Done)
        """,
    "static worker with a lambda": """
        @staticmethod
        def worker(manager: "Manager"):
            while True:
                chunk = manager.chunks.get()
                length = lambda pages: len(pages)
                if chunk.room not in manager.infos:
                    length(chunk.pages)
                    continue  # expect: KVL002
                manager.update_status(chunk.room, Poll.Done)
        """,
    "manager under other names": """
        async def worker(self, peers):
            while True:
                chunk = await self.chunks.get()
                manager: Manager = peers[0]
                limit: int
                other = await self.engine.open()
                if chunk.room not in self.infos:
                    continue  # expect: KVL002
                other.a.b.c.d.e.f.g.note((await self.engine.open()).name())
                if (again := manager) and chunk.room in other.a.b.c.d.e.f.g.h:
                    again.update_status(chunk.room, Poll.Failed)
                else:
                    manager.update_status(chunk.room, Poll.Done)
        """,
    "heap of items": """
        def worker(self):
            while self.later:
                chunk = heappop(self.later)
                if chunk.room not in self.infos:
                    continue  # expect: KVL002
                self.update_status(chunk.room, Poll.Done)
        """,
    "beat of a thread that concludes nothing": """
        def start(self, chunk):
            threading.Thread(target=self.beat, args=(chunk,)).start()

        def beat(self, chunk):
            if chunk.room not in self.infos:
                return
            self.engine.beat(chunk.room)
        """,
}


@pytest.mark.parametrize("case", WORKERS)
def test_drops_of_a_small_worker(case: str, tmp_path: Path) -> None:
    source = behind_the_protocol(WORKERS[case])
    path = tmp_path / "backend.py"
    path.write_text(source)
    assert found(path) == expected(source)
