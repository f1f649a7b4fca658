"""Random modules with a status enum, one or two classes and a writer ``update(self, room, status)``."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from textwrap import indent

from hypothesis import strategies as st

from .writer_grammar import Block, Choose, Enumeration, Scope, Suite, Vocabulary, rendered
from .writer_statements import Scripting, leaves

#: Names of members: a failure, a success, then live ones.
_NAMES = (
    ("Failed", "Success", "Waiting", "Sending"),
    ("ABORTED", "DONE", "NEW", "RUNNING"),
    ("error", "finished", "open", "moving"),
)
_KINDS = ("class of int", "IntEnum", "Enum", "class of str", "StrEnum")
#: Tests of state that has nothing to do with the status, by what sets it up.
FLAGS = {"strict": "self.strict", "infos": "(room in self.infos)", "urgent": "urgent"}

_HEAD = """\
import enum
import logging
import threading
from contextlib import suppress

logger = logging.getLogger(__name__)


class Refused(Exception):
    pass


"""
_SETUP = """\
def __init__(self):
    self.statuses: dict[int, {enum}] = {{}}
    self.infos = {{}}
    self.seen = set()
    self.count = 0
    self.strict = False
    self.lock = threading.RLock()
"""


@dataclass(frozen=True, slots=True)
class Program:
    """A module's source.

    ``owner`` is the class to run ``update`` on, ``flags`` are the pieces of
    unrelated state that the code tests.
    """

    source: str
    enum: Enumeration
    owner: str
    flags: tuple[str, ...]

    def __repr__(self) -> str:  # hypothesis prints failing examples by it
        return f"\n{self.source}\n# {self.owner}, {self.flags}"


def enumeration(choose: Choose) -> Enumeration:
    """A status enum with a success, mostly a failure, and one or two live members, in any order."""
    failure, success, *live = choose(_NAMES)
    kind = choose(_KINDS)
    chosen = [success, *live[: choose((1, 2))]]
    if choose((True, True, True, True, False)):
        chosen.append(failure)
    members = _shuffled(choose, chosen)
    step = choose((1, 10))
    lines = list(_member_lines(kind, members, step, choose((0, 1))))
    header = {"IntEnum": "(enum.IntEnum)", "Enum": "(enum.Enum)", "StrEnum": "(str, enum.Enum)"}.get(kind, "")
    return Enumeration("Poll", kind, tuple(members), f"class Poll{header}:\n" + "".join(f"    {x}\n" for x in lines))


def _shuffled(choose: Choose, names: list[str]) -> list[str]:
    rest = list(names)
    return [rest.pop(choose(range(len(rest)))) for _ in names]


def _member_lines(kind: str, members: list[str], step: int, first: int) -> Iterator[str]:
    for index, name in enumerate(members):
        if kind in {"class of str", "StrEnum"} or (kind == "Enum" and step > 1):
            yield f"{name} = {name.lower()!r}"
        elif kind == "Enum" or (kind == "IntEnum" and first):
            yield f"{name} = enum.auto()"
        else:
            yield f"{name} = {first + index * step}"


@dataclass(frozen=True, slots=True)
class Form:
    """A function to be written: its header, what its body can use, and how deep that nests."""

    header: str
    scope: Scope
    depth: int = 1


_STORED = Scope(statuses=(), optionals=("stored",), owned=frozenset({"stored"}), result="condition")
_BOTH = replace(_STORED, statuses=("status",), owned=frozenset({"stored", "status"}), result="status")
_ROOM = Scope(
    statuses=("status",), owned=frozenset({"status"}), rooms=("room",), tables=("self.statuses",), receiver="self"
)
_FUNCTIONS = frozenset({"force", "stronger", "final"})
#: Helpers by name; each calls only those after it.
_FORMS = {
    "keep": Form(
        "def keep(self, room, status):",
        replace(_ROOM, helpers=frozenset({"is_final", "has_ended", "final", "merged", "check"})),
        depth=2,
    ),
    "force": Form(
        "def force(manager, room, status):",
        replace(
            _ROOM,
            tables=("manager.statuses",),
            receiver="manager",
            helpers=frozenset({"final", "stronger", "check", "merged"}),
        ),
    ),
    "check": Form(
        "def check(self, room, status):", replace(_ROOM, helpers=frozenset({"is_final", "has_ended", "final"}))
    ),
    "merged": Form(
        "def merged(self, stored, status):",
        replace(_BOTH, receiver="self", helpers=frozenset({"final", "stronger", "is_final", "weaker"})),
    ),
    "has_ended": Form(
        "def has_ended(self, room):",
        replace(_ROOM, statuses=(), owned=frozenset(), helpers=frozenset({"final", "is_final"}), result="condition"),
    ),
    "weaker": Form(
        "@staticmethod\ndef weaker(stored, status):", replace(_BOTH, helpers=frozenset({"final", "stronger"}))
    ),
    "stronger": Form("def stronger(stored, status):", replace(_BOTH, helpers=frozenset({"final"}))),
    "is_final": Form("def is_final(self, stored):", replace(_STORED, receiver="self", helpers=frozenset({"final"}))),
    "final": Form("def final(stored):", _STORED),
}
_WRITER = Form("def update(self, room, status, urgent=False):", replace(_ROOM, helpers=frozenset(_FORMS)), depth=2)
_OVERRIDE = replace(_WRITER, scope=replace(_WRITER.scope, helpers=frozenset({*_FORMS, "super"})))


def program(choose: Choose) -> Program:
    """A module with a writer."""
    enum = enumeration(choose)
    flag = choose((None, None, *FLAGS))
    words = Vocabulary(enum, ("TERMINAL", "LIVE"), ("MOVES",))
    flagged = words if flag is None else replace(words, flags=(FLAGS[flag],))
    inner = words if flag == "urgent" else flagged
    owner = choose(("Base", "Manager"))
    writers = {"Base": _written(choose, flagged, _WRITER, 1)}
    if owner == "Manager":
        writers["Manager"] = _written(choose, flagged, _OVERRIDE, 1)
    helpers = _needed(choose, inner, "".join(writers.values()))
    source = "".join((_HEAD, enum.source, "\n\n", *_constants(choose, words), *_classes(enum, writers, helpers)))
    is_used = flag is not None and FLAGS[flag] in source.replace("urgent=False", "")
    return Program(source, enum, owner, (flag,) if flag is not None and is_used else ())


def numbered(number: int) -> Program:
    """Program ``number``, the same one on every machine."""
    return program(random.Random(number).choice)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Any program, as hypothesis likes; what it finds, it shrinks."""
    return program(lambda options: draw(st.sampled_from(options)))


def _needed(choose: Choose, words: Vocabulary, text: str) -> dict[str, str]:
    """The helpers that ``text`` calls and those that they call, by name; callers come first in ``_FORMS``."""
    found: dict[str, str] = {}
    for name, form in _FORMS.items():
        if f"{name}(" in text:
            found[name] = _written(choose, words, form, 0 if name in _FUNCTIONS else 1)
            text += found[name]
    return found


def _classes(enum: Enumeration, writers: dict[str, str], helpers: dict[str, str]) -> Iterator[str]:
    for name, text in helpers.items():
        if name in _FUNCTIONS:
            yield f"\n\n{text}"
    yield "\n\nclass Base:\n" + indent(_SETUP.format(enum=enum.name), "    ")
    for name, text in helpers.items():
        if name not in _FUNCTIONS:
            yield f"\n{text}"
    yield f"\n{writers['Base']}"
    if "Manager" in writers:
        yield f"\n\nclass Manager(Base):\n{writers['Manager']}"


def _constants(choose: Choose, words: Vocabulary) -> Iterator[str]:
    script = Scripting(choose, replace(words, collections=("()",), maps=("{}",)))
    for name in words.collections:
        yield f"{name} = {script.collection()}\n"
    for name in words.maps:
        yield f"{name} = {script.display(script.collection)}\n"


def _written(choose: Choose, words: Vocabulary, form: Form, depth: int) -> str:
    script = Scripting(choose, words)
    body = script.block(form.scope, form.depth, 1)
    if form.scope.result != "nothing" and not leaves(body):
        body = (*body, script.result(form.scope, 1))
    *decorators, header = form.header.split("\n")
    function: Block = (*decorators, Suite(((header, body),)))
    return "".join(line + "\n" for line in rendered(function, depth))
