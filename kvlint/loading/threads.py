"""Tells the threads of a manager apart by what their code does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import CellType, CodeType, FunctionType, MethodType
from typing import Protocol


class KnownThread(Protocol):
    """A thread of which it is known what it was given."""

    @property
    def target(self) -> Callable[..., object] | None:
        """What it runs."""

    @property
    def args(self) -> tuple[object, ...]:
        """The arguments of that."""

    @property
    def kwargs(self) -> Mapping[str, object]:
        """The keyword arguments of that."""

    def run(self) -> object:
        """What it does without a target."""


_DEPTH = 4
#: A variable that the function closes over and that has no value yet equals it.
_EMPTY = CellType()


def is_listener(thread: KnownThread) -> bool:
    """Whether its code reaches `recv_multipart`.

    A worker's does so too, by the monitors of the sockets that it sends through: ask is_worker() first.
    """
    return any("recv_multipart" in code.co_names for code in _reached(_entry(thread)[0], _DEPTH))


def is_worker(thread: KnownThread) -> bool:
    """Whether it is given a queue, or else its own code takes from one: from something whose name says so."""
    function, given = _entry(thread)
    if any(_is_queue(value) for value in (*given, *_closed_over(function))):
        return True
    return any(
        "get" in code.co_names and any("queue" in name.lower() for name in (*code.co_names, *code.co_freevars))
        for code in _reached(function, 0)
    )


def given_to(thread: KnownThread) -> list[object]:
    """What a thread was given: its arguments, and what its function closes over."""
    function, given = _entry(thread)
    return [*given, *_closed_over(function)]


def _entry(thread: KnownThread) -> tuple[object, list[object]]:
    """The function that a thread runs, and what it is given."""
    function: object = thread.run if thread.target is None else thread.target
    given = [*thread.args, *thread.kwargs.values()]
    while isinstance(function, partial):
        given += [*function.args, *function.keywords.values()]
        function = function.func
    return function, given


def _is_queue(value: object) -> bool:
    methods = dir(type(value))
    return "put" in methods and "get" in methods


def _closed_over(function: object) -> list[object]:
    plain = function.__func__ if isinstance(function, MethodType) else function
    cells = plain.__closure__ if isinstance(plain, FunctionType) else None
    return [cell.cell_contents for cell in cells or () if cell != _EMPTY]


def _reached(function: object, depth: int) -> Iterator[CodeType]:
    """The code of a function, of those that it closes over, and of the methods of its objects that it names."""
    owner = function.__self__ if isinstance(function, MethodType) else None
    plain = function.__func__ if isinstance(function, MethodType) else function
    if not isinstance(plain, FunctionType):
        return
    yield from _nested(plain.__code__)
    if depth == 0:
        return
    for value in (owner, *_closed_over(plain)):
        if isinstance(value, (FunctionType, MethodType)):
            yield from _reached(value, depth - 1)
        else:
            yield from _methods(value, plain.__code__, depth)


def _methods(owner: object, code: CodeType, depth: int) -> Iterator[CodeType]:
    for name in code.co_names:
        method = getattr(type(owner), name, None)
        if isinstance(method, FunctionType):
            yield from _reached(MethodType(method, owner), depth - 1)


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)
