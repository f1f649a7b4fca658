"""Containers that keep their meaning and stop before every operation.

Each answers as the built-in type does, with the type's own code; what is added
is the stop before and the note after.  Whole operations in C
(``list(table.values())``, ``dict(table)``) are one operation, as the global
interpreter lock makes them; a ``for`` loop over a table is one operation per
item, and raises RuntimeError where the real one does.

A controlled set is no subclass of ``set``, as functions in C look into sets
without a call; ``isinstance`` holds all the same.

Limits.  Code of keys and items (``__hash__``, ``__eq__``), of a ``key`` function
and of a ``default_factory`` runs within its operation.  Where such an operation
comes to other shared things, and for what a function in C reads of several
shared things at once (``one.update(other)``), no schedule shows that, and
``Control.limits`` says so.  ``copy.deepcopy`` copies each container in one
operation, where the real one loops.  ``dict(zip(one, other))`` and the like go
through their arguments item by item, which is one operation in CPython.
``type(table) is dict`` is false, and C code that reads a list or dict by its
layout, as extension modules may, is not seen.
"""

from __future__ import annotations

import copy
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Hashable, Iterator
from typing import Any, ClassVar, cast

from kvlint.explore.aliases import bind_anew
from kvlint.explore.control import Control
from kvlint.explore.identities import PLAIN, Identified
from kvlint.explore.iteration import Items, Keys, Site, Values, iterate
from kvlint.explore.operations import WHOLE, Resource

NESTED = "[…]"

Watch = Callable[[Hashable, Any, Any], None]


class _Absent(Identified):
    identity = -1

    def __repr__(self) -> str:
        return "absent"


#: What is held under a key that a table does not have.
ABSENT: Any = _Absent()


class Controlled(Identified):
    """What all controlled containers have; ``adopt`` makes one of a plain container.

    Attributes:
        watch: Is told of every entry that changes: its key, what was and what is held.
        positions: Loops that go through it.
        taken: Where all of it has just been gone through.
    """

    control: Control
    resource: Resource
    identity: int
    watch: Watch | None = None
    positions: list[Any] = []  # noqa: RUF012 - never changed, only replaced
    taken: Site | None = None
    snapshot: tuple[Site, dict[Any, Any]] | None = None
    _type: ClassVar[Any]
    copy: Any

    def content(self) -> Hashable:
        """What the container holds, as a key."""
        frozen = self.control.identities.frozen
        moment = self.control.moment()
        return tuple([frozen(item, moment) for item in self.held()])

    def entry(self, key: Hashable) -> Any:  # noqa: ARG002
        """What is held under ``key``, unseen; all of it for WHOLE."""
        return self.control.content_of(self)

    def itself(self) -> Any:
        """What the methods of the built-in type are called with."""
        return self

    def held(self) -> Any:
        """What it holds, without a stop."""
        return self._type.__iter__(self)

    def plain(self) -> Any:
        """A container of the built-in type with the same items, without a stop."""
        return self._type(self.held())

    def refill(self, plain: Any) -> None:
        """Hold what ``plain`` holds, and nothing else, without a stop."""
        raise NotImplementedError

    def renewed(self) -> None:
        """Compute the number of the content again."""
        self.control.changed(self)
        for reference in self.positions:
            position = reference()
            if position is not None:
                position.moved()

    def _adopt_items(self) -> None:
        return

    def _raw(self) -> Iterator[Any]:
        return iter(self.held())

    def _reversed(self) -> Iterator[Any]:
        return cast("Iterator[Any]", self._type.__reversed__(self))

    def __iter__(self) -> Iterator[Any]:
        return iterate(self, self._raw, "iter")

    def __reversed__(self) -> Iterator[Any]:
        return iterate(self, self._reversed, "reversed")

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (copy.copy, (self.copy(),))

    __hash__ = None  # type: ignore[assignment]


#: Containers of built-in types; of classes derived from them the operations are not known.
_MUTABLE = (dict, list, set, deque, bytearray)


def adopt(control: Control, value: Any, label: str) -> Any:
    """A controlled container in the place of ``value`` where it is a plain one, with what it holds; else ``value``.

    The same one in the place of the same plain container.  In a run, local
    variables that hold ``value`` hold the controlled one from then on.
    """
    made = CONTROLLED.get(type(value))
    if made is None:
        if type(value) not in PLAIN and isinstance(value, _MUTABLE) and not issubclass(type(value), Controlled):
            control.limits.add(f"{label} is a {type(value).__qualname__}, and what is done to it is not seen")
        return value
    known = control.originals.of(value)
    if known is not None:
        return known
    adopted = made._like(value)
    adopted.control = control
    adopted.resource = control.resource(label)
    adopted.identity = adopted.resource.identity
    control.originals.add(value, adopted)
    if control.current is not None:
        bind_anew(value, adopted, sys._getframe(1))
    adopted._adopt_items()
    adopted.renewed()
    return adopted


class _Mapping(Controlled):
    def content(self) -> Hashable:
        frozen = self.control.identities.frozen
        moment = self.control.moment()
        return tuple([(frozen(key, moment), frozen(value, moment)) for key, value in self.held()])

    def held(self) -> Any:
        return self._type.items(self)

    def entry(self, key: Hashable) -> Any:
        if key is WHOLE:
            return self.control.content_of(self)
        return self._type.get(self, key, ABSENT)

    def refill(self, plain: Any) -> None:
        self._type.clear(self)
        for key, value in plain.items():
            self._type.__setitem__(self, key, value)

    def _raw(self) -> Iterator[Any]:
        return cast("Iterator[Any]", self._type.__iter__(self))

    def _adopt_items(self) -> None:
        label = self.resource.uses.label + NESTED
        for key, value in list(self.held()):
            adopted = adopt(self.control, value, label)
            if adopted is not value:
                self._type.__setitem__(self, key, adopted)

    def values(self) -> Any:
        return Values(self, self._type.values(self))

    def items(self) -> Any:
        return Items(self, self._type.items(self))

    def plain_keys(self) -> Any:
        return Keys(self, self._type.keys(self))


class ControlledDict(_Mapping, dict):  # type: ignore[type-arg]
    """A dict."""

    _type = dict

    @classmethod
    def _like(cls, plain: dict[Any, Any]) -> ControlledDict:
        return cls(plain)


class ControlledDefaultDict(_Mapping, defaultdict):  # type: ignore[type-arg]
    """A defaultdict; making the missing value is part of the operation, as it is for factories written in C."""

    _type = defaultdict

    @classmethod
    def _like(cls, plain: defaultdict[Any, Any]) -> ControlledDefaultDict:
        return cls(plain.default_factory, plain)

    def plain(self) -> defaultdict[Any, Any]:
        return defaultdict(self.default_factory, self.held())

    def __missing__(self, key: Any) -> Any:
        if self.default_factory is None:
            raise KeyError(key)
        made = adopt(self.control, self.default_factory(), self.resource.uses.label + NESTED)
        dict.__setitem__(self, key, made)
        self.renewed()
        return made


class ControlledOrderedDict(_Mapping, OrderedDict):  # type: ignore[type-arg]
    """An OrderedDict."""

    _type = OrderedDict

    @classmethod
    def _like(cls, plain: OrderedDict[Any, Any]) -> ControlledOrderedDict:
        made = cls()
        for key, value in plain.items():
            OrderedDict.__setitem__(made, key, value)
        return made


class ControlledSet(Controlled):
    """A set."""

    _type = set

    __reversed__ = None  # type: ignore[assignment]

    def __init__(self, items: set[Any]) -> None:
        self._items = items

    @property
    def __class__(self) -> Any:
        return set

    @__class__.setter
    def __class__(self, kind: Any) -> None:
        raise TypeError("the class of a set cannot be changed")

    @classmethod
    def _like(cls, plain: set[Any]) -> ControlledSet:
        return cls(set(plain))

    def entry(self, key: Hashable) -> Any:
        return self.control.content_of(self) if key is WHOLE else key in self._items

    def itself(self) -> set[Any]:
        return self._items

    def held(self) -> Any:
        return self._items

    def refill(self, plain: Any) -> None:
        self._items.clear()
        self._items.update(plain)


class _Sequence(Controlled):
    def _adopt_items(self) -> None:
        label = self.resource.uses.label + NESTED
        for index, value in enumerate(self.held()):
            adopted = adopt(self.control, value, label)
            if adopted is not value:
                self._type.__setitem__(self, index, adopted)

    def refill(self, plain: Any) -> None:
        self._type.clear(self)
        self._type.extend(self, plain)


class ControlledList(_Sequence, list):  # type: ignore[type-arg]
    """A list."""

    _type = list

    @classmethod
    def _like(cls, plain: list[Any]) -> ControlledList:
        return cls(plain)


class ControlledDeque(_Sequence, deque):  # type: ignore[type-arg]
    """A deque."""

    _type = deque

    @classmethod
    def _like(cls, plain: deque[Any]) -> ControlledDeque:
        return cls(plain, plain.maxlen)

    def plain(self) -> deque[Any]:
        return deque(self.held(), self.maxlen)


CONTROLLED: dict[type, Any] = {
    dict: ControlledDict,
    defaultdict: ControlledDefaultDict,
    OrderedDict: ControlledOrderedDict,
    set: ControlledSet,
    list: ControlledList,
    deque: ControlledDeque,
}

from kvlint.explore import container_operations  # noqa: E402 - gives the classes above their methods

container_operations.install()
