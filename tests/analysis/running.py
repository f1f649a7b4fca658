"""Both sides of the differential test: running a generated writer, and computing its transition table."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kvlint.analysis.evidence import status_enum_of
from kvlint.analysis.subject import StatusEnum, Subject
from kvlint.analysis.transition import Signature, TransitionTable, transition_table
from kvlint.analysis.values import ABSENT, Stored
from kvlint.config import Config
from kvlint.semantics.hierarchy import resolve_class
from kvlint.semantics.world import World

from .writer_programs import Program

ROOM = 7
NOTHING = "nothing"
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Ran:
    """What running the writer over one stored status left there, for each setting of the unrelated state."""

    stored: frozenset[str]
    raised: bool
    always_raised: bool


def run(program: Program) -> dict[Pair, Ran]:
    """Every pair of a stored and a written member (or NOTHING stored) run on fresh objects."""
    namespace: dict[str, Any] = {"__name__": "program"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # a generated `return` in a `finally`
        code = compile(program.source, "program.py", "exec")
    exec(code, namespace)
    enum, owner = namespace[program.enum.name], namespace[program.owner]
    found: dict[Pair, Ran] = {}
    for stored in (NOTHING, *program.enum.members):
        for written in program.enum.members:
            ends = [_run_once(owner, enum, stored, written, setting) for setting in _settings(program)]
            raised = [each for _, each in ends]
            found[stored, written] = Ran(frozenset(left for left, _ in ends), any(raised), all(raised))
    return found


def _settings(program: Program) -> Iterator[frozenset[str]]:
    for values in itertools.product((False, True), repeat=len(program.flags)):
        yield frozenset(itertools.compress(program.flags, values))


def _run_once(owner: Any, enum: Any, stored: str, written: str, flags: frozenset[str]) -> tuple[str, bool]:
    manager = owner()
    manager.strict = "strict" in flags
    if "infos" in flags:
        manager.infos[ROOM] = None
    if stored != NOTHING:
        manager.statuses[ROOM] = getattr(enum, stored)
    raised = False
    try:
        manager.update(ROOM, getattr(enum, written), **({"urgent": True} if "urgent" in flags else {}))
    except Exception:
        raised = True
    left = manager.statuses.get(ROOM, NOTHING)
    if left is NOTHING:
        return NOTHING, raised
    names = (
        name for name, value in vars(enum).items() if value == left and type(value) is type(left) and name[0] != "_"
    )
    return next(names, repr(left)), raised


def compute(program: Program) -> TransitionTable:
    """The transition table of the same writer."""
    path = "/nowhere/program.py"
    world = World(Config(), overlay={path: program.source.encode()})
    module = world.module(path)
    cls, enum_class = resolve_class(world, module, program.owner), resolve_class(world, module, program.enum.name)
    assert cls is not None
    assert enum_class is not None
    enum, method = status_enum_of(enum_class), cls.lookup("update")
    assert enum is not None
    assert method is not None
    subject = Subject(enum, "table", "statuses", frozenset({"update"}))
    return transition_table(world, subject, cls, method, Signature("self", "room", "status"))


def stored_name(enum: StatusEnum, stored: Stored) -> str:
    """``stored`` as ``run`` names it."""
    return NOTHING if stored is ABSENT else enum.name_of(stored) or repr(stored)
