"""Values as keys: what an actor observed and what a table holds, comparable across runs of the same program."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

#: Types whose values are keys as they are.
PLAIN = frozenset({int, str, bytes, type(None)})


class Identified:
    """A controlled object; it goes by the number it was given when it was made."""

    identity: int


class Identities:
    """Numbers for keys, the same in every run, and names for the objects of one run.

    Keys are kept whole, so two of them never share a number.  An object that is
    not controlled goes by its type and the moment it was first seen (the
    history of the actor that had it): a program that has observed the same
    things makes the same objects.
    """

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._seen: dict[int, tuple[Any, Hashable]] = {}
        self._fixed: dict[int, tuple[Any, Hashable]] = {}
        self._names: dict[Hashable, int] = {}
        #: Objects whose attributes are controlled, by id().
        self.controlled: set[int] = set()
        self._attributes: list[tuple[Any, list[int]]] = []
        self._kept_attributes: list[tuple[Any, list[int]]] = []

    def number(self, key: Hashable) -> int:
        """The number of ``key``."""
        numbers = self._numbers
        return numbers.setdefault(key, len(numbers))

    def keep(self) -> None:
        """Let the objects seen so far keep their names in every later run: they were there before it began."""
        self._fixed.update(self._seen)
        self._kept_attributes += self._attributes
        self.begin()

    def begin(self) -> None:
        """Forget the objects of the last run."""
        self._seen = {}
        self._names = {}
        self._attributes = []

    def changed(self) -> set[str]:
        """Names of the classes of objects whose attributes are others than when the objects were first seen."""
        return {
            type(value).__qualname__
            for value, held in (*self._attributes, *self._kept_attributes)
            if list(map(id, vars(value).values())) != held
        }

    def frozen(self, value: Any, moment: Hashable) -> Hashable:
        """``value`` as a key; ``moment`` is the history of the actor that has it in its hands."""
        kind = type(value)
        if kind in PLAIN:
            return value  # type: ignore[no-any-return]
        if kind is bool or kind is float:
            # True == 1 == 1.0, and they are not the same observation.
            return (kind.__name__, value)
        if kind is tuple:
            return tuple([self.frozen(item, moment) for item in value])
        if isinstance(value, Identified):
            return ("controlled", value.identity)
        if isinstance(value, BaseException):
            return (kind.__qualname__, tuple([self.frozen(item, moment) for item in value.args]))
        return self._object(value, kind, moment)

    def _object(self, value: Any, kind: type, moment: Hashable) -> Hashable:
        known = self._fixed.get(id(value)) or self._seen.get(id(value))
        if known is not None:
            return known[1]
        born = (kind.__qualname__, moment)
        nth = self._names.get(born, 0)
        self._names[born] = nth + 1
        name = (*born, nth)
        # The object is kept with its name, so that its number is not given to another in this run.
        self._seen[id(value)] = (value, name)
        held = getattr(kind, "__dictoffset__", 0) and vars(value)
        if held and id(value) not in self.controlled:
            self._attributes.append((value, list(map(id, held.values()))))
        return name
