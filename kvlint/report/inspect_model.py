"""What ``kvlint inspect`` shows of a file, as plain data in the order in which it is shown.

Built by `kvlint.report.inspect_build`, rendered by `inspect_text` and, field by
field, by `inspect_json`; nothing here knows how any of it was found out.
"""

from __future__ import annotations

from typing import Literal

import msgspec

#: The key and outcome that stand for a room which the status table does not hold.
ABSENT = "-"
#: The outcome that stands for a stored value which is no member of the status enum.
FOREIGN = "~"


class Noun(msgspec.Struct, frozen=True, rename={"cls": "class"}):
    """Plain data; in JSON, ``cls`` is spelled ``class``."""


class Spot(Noun, frozen=True):
    """A line of a file; ``path`` is a display path, ``brief`` a short form of it, empty for the inspected file."""

    path: str
    line: int
    brief: str


class Member(Noun, frozen=True):
    """A member of a status enum; ``letter`` stands for it in transition tables."""

    name: str
    value: str
    letter: str
    role: Literal["failure", "success", "opening", "live"]


class Enum(Noun, frozen=True):
    """A status enum that the file defines or mentions."""

    name: str
    spot: Spot
    is_defined_here: bool
    members: tuple[Member, ...]

    @property
    def has_failure(self) -> bool:
        """Whether any member is a failure."""
        return any(member.role == "failure" for member in self.members)


class Named(Noun, frozen=True):
    """A method, with the class whose body holds it; ``detail`` depends on where it stands."""

    cls: str
    name: str
    spot: Spot
    detail: str = ""


class Keeper(Noun, frozen=True):
    """A class that keeps a status: per room in a dict (``table``), or its own (``attribute``).

    ``writers`` are the methods that calls reach, with their notation, ``helpers``
    those that conclude, with the members they write.
    """

    name: str
    spot: Spot
    enum: str
    kind: str
    attribute: str
    bases: tuple[str, ...]
    missing_bases: tuple[str, ...]
    writers: tuple[Named, ...]
    passing_on: tuple[Named, ...]
    readers: tuple[Named, ...]
    recorder: Named | None
    helpers: tuple[Named, ...]


class CellModel(Noun, frozen=True):
    """What one write may leave stored; ``outcomes`` None where that could not be decided."""

    outcomes: tuple[str, ...] | None
    raises: bool


class Row(Noun, frozen=True):
    """One stored status of a transition table: its name, its letter, a symbol per written member, what to note."""

    stored: str
    letter: str
    symbols: tuple[str, ...]
    notes: tuple[str, ...]


class WriterModel(Noun, frozen=True):
    """A status writer that the file defines; not ``judged`` where it only ever sets the ends of a record."""

    path: str
    line: int
    cls: str
    name: str
    enum: str
    attribute: str
    judged: bool
    table: str
    rows: tuple[Row, ...]
    cells: dict[str, dict[str, CellModel]]
    undecided: int


class WriteModel(Noun, frozen=True):
    """A place that writes a status; ``statuses`` is empty where that could not be told or is ``passed_on``.

    ``kind`` is that of a `Keeper`; ``direct`` where no writer is called.
    """

    line: int
    function: str
    threads: tuple[str, ...]
    statuses: tuple[str, ...]
    attribute: str
    kind: str
    direct: bool
    passed_on: bool


class Runner(Noun, frozen=True):
    """A function that a thread runs: a worker (``concludes`` items), a listener or another; ``started`` are lines."""

    function: str
    spot: Spot
    thread: str
    role: str
    concludes: bool
    started: tuple[int, ...]


class AbortModel(Noun, frozen=True):
    """Lines that run because a room is to be given up."""

    function: str
    line: int
    end_line: int
    reason: str


class Site(Noun, frozen=True):
    """A removal from a room table and what it implies; ``abort`` says why it is an abort handler's."""

    spot: Spot
    function: str
    threads: tuple[str, ...]
    verdict: str
    reason: str
    abort: str | None


class Catalogue(Noun, frozen=True):
    """Every removal from one room table of a class's hierarchy."""

    cls: str
    table: str
    sites: tuple[Site, ...]


class Toucher(Noun, frozen=True):
    """What one function does with a dict on one thread."""

    touch: str
    thread: str
    function: str
    spot: Spot


class Dict(Noun, frozen=True):
    """Who touches a dict of a class's hierarchy."""

    cls: str
    name: str
    accesses: tuple[Toucher, ...]


class DropModel(Noun, frozen=True):
    """A way through a worker on which an item is given up while its room is live, and whether that is excused."""

    worker: str
    spot: Spot
    decided: Spot
    causes: tuple[str, ...]
    statuses: tuple[str, ...]
    excused: bool
    why: str


class Undecided(Noun, frozen=True):
    """Something that kvlint does not know, and stays silent on."""

    kind: Literal["base", "cell", "removal", "write"]
    spot: Spot
    what: str


class FileModel(Noun, frozen=True):
    """Everything shown of one file."""

    path: str
    enums: tuple[Enum, ...]
    classes: tuple[Keeper, ...]
    writers: tuple[WriterModel, ...]
    writes: tuple[WriteModel, ...]
    threads: tuple[Runner, ...]
    abort_handlers: tuple[AbortModel, ...]
    removals: tuple[Catalogue, ...]
    dicts: tuple[Dict, ...]
    drops: tuple[DropModel, ...]
    undecided: tuple[Undecided, ...]

    @property
    def speaks(self) -> bool:
        """Whether the file has to do with a status protocol at all."""
        return bool(self.enums) or self.takes_part

    @property
    def takes_part(self) -> bool:
        """Whether it does more than mention statuses."""
        in_doubt = any(item.kind == "base" for item in self.undecided)
        return in_doubt or bool(self.classes or self.writes or any(enum.is_defined_here for enum in self.enums))
