"""Going through controlled containers: item by item in a loop, all at once in a function written in C."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Hashable, ItemsView, Iterator, KeysView, ValuesView
from types import FrameType, MappingProxyType
from typing import Any

from kvlint.explore.call_sites import goes_through_later, is_loop
from kvlint.explore.control import Control
from kvlint.explore.operations import WHOLE, Resource

Site = tuple[int, object, int]


def site(frame: FrameType) -> Site:
    """The instruction of a call of a function, as long as that runs."""
    return (id(frame), frame.f_code, frame.f_lasti)


def iterate(owner: Any, make: Callable[[], Iterator[Any]], kind: str) -> Iterator[Any]:
    """An iterator over ``owner``, for whoever called the method that calls this; ``make`` makes one without stops.

    In a ``for`` loop each item is an operation.  A C function that goes through
    all of it does so in one operation, as the global interpreter lock makes
    it; one that does so later, like ``enumerate``, leaves it to its caller.
    """
    control: Control = owner.control
    if control.current is None:
        control.note_nested(owner.resource, writes=False)
        return make()
    caller = sys._getframe(2)
    if is_loop(caller):
        return _one_by_one(owner, make, kind)
    control.before(owner.resource, kind, WHOLE, False)
    if goes_through_later(caller):
        position = _Position(owner, make())
        control.after(None)
        return _one_by_one(owner, make, kind, position)
    taken = list(make())
    content = control.content_of(owner)
    control.note_read(control.content_of, (owner,), content)
    control.after(content)
    # ``list(table)`` asks for the length next, within the same operation.
    owner.taken = site(caller)
    return iter(taken)


def _one_by_one(
    owner: Any, make: Callable[[], Iterator[Any]], kind: str, position: _Position | None = None
) -> Iterator[Any]:
    control: Control = owner.control
    try:
        while True:
            control.before(owner.resource, kind, WHOLE, False)
            if position is None:
                # The loop begins with its first item: no other thread comes between in CPython.
                position = _Position(owner, make())
            try:
                item = next(position.items)
            except StopIteration:
                content = control.content_of(owner)
                control.note_read(control.content_of, (owner,), content)
                control.after(("end", content))
                return
            except RuntimeError as problem:
                control.after(problem)
                raise
            position.seen += 1
            control.after(item)
            yield item
    finally:
        if position is not None:
            position.leave()


class _Position:
    """Where a loop stands in a container: part of the state once the container changes under it.

    What it has still to come to does not follow from what it has seen and what
    the container holds: an item that was removed and put back comes again, and
    the size that a dict had when the loop began must be its size at every step.
    It follows from what the container has held since the loop began, and from
    how far the loop had come each time.
    """

    def __init__(self, owner: Any, items: Iterator[Any]) -> None:
        self._owner = owner
        self.items = items
        self._is_moved = False
        self.seen = 0
        self._actor = owner.control.current.number
        self._trail = owner.control.content_of(owner)
        # A loop over a list is at an index, whatever happens to the list.
        self._is_watching = not isinstance(owner, list)
        if self._is_watching:
            # A loop that is given up may never say so.
            owner.positions = [*owner.positions, weakref.ref(self)]

    def content(self) -> Hashable:
        """What the container has held since the loop began, and when."""
        return (self._actor, self._trail)

    def moved(self) -> None:
        """The container has changed."""
        control: Control = self._owner.control
        if not self._is_moved:
            self._is_moved = True
            self.resource: Resource = control.resource(f"{self._owner.resource.uses.label} loop of {self._actor}")
            control.sharing.always_stop(self.resource)
        self._trail = control.identities.number((self._trail, self.seen, control.content_of(self._owner)))
        control.changed(self)

    def leave(self) -> None:
        """The loop has ended."""
        if self._is_watching:
            self._owner.positions = [each for each in self._owner.positions if each() not in (self, None)]
        if self._is_moved and self.resource in self._owner.control.resources:
            self._owner.control.resources.remove(self.resource)


class _View:
    """What ``values()`` and its like return: the items are read when it is gone through."""

    _kind: str

    def __init__(self, owner: Any, view: Any) -> None:
        self._owner = owner
        # The view of the built-in type, which nothing stops at.
        self._view = view

    @property
    def mapping(self) -> Any:
        return MappingProxyType(self._owner)

    def __iter__(self) -> Iterator[Any]:
        return iterate(self._owner, lambda: iter(self._view), self._kind)

    def __reversed__(self) -> Iterator[Any]:
        return iterate(self._owner, lambda: reversed(self._view), f"reversed {self._kind}")

    def __len__(self) -> int:
        if is_taken(self._owner, sys._getframe(1)):
            return len(self._view)
        return len(self._owner)


class Keys(_View, KeysView[Any]):
    """``keys()``."""

    _kind = "keys"


class Items(_View, ItemsView[Any, Any]):
    """``items()``."""

    _kind = "items"


class Values(_View, ValuesView[Any]):
    """``values()``."""

    _kind = "values"


def is_taken(owner: Any, caller: FrameType) -> bool:
    """Whether ``caller`` stands where it has just gone through all of ``owner``: what it asks is part of that."""
    return owner.taken is not None and owner.taken == site(caller)


def _on_view(name: str) -> Callable[..., Any]:
    """The method ``name`` of a view, as one operation."""

    def method(self: Any, *arguments: Any) -> Any:
        owner = self._owner
        control: Control = owner.control
        plain = getattr(self._view, name)
        if control.current is None:
            control.note_nested(owner.resource, writes=False)
            return plain(*map(_plain, arguments))
        control.before(owner.resource, self._kind, WHOLE, False)
        with control.in_operation():
            result = plain(*map(_plain, arguments))
        content = control.content_of(owner)
        control.note_read(control.content_of, (owner,), content)
        control.after(content)
        return result

    method.__name__ = name
    return method


def _plain(value: Any) -> Any:
    if isinstance(value, _View):
        value._owner.control.note_nested(value._owner.resource, writes=False)
        return value._view
    return value


_ON_SETS = (
    "__contains__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __and__ __rand__ __or__ __ror__ "
    "__sub__ __rsub__ __xor__ __rxor__ isdisjoint __repr__"
)
for _class, _names in ((Keys, _ON_SETS.split()), (Items, _ON_SETS.split()), (Values, ["__repr__"])):
    for _name in _names:
        setattr(_class, _name, _on_view(_name))


def _in_values(self: Any, value: object) -> bool:
    return value in list(iterate(self._owner, lambda: iter(self._view), "in values"))


Values.__contains__ = _in_values  # type: ignore[method-assign]
Values.__hash__ = object.__hash__  # type: ignore[method-assign]
