"""Which attributes code changes after objects were made, by its compiled form."""

from __future__ import annotations

import dis
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any

_STORES = frozenset({"STORE_ATTR", "DELETE_ATTR"})
_CONSTRUCTORS = frozenset({"__init__", "__new__", "__post_init__"})


def stored_attributes(classes: Iterable[type]) -> frozenset[str]:
    """Names of attributes that are stored or deleted outside of constructors.

    Looked at are all functions and classes of the modules that ``classes`` and their bases stand in.
    """
    found: set[str] = set()
    seen: set[int] = set()
    for kind in classes:
        for each in kind.__mro__:
            for function in _functions(each):
                space = function.__globals__
                if id(space) not in seen:
                    seen.add(id(space))
                    for value in list(space.values()):
                        found.update(_stored_by(value))
    return frozenset(found)


def _stored_by(value: Any) -> Iterator[str]:
    if isinstance(value, FunctionType):
        yield from _stored_in(value.__code__)
    elif isinstance(value, type):
        for function in _functions(value):
            if function.__name__ not in _CONSTRUCTORS:
                yield from _stored_in(function.__code__)


def _functions(kind: type) -> Iterator[FunctionType]:
    for value in vars(kind).values():
        plain = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if isinstance(plain, FunctionType):
            yield plain


def _stored_in(code: CodeType) -> Iterator[str]:
    for each in dis.get_instructions(code):
        if each.opname in _STORES:
            yield each.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _stored_in(constant)
