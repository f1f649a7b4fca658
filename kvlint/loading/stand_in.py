"""Stand-ins: modules, values and objects that know the uses that were foreseen and refuse every other.

A name that a tree imports and never uses needs no foresight: it is answered with a Placeholder, which refuses when it
is used. unittest.mock is no help here: `list(MagicMock())` is `[]`, and so an unforeseen use goes on as a wrong answer.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Never

from kvlint.loading.errors import refuse

_EXCEPTION = re.compile("(Error|Exception|Expired|Terminated|Timeout|Warning|error)$")


def _is_special(attribute: str) -> bool:
    # Python itself looks for these, to find out what an object can do.
    return attribute.startswith("__") and attribute.endswith("__")


def _exception(name: str, attribute: str) -> type[Exception] | None:
    """The class of an exception that nothing here raises, if the name is one of an exception.

    Every exception that passes an `except torch.cuda.OutOfMemoryError:` is compared with it, those of an engine too.
    """
    return type(attribute, (Exception,), {"__module__": name}) if _EXCEPTION.search(attribute) else None


class _Refusing:
    """Refuses the operations that an object may be put to."""

    __slots__ = ()


class Placeholder(_Refusing):
    """Something that was imported and is not known: to import it is no use, everything else is.

    To name an exception of it is no use either. `|` gives another placeholder, for annotations that are evaluated.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if _is_special(attribute):
            raise AttributeError(attribute)
        exception = _exception(self._name, attribute)
        if exception is None:
            refuse(f"{self._name}.{attribute}", "its value was read")
        return exception

    def __or__(self, other: object) -> Placeholder:
        return Placeholder(f"{self._name} | …")

    __ror__ = __or__

    def __eq__(self, other: object) -> bool:
        if sys._getframe(1).f_globals.get("__name__") != "typing":
            refuse(self._name, "it was compared")
        # Optional[…] and its like compare what they are given with forms of their own.
        return NotImplemented

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<stand-in for {self._name}>"


def _refusal(use: str) -> Callable[..., Never]:
    def method(self: object, *_: object, **__: object) -> Never:
        refuse(repr(self)[len("<stand-in for ") : -1], use)

    return method


def _refuse(kind: type, use: str, *methods: str) -> None:
    for method in methods:
        setattr(kind, method, _refusal(use))


_refuse(_Refusing, "it was called", "__call__")
_refuse(_Refusing, "it was taken as a base class", "__mro_entries__")
_refuse(_Refusing, "a type was compared with it", "__instancecheck__", "__subclasscheck__")
_refuse(_Refusing, "it was turned into a number", "__int__", "__float__", "__index__")
_refuse(_Refusing, "it was iterated", "__iter__", "__next__", "__len__", "__contains__")
_refuse(_Refusing, "it was subscripted", "__getitem__", "__setitem__", "__delitem__")
_refuse(_Refusing, "it was used in `with`", "__enter__", "__exit__", "__aenter__", "__aexit__")
_refuse(_Refusing, "it was awaited", "__await__", "__aiter__", "__anext__")
_refuse(_Refusing, "it was ordered", "__lt__", "__le__", "__gt__", "__ge__")
for _operator in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "xor", "lshift", "rshift", "matmul"):
    _refuse(_Refusing, "it was calculated with", f"__{_operator}__", f"__r{_operator}__")
_refuse(_Refusing, "it was calculated with", "__neg__", "__invert__")
# A StandIn is there and is itself; of a Placeholder not even that is known.
_refuse(Placeholder, "its truth was asked for", "__bool__")
_refuse(Placeholder, "it was compared", "__ne__")
_refuse(Placeholder, "it was turned into text", "__str__", "__format__")


class StandIn(_Refusing):
    """An object of which some attributes are known; to read another one, or to operate on it, is refused.

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

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<stand-in for {self.__dict__.get('_stand_in_name', type(self).__name__)}>"


class StandInModule(ModuleType):
    """A module of which some names are known. Any other name is a Placeholder, or an exception that is never raised.

    Args:
        name: The module's name.
        known: The names that are known, and what they stand for.
    """

    def __init__(self, name: str, known: Mapping[str, object] | None = None) -> None:
        super().__init__(name)
        self.__dict__.update(known or {})

    def __getattr__(self, attribute: str) -> Any:
        if _is_special(attribute):
            raise AttributeError(attribute)
        unknown = _exception(self.__name__, attribute) or Placeholder(f"{self.__name__}.{attribute}")
        self.__dict__[attribute] = unknown
        return unknown


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
        # Asked anew each time: whoever gave the object may change it.
        return getattr(self.__dict__["_overlaid"], attribute)
