"""Tells the threads of a manager apart by what their code does."""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

from kvlint.explore.loading.captured import CapturedThread

_DEPTH = 4


def is_listener(thread: CapturedThread) -> bool:
    """Whether its code reaches `recv_multipart`.

    A worker's does so too, by the monitors of the sockets that it sends through: ask is_worker() first.
    """
    return any("recv_multipart" in code.co_names for code in _reached(thread.target, _DEPTH))


def is_worker(thread: CapturedThread) -> bool:
    """Whether it is given a queue, or else its own code takes from one: from something whose name says so."""
    if any(_is_queue(argument) for argument in (*thread.args, *thread.kwargs.values())):
        return True
    return any(
        "get" in code.co_names and any("queue" in name.lower() for name in (*code.co_names, *code.co_freevars))
        for code in _reached(thread.target, 0)
    )


def _is_queue(value: object) -> bool:
    methods = dir(type(value))
    return "put" in methods and "get" in methods


def _reached(function: object, depth: int) -> Iterator[CodeType]:
    """The code of a function, of those that it closes over, and of the methods of its object that it names."""
    owner: object = None
    if isinstance(function, MethodType):
        owner, function = function.__self__, function.__func__
    if not isinstance(function, FunctionType):
        return
    yield from _nested(function.__code__)
    if depth == 0:
        return
    closed = [cell.cell_contents for cell in function.__closure__ or ()]
    for value in closed:
        if isinstance(value, (FunctionType, MethodType)):
            yield from _reached(value, depth - 1)
    for one in [owner] if owner is not None else closed:
        yield from _methods(one, function.__code__, depth)


def _methods(owner: Any, code: CodeType, depth: int) -> Iterator[CodeType]:
    for name in code.co_names:
        if isinstance(getattr(type(owner), name, None), FunctionType):
            yield from _reached(getattr(owner, name), depth - 1)


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)
