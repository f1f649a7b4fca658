"""Containers that keep their meaning and stop before every operation.

Each is a subclass of the built-in type and answers as that type does, with the
type's own code; what is added is the stop before and the note after.  Whole
operations in C (``list(table.values())``) are one operation, as the global
interpreter lock makes them; a ``for`` loop over a table is one operation per
item, and raises RuntimeError where the real one does.
"""

from __future__ import annotations

import dis
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from kvlint.explore.control import Control
from kvlint.explore.identities import PLAIN, Identified
from kvlint.explore.operations import WHOLE, Resource

_GET_ITER = dis.opmap["GET_ITER"]
_NESTED = "[…]"

Watch = Callable[[Hashable, Any, Any], None]


class _Absent(Identified):
    identity = -1

    def __repr__(self) -> str:
        return "absent"


#: What is held under a key that a table does not have.
ABSENT: Any = _Absent()


class Controlled(Identified):
    """What all controlled containers have; ``adopt`` makes one of a plain container."""

    control: Control
    resource: Resource
    identity: int
    watch: Watch | None = None

    def content(self) -> Hashable:
        """What the container holds, as a key."""
        raise NotImplementedError

    def entry(self, key: Hashable) -> Any:
        """What is held under ``key``, unseen; all of it for WHOLE."""
        raise NotImplementedError

    def renewed(self) -> None:
        """Compute the number of the content again."""
        self.control.changed(self)


def adopt(control: Control, value: Any, label: str) -> Any:
    """A controlled copy of ``value`` where it is a plain container, with what it holds adopted too; else ``value``."""
    made = _CONTROLLED.get(type(value))
    if made is None:
        return value
    adopted = made._like(value)
    adopted.control = control
    adopted.resource = control.resource(label)
    adopted.identity = adopted.resource.identity
    adopted._adopt_items()
    adopted.renewed()
    return adopted


class _Mapping(Controlled):
    def content(self) -> Hashable:
        frozen = self.control.identities.frozen
        moment = self.control.moment()
        return tuple([(frozen(key, moment), frozen(value, moment)) for key, value in dict.items(self)])  # type: ignore[arg-type]

    def entry(self, key: Hashable) -> Any:
        if key is WHOLE:
            return self.control.content_of(self)
        return dict.get(self, key, ABSENT)  # type: ignore[arg-type]

    def _adopt_items(self) -> None:
        label = self.resource.uses.label + _NESTED
        for key, value in dict.items(self):  # type: ignore[arg-type]
            adopted = adopt(self.control, value, label)
            if adopted is not value:
                dict.__setitem__(self, key, adopted)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        return _iterate(self, dict.keys(self), "iter")  # type: ignore[arg-type]

    def keys(self) -> Any:
        return _View(self, dict.keys, "keys")

    def values(self) -> Any:
        return _View(self, dict.values, "values")

    def items(self) -> Any:
        return _View(self, dict.items, "items")

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (dict, (dict(dict.items(self)),))  # type: ignore[arg-type]


class ControlledDict(_Mapping, dict):  # type: ignore[type-arg]
    """A dict."""

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def _like(cls, plain: dict[Any, Any]) -> ControlledDict:
        return cls(plain)


class ControlledDefaultDict(_Mapping, defaultdict):  # type: ignore[type-arg]
    """A defaultdict; making the missing value is part of the operation, as it is for factories written in C."""

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def _like(cls, plain: defaultdict[Any, Any]) -> ControlledDefaultDict:
        return cls(plain.default_factory, plain)

    def __missing__(self, key: Any) -> Any:
        if self.default_factory is None:
            raise KeyError(key)
        made = adopt(self.control, self.default_factory(), self.resource.uses.label + _NESTED)
        dict.__setitem__(self, key, made)
        self.renewed()
        return made


class ControlledOrderedDict(_Mapping, OrderedDict):  # type: ignore[type-arg]
    """An OrderedDict."""

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def _like(cls, plain: OrderedDict[Any, Any]) -> ControlledOrderedDict:
        return cls(plain)


class ControlledSet(Controlled, set):  # type: ignore[type-arg]
    """A set."""

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def _like(cls, plain: set[Any]) -> ControlledSet:
        return cls(plain)

    def _adopt_items(self) -> None:
        return

    def content(self) -> Hashable:
        frozen = self.control.identities.frozen
        moment = self.control.moment()
        return frozenset([frozen(item, moment) for item in set.__iter__(self)])

    def entry(self, key: Hashable) -> Any:
        return self.control.content_of(self) if key is WHOLE else set.__contains__(self, key)

    def __iter__(self) -> Iterator[Any]:
        return _iterate(self, set(self.copy()), "iter")

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (set, (list(set.__iter__(self)),))


class _Sequence(Controlled):
    _plain: type

    def _adopt_items(self) -> None:
        label = self.resource.uses.label + _NESTED
        for index, value in enumerate(self._plain.__iter__(self)):
            adopted = adopt(self.control, value, label)
            if adopted is not value:
                self._plain.__setitem__(self, index, adopted)

    def content(self) -> Hashable:
        frozen = self.control.identities.frozen
        moment = self.control.moment()
        return tuple([frozen(item, moment) for item in self._plain.__iter__(self)])

    def entry(self, key: Hashable) -> Any:
        return self.control.content_of(self)

    def __iter__(self) -> Iterator[Any]:
        return _iterate(self, self, "iter")

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (self._plain, (list(self._plain.__iter__(self)),))


class ControlledList(_Sequence, list):  # type: ignore[type-arg]
    """A list."""

    __hash__ = None  # type: ignore[assignment]
    _plain = list

    @classmethod
    def _like(cls, plain: list[Any]) -> ControlledList:
        return cls(plain)


class ControlledDeque(_Sequence, deque):  # type: ignore[type-arg]
    """A deque."""

    __hash__ = None  # type: ignore[assignment]
    _plain = deque

    @classmethod
    def _like(cls, plain: deque[Any]) -> ControlledDeque:
        return cls(plain, plain.maxlen)


_CONTROLLED: dict[type, Any] = {
    dict: ControlledDict,
    defaultdict: ControlledDefaultDict,
    OrderedDict: ControlledOrderedDict,
    set: ControlledSet,
    list: ControlledList,
    deque: ControlledDeque,
}


class _View:
    """What ``values()`` and its like return: the items are read when it is gone through."""

    def __init__(self, owner: Any, view: Callable[[Any], Any], kind: str) -> None:
        self._owner = owner
        self._view = view
        self._kind = kind

    def __iter__(self) -> Iterator[Any]:
        return _iterate(self._owner, self._view(self._owner), self._kind)

    def __len__(self) -> int:
        return len(self._owner)

    def __contains__(self, item: Any) -> bool:
        if self._kind == "keys":
            return item in self._owner
        return item in list(self)

    def __reversed__(self) -> Iterator[Any]:
        return reversed(list(self))

    def __repr__(self) -> str:
        return repr(self._view(self._owner))

    def __eq__(self, other: object) -> bool:
        return set(self) == other

    __hash__ = None  # type: ignore[assignment]

    def __and__(self, other: Any) -> set[Any]:
        return set(self) & set(other)

    def __or__(self, other: Any) -> set[Any]:
        return set(self) | set(other)

    def __sub__(self, other: Any) -> set[Any]:
        return set(self) - set(other)


def _iterate(owner: Any, plain: Any, kind: str) -> Iterator[Any]:
    """An iterator over ``plain``, the uncontrolled view of ``owner``."""
    control: Control = owner.control
    if control.current is None:
        return _raw(owner, plain)
    caller = sys._getframe(2)
    if caller.f_code.co_code[caller.f_lasti] == _GET_ITER:
        return _one_by_one(owner, _raw(owner, plain), kind)
    control.before(owner.resource, kind, WHOLE, False)
    taken = list(_raw(owner, plain))
    control.after(control.content_of(owner))
    return iter(taken)


def _raw(owner: Any, plain: Any) -> Iterator[Any]:
    if plain is owner:
        iterator: Iterator[Any] = owner._plain.__iter__(owner)
        return iterator
    return iter(plain)


def _one_by_one(owner: Any, items: Iterator[Any], kind: str) -> Iterator[Any]:
    control: Control = owner.control
    while True:
        control.before(owner.resource, kind, WHOLE, False)
        try:
            item = next(items)
        except StopIteration:
            control.after("end")
            return
        except RuntimeError as problem:
            control.after(problem)
            raise
        control.after(item)
        yield item


def _read(plain: type, name: str, kind: str, keyed: bool) -> Any:
    """The method ``name`` of ``plain``, which changes nothing, as a controlled operation."""
    method = getattr(plain, name)

    def read(self: Any, *arguments: Any) -> Any:
        control: Control = self.control
        actor = control.current
        resource = self.resource
        uses = resource.uses
        if actor is None or (uses.actors & actor.bit and not uses.shared):
            return method(self, *arguments)
        key = arguments[0] if keyed else WHOLE
        control.before(resource, kind, key, False)
        try:
            result = method(self, *arguments)
        except Exception as problem:
            actor.reads.append((self.entry, (key,), self.entry(key)))
            control.after(problem)
            raise
        # A poll is told by what it observed: two that observed the same wait for the same.
        if keyed or type(result) in PLAIN or type(result) is bool:
            actor.reads.append((method, (self, *arguments), result))
            control.after(result)
        else:
            # What is made of all of a container is known by what the container holds.
            content = control.content_of(self)
            actor.reads.append((control.content_of, (self,), content))
            control.after(content)
        return result

    read.__name__ = name
    return read


def _write(plain: type, name: str, kind: str, keyed: bool, stored: int | None) -> Any:
    """The method ``name`` of ``plain``, which changes it, as a controlled operation.

    ``stored`` is the position of the argument that is put in, which is made a
    controlled container when it is a plain one.
    """
    method = getattr(plain, name)

    def write(self: Any, *arguments: Any, **named: Any) -> Any:
        control: Control = self.control
        actor = control.current
        resource = self.resource
        uses = resource.uses
        if actor is None or (uses.writers & actor.bit and not uses.shared):
            result = method(self, *arguments, **named)
            if stored is not None or not keyed:
                self._adopt_items()
            control.changed(self)
            return result
        if stored is not None and len(arguments) > stored and type(arguments[stored]) in _CONTROLLED:
            inner = adopt(control, arguments[stored], uses.label + _NESTED)
            arguments = (*arguments[:stored], inner, *arguments[stored + 1 :])
        control.before(resource, kind, arguments[0] if keyed and arguments else WHOLE, True)
        earlier = None if self.watch is None else dict(dict.items(self))
        try:
            result = method(self, *arguments, **named)
        except Exception as problem:
            control.after(problem)
            raise
        if stored is None and not keyed:
            self._adopt_items()
            # What came in gets its names now, in whichever run.
            self.content()
        if earlier is not None:
            _tell(self, earlier)
        control.after(arguments[stored] if stored is not None and result is None else result)
        self.renewed()
        return result

    write.__name__ = name
    return write


def _tell(table: Any, earlier: dict[Any, Any]) -> None:
    now = dict(dict.items(table))
    for key in [*earlier, *(key for key in now if key not in earlier)]:
        old, new = earlier.get(key, ABSENT), now.get(key, ABSENT)
        if old is not new:
            table.watch(key, old, new)


_READS, _WRITES = False, True

# Name, how a schedule shows it, has a key, writes, position of what is stored.
_DICT = [
    ("__contains__", "in", True, _READS, None),
    ("__getitem__", "[]", True, _READS, None),
    ("get", "get", True, _READS, None),
    ("__setitem__", "[]=", True, _WRITES, 1),
    ("__delitem__", "del", True, _WRITES, None),
    ("pop", "pop", True, _WRITES, None),
    ("setdefault", "setdefault", True, _WRITES, 1),
    ("popitem", "popitem", False, _WRITES, None),
    ("update", "update", False, _WRITES, None),
    ("clear", "clear", False, _WRITES, None),
    ("__ior__", "|=", False, _WRITES, None),
    ("__len__", "len", False, _READS, None),
    ("__eq__", "==", False, _READS, None),
    ("__ne__", "!=", False, _READS, None),
    ("copy", "copy", False, _READS, None),
    ("__or__", "|", False, _READS, None),
    ("__repr__", "repr", False, _READS, None),
]
_SET = [
    ("__contains__", "in", True, _READS, None),
    ("add", "add", True, _WRITES, None),
    ("discard", "discard", True, _WRITES, None),
    ("remove", "remove", True, _WRITES, None),
    ("pop", "pop", False, _WRITES, None),
    ("update", "update", False, _WRITES, None),
    ("difference_update", "-=", False, _WRITES, None),
    ("intersection_update", "&=", False, _WRITES, None),
    ("symmetric_difference_update", "^=", False, _WRITES, None),
    ("__ior__", "|=", False, _WRITES, None),
    ("__isub__", "-=", False, _WRITES, None),
    ("__iand__", "&=", False, _WRITES, None),
    ("__ixor__", "^=", False, _WRITES, None),
    ("clear", "clear", False, _WRITES, None),
    *[
        (name, name.strip("_"), False, _READS, None)
        for name in ["__len__", "__eq__", "__ne__", "__le__", "__lt__", "__ge__", "__gt__", "__or__", "__and__", "__sub__", "__xor__", "__repr__", "copy", "union", "intersection", "difference", "symmetric_difference", "issubset", "issuperset", "isdisjoint"]
    ],
]
_LIST = [
    ("__getitem__", "[]", False, _READS, None),
    ("__contains__", "in", False, _READS, None),
    ("__setitem__", "[]=", False, _WRITES, 1),
    ("__delitem__", "del", False, _WRITES, None),
    ("append", "append", False, _WRITES, 0),
    ("insert", "insert", False, _WRITES, 1),
    ("extend", "extend", False, _WRITES, None),
    ("pop", "pop", False, _WRITES, None),
    ("remove", "remove", False, _WRITES, None),
    ("clear", "clear", False, _WRITES, None),
    ("reverse", "reverse", False, _WRITES, None),
    ("__iadd__", "+=", False, _WRITES, None),
    ("__imul__", "*=", False, _WRITES, None),
    *[
        (name, name.strip("_"), False, _READS, None)
        for name in ["__len__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__add__", "__mul__", "__repr__", "copy", "index", "count"]
    ],
]
_TABLES: list[tuple[Any, type, list[tuple[str, str, bool, bool, int | None]]]] = [
    (ControlledDict, dict, _DICT),
    (ControlledDefaultDict, defaultdict, _DICT),
    (ControlledOrderedDict, OrderedDict, [*_DICT, ("move_to_end", "move_to_end", True, _WRITES, None)]),
    (ControlledSet, set, _SET),
    (ControlledList, list, [*_LIST, ("sort", "sort", False, _WRITES, None)]),
    (
        ControlledDeque,
        deque,
        [
            *_LIST,
            ("appendleft", "appendleft", False, _WRITES, 0),
            ("popleft", "popleft", False, _WRITES, None),
            ("extendleft", "extendleft", False, _WRITES, None),
            ("rotate", "rotate", False, _WRITES, None),
        ],
    ),
]
for _class, _type, _methods in _TABLES:
    for _name, _kind, _keyed, _writing, _stored in _methods:
        if _writing:
            setattr(_class, _name, _write(_type, _name, _kind, _keyed, _stored))
        else:
            setattr(_class, _name, _read(_type, _name, _kind, _keyed))
