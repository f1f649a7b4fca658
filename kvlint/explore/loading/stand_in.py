"""Stand-ins: modules, values and objects that know the uses that were foreseen and refuse every other.

A name that a tree imports and never uses needs no foresight: it is answered with a Placeholder, which refuses when it
is used. unittest.mock is no help here: `list(MagicMock())` is `[]`, and so an unforeseen use goes on as a wrong answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Never

from kvlint.explore.loading.errors import refuse


def _is_special(attribute: str) -> bool:
    # Python itself looks for these, to find out what an object can do.
    return attribute.startswith("__") and attribute.endswith("__")


class Placeholder:
    """Something that was imported and is not known: to import it is no use, everything else is.

    `|` gives another placeholder, for annotations that are evaluated.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Never:
        if _is_special(attribute):
            raise AttributeError(attribute)
        refuse(f"{self._name}.{attribute}", "its value was read")

    def __or__(self, other: object) -> Placeholder:
        return Placeholder(f"{self._name} | …")

    __ror__ = __or__

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<stand-in for {self._name}>"


def _refusal(use: str) -> Callable[..., Never]:
    def method(self: Placeholder, *_: object, **__: object) -> Never:
        refuse(self._name, use)

    return method


_REFUSED = {
    "it was called": ("__call__",),
    "it was taken as a base class": ("__mro_entries__",),
    "a type was compared with it": ("__instancecheck__", "__subclasscheck__"),
    "its truth was asked for": ("__bool__",),
    "it was compared": ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"),
    "it was turned into text": ("__str__", "__format__"),
    "it was turned into a number": ("__int__", "__float__", "__index__"),
    "it was used as a container": ("__len__", "__iter__", "__next__", "__contains__", "__getitem__", "__setitem__"),
    "it was used in `with`": ("__enter__", "__exit__", "__aenter__", "__aexit__"),
    "it was awaited": ("__await__", "__aiter__", "__anext__"),
    "it was calculated with": (
        *("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__", "__rtruediv__"),
        *("__floordiv__", "__rfloordiv__", "__mod__", "__rmod__", "__pow__", "__and__", "__rand__", "__neg__"),
    ),
}
for _use, _methods in _REFUSED.items():
    for _method in _methods:
        setattr(Placeholder, _method, _refusal(_use))


class StandIn:
    """An object of which some attributes are known; to read another one is refused.

    Args:
        name: What it stands for, in messages.
        values: The attributes that are known.
    """

    def __init__(self, name: str, /, **values: object) -> None:
        self.__dict__.update(values)
        self.__dict__["_stand_in_name"] = name

    def __getattr__(self, attribute: str) -> Any:
        if _is_special(attribute):
            raise AttributeError(attribute)
        name = self.__dict__.get("_stand_in_name", type(self).__name__)
        refuse(f"{name}.{attribute}", "its value was read")

    def __repr__(self) -> str:
        return f"<stand-in for {self.__dict__.get('_stand_in_name', type(self).__name__)}>"


class StandInModule(ModuleType):
    """A module of which some names are known. Any other name is a Placeholder.

    Args:
        name: The module's name.
        known: The names that are known, and what they stand for.
    """

    def __init__(self, name: str, known: Mapping[str, object] | None = None) -> None:
        super().__init__(name)
        self.__dict__.update(known or {})

    def __getattr__(self, attribute: str) -> Placeholder:
        if _is_special(attribute):
            raise AttributeError(attribute)
        placeholder = Placeholder(f"{self.__name__}.{attribute}")
        self.__dict__[attribute] = placeholder
        return placeholder


class Overlay(ModuleType):
    """A module with some of its names replaced; the module itself is left as it is.

    Args:
        module: The module, or any object with its names.
        replaced: The names that differ.
    """

    def __init__(self, module: object, replaced: Mapping[str, object]) -> None:
        super().__init__(getattr(module, "__name__", type(module).__name__))
        self.__dict__["_overlaid"] = module
        self.__dict__.update(replaced)

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(self.__dict__["_overlaid"], attribute)
        if not _is_special(attribute):
            self.__dict__[attribute] = value
        return value
