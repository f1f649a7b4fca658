"""What a C function that goes through a container was called for, by the instruction that its caller stands at."""

from __future__ import annotations

import builtins
import dis
import itertools
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

_LOOPS = frozenset({"GET_ITER", "GET_YIELD_FROM_ITER"})
# CPython 3.11 calls functions in C from the first of its two instructions, once it has seen the call a few times.
_CALLS = frozenset({"CALL", "PRECALL", "CALL_KW"})
#: Functions that take an iterator and go through it later, item by item.
_LAZY: tuple[Any, ...] = (
    enumerate,
    zip,
    map,
    filter,
    iter,
    reversed,
    *(made for made in vars(itertools).values() if isinstance(made, type)),
)
_LAZY_NAMES = frozenset({made.__name__ for made in _LAZY} | {"from_iterable"})
_UNKNOWN = ""


def is_loop(frame: FrameType) -> bool:
    """Whether ``frame`` begins a ``for`` loop."""
    return _operation(frame.f_code, frame.f_lasti)[0] in _LOOPS


def goes_through_later(frame: FrameType) -> bool:
    """Whether ``frame`` calls something that goes through a container item by item, as far as can be told."""
    operation, callee, is_global = _operation(frame.f_code, frame.f_lasti)
    if operation not in _CALLS:
        # ``[*table]``, ``f(**table)``, ``first, second = table``.
        return operation == "CALL_FUNCTION_EX" and callee == _UNKNOWN
    if is_global:
        called = frame.f_globals.get(callee, getattr(builtins, callee, None))
        return any(called is lazy for lazy in _LAZY)
    return callee == _UNKNOWN or callee in _LAZY_NAMES


def calls_method(frame: FrameType, name: str) -> bool:
    """Whether ``frame`` itself calls a method of that name, and no C function does it."""
    operation, callee, is_global = _operation(frame.f_code, frame.f_lasti)
    return operation in _CALLS and not is_global and callee in (name, _UNKNOWN)


@lru_cache(maxsize=1024)
def _operation(code: CodeType, at: int) -> tuple[str, str, bool]:
    """The name of the instruction at offset ``at``; what it calls, if that is known; whether that is a global."""
    instructions = [
        each
        for each in dis.get_instructions(code)
        if each.offset <= at and each.opname not in ("CACHE", "EXTENDED_ARG")
    ]
    last = instructions.pop()
    if last.opname not in _CALLS:
        return last.opname, _UNKNOWN, False
    loaded = _callee(instructions, last)
    if loaded is None:
        return last.opname, _UNKNOWN, False
    is_global = loaded.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    if is_global or loaded.opname in ("LOAD_METHOD", "LOAD_ATTR"):
        return last.opname, str(loaded.argval), is_global
    return last.opname, _UNKNOWN, False


def _callee(instructions: list[dis.Instruction], call: dis.Instruction) -> dis.Instruction | None:
    """The instruction that loaded what is called: the one below the arguments on the stack."""
    assert call.arg is not None
    # CALL_KW has the names of its arguments on top.
    wanted = call.arg + (call.opname == "CALL_KW")
    while instructions and instructions[-1].opname in ("PRECALL", "KW_NAMES"):
        instructions.pop()
    pushed = 0
    while instructions:
        each = instructions.pop()
        if pushed == wanted and each.opname != "PUSH_NULL":
            return each
        if each.opcode in dis.hasjrel or each.opcode in dis.hasjabs:
            return None
        if pushed != wanted:
            argument = each.arg if each.opcode >= dis.HAVE_ARGUMENT else None
            pushed += dis.stack_effect(each.opcode, argument, jump=False)
    return None
