"""Containers that a program keeps outside of its objects: in modules, and in functions that close over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import FunctionType, MethodType, ModuleType
from typing import Any

from kvlint.explore.backend import Found
from kvlint.explore.containers import CONTROLLED


def in_modules(modules: Mapping[str, ModuleType]) -> Found:
    """Containers that are names of modules."""
    for module, loaded in modules.items():
        for name, value in list(vars(loaded).items()):
            if type(value) in CONTROLLED and not name.startswith("__"):
                yield f"{name} of the module {module}", value


def in_functions(functions: Iterable[Callable[..., Any] | None]) -> Found:
    """Containers that functions close over."""
    for function in functions:
        plain = function.__func__ if isinstance(function, MethodType) else function
        if isinstance(plain, FunctionType) and plain.__closure__:
            for name, cell in zip(plain.__code__.co_freevars, plain.__closure__, strict=True):
                try:
                    value = cell.cell_contents
                except ValueError:
                    continue  # It has no value yet.
                if type(value) in CONTROLLED:
                    yield f"{name} around {plain.__qualname__}", value


class Elsewhere:
    """What such containers held before the first run: nothing stops at them, so a change of them is told."""

    def __init__(self, found: Found) -> None:
        self._held = [(label, value, _identities(value)) for label, value in found]

    def changed(self) -> list[str]:
        """The names of those that hold something else now."""
        return [label for label, value, held in self._held if _identities(value) != held]


def _identities(value: Any) -> list[int]:
    if isinstance(value, dict):
        return [id(each) for entry in value.items() for each in entry]
    return list(map(id, value))
