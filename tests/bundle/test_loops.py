"""Whether an exception ends a loop: told where it can be told, and nowhere else."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from kvlint.analysis.facts import facts_of
from kvlint.analysis.handlers import thread_roots
from kvlint.bundle.loops import Ending, ending_of
from kvlint.config import Config
from kvlint.report.audit_model import Fate
from kvlint.semantics.world import World

HEAD = """\
import contextlib
import logging
import threading

logger = logging.getLogger(__name__)


class Poll:
    Failed = 0
    Bootstrapping = 1
    WaitingForInput = 2
    Success = 4


class Manager:
    def __init__(self):
        self.request_status = {}
        self.exceptions = {}
        self.lock = threading.Lock()
        threading.Thread(target=self.loop).start()

    def update_status(self, room, status):
        if self.request_status.get(room) != Poll.Failed:
            self.request_status[room] = status

    def conclude(self, room):
        self.update_status(room, Poll.Failed)

    def insist(self, room):
        if room is None:
            raise ValueError("no room")

    def wrapped(self, room):
        self.insist(room)

    def loop(self):
"""

WORKER = """\
while True:
    item = self.queue.get()
    {0}
"""
LISTENER = """\
while True:
    frames = self.socket.recv_multipart()
    {0}
"""


def ending(body: str, tmp_path: Path, loop: str = WORKER) -> Ending | None:
    source = HEAD + textwrap.indent(loop.format(textwrap.indent(textwrap.dedent(body), "    ").strip()), " " * 8)
    path = tmp_path / "backend.py"
    path.write_text(source, encoding="utf-8")
    facts = facts_of(str(path), World(Config(), {}))
    (root,) = [root for root in thread_roots(facts.world, facts.module) if root.place.name == "loop"]
    return ending_of(root)


def fate(body: str, tmp_path: Path, loop: str = WORKER) -> Fate | None:
    found = ending(body, tmp_path, loop)
    return None if found is None else found.fate


GUARDED = """
room = item.room
try:
    self.work(item)
except {0}:
    {1}
"""

ENDS = [
    "assert item.room",
    "if item is None:\n    raise RuntimeError('no item')",
    "for part in self.parts:\n    raise KeyError(part)",
    "while self.parts:\n    assert item",
    "match item:\n    case None:\n        raise KeyError(1)",
    "with self.lock:\n    assert item",
    GUARDED.format("Exception as error", "raise RuntimeError(f'failed: {error}')"),
    GUARDED.format("Exception", "raise"),
    GUARDED.format("Exception", "break"),
    GUARDED.format("Exception", "logger.exception('failed'); return"),
    GUARDED.format("BaseException", "assert False"),
    "try:\n    raise KeyError(1)\nexcept ValueError:\n    pass",
    "try:\n    assert item\nexcept (KeyError, OSError):\n    pass",
    "try:\n    pass\nexcept Exception:\n    pass\nelse:\n    raise KeyError(1)",
    "try:\n    pass\nfinally:\n    assert item",
    "try:\n    pass\nexcept KeyError:\n    raise",
]

GOES_ON = [
    "pass",
    GUARDED.format("Exception", "logger.exception('failed')"),
    GUARDED.format("", "logger.exception('failed')"),
    GUARDED.format("BaseException", "pass"),
    GUARDED.format("(OSError, Exception)", "pass"),
    GUARDED.format("Exception as error", "self.exceptions[room] = str(error)"),
    GUARDED.format("Exception", "self.conclude(room)"),
    GUARDED.format("Exception", "self.exceptions.pop(room, None)"),
    GUARDED.format("Exception", "continue"),
    GUARDED.format("Exception", "\n    try:\n        self.other()\n    except Exception:\n        pass"),
    GUARDED.format("Exception", "\n    for part in room:\n        break"),
    "with contextlib.suppress(Exception):\n    self.work(item)",
    "try:\n    assert item\n    raise KeyError(1)\nexcept Exception:\n    pass",
    "try:\n    try:\n        self.work(item)\n    finally:\n        self.work(item)\nexcept Exception:\n    pass",
    "parts: list[int] = []\nlogger.debug('took %s', item)",
    "def later():\n    raise KeyError(1)",
]

UNKNOWN = [
    "self.work(item)",
    "self.work(item)\ntry:\n    self.work(item)\nexcept Exception:\n    pass",
    "first = item[0]",
    "total = item.first + item.second",
    "del self.exceptions[item]",
    GUARDED.format("Exception", "self.work(room)"),
    GUARDED.format("Exception", "\n    if self.stopped:\n        break\n    logger.exception('failed')"),
    GUARDED.format("Exception", "\n    with self.lock:\n        return"),
    GUARDED.format("Exception", "self.insist(room)"),
    GUARDED.format("Exception", "self.wrapped(room)"),
    GUARDED.format("Exception", "self.exceptions.pop(room)"),
    GUARDED.format("KeyError", "pass"),
    "try:\n    raise OwnError(1)\nexcept ValueError:\n    pass",
    "try:\n    raise item.error\nexcept ValueError:\n    pass",
    "try:\n    assert item\nexcept OwnError:\n    pass",
    "try:\n    assert item\nexcept kinds()[0]:\n    pass",
    "try:\n    assert item\nexcept (AssertionError, KeyError):\n    pass",
    "try:\n    raise KeyError(1)\nexcept LookupError:\n    pass",
    "try:\n    assert item\nfinally:\n    continue",
    "with self.swallowing():\n    assert item",
    "with contextlib.suppress(KeyError):\n    self.work(item)",
]


@pytest.mark.parametrize("body", ENDS)
def test_a_loop_that_an_exception_ends(body: str, tmp_path: Path) -> None:
    assert fate(body, tmp_path) is Fate.ENDS


@pytest.mark.parametrize("body", GOES_ON)
def test_a_loop_that_goes_on(body: str, tmp_path: Path) -> None:
    assert fate(body, tmp_path) is Fate.GOES_ON


@pytest.mark.parametrize("body", UNKNOWN)
def test_a_loop_of_which_it_is_not_known(body: str, tmp_path: Path) -> None:
    assert fate(body, tmp_path) is Fate.UNKNOWN


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("room = int(frames[0])", Fate.ENDS),
        ("room = frames[0].decode('ascii')", Fate.ENDS),
        ("room = frames[1]", Fate.ENDS),
        ("room, status = frames", Fate.ENDS),
        ("tail = frames[1:]\nroom = int(tail[0].decode())", Fate.ENDS),
        ("head: bytes = frames[0]\nroom = int(head)", Fate.ENDS),
        ("room, *rest = frames", Fate.UNKNOWN),
        ("if frames[0] == b'x':\n    continue", Fate.UNKNOWN),
        ("try:\n    room = int(frames[0])\nexcept ValueError:\n    continue", Fate.UNKNOWN),
        ("try:\n    room, status = frames\nexcept ValueError:\n    continue", Fate.UNKNOWN),
        ("try:\n    room, status = frames\nexcept Exception:\n    continue", Fate.GOES_ON),
        ("try:\n    room = int(frames[0])\nexcept Exception:\n    continue", Fate.GOES_ON),
        ("room = int(self.port)", Fate.UNKNOWN),
    ],
)
def test_a_malformed_message(body: str, expected: Fate, tmp_path: Path) -> None:
    assert fate(body, tmp_path, LISTENER) is expected


def test_a_message_taken_apart_at_once(tmp_path: Path) -> None:
    loop = "while True:\n    room, status = self.socket.recv_multipart()\n    {0}\n"
    assert fate("pass", tmp_path, loop) is Fate.ENDS


def test_the_worst_decides_and_its_line_is_told(tmp_path: Path) -> None:
    found = ending("self.work(item)\nassert item.room\nself.work(item)", tmp_path)
    assert found is not None
    source = (tmp_path / "backend.py").read_text("utf-8").splitlines()
    assert source[found.line - 1].strip() == "assert item.room"
    assert found.reason == "an assert that nothing in the loop catches"


def test_the_outermost_loop_lives_longest(tmp_path: Path) -> None:
    loop = """\
while True:
    try:
        while True:
            item = self.queue.get()
            {0}
    except Exception:
        logger.exception('starting again')
"""
    source = loop.replace("{0}", "assert item")
    assert fate("", tmp_path, source) is Fate.GOES_ON


def test_a_loop_over_a_queue(tmp_path: Path) -> None:
    assert fate("assert item", tmp_path, "for item in iter(self.queue.get, None):\n    {0}\n") is Fate.ENDS


def test_a_function_without_loop(tmp_path: Path) -> None:
    assert fate("", tmp_path, "self.work(1)\n{0}") is None
