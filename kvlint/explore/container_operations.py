"""The methods of controlled containers: which there are, what they read or change, and how they stop."""

from __future__ import annotations

import operator
import sys
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

from kvlint.explore.call_sites import calls_method
from kvlint.explore.containers import (
    ABSENT,
    CONTROLLED,
    NESTED,
    Controlled,
    ControlledDefaultDict,
    ControlledDeque,
    ControlledDict,
    ControlledList,
    ControlledOrderedDict,
    ControlledSet,
    adopt,
)
from kvlint.explore.control import Control
from kvlint.explore.identities import PLAIN
from kvlint.explore.iteration import is_taken, site
from kvlint.explore.operations import WHOLE


class _Method(NamedTuple):
    """A method of a built-in type.

    ``kind`` is how a schedule shows it; ``is_keyed`` where it is about the entry
    under its first argument alone; ``stored`` is the position of what it puts in.
    """

    name: str
    kind: str
    is_keyed: bool = False
    stored: int | None = None


def _methods(names: str, **more: Any) -> list[_Method]:
    return [_Method(name, _SHOWN.get(name, name.strip("_")), **more) for name in names.split()]


_SHOWN = {
    "__contains__": "in",
    "__getitem__": "[]",
    "__setitem__": "[]=",
    "__delitem__": "del",
    "__eq__": "==",
    "__ne__": "!=",
    "__or__": "|",
    "__ior__": "|=",
    "__iand__": "&=",
    "__isub__": "-=",
    "__ixor__": "^=",
    "__iadd__": "+=",
    "__imul__": "*=",
    "difference_update": "-=",
    "intersection_update": "&=",
    "symmetric_difference_update": "^=",
}
_COMPARISONS = "__eq__ __ne__ __lt__ __le__ __gt__ __ge__"
#: By class: methods that read, that make something new of all that is held, and that change it.
_Table = tuple[list[_Method], str, list[_Method]]
_DICT: _Table = (
    [*_methods("__contains__ __getitem__ get", is_keyed=True), *_methods("__eq__ __ne__")],
    "__repr__ copy __copy__ __or__ __ror__",
    [
        *_methods("__setitem__ setdefault", is_keyed=True, stored=1),
        *_methods("__delitem__ pop", is_keyed=True),
        *_methods("popitem update clear __ior__"),
    ],
)
_DEFAULTDICT: _Table = (
    [each for each in _DICT[0] if each.name != "__getitem__"],
    _DICT[1],
    [*_DICT[2], *_methods("__getitem__", is_keyed=True)],
)
_ORDERED_DICT: _Table = (_DICT[0], _DICT[1], [*_DICT[2], *_methods("move_to_end", is_keyed=True)])
_SET: _Table = (
    [*_methods("__contains__", is_keyed=True), *_methods(f"{_COMPARISONS} issubset issuperset isdisjoint")],
    (
        "__repr__ copy __copy__ __or__ __ror__ __and__ __rand__ __sub__ __rsub__ __xor__ __rxor__ "
        "union intersection difference symmetric_difference"
    ),
    [
        *_methods("add discard remove", is_keyed=True),
        *_methods("pop clear update difference_update intersection_update symmetric_difference_update"),
        *_methods("__ior__ __iand__ __isub__ __ixor__"),
    ],
)
_LIST: _Table = (
    _methods(f"{_COMPARISONS} __getitem__ __contains__ index count"),
    "__repr__ copy __copy__ __add__ __radd__ __mul__ __rmul__",
    [
        *_methods("__setitem__ insert", stored=1),
        *_methods("append", stored=0),
        *_methods("__delitem__ extend pop remove clear reverse __iadd__ __imul__"),
    ],
)
_TABLES: dict[Any, _Table] = {
    ControlledDict: _DICT,
    ControlledDefaultDict: _DEFAULTDICT,
    ControlledOrderedDict: _ORDERED_DICT,
    ControlledSet: _SET,
    ControlledList: (_LIST[0], _LIST[1], [*_LIST[2], *_methods("sort")]),
    ControlledDeque: (
        _LIST[0],
        _LIST[1],
        [*_LIST[2], *_methods("appendleft", stored=0), *_methods("popleft extendleft rotate")],
    ),
}


def install() -> None:
    """Give every controlled class its methods."""
    for made, (reading, making, changing) in _TABLES.items():
        kind = made._type
        for method in reading:
            _set(made, method.name, _read(getattr(kind, method.name), method))
        for name in making.split():
            _set(made, name, _read(_maker(name), _Method(name, _SHOWN.get(name, name.strip("_")))))
        for method in changing:
            _set(made, method.name, _write(getattr(kind, method.name), method))
        made.__len__ = _length(kind)
        if issubclass(kind, dict):
            made.fromkeys = kind.fromkeys
            made.keys = _keys
            made.__getitem__ = _within_snapshot(made.__getitem__)


def _set(made: type, name: str, method: Any) -> None:
    method.__name__ = name
    setattr(made, name, method)


def _maker(name: str) -> Callable[..., Any]:
    """A method that makes something new: of a plain copy, since the built-in one would make another controlled one."""
    reflected = {
        "__ror__": operator.or_,
        "__rand__": operator.and_,
        "__rsub__": operator.sub,
        "__rxor__": operator.xor,
        "__radd__": operator.add,
    }.get(name)

    def make(self: Controlled, *arguments: Any) -> Any:
        plain = self.plain()
        others = [_plain_argument(each) for each in arguments]
        if reflected is not None:
            return reflected(others[0], plain)
        return getattr(plain, "copy" if name == "__copy__" else name)(*others)

    return make


def _plain_argument(value: Any) -> Any:
    if not issubclass(type(value), Controlled):
        return value
    value.control.note_nested(value.resource, writes=False)
    return value.plain()


def _read(method: Any, told: _Method) -> Any:
    """A method that changes nothing, as a controlled operation."""
    kind, is_keyed = told.kind, told.is_keyed

    def read(self: Any, *arguments: Any) -> Any:
        control: Control = self.control
        if control.current is None:
            control.note_nested(self.resource, writes=False)
            return method(_itself(self, method), *_told(told, arguments))
        key = arguments[0] if is_keyed and arguments else WHOLE
        control.before(self.resource, kind, key, False)
        itself = _itself(self, method)
        try:
            if is_keyed and type(key) in PLAIN:
                # Nobody's code but that of the interpreter runs.
                result = method(itself, *arguments)
            else:
                with control.in_operation():
                    result = method(itself, *_told(told, arguments))
        except Exception as problem:
            entry = self.entry(key)
            control.note_read(self.entry, (key,), entry)
            control.after(problem if is_keyed else (problem, entry))
            raise
        # A poll is told by what it observed: two that observed the same wait for the same.
        if is_keyed or type(result) in PLAIN or type(result) is bool:
            control.note_read(method, (itself, *arguments), result)
            control.after(result)
        else:
            # What is made of all of a container is known by what the container holds.
            content = control.content_of(self)
            control.note_read(control.content_of, (self,), content)
            control.after(content)
        return result

    return read


def _itself(owner: Any, method: Any) -> Any:
    # Methods of ours take the controlled container; those of a built-in type what that type knows.
    return owner if hasattr(method, "__code__") else owner.itself()


def _told(told: _Method, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a method: other containers that it reads, as it can read them; not those that it stores."""
    if told.is_keyed or told.stored is not None:
        return arguments
    return tuple([_readable(each) if issubclass(type(each), Controlled) else each for each in arguments])


def _readable(other: Any) -> Any:
    other.control.note_nested(other.resource, writes=False)
    return other.itself()


def _write(method: Any, told: _Method) -> Any:
    """A method that changes a container, as a controlled operation; a plain container that it puts in is adopted."""
    kind, is_keyed, stored = told.kind, told.is_keyed, told.stored
    # In place: what comes of it is the container itself.
    is_in_place = told.name in ("__ior__", "__iand__", "__isub__", "__ixor__", "__iadd__", "__imul__")
    # Nobody's code but that of the interpreter runs in it.
    is_simple = is_keyed and method is not defaultdict.__getitem__
    observes = is_keyed and told.name in ("pop", "setdefault", "__getitem__", "__delitem__", "remove")

    def write(self: Any, *arguments: Any, **named: Any) -> Any:
        control: Control = self.control
        if control.current is None:
            control.note_nested(self.resource, writes=True)
            result = method(self.itself(), *_told(told, arguments), **named)
            self._adopt_items()
            self.renewed()
            return self if is_in_place and result is not NotImplemented else result
        if stored is not None and len(arguments) > stored and type(arguments[stored]) in CONTROLLED:
            inner = adopt(control, arguments[stored], self.resource.uses.label + NESTED)
            arguments = (*arguments[:stored], inner, *arguments[stored + 1 :])
        key = arguments[0] if is_keyed and arguments else WHOLE
        control.before(self.resource, kind, key, True)
        earlier = None if self.watch is None else dict(self.held())
        try:
            if is_simple and type(key) in PLAIN:
                result = method(self.itself(), *arguments, **named)
            else:
                with control.in_operation():
                    result = method(self.itself(), *_told(told, arguments), **named)
        except Exception as problem:
            if not is_keyed:
                # It may have done a part.
                self._adopt_items()
            entry = self.entry(key)
            control.note_read(self.entry, (key,), entry)
            control.after(problem if is_keyed else (problem, entry))
            self.renewed()
            raise
        if stored is None and not is_keyed:
            self._adopt_items()
            # What came in gets its names now, in whichever run.
            self.content()
        if earlier is not None:
            _tell(self, earlier)
        if observes:
            control.note_read(self.entry, (key,), self.entry(key))
        control.after(_outcome(self, told, arguments, result))
        self.renewed()
        return self if is_in_place and result is not NotImplemented else result

    return write


def _outcome(owner: Any, told: _Method, arguments: tuple[Any, ...], result: Any) -> Any:
    """What an operation is known by: what it put in, or what came of it."""
    if told.stored is not None and result is None and len(arguments) > told.stored:
        return arguments[told.stored]
    return None if result is owner.itself() else result


def _tell(table: Any, earlier: dict[Any, Any]) -> None:
    now = dict(table.held())
    for key in [*earlier, *(key for key in now if key not in earlier)]:
        old, new = earlier.get(key, ABSENT), now.get(key, ABSENT)
        if old is not new:
            table.watch(key, old, new)


def _length(kind: Any) -> Any:
    read = _read(kind.__len__, _Method("__len__", "len"))

    def length(self: Any) -> int:
        if self.taken is not None and is_taken(self, sys._getframe(1)):
            self.taken = None
            return int(kind.__len__(self.itself()))
        return int(read(self))

    length.__name__ = "__len__"
    return length


def _keys(self: Any) -> Any:
    """``keys()``; asked for by a function in C, as by ``dict(table)``, all of it is read with the same operation."""
    control: Control = self.control
    caller = sys._getframe(1)
    if control.current is None or calls_method(caller, "keys"):
        return self.plain_keys()
    control.before(self.resource, "copy", WHOLE, False)
    taken = dict(self.held())
    content = control.content_of(self)
    control.note_read(control.content_of, (self,), content)
    control.after(content)
    self.snapshot = (site(caller), taken)
    return list(taken)


_keys.__name__ = "keys"


def _within_snapshot(getitem: Any) -> Any:
    def __getitem__(self: Any, key: Any) -> Any:  # noqa: N807 - it takes the place of one
        if self.snapshot is not None:
            where, taken = self.snapshot
            if where == site(sys._getframe(1)):
                return taken[key]
            self.snapshot = None
        return getitem(self, key)

    return __getitem__
