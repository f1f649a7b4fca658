"""Abstract values and states of the interpreter.

One state stands for one room: the status stored for it is a concrete member,
ABSENT or UNDECIDED, so a transition table is a handful of runs.  Every value
carries its *causes*: the shared state (the status, a room table) it was
computed from, which is what makes a branch on it a decision about the room.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from kvlint.analysis import ir
from kvlint.semantics.constants import Constant
from kvlint.semantics.hierarchy import ClassInfo
from kvlint.semantics.module import Module

STATUS: Final = "status"  # the cause of a value computed from the stored or the written status
EXCEPTION: Final = "exception"  # the cause of a branch taken because something raised

Causes = frozenset[str]
NO_CAUSES: Final[Causes] = frozenset()


class _Mark:
    """A named singleton."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


ABSENT: Final = _Mark("ABSENT")
UNDECIDED: Final = _Mark("UNDECIDED")
Stored = Constant | _Mark


@dataclass(frozen=True, slots=True)
class Known:
    """A constant.  ``mutable``: a fresh empty list, dict or set, known only until something touches it."""

    value: Constant
    causes: Causes = NO_CAUSES
    mutable: bool = False


@dataclass(frozen=True, slots=True)
class Something:
    """Any value.  ``undecided``: a function of the status that could not be computed, so branching on it is a guess."""

    causes: Causes = NO_CAUSES
    undecided: bool = False
    not_none: bool = False


@dataclass(frozen=True, slots=True)
class Key:
    """The room."""

    causes: Causes = NO_CAUSES


@dataclass(frozen=True, slots=True)
class Item:
    """The work item (``part``: something reached through it)."""

    part: bool = False
    causes: Causes = NO_CAUSES


@dataclass(frozen=True, slots=True)
class Object:
    """An instance of a known class."""

    cls: ClassInfo
    causes: Causes = NO_CAUSES


@dataclass(frozen=True, slots=True)
class Super:
    """``super()`` in ``after`` on an instance of ``cls``."""

    cls: ClassInfo
    after: ClassInfo
    causes: Causes = NO_CAUSES


@dataclass(frozen=True, slots=True)
class StatusTable:
    """The status table itself, or a view of its keys."""

    causes: Causes = NO_CAUSES


@dataclass(frozen=True, slots=True)
class Field:
    """An attribute of a known object that is no method: ``name`` is the attribute."""

    name: str
    causes: Causes = NO_CAUSES


@dataclass(frozen=True, slots=True)
class Global:
    """A module-level name, not looked up yet."""

    module: Module
    dotted: str
    causes: Causes = NO_CAUSES


@dataclass(frozen=True, slots=True)
class Several:
    """A tuple whose parts are not all constants."""

    items: tuple[Value, ...]
    causes: Causes = NO_CAUSES


@dataclass(frozen=True, slots=True)
class Local:
    """A nested function or lambda of the frame ``frame``."""

    function: ir.Function
    frame: int
    causes: Causes = NO_CAUSES


@dataclass(frozen=True, slots=True)
class BoundCall:
    """A method taken off an object without calling it (``pop = self.infos.pop``)."""

    owner: Value
    name: str
    causes: Causes = NO_CAUSES


Value = (
    Known
    | Something
    | Key
    | Item
    | Object
    | Super
    | StatusTable
    | Field
    | Global
    | Several
    | Local
    | BoundCall
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
    return union


def computed_from(values: Iterable[Value]) -> Something:
    """The unknown result of an operation on ``values``."""
    values = list(values)
    causes = causes_of(values)
    undecided = STATUS in causes or any(isinstance(value, Something) and value.undecided for value in values)
    return Something(causes, undecided)


class Env:
    """An immutable mapping of names to values with a cached hash."""

    __slots__ = ("_hash", "_values")

    def __init__(self, values: dict[str, Value] | None = None) -> None:
        self._values = values or {}
        self._hash: int | None = None

    def get(self, name: str) -> Value | None:
        """The value of ``name``, None where it is unbound."""
        return self._values.get(name)

    def set(self, name: str, value: Value) -> Env:
        """A copy with ``name`` bound."""
        known = self._values.get(name)
        if known is value or known == value:
            return self
        return Env({**self._values, name: value})

    def names(self) -> Iterator[str]:
        """The bound names."""
        return iter(tuple(self._values))

    def set_all(self, names: Iterable[str], value: Value) -> Env:
        """A copy with all of ``names`` bound to one value."""
        return Env({**self._values, **dict.fromkeys(names, value)})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Env) and (self is other or self._values == other._values)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._values.items()))
        return self._hash


EMPTY: Final = Env()


@dataclass(frozen=True, slots=True)
class Skip:
    """The decision after which this iteration can no longer conclude the room.

    ``at`` is the deciding statement, ``leave`` the exit statement that followed
    (None: the iteration was left by falling through), ``taken`` whether the
    ``then`` (or handler) block was entered; ``frame`` the function's node.
    """

    causes: Causes
    at: ast.AST
    taken: bool
    frame: ast.AST
    leave: ast.AST | None = None


@dataclass(frozen=True, slots=True)
class Removal:
    """One execution of a removal from a room table, with the status stored at that moment."""

    table: str
    at: ast.AST
    stored: Stored


@dataclass(frozen=True, slots=True)
class Trace:
    """What has happened on the way to a state.

    ``taken``: a work item was received; ``handed``: it was passed to somebody
    else; ``cleared``: the room's status was removed here; ``wrote``: the
    failure was written here; ``uncertain``: a branch on an undecided value was
    taken.
    """

    taken: bool = False
    handed: bool = False
    cleared: bool = False
    uncertain: bool = False
    skip: Skip | None = None
    removals: frozenset[Removal] = frozenset()


@dataclass(frozen=True, slots=True)
class State:
    """One abstract state: the room's stored status, local variables, own attributes, and the trace.

    ``control`` are the causes of the enclosing branches of this frame, ``tested``
    of all branches this frame has taken.
    """

    stored: Stored
    env: Env = EMPTY
    heap: Env = EMPTY
    trace: Trace = field(default_factory=Trace)
    control: Causes = NO_CAUSES
    tested: Causes = NO_CAUSES

    def bind(self, name: str, value: Value) -> State:
        """This state with a local variable set."""
        if isinstance(value, Known) and self.control:
            value = with_causes(value, self.control)
        return replace(self, env=self.env.set(name, value))

    def note(self, **changes: object) -> State:
        """This state with fields of its trace changed."""
        return replace(self, trace=replace(self.trace, **changes))  # type: ignore[arg-type]


def distinct(states: Iterable[State]) -> list[State]:
    """``states`` without repetitions, in order."""
    return list(dict.fromkeys(states))
