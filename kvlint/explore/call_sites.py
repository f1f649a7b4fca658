"""What a C function that goes through a container was called for, by the instruction that its caller stands at."""

from __future__ import annotations

import builtins
import dis
import itertools
from enum import Enum
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
    next,
    *(made for made in vars(itertools).values() if isinstance(made, type)),
)
_LAZY_NAMES = frozenset({made.__name__ for made in _LAZY} | {"from_iterable"})


class _Scope(Enum):
    LOCAL = "local"
    GLOBAL = "global"
    ATTRIBUTE = "attribute"
    NONE = "none"


_SCOPES = {
    "LOAD_FAST": _Scope.LOCAL,
    "LOAD_FAST_BORROW": _Scope.LOCAL,
    "LOAD_FAST_CHECK": _Scope.LOCAL,
    "LOAD_DEREF": _Scope.LOCAL,
    "LOAD_NAME": _Scope.LOCAL,
    "LOAD_GLOBAL": _Scope.GLOBAL,
    "LOAD_METHOD": _Scope.ATTRIBUTE,
    "LOAD_ATTR": _Scope.ATTRIBUTE,
}


def is_loop(frame: FrameType) -> bool:
    """Whether ``frame`` begins a ``for`` loop."""
    return _operation(frame.f_code, frame.f_lasti)[0] in _LOOPS


def goes_through_later(frame: FrameType) -> bool:
    """Whether ``frame`` calls something that goes through a container item by item, as far as can be told."""
    operation, callee, scope = _operation(frame.f_code, frame.f_lasti)
    if operation not in _CALLS:
        # Not so ``[*table]``, ``f(**table)``, ``first, second = table``; a call with ``*`` may be of anything.
        # ``chain`` asks for its second argument's items in the middle of a loop.
        return operation in ("CALL_FUNCTION_EX", "FOR_ITER", "SEND")
    if scope is _Scope.ATTRIBUTE:
        return callee in _LAZY_NAMES
    if scope is _Scope.NONE:
        return True
    called = frame.f_locals.get(callee) if scope is _Scope.LOCAL else None
    if called is None:
        called = frame.f_globals.get(callee, getattr(builtins, callee, None))
    return any(called is lazy for lazy in _LAZY)


def calls_method(frame: FrameType, name: str) -> bool:
    """Whether ``frame`` itself calls a method of that name, and no C function does it."""
    operation, callee, scope = _operation(frame.f_code, frame.f_lasti)
    if operation not in _CALLS:
        return False
    if scope is _Scope.LOCAL:
        # A method may have been given a name of its own before.
        return bool(getattr(frame.f_locals.get(callee), "__name__", name) == name)
    return scope is _Scope.NONE or (scope is _Scope.ATTRIBUTE and callee == name)


@lru_cache(maxsize=1024)
def _operation(code: CodeType, at: int) -> tuple[str, str, _Scope]:
    """The name of the instruction at offset ``at``; what it calls, and where that name is looked up."""
    read = (each for each in dis.get_instructions(code) if each.offset <= at)
    instructions = [each for each in read if each.opname not in ("CACHE", "EXTENDED_ARG")]
    last = instructions.pop()
    loaded = _callee(instructions, last) if last.opname in _CALLS else None
    if loaded is None:
        return last.opname, "", _Scope.NONE
    return last.opname, str(loaded.argval), _SCOPES.get(loaded.opname, _Scope.NONE)


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
        if each.is_jump_target or each.opcode in dis.hasjrel or each.opcode in dis.hasjabs:
            # One of several may have been loaded.
            return None
        if pushed != wanted:
            argument = each.arg if each.opcode >= dis.HAVE_ARGUMENT else None
            pushed += dis.stack_effect(each.opcode, argument, jump=False)
    return None
