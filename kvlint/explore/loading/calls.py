"""Calls functions of several releases with the arguments that each of them knows."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def call_known(function: Callable[..., Any], /, **arguments: object) -> Any:
    """Call a function with those of the arguments that its signature names; all of them if it takes any."""
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return function(**arguments)
    names = {parameter.name for parameter in parameters}
    return function(**{name: value for name, value in arguments.items() if name in names})
