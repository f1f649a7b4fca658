"""Calls functions of several releases with the arguments that each of them knows."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any


def known_names(function: Callable[..., Any], names: Iterable[str]) -> tuple[str, ...]:
    """Those of the names that a function's signature has; all of them if it takes any."""
    parameters = inspect.signature(function).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return tuple(names)
    return tuple(name for name in names if name in parameters)


def call_known(function: Callable[..., Any], /, **arguments: object) -> Any:
    """Call a function with those of the arguments that its signature names; all of them if it takes any."""
    return function(**{name: arguments[name] for name in known_names(function, arguments)})
