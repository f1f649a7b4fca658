"""Recognising an actor that is back where it began, with nothing left of what it did: its history starts afresh.

A worker that waits for its next item is the worker it was before the first
one, whatever it has seen in between, as long as nothing that it will read still
depends on that.  Without this, states that differ only in what is over are told
apart, and there are many times as many.  Where it is not certain, an actor is
not back; that costs states and no schedules.
"""

from __future__ import annotations

import dis
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from kvlint.explore.identities import PLAIN, Identified
from kvlint.explore.program_frames import program_frames

# Names of CPython 3.11 to 3.14.
_STORES = frozenset({"STORE_FAST", "STORE_DEREF", "STORE_FAST_MAYBE_NULL"})
_DELETES = frozenset({"DELETE_FAST", "DELETE_DEREF"})
_LOADS = frozenset(
    {"LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_AND_CLEAR", "LOAD_FAST_BORROW"}
    | {"LOAD_DEREF", "LOAD_CLOSURE", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"}
)
#: What puts operands on the stack that are the same whenever the variables are.
_OPERANDS = _LOADS | {
    "LOAD_FAST_LOAD_FAST",
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW",
    "LOAD_CONST",
    "LOAD_CONST_IMMORTAL",
    "LOAD_SMALL_INT",
    "LOAD_GLOBAL",
    "LOAD_NAME",
    "LOAD_ATTR",
    "LOAD_METHOD",
    "PUSH_NULL",
    "PRECALL",
    "KW_NAMES",
    "COPY",
    "SWAP",
    "NOP",
    "RESUME",
    "BUILD_TUPLE",
}
_JUMPS = frozenset(dis.hasjrel) | frozenset(dis.hasjabs)
_NO_FALL_THROUGH = frozenset(
    {"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_ABSOLUTE"}
    | {"JUMP_BACKWARD_NO_INTERRUPT", "JUMP_BACKWARD_JIT", "JUMP_BACKWARD_NO_JIT"}
)
_LOOKS_AT_ALL = frozenset({"exec", "eval", "locals", "vars", "_getframe", "currentframe"})
_UNCHANGING = (FunctionType, BuiltinFunctionType, ModuleType, type, Enum, bool, float, range, Identified)
_MISSING = object()


@dataclass(frozen=True, slots=True)
class _Stand:
    """Where a frame stands, and what its variables hold."""

    code: CodeType
    instruction: int
    values: dict[str, Any]
    attributes: dict[int, dict[str, Any]]


class LoopHead:
    """Where an actor stood at its first operation."""

    def __init__(self, frame: FrameType) -> None:
        self._stands = [_stand(each) for each in program_frames(frame)]

    def is_back(self, frame: FrameType) -> bool:
        """Whether an actor that stands at ``frame`` will do what it did from the beginning.

        So it is when every frame stands at the same instruction, has nothing
        but the same values on its stack, and every variable that it may read
        before it stores it holds what it held.
        """
        frames = list(program_frames(frame))
        if len(frames) != len(self._stands):
            return False
        return all(_same(each, stand) for each, stand in zip(frames, self._stands, strict=True))


def _stand(frame: FrameType) -> _Stand:
    values = dict(frame.f_locals)
    attributes = {id(value): _attributes(value) for value in values.values() if _is_plain_object(value)}
    return _Stand(frame.f_code, frame.f_lasti, values, attributes)


def _is_plain_object(value: Any) -> bool:
    """Whether all that an object may have kept is in its attributes."""
    return (
        not isinstance(value, (*_UNCHANGING, list, dict, set, deque, bytearray))
        and hasattr(value, "__dict__")
        and not hasattr(value, "__next__")
    )


def _attributes(value: Any) -> dict[str, Any]:
    """The attributes of an object but those that are operations."""
    kind = type(value)
    return {name: held for name, held in vars(value).items() if not hasattr(getattr(kind, name, None), "__set__")}


def _same(frame: FrameType, stand: _Stand) -> bool:
    if frame.f_code is not stand.code or frame.f_lasti != stand.instruction:
        return False
    live = live_variables(frame.f_code, frame.f_lasti)
    if live is None:
        return False
    values = frame.f_locals
    return all(_equal(values.get(name, _MISSING), stand.values.get(name, _MISSING), stand) for name in live)


def _equal(one: Any, other: Any, stand: _Stand) -> bool:
    """Whether two values do the same for whoever reads them; where it is the same object, whether it is as it was."""
    if type(one) is not type(other):
        return False
    if type(one) in PLAIN:
        return bool(one == other)
    if type(one) is tuple:
        return len(one) == len(other) and all(_equal(*pair, stand) for pair in zip(one, other, strict=True))
    if type(one) is MethodType:
        return one.__func__ is other.__func__ and _equal(one.__self__, other.__self__, stand)
    if one is not other:
        return False
    if one is _MISSING or isinstance(one, _UNCHANGING):
        return True
    before = stand.attributes.get(id(one))
    return before is not None and _same_values(_attributes(one), before)


def _same_values(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(
        value is other[name] or (type(value) in PLAIN and type(value) is type(other[name]) and value == other[name])
        for name, value in one.items()
    )


@lru_cache(maxsize=256)
def live_variables(code: CodeType, at: int) -> frozenset[str] | None:
    """Variables that the statement with the instruction at offset ``at``, or what follows it, may read unstored.

    None where it is not known: in the middle of a ``for`` loop, whose iterator
    is on the stack, or of an expression that has a value there already, and
    where code looks at all its variables.
    """
    if not _LOOKS_AT_ALL.isdisjoint(code.co_names):
        return None
    flow = _Flow(code)
    begin = flow.statement_of(at)
    return None if begin is None else flow.read_first(begin)


class _Way(NamedTuple):
    """A step from one instruction to another, and the stack it comes with."""

    there: int
    stack: tuple[bool, ...]


class _Flow:
    """The instructions of a code object and what is on its stack before each: True for the exit of a ``with``."""

    def __init__(self, code: CodeType) -> None:
        self._instructions = [
            each for each in dis.get_instructions(code) if each.opname not in ("CACHE", "EXTENDED_ARG")
        ]
        self._places = {each.offset: number for number, each in enumerate(self._instructions)}
        self._handlers = self._find_handlers(code)
        self._stacks: dict[int, tuple[bool, ...]] = {}
        self._successors: list[list[int]] = [[] for _ in self._instructions]
        todo = [_Way(0, ())]
        while todo:
            number, stack = todo.pop()
            if number in self._stacks:
                continue
            self._stacks[number] = stack
            ways = list(self._ways(number, stack))
            self._successors[number] = [way.there for way in ways]
            todo += ways

    def _find_handlers(self, code: CodeType) -> dict[int, tuple[int, int, int]]:
        """By the number of an instruction: its handler, how much of the stack stays, and how much comes on top."""
        found: dict[int, tuple[int, int, int]] = {}
        for entry in dis._parse_exception_table(code):  # type: ignore[attr-defined]
            for number, each in enumerate(self._instructions):
                if entry.start <= each.offset < entry.end:
                    # The exception comes on top, and where it was raised below it, if that is wanted.
                    found[number] = (self._place(entry.target), entry.depth, 1 + entry.lasti)
        return found

    def _place(self, offset: int) -> int:
        # A target may be the prefix of an instruction, which was left out.
        while offset not in self._places:
            offset += 2
        return self._places[offset]

    def _ways(self, number: int, stack: tuple[bool, ...]) -> Iterator[_Way]:
        each = self._instructions[number]
        if each.opname not in _NO_FALL_THROUGH and number + 1 < len(self._instructions):
            yield _Way(number + 1, _after(each, stack, jump=False))
        if each.opcode in _JUMPS:
            yield _Way(self._place(each.argval), _after(each, stack, jump=True))
        if number in self._handlers:
            target, depth, more = self._handlers[number]
            yield _Way(target, (*stack[:depth], *[False] * more))

    def statement_of(self, at: int) -> int | None:
        """Where the operands of the instruction at ``at`` begin to be loaded; None where others wait with them."""
        # A frame that calls may stand in the inline cache behind its call.
        number = max((number for offset, number in self._places.items() if offset <= at), default=-1)
        if number not in self._stacks:
            return None
        while not all(self._stacks[number]):
            number -= 1
            if number < 0 or self._instructions[number].opname not in _OPERANDS or number not in self._stacks:
                return None
        return number

    def read_first(self, begin: int) -> frozenset[str]:
        """Variables that may be read from ``begin`` on before they are stored."""
        live: list[frozenset[str]] = [frozenset()] * len(self._instructions)
        changed = True
        while changed:
            changed = False
            for number in range(len(live) - 1, -1, -1):
                after: frozenset[str] = frozenset().union(*(live[there] for there in self._successors[number]))
                now = _before(self._instructions[number], after)
                if now != live[number]:
                    live[number] = now
                    changed = True
        return live[begin]


def _after(each: dis.Instruction, stack: tuple[bool, ...], *, jump: bool) -> tuple[bool, ...]:
    """The stack after an instruction."""
    if each.opname == "BEFORE_WITH":
        return (*stack[:-1], True, False)
    if each.opname == "SWAP":
        assert each.arg is not None
        swapped = list(stack)
        swapped[-1], swapped[-each.arg] = swapped[-each.arg], swapped[-1]
        return tuple(swapped)
    argument = each.arg if each.opcode >= dis.HAVE_ARGUMENT else None
    effect = dis.stack_effect(each.opcode, argument, jump=jump)
    if effect >= 0:
        return (*stack, *[False] * effect)
    return stack[:effect]


def _before(each: dis.Instruction, after: frozenset[str]) -> frozenset[str]:
    name = each.opname
    if "_FAST" in name and isinstance(each.argval, tuple):
        # Two in one: LOAD_FAST_LOAD_FAST, STORE_FAST_LOAD_FAST, and their like.
        one, other = each.argval
        first, second = ("LOAD" if part == "LOAD" else "STORE" for part in _parts(name))
        return _step(first, one, _step(second, other, after))
    if name in _LOADS:
        return after | {each.argval}
    if name in _STORES or name in _DELETES:
        return after - {each.argval}
    return after


def _parts(name: str) -> tuple[str, str]:
    words = [word for word in name.split("_") if word in ("LOAD", "STORE")]
    return words[0], words[1]


def _step(kind: str, name: str, after: frozenset[str]) -> frozenset[str]:
    return after | {name} if kind == "LOAD" else after - {name}
