"""Windows between a test and what is done on it, in small backends: which are seen, and which get an edit."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

import kvlint
from kvlint.config import Config, ProtocolOverride
from kvlint.diagnostics import AtomicStatus, Finding, OpeningStatus

HEAD = """\
import queue
import threading
import time


class Poll:
    Failed = 0
    Opening = 1
    Moving = 2
    Success = 3


"""
WRITER = """
    def put(self, room, poll: Poll):
        if self.polls.get(room) not in (Poll.Failed, Poll.Success):
            self.polls[room] = poll
"""
LOCKED = """
    def put(self, room, poll: Poll):
        with self.lock:
            if self.polls.get(room) not in (Poll.Failed, Poll.Success):
                self.polls[room] = poll
"""
MAKER = """
    def __init__(self, socket, engine):
        self.socket = socket
        self.engine = engine
        self.polls = {}
        self.lock = threading.RLock()
        self.peers = {}
        self.seen = set()
        self.chunks = queue.Queue()
        threading.Thread(target=self.work).start()
        threading.Thread(target=self.listen).start()
"""
THREADS = """
    def work(self):
        while True:
            chunk = self.chunks.get()
            self.put(chunk.room, Poll.Moving)
            self.put(chunk.room, Poll.Success)

    def listen(self):
        while True:
            self.put(self.socket.recv(), Poll.Failed)
"""
CLEAR = """
    def clear(self, room):
        with self.lock:
            self.polls.pop(room, None)
        self.peers.pop(room, None)
        self.seen.discard(room)
"""
MANAGER = "class Manager:" + MAKER


def found(folder: Path, body: str, *, head: str = HEAD, config: Config | None = None) -> list[Finding]:
    """The findings of the two rules in a module."""
    path = folder / "conn.py"
    path.write_text(head + textwrap.dedent(body))
    return kvlint.check([path], config or Config(select=("KVL006", "KVL008")))


def lines(folder: Path, findings: list[Finding]) -> list[str]:
    """The source lines that are reported."""
    source = (folder / "conn.py").read_text().splitlines()
    return [source[finding.location.span.line - 1].strip() for finding in findings]


def writers(folder: Path, writer: str, maker: str = MAKER) -> list[Finding]:
    """The findings of a manager with this writer."""
    return found(folder, "class Manager:" + maker + writer + THREADS)


def uses(folder: Path, body: str) -> list[str]:
    """The lines reported in a method of a manager that is correct otherwise; the scheduler clears, a worker runs it."""
    method = "\n    def use(self, room, chunk):\n" + textwrap.indent(textwrap.dedent(body), " " * 8)
    called = THREADS.replace("self.put(chunk.room, Poll.Moving)", "self.use(chunk.room, chunk)")
    return lines(folder, found(folder, MANAGER + LOCKED + called + CLEAR + method))


# -- writers -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statements", "mended"),
    [
        ("if room in self.polls: return\nself.polls[room] = poll", True),
        ("x = self.polls.get(room)\nself.polls.update({room: poll})", True),
        ("x = self.polls.get(room)\nself.peers.setdefault(room, []).append(poll)\nself.polls[room] = poll", True),
        ("x = self.polls.get(room)\nself.peers[room].append(poll)\nself.polls[room] = poll", False),
        ("x = self.polls.get(room)\nself.seen.update(self.keyed[room].keys())\nself.polls[room] = poll", False),
        ("x = self.polls.get(room)\nself.time = time.monotonic()\nself.polls[room] = Poll(poll)", True),
        ("x = self.polls.get(room)\nlogger.info('%s', room)\nself.polls[room] = poll", True),
        ("x = self.polls.get(room)\nfor n in (1, 2): self.polls[room] = poll", True),
        ("x = self.polls.get(room)\nwhile self.engine: pass\nself.polls[room] = poll", False),
        ("x = self.polls.get(room)\nself.engine.note(room)\nself.polls[room] = poll", False),
        ("x = self.polls.get(room)\nroom.note()\nself.polls[room] = poll", False),
        ("x = self.polls.get(room)\nmaker()()\nself.polls[room] = poll", False),
        ("x = self.polls.get(room)\n(lambda: 1)()\nself.polls[room] = poll", False),
        ("x = self.polls.get(room)\nx.get(room)\nself.polls[room] = poll", False),
        ("x = self.polls.get(room)\nself.missing(room)\nself.polls[room] = poll", False),
        ("x = self.polls.get(room)\nself.put(room, x) if x else None\nself.polls[room] = poll", False),
        ("x = self.polls.get(room)\nwith self.lock: self.polls[room] = poll", False),
        ("self.lock.acquire()\nif room not in self.polls:\n    self.polls[room] = poll\nself.lock.release()", None),
        ("self.polls[room] = poll", None),
        ("self.polls.setdefault(room, poll)", None),
    ],
)
def test_what_a_writer_does_between_reading_and_storing(tmp_path: Path, statements: str, mended: bool | None) -> None:
    writer = "\n    def put(self, room, poll: Poll):\n" + textwrap.indent(statements, " " * 8) + "\n"
    plans = [finding.plan for finding in writers(tmp_path, writer) if finding.code == "KVL008"]
    if mended is None:
        assert plans == []
    else:
        (plan,) = plans
        assert isinstance(plan, AtomicStatus) if mended else plan is None


READ = """
    def put(self, room, poll: Poll):
        x = self.polls.get(room)
        {}
        self.polls[room] = poll
"""


@pytest.mark.parametrize(
    ("kept", "taken", "mended"),
    [
        ("self.peers[room] = []", "self.peers[room].pop()", True),
        ("self.peers[room]: dict = {}", "self.peers.get(room, {}).get(1)", True),
        ("self.peers.setdefault(room, set())", "if room in self.peers: self.peers[room].pop()", True),
        ("self.peers = defaultdict(list)", "self.peers[room].pop()", True),
        ("self.peers = defaultdict(lambda: {})", "self.peers[room].pop(1)", True),
        ("self.peers = {1: []}", "self.peers[room].pop()", True),
        ("self.peers[room] = []\n        del self.peers[len(self.peers)]", "self.peers[room].pop()", True),
        ("self.peers[room] = []\n        for x in self.peers: pass", "self.peers[room].pop()", True),
        ("self.peers[room] = queue.Queue()", "self.peers[room].get()", False),
        ("self.peers[room] = room", "self.peers[room].get()", False),
        ("self.peers[room] = []\n        self.peers[0] = queue.Queue()", "self.peers[room].get()", False),
        ("self.peers[room] = []\n        self.peers.update(room)", "self.peers[room].get()", False),
        ("self.peers[room] = []\n        room(self.peers)", "self.peers[room].get()", False),
        ("self.peers[room] = []\n        getattr(self, 'peers')[1] = room", "self.peers[room].get()", False),
        ("self.peers[room] = []\n        self.peers: dict", "self.peers[room][0].get()", False),
        ("self.peers[room] = []", "self.peers.get(room, self.chunks).get()", False),
        ("self.peers.setdefault(room, queue.Queue())", "self.peers[room].get()", False),
        ("self.peers = defaultdict(queue.Queue)", "self.peers[room].get()", False),
        ("self.peers = {1: queue.Queue()}", "self.peers[room].get()", False),
        ("self.peers = deque()\n        self.peers[0] = []", "self.peers[room].pop()", True),
        ("self.peers[room] = []\n        print(sorted(self.peers))", "self.peers[room].pop()", True),
        ("self.peers[room] = []\n        self.x: int", "self.peers[room].pop()", True),
        ("self.peers = ChainMap(room)\n        self.x: int = 1", "self.peers[room].get()", False),
        ("self.peers = dict(room)", "self.peers[room].get()", False),
        ("self.peers = room", "self.peers[room].get()", False),
        ("self.peers = room()", "self.peers[room].get()", False),
    ],
)
def test_what_is_taken_out_of_a_container_may_wait(tmp_path: Path, kept: str, taken: str, mended: bool) -> None:
    writer = READ.format(taken) + f"\n    def keep(self, room):\n        {kept}\n"
    (finding,) = writers(tmp_path, writer)
    assert isinstance(finding.plan, AtomicStatus) is mended


@pytest.mark.parametrize(
    ("other", "mended"),
    [
        ("self.peers = {}", True),
        ("self.peers = defaultdict(set)", True),
        ("self.peers = ChainMap()", False),
        ("self.peers = room()", False),
        ("self.peers = room", False),
        ("self.peers: dict = room", False),
    ],
)
def test_what_another_class_keeps_under_the_name_counts(tmp_path: Path, other: str, mended: bool) -> None:
    writer = READ.format("self.peers[room].pop()") + "\n    def keep(self, room):\n        self.peers[room] = []\n"
    elsewhere = f"\n\nclass Other:\n    def __init__(self, room):\n        {other}\n"
    (finding,) = found(tmp_path, "class Manager:" + MAKER + writer + THREADS + elsewhere)
    assert isinstance(finding.plan, AtomicStatus) is mended


@pytest.mark.parametrize(
    ("below", "mended"),
    [
        ("class Other(Manager):\n    def note(self, room):\n        self.seen.add(room)", True),
        ("class Other(Manager):\n    def note(self, room):\n        super().note(room)", True),
        ("class Other:\n    def note(self, room):\n        self.socket.send(room)", True),
        ("class Other(Manager):\n    def note(self, room):\n        with self.other:\n            pass", False),
        ("class Other(Manager):\n    def note(self, room):\n        self.socket.send(room)", False),
        ("class Other(Manager):\n    def start(self):\n        self.seen = queue.Queue()", False),
        ("class Other(Manager):\n    @wrapped\n    def note(self, room):\n        pass", False),
        ("class Other(Manager):\n    note = print", False),
        (
            "class Mixin:\n    def note(self, room):\n        self.chunks.join()\n\nclass Other(Mixin, Manager): pass",
            False,
        ),
    ],
)
def test_what_a_subclass_puts_in_the_place_of_a_callee(tmp_path: Path, below: str, mended: bool) -> None:
    note = "\n    def note(self, room):\n        self.seen.add(room)\n"
    source = "class Manager:" + MAKER + READ.format("self.note(room)") + note + THREADS + "\n\n" + below + "\n"
    (finding,) = found(tmp_path, source)
    assert isinstance(finding.plan, AtomicStatus) is mended


@pytest.mark.parametrize(
    ("base", "body", "mended"),
    [
        ("Manager", "super().__init__(1, 2)\n        self.polls = {}", True),
        ("Manager", "self.x = 1\n        super(Other, self).__init__(1, 2)", True),
        ("Manager", "self.polls = {}", False),
        ("Manager", "self.polls = {}\n        super().__init__(1, 2)", False),
        ("Manager", "if self: super().__init__(1, 2)", False),
        ("Manager", "if self: return\n        super().__init__(1, 2)", False),
        ("Manager", "super(Manager, self).__init__()", False),
        ("Unknown, Manager", "super().__init__(1, 2)", False),
    ],
)
def test_subclasses_that_do_without_the_constructor(tmp_path: Path, base: str, body: str, mended: bool) -> None:
    maker = MAKER.replace("        self.lock = threading.RLock()\n", "")
    below = f"\n\nclass Other({base}):\n    def __init__(self):\n        {body}\n"
    (finding,) = found(tmp_path, "class Manager:" + maker + WRITER + THREADS + below)
    assert isinstance(finding.plan, AtomicStatus) is mended


@pytest.mark.parametrize("head", ["async def put", "@wrapped\n    def put"])
def test_writers_that_no_lock_goes_around(tmp_path: Path, head: str) -> None:
    reported = writers(tmp_path, WRITER.replace("def put", head))
    assert [finding.plan for finding in reported] == ([None] if "async" in head else [])


@pytest.mark.parametrize(
    "maker",
    [
        MAKER.replace("        self.polls = {}\n", "        if engine:\n            self.polls = {}\n"),
        MAKER.replace("        self.polls = {}\n", "        self.polls, self.x = {}, 1\n"),
        MAKER.replace("def __init__(self, socket, engine):", "def __init__(*arguments):\n        self = arguments[0]"),
        MAKER.replace("def __init__(", "def start("),
    ],
)
def test_a_table_of_which_it_is_not_clear_where_it_is_made(tmp_path: Path, maker: str) -> None:
    assert [finding.plan for finding in writers(tmp_path, WRITER, maker)] == [None]


def test_names_that_mean_something_else(tmp_path: Path) -> None:
    maker = MAKER.replace("        self.lock = threading.RLock()\n", "")
    taken = "".join(
        f"        self.{name} = 1\n" for name in ("_status_lock", "_status_table_lock", "_room_status_lock")
    )
    (finding,) = writers(tmp_path, WRITER, maker.replace("        self.peers", taken + "        self.peers"))
    assert isinstance(finding.plan, AtomicStatus)
    assert finding.plan.lock == "self._status_lock_2"
    source = "class Manager:" + maker.replace("threading.", "threads.") + WRITER + THREADS
    head = HEAD.replace("import threading", "import threading as threads\n\nthreading = None")
    (finding,) = found(tmp_path, source, head=head)
    assert finding.plan is None


def test_a_lock_beside_the_table_is_taken(tmp_path: Path) -> None:
    (finding,) = writers(tmp_path, WRITER)
    assert isinstance(finding.plan, AtomicStatus)
    assert (finding.plan.lock, finding.plan.making) == ("self.lock", None)


def test_one_thread_has_no_rival(tmp_path: Path) -> None:
    alone = "class Manager:" + MAKER.replace("        threading.Thread(target=self.listen).start()\n", "") + WRITER
    assert found(tmp_path, alone + THREADS[: THREADS.index("    def listen")]) == []


def test_two_writes_of_which_none_is_a_failure(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, MANAGER + WRITER + THREADS.replace("Poll.Failed", "Poll.Opening"))
    assert "can write another status, and then one of the two is lost" in finding.message


def test_the_writer_behind_another_and_one_that_does_nothing(tmp_path: Path) -> None:
    source = (
        MANAGER
        + LOCKED
        + "\n    def hand(self, room, poll: Poll):\n        self.put(room, poll)\n"
        + THREADS
        + """
    def drop(self, room):
        self.polls.pop(room, None)


class Silent(Manager):
    def put(self, room, poll: Poll):
        pass


class Opened:
    def __init__(self, manager: Manager):
        manager.polls[1] = Poll.Opening
"""
    )
    source += """

def forget(silent: Silent, room):
    silent.polls.pop(room, None)
"""
    asked = Config(select=("KVL008",))
    reported = lines(tmp_path, found(tmp_path, source, config=asked))
    assert reported == ["self.polls.pop(room, None)", "silent.polls.pop(room, None)"]


def test_a_direct_store_of_one_thread(tmp_path: Path) -> None:
    store = "            if self.polls.get(1) != Poll.Failed:\n                self.polls[1] = Poll.Moving\n"
    source = (
        "class Manager:" + MAKER + "    def work(self):\n        while True:\n            self.chunks.get()\n" + store
    )
    assert found(tmp_path, source + "\n    def listen(self):\n        pass\n") == []


# -- tests and uses ------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "reported"),
    [
        ("if room in self.peers:\n    pass\nelse:\n    return\nself.peers[room].send()", ["self.peers[room].send()"]),
        ("if room in self.peers:\n    def later():\n        return self.peers[room]\n    later()", []),
        ("if room in self.peers:\n    del chunk, self.peers[room]", ["del chunk, self.peers[room]"]),
        ("if room in self.peers:\n    room = chunk.next()\n    self.peers[room].send()", []),
        ("if room in self.peers:\n    for room in chunk.rooms:\n        self.peers[room].send()", []),
        ("if room in self.peers:\n    with self.lock as room:\n        self.peers[room].send()", []),
        ("if not self.peers.get(room):\n    return\nself.peers[room].send()", ["self.peers[room].send()"]),
        ("if self.peers.get(room, 1):\n    self.peers[room].send()", []),
        ("if room in self.peers or chunk:\n    self.peers[room].send()", []),
        ("if room in self.missing:\n    self.missing[room].send()", []),
        ("if room in chunk.peers:\n    chunk.peers[room].send()", []),
        ("peers = self.peers\nif room in peers:\n    peers[room].send()", []),
        ("if room in self.seen:\n    self.seen.remove(room)", ["self.seen.remove(room)"]),
        ("if room in self.peers:\n    print(room)\n    self.peers.pop(room, None)\n    self.peers[room]", []),
        ("x = {r: self.peers[r] for r in chunk if r in self.peers}", ["x = {r"]),
        ("if room in self.peers and (chunk == Poll.Failed or self.peers[room] == 1):\n    pass", ["if room"]),
        ("if room not in self.seen:\n    self.seen.add(room)\nself.seen.remove(room)", []),
        ("if room not in self.peers:\n    self.peers[room] = 1\nself.peers[room] += 1", ["self.peers[room] += 1"]),
        ("try:\n    self.peers[room] if room in self.peers else 1\nexcept (OSError, KeyError):\n    pass", []),
        ("try:\n    pass\nexcept:\n    raise\nelse:\n    x = self.peers[room] if room in self.peers else 1", ["x"]),
    ],
)  # fmt: skip
def test_tests_and_uses(tmp_path: Path, body: str, reported: list[str]) -> None:
    found_there = uses(tmp_path, body)
    assert len(found_there) == len(reported)
    assert all(line.startswith(text) for line, text in zip(found_there, reported, strict=True))


@pytest.mark.parametrize(
    "body",
    [
        "if room not in self.peers:\n    print(room)\n    return\npeer = self.peers[room]\npeer.send()",
        "if room not in self.peers:\n    raise ValueError\npeer = self.peers[room]\npeer.send()",
        "if room not in self.peers:\n    return\nelse:\n    chunk = 1\npeer = self.peers[room]\npeer.send()",
        "if room not in self.peers:\n    return\nchunk = 1\npeer = self.peers[room]\npeer.send()",
        "if chunk or room not in self.peers:\n    return\npeer = self.peers[room]\npeer.send()",
        "assert room in self.peers\npeer = self.peers[room]\npeer.send()",
        "with self.engine:\n    if room not in self.peers:\n        return\npeer = self.peers[room]\npeer.send()",
        "if room in self.peers:\n    print(self.peers.pop(room))",
        "if room in self.peers and self.peers[room] is chunk:\n    pass",
        "if room in self.peers and self.peers[room] == 1:\n    pass",
        "if room in self.peers and (chunk or self.peers[\n    room] == chunk.x):\n    pass",
        "if (room in self.peers and chunk) and self.peers[room] == chunk.x:\n    pass",
        "if room in self.peers and not (self.peers[room] == chunk.x):\n    pass",
        "if room not in self.peers or not (self.peers[room] != chunk.x):\n    pass",
        "if room in self.peers and (self.peers[room] == chunk.x) is False:\n    pass",
        "if room in self.peers and print(self.peers[room] == chunk.x):\n    pass",
        "if room in self.peers and (chunk or self.peers[room] == chunk.x):\n    pass",
    ],
)
def test_uses_without_an_edit(tmp_path: Path, body: str) -> None:
    assert len(uses(tmp_path, body)) == 1
    (finding,) = kvlint.check([tmp_path / "conn.py"], Config(select=("KVL008",)))
    assert finding.plan is None


def test_a_set_that_may_be_something_else(tmp_path: Path) -> None:
    made = MAKER.replace("self.seen = set()", "self.seen = {0} if socket else list()")
    method = "\n    def use(self, room):\n        if room in self.seen:\n            self.seen.remove(room)\n"
    called = THREADS.replace("self.put(chunk.room, Poll.Moving)", "self.use(chunk.room)")
    assert found(tmp_path, "class Manager:" + made + LOCKED + called + CLEAR + method) == []
    made = MAKER.replace("self.seen = set()", "self.seen: object = {}\n        self.seen = {0}")
    (finding,) = found(tmp_path, "class Manager:" + made + LOCKED + called + CLEAR + method)
    assert finding.plan is None


def test_an_exception_that_passes_through_two_helpers(tmp_path: Path) -> None:
    helpers = """
    def use(self, room):
        self._deeper(room)

    def _deeper(self, room):
        if room in self.peers:
            self.peers[room].send()
"""
    called = THREADS.replace("self.put(chunk.room, Poll.Moving)", "self.use(chunk.room)")
    source = MANAGER + LOCKED + called + CLEAR + helpers
    assert lines(tmp_path, found(tmp_path, source)) == ["self.peers[room].send()"]
    caught = helpers.replace(
        "        self._deeper(room)",
        "        try:\n            self._deeper(room)\n        except Exception:\n            pass",
    )
    assert found(tmp_path, source.replace(helpers, caught)) == []


def test_removals_of_which_the_object_is_not_clear(tmp_path: Path) -> None:
    body = "if room in self.peers:\n    self.peers[room].send()"
    clear = CLEAR.replace("self.peers.pop(room, None)", "forget = self.peers.pop\n        forget(room, None)")
    method = "\n    def use(self, room):\n" + textwrap.indent(body, " " * 8)
    called = THREADS.replace("self.put(chunk.room, Poll.Moving)", "self.use(chunk.room)")
    assert found(tmp_path, MANAGER + LOCKED + called + clear + method) == []


def test_who_is_given_more_is_not_through_yet(tmp_path: Path) -> None:
    """A worker's removal meets neither the scheduler that hands items over nor a listener that makes a room known."""
    source = (
        MANAGER
        + LOCKED
        + """
    def work(self):
        while True:
            chunk = self.chunks.get()
            self.put(chunk.room, Poll.Success)
            self.peers.pop(chunk.room, None)

    def listen(self):
        while True:
            room = self.socket.recv()
            if room not in self.peers:
                self.peers[room] = []
            self.peers[room].append(room)
            self.put(room, Poll.Failed)

    def submit(self, room):
        if room in self.peers:
            self.chunks.put(self.peers[room])

    def size(self, room):
        return self.peers[room] if room in self.peers else 0
"""
    )
    assert lines(tmp_path, found(tmp_path, source)) == ["return self.peers[room] if room in self.peers else 0"]


def test_a_neighbour_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("from conn import Manager\nclass Broken(Manager:\n")
    (tmp_path / "unrelated.py").write_text("from conn import Manager\n")
    (finding,) = writers(tmp_path, WRITER)
    assert finding.code == "KVL008"


# -- tasks ---------------------------------------------------------------------


TASKS = """
import asyncio


class Manager:
    def __init__(self):
        self.polls = {}
        self.peers = {}
        self.chunks = asyncio.Queue()
        asyncio.create_task(self.work())
        asyncio.create_task(self.listen())

    def put(self, room, poll: Poll):
        if self.polls.get(room) not in (Poll.Failed, Poll.Success):
            self.polls[room] = poll

    async def work(self):
        while True:
            chunk = await self.chunks.get()
            if chunk.room in self.peers:
                print(self.peers[chunk.room])
            if chunk.room in self.peers:
                await asyncio.sleep(0)
                print(self.peers[chunk.room].late)
            if self.polls.get(chunk.room) != Poll.Failed:
                self.polls[chunk.room] = Poll.Moving
            self.put(chunk.room, Poll.Success)

    async def listen(self):
        while True:
            room = await self.socket.recv()
            self.put(room, Poll.Failed)
            self.peers.pop(room, None)

    def clear(self, room):
        self.polls.pop(room, None)
"""


def test_tasks_of_one_loop_take_turns(tmp_path: Path) -> None:
    assert lines(tmp_path, found(tmp_path, TASKS, config=Config(select=("KVL008",)))) == [
        "print(self.peers[chunk.room].late)"
    ]
    late = TASKS.replace("def put", "async def put").replace(
        "            self.polls[room]", "            await asyncio.sleep(0)\n            self.polls[room]"
    )
    reported = lines(
        tmp_path, found(tmp_path, late.replace("self.put(", "await self.put("), config=Config(select=("KVL008",)))
    )
    assert "async def put(self, room, poll: Poll):" in reported
    locked = (
        TASKS.replace("self.peers = {}", "self.lock = threading.RLock()")
        .replace("if self.polls.get(room) not", "with self.lock:\n          if self.polls.get(room) not")
        .replace("            self.polls[room] = poll", "              self.polls[room] = poll")
    )
    assert "self.polls.pop(room, None)" not in lines(
        tmp_path, found(tmp_path, locked, config=Config(select=("KVL008",)))
    )


def test_objects_that_no_lock_goes_into(tmp_path: Path) -> None:
    maker = MAKER.replace("        self.lock = threading.RLock()\n", "")
    (finding,) = writers(tmp_path, WRITER, "\n    __slots__ = ('polls',)\n" + maker)
    assert finding.plan is None
    forked = maker.replace("threading.Thread(target=self.work)", "multiprocessing.Process(target=self.work)")
    (finding,) = writers(tmp_path, WRITER, forked)
    assert finding.plan is None


# -- opening statuses ----------------------------------------------------------


OPENED = MANAGER + LOCKED + THREADS + CLEAR


def test_configured_opening_statuses(tmp_path: Path) -> None:
    config = Config(select=("KVL006",), protocol=(ProtocolOverride(opening=("Opening", "Moving")),))
    (finding,) = found(tmp_path, OPENED, config=config)
    assert isinstance(finding.plan, OpeningStatus)
    assert finding.plan.opening == ("Poll.Opening", "Poll.Moving")
    assert found(tmp_path, OPENED) == []


LATE = "if self.polls.get(room) not in (Poll.Failed, Poll.Success):\n    self.polls[room] = poll"
TWICE = """\
with self.lock:
    old = self.polls.get(room)
if old in (Poll.Failed, Poll.Success):
    return
with self.lock:
    self.polls[room] = poll
"""


@pytest.mark.parametrize(
    ("statements", "mended"),
    [
        (LATE, True),
        ('"""Doc."""\nglobal x\nwith self.lock:\n' + textwrap.indent(LATE, "    "), True),
        ("with self.lock:\n    with self.other:\n" + textwrap.indent(LATE, " " * 8), True),
        (LATE + "\nwith self.other:\n    self.peers[room] = 1", True),
        ("self.lock.acquire()\ntry:\n" + textwrap.indent(LATE, "    ") + "\nfinally:\n    self.lock.release()", False),
        ("if self.lock.acquire(timeout=1):\n" + textwrap.indent(LATE, "    ") + "\n    self.lock.release()", False),
        ("with ExitStack() as stack:\n    stack.enter_context(self.lock)\n" + textwrap.indent(LATE, "    "), False),
        ("try:\n    with self.lock:\n" + textwrap.indent(LATE, " " * 8) + "\nfinally:\n    pass", False),
        ("x = 1\nwith self.lock:\n" + textwrap.indent(LATE, "    "), False),
        (TWICE, False),
        ("with self.lock:\n    print(room)\n    with self.other:\n" + textwrap.indent(LATE, " " * 8), False),
        ("with self.lock:\n    self.store(room, poll)\nprint(room)", False),
        ("with self.lock:\n" + textwrap.indent(LATE, "    ") + "\n    self.store(room, poll)", True),
        ("self.store(room, poll)\nwith self.lock:\n" + textwrap.indent(LATE, "    "), False),
        (LATE + "\nsuper().__init__()", True),
    ],
)
def test_where_the_guard_would_stand(tmp_path: Path, statements: str, mended: bool) -> None:
    writer = "\n    def put(self, room, poll: Poll):\n" + textwrap.indent(statements, " " * 8) + "\n"
    store = "\n    def store(self, room, poll: Poll):\n" + textwrap.indent(LATE, " " * 8) + "\n"
    opener = "\n\nclass Opener:\n    def __init__(self, manager: Manager):\n        manager.put(1, Poll.Opening)\n"
    source = MANAGER + writer + store * ("self.store" in statements) + THREADS + CLEAR + opener
    plans = [finding.plan for finding in found(tmp_path, source) if finding.code == "KVL006"]
    assert plans
    assert any(isinstance(plan, OpeningStatus) and plan.function == "put" for plan in plans) is mended


@pytest.mark.parametrize(
    ("statement", "opens"),
    [
        ("self.peers[room] = 1", True),
        ("self.peers.setdefault(room, [])", True),
        ("self.seen.add(room)", True),
        ("self.peers[chunk] = 1", False),
        ("self.polls[room] = Poll.Opening", False),
        ("print(room)", False),
    ],
)
def test_what_a_listener_keeps(tmp_path: Path, statement: str, opens: bool) -> None:
    listen = (
        f"self.put(self.socket.recv(), Poll.Failed)\n            room = self.socket.recv()\n            {statement}\n"
    )
    listen += "            self.put(room, Poll.Opening)"
    source = OPENED.replace("self.put(self.socket.recv(), Poll.Failed)", listen)
    assert [finding.code for finding in found(tmp_path, source) if finding.code == "KVL006"] == ["KVL006"] * opens


def test_an_enum_that_the_writer_cannot_spell(tmp_path: Path) -> None:
    (tmp_path / "base.py").write_text(
        HEAD + "class Base:\n    def __init__(self):\n        self.polls = {}\n\n"
        "    def clear(self, room):\n        self.polls.pop(room, None)\n"
        "\n    def first(self):\n        self.polls[0] = Poll.Opening\n"
        "\n\nclass Opener:\n    def __init__(self, manager):\n        manager.put(1, Poll.Opening)\n"
    )
    source = """
class Manager(Base):
    def put(self, room, status):
        if room not in self.polls or self.polls[room] > 0:
            self.polls[room] = status
"""
    (finding,) = found(tmp_path, source, head="from base import Base\n")
    assert (finding.code, finding.plan) == ("KVL006", None)


def test_a_store_after_giving_way(tmp_path: Path) -> None:
    late = TASKS.replace(
        "                self.polls[chunk.room] = Poll.Moving",
        "                await asyncio.sleep(0)\n                self.polls[chunk.room] = Poll.Moving",
    )
    reported = lines(tmp_path, found(tmp_path, late, config=Config(select=("KVL008",))))
    assert "self.polls[chunk.room] = Poll.Moving" in reported
