"""A protocol to put small classes behind, and what is found in them."""

from __future__ import annotations

import textwrap
from pathlib import Path

import kvlint

PROTOCOL = """\
import abc
import contextlib
import functools
import queue
import threading
import time
from heapq import heappop


class Poll:
    Failed = 0
    Waiting = 1
    Transferring = 2
    Done = 3


def describe(room):
    return f"room {room}"


def fail(manager: "Manager", room):
    manager.update_status(room, Poll.Failed)


def watch(table, room):
    return room in table


def made():
    return {}


@functools.cache
def costly(chunk):
    return chunk.room


def note(manager, room):
    manager.later = room


class Reply:
    def __init__(self, chunk):
        self.chunk = chunk


class Base:
    def conclude(self, room):
        self.update_status(room, Poll.Failed)


class Manager(Base):
    def __init__(self, socket, engine):
        self.socket = socket
        self.engine = engine
        self.request_status = {}
        self.infos = {}
        self.chunks = queue.Queue()
        self.later = []
        self.handlers = []

    def check_status(self, room):
        return self.request_status[room]

    def update_status(self, room, status: Poll):
        stored = self.request_status.get(room)
        if stored in (Poll.Failed, Poll.Done):
            return
        if stored is None and status != Poll.Waiting:
            return
        self.request_status[room] = status

    def open(self, room, info):
        self.infos[room] = info
        self.update_status(room, Poll.Waiting)

    def forget(self, room):
        self.infos.pop(room, None)

    def clear(self, room):
        self.request_status.pop(room, None)
        self.infos.pop(room, None)
"""


def behind_the_protocol(body: str) -> str:
    """A module whose class ``Manager`` goes on with ``body``."""
    return PROTOCOL + textwrap.indent(textwrap.dedent(body), "    ")


def expected(source: str) -> list[tuple[int, str]]:
    """Line and code of every ``# expect:`` comment."""
    return [
        (number, line.split("# expect: ")[1])
        for number, line in enumerate(source.splitlines(), 1)
        if "# expect" in line
    ]


def found(path: Path) -> list[tuple[int, str]]:
    """Line and code of every finding in a file or folder."""
    return [(finding.location.span.line, finding.code) for finding in kvlint.check([path])]
