"""Abstract states of the interpreter.

One state stands for one room: the status stored for it is a concrete member,
ABSENT or UNDECIDED, so a transition table is a handful of runs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kvlint.analysis.values import NO_CAUSES, UNDECIDED, UNKNOWN, Causes, Item, Known, Stored, Value, with_causes


class Env:
    """An immutable mapping of names to values with a cached hash; a name bound to UNKNOWN is not kept."""

    __slots__ = ("_hash", "_items", "_values")

    def __init__(self, values: dict[str, Value] | None = None) -> None:
        self._values = values or {}
        # Independent of the order; that of a changed copy follows from what has changed.
        self._hash = _hash_of_all(self._values.items())
        self._items: frozenset[str] | None = None

    def get(self, name: str) -> Value | None:
        """What is known of ``name``, None where that is nothing."""
        return self._values.get(name)

    def set(self, name: str, value: Value) -> Env:
        """A copy with ``name`` bound."""
        known = self._values.get(name)
        if value == UNKNOWN:
            if known is None:
                return self
            return self._with(
                {kept: other for kept, other in self._values.items() if kept != name}, hash((name, known))
            )
        if known is value or known == value:
            return self
        change = hash((name, value)) if known is None else hash((name, value)) ^ hash((name, known))
        return self._with({**self._values, name: value}, change)

    def _with(self, values: dict[str, Value], change: int) -> Env:
        copy = Env.__new__(Env)
        copy._values, copy._hash, copy._items = values, self._hash ^ change, None
        return copy

    def keep(self, names: frozenset[str], receiver: str | None) -> Env:
        """A copy that knows only ``names`` and the receiver."""
        unwanted = self._values.keys() - names
        if not unwanted or unwanted == {receiver}:
            return self
        return Env({name: value for name, value in self._values.items() if name in names or name == receiver})

    def names(self) -> Iterator[str]:
        """The names that something is known of."""
        return iter(tuple(self._values))

    @property
    def items(self) -> frozenset[str]:
        """The names that hold a work item."""
        if self._items is None:
            self._items = frozenset(
                name for name, value in self._values.items() if isinstance(value, Item) and not value.part
            )
        return self._items

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Env) and self._hash == other._hash and self._values == other._values)

    def __hash__(self) -> int:
        return self._hash


def _hash_of_all(pairs: Iterable[tuple[str, Value]]) -> int:
    combined = 0
    for pair in pairs:
        combined ^= hash(pair)
    return combined


EMPTY: Final = Env()


class Skip(Struct, frozen=True):
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


class Removal(Struct, frozen=True):
    """A removal from a room table that was executed."""

    table: str
    at: ast.AST


class Trace(Struct, frozen=True):
    """What has happened on the way to a state.

    ``taken``: a work item was received; ``handed``: it was passed to somebody
    else; ``cleared``: the room's status was removed here, whatever was stored
    afterwards; ``uncertain``: a branch on an undecided value was taken;
    ``removals`` are those from room tables.
    """

    taken: bool = False
    handed: bool = False
    cleared: bool = False
    uncertain: bool = False
    skip: Skip | None = None
    removals: frozenset[Removal] = frozenset()


START: Final = Trace()


class State(Struct, frozen=True, cache_hash=True):
    """One abstract state: the room's stored status, local variables, own attributes, and the trace.

    ``control`` are the causes of the enclosing branches of this frame, ``tested``
    of all branches this frame has taken.
    """

    stored: Stored
    env: Env = EMPTY
    heap: Env = EMPTY
    trace: Trace = START
    control: Causes = NO_CAUSES
    tested: Causes = NO_CAUSES

    def storing(self, stored: Stored) -> State:
        """This state with another status stored."""
        return replace(self, stored=stored)

    def within(self, env: Env) -> State:
        """This state with other local variables."""
        return replace(self, env=env)

    def holding(self, heap: Env) -> State:
        """This state with other attributes."""
        return replace(self, heap=heap)

    def traced(self, trace: Trace) -> State:
        """This state after something else happened."""
        return replace(self, trace=trace)

    def under(self, control: Causes, tested: Causes) -> State:
        """This state under other branches."""
        if control == self.control and tested == self.tested:
            return self
        return replace(self, control=control, tested=tested)

    def bind(self, name: str, value: Value) -> State:
        """This state with a local variable set."""
        if isinstance(value, Known) and self.control:
            value = with_causes(value, self.control)
        env = self.env.set(name, value)
        return self if env is self.env else self.within(env)

    def poisoned(self) -> State:
        """This state after code that may have written the status and any attribute."""
        return State(UNDECIDED, self.env, EMPTY, self.trace, self.control, self.tested)

    def doubted(self, in_worker: bool) -> State:
        """This state after a branch on an undecided value; on a worker's paths both ways are simply followed."""
        return self if in_worker or self.trace.uncertain else self.note(uncertain=True)

    def note(self, **changes: object) -> State:
        """This state with fields of its trace changed."""
        return self.traced(replace(self.trace, **changes))


def distinct(states: Iterable[State]) -> list[State]:
    """``states`` without repetitions, in order."""
    listed = list(states)
    return listed if len(listed) < 2 else list(dict.fromkeys(listed))


def joined(states: Iterable[State]) -> list[State]:
    """``states`` of a worker's paths without those that another one stands for, in order.

    Neither what was removed nor whether the item was handed over decides how a
    path goes on.  Of states that differ in nothing else, one is enough: it has
    the removals of all, and has handed the item over only if all have.
    """
    listed = list(states)
    if len(listed) < 2:
        return listed
    kept: dict[object, State] = {}
    for state in listed:
        trace = state.trace
        key = (
            state.stored,
            state.env,
            state.heap,
            state.control,
            state.tested,
            trace.skip,
            trace.taken,
            trace.cleared,
            trace.uncertain,
        )
        other = kept.setdefault(key, state)
        if other is not state and other.trace != trace:
            removals = other.trace.removals | trace.removals
            handed = other.trace.handed and trace.handed
            kept[key] = other.traced(replace(trace, removals=removals, handed=handed))
    return list(kept.values())
