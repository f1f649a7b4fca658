"""Abstract values of the interpreter.

Every value carries its *causes*: the shared state (the status, a room table) it
was computed from, which is what makes a branch on it a decision about the room.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kvlint.analysis import ir
from kvlint.semantics.constants import Constant
from kvlint.semantics.hierarchy import ClassInfo
from kvlint.semantics.module import Module

STATUS: Final = "status"  # the cause of a value computed from the stored or the written status
EXCEPTION: Final = "exception"  # the cause of a branch taken because something raised

Causes = frozenset[str]
NO_CAUSES: Final[Causes] = frozenset()


class Mark:
    """What is stored where that is no constant: ABSENT or UNDECIDED."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


ABSENT: Final = Mark("ABSENT")
UNDECIDED: Final = Mark("UNDECIDED")
Stored = Constant | Mark


class Known(Struct, frozen=True):
    """A constant.  ``mutable``: a fresh empty list, dict or set, known only until something touches it."""

    value: Constant
    causes: Causes = NO_CAUSES
    mutable: bool = False


class Something(Struct, frozen=True):
    """Any value.

    ``undecided``: a function of the status that could not be computed, so
    branching on it is a guess; ``truth`` is known where a branch was taken on
    it; ``reaches`` where the status may be reached through it.
    """

    causes: Causes = NO_CAUSES
    undecided: bool = False
    not_none: bool = False
    truth: bool | None = None
    reaches: bool = False


class Key(Struct, frozen=True):
    """The room."""

    causes: Causes = NO_CAUSES


class Item(Struct, frozen=True):
    """The work item (``part``: something reached through it)."""

    part: bool = False
    causes: Causes = NO_CAUSES


class Object(Struct, frozen=True):
    """An instance of a known class.

    ``path`` is how the object under analysis reaches it (``""``: it is that
    object, ``"session."``: its attribute), None where it was made on the way.
    """

    cls: ClassInfo
    causes: Causes = NO_CAUSES
    path: str | None = ""


class Super(Struct, frozen=True):
    """``super()`` in ``after`` on an instance of ``cls``."""

    cls: ClassInfo
    after: ClassInfo
    causes: Causes = NO_CAUSES
    path: str | None = ""


class StatusTable(Struct, frozen=True):
    """The status table itself, or a view of its keys."""

    causes: Causes = NO_CAUSES


class Field(Struct, frozen=True):
    """An attribute of a known object that is no method: ``name`` is the attribute.

    ``container``: it is known to hold a built-in dict, list or set.
    """

    name: str
    causes: Causes = NO_CAUSES
    container: bool = False


class Global(Struct, frozen=True):
    """A module-level name, not looked up yet."""

    module: Module
    dotted: str
    causes: Causes = NO_CAUSES


class Several(Struct, frozen=True):
    """A tuple whose parts are not all constants; ``mutable``: a list, known only until something touches it."""

    items: tuple[Value, ...]
    causes: Causes = NO_CAUSES
    mutable: bool = False


class Pairs(Struct, frozen=True):
    """A dict display that is not all constants."""

    items: tuple[tuple[Value, Value], ...]
    causes: Causes = NO_CAUSES


class Local(Struct, frozen=True):
    """A nested function or lambda of the frame ``frame``."""

    function: ir.Function
    frame: int
    causes: Causes = NO_CAUSES


class BoundCall(Struct, frozen=True):
    """A method taken off an object without calling it (``pop = self.infos.pop``)."""

    owner: Value
    name: str
    causes: Causes = NO_CAUSES


Value = (
    Known | Something | Key | Item | Object | Super | StatusTable | Field | Global | Several | Pairs | Local | BoundCall
)
NONE: Final = Known(None)
UNKNOWN: Final = Something()


def with_causes(value: Value, causes: Causes) -> Value:
    """``value``, also caused by ``causes``."""
    return value if causes <= value.causes else replace(value, causes=value.causes | causes)


def causes_of(values: Iterable[Value]) -> Causes:
    """The union of the values' causes."""
    union = NO_CAUSES
    for value in values:
        union |= value.causes
        if isinstance(value, Several):
            union |= causes_of(value.items)
        elif isinstance(value, Pairs):
            union |= causes_of(part for pair in value.items for part in pair)
    return union


def computed_from(values: Iterable[Value]) -> Something:
    """The unknown result of an operation on ``values``."""
    causes, undecided = NO_CAUSES, False
    for value in values:
        if value.__class__ is Several or value.__class__ is Pairs:
            causes |= causes_of((value,))
        elif value.causes:
            causes |= value.causes
        undecided = undecided or _is_undecided(value)
    return Something(causes, undecided or STATUS in causes) if causes or undecided else UNKNOWN


def is_mutable(value: Value) -> bool:
    """Whether ``value`` is a list, set or dict whose contents are known for now."""
    match value:
        case Known(mutable=mutable) | Several(mutable=mutable):
            return mutable
        case _:
            return isinstance(value, Pairs)


def _is_undecided(value: Value) -> bool:
    match value:
        case Something(undecided=undecided):
            return undecided
        case Several(items=items):
            return any(_is_undecided(item) for item in items)
        case Pairs(items=pairs):
            return any(_is_undecided(part) for pair in pairs for part in pair)
        case BoundCall(owner=owner):
            return _is_undecided(owner)
        case _:
            return False


def carries(value: Value) -> bool:
    """Whether code that gets hold of ``value`` can reach the status through it."""
    match value:
        case Object() | Super() | StatusTable() | Local():
            return True
        case Something(reaches=reaches):
            return reaches
        case BoundCall(owner=owner):
            return carries(owner)
        case Several(items=items):
            return any(carries(item) for item in items)
        case Pairs(items=pairs):
            return any(carries(part) for pair in pairs for part in pair)
        case _:
            return False
