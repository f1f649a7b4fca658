"""Recognising an actor that is back where it began, with nothing left of what it did: its history starts afresh.

A worker that waits for its next item is the worker it was before the first
one, whatever it has seen in between, as long as nothing that it will read still
depends on that.  Without this, states that differ only in what is over are told
apart, and there are many times as many.
"""

from __future__ import annotations

import dis
import sys
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

from kvlint.explore.identities import PLAIN

_STORES = frozenset({"STORE_FAST", "STORE_DEREF"})
_LOADS = frozenset({"LOAD_FAST", "LOAD_DEREF", "LOAD_CLOSURE", "LOAD_CLASSDEREF", "LOAD_FAST_CHECK", "LOAD_FAST_AND_CLEAR"})
_DELETES = frozenset({"DELETE_FAST", "DELETE_DEREF"})
_JUMPS = frozenset(dis.hasjrel) | frozenset(dis.hasjabs)
_NO_FALL_THROUGH = frozenset(
    {"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_ABSOLUTE"}
    | {"JUMP_BACKWARD_NO_INTERRUPT"}
)


@dataclass(frozen=True, slots=True)
class _Stand:
    """Where a frame stands, and what its variables hold."""

    code: CodeType
    instruction: int
    values: dict[str, Any]


class LoopHead:
    """Where an actor stood at its first operation."""

    def __init__(self, frame: FrameType) -> None:
        self._stands = [_Stand(each.f_code, each.f_lasti, dict(each.f_locals)) for each in _frames(frame)]

    def is_back(self, frame: FrameType) -> bool:
        """Whether an actor that stands at ``frame`` will do what it did from the beginning.

        So it is when every frame stands at the same instruction, has nothing
        but the same values on its stack, and every variable that it may read
        before it stores it holds what it held.
        """
        frames = _frames(frame)
        if len(frames) != len(self._stands):
            return False
        return all(_same(each, stand) for each, stand in zip(frames, self._stands, strict=True))


def _frames(frame: FrameType | None) -> list[FrameType]:
    """The frames of code under exploration, innermost first."""
    found = []
    while frame is not None:
        if not frame.f_globals.get("__name__", "").startswith("kvlint.explore."):
            found.append(frame)
        frame = frame.f_back
    return found


def _same(frame: FrameType, stand: _Stand) -> bool:
    if frame.f_code is not stand.code or frame.f_lasti != stand.instruction:
        return False
    live = _live(frame.f_code, frame.f_lasti)
    if live is None:
        return False
    values = frame.f_locals
    return all(_equal(values.get(name, _MISSING), stand.values.get(name, _MISSING)) for name in live)


_MISSING = object()


def _equal(one: Any, other: Any) -> bool:
    return one is other or (type(one) in PLAIN and type(one) is type(other) and one == other)


@lru_cache(maxsize=256)
def _live(code: CodeType, at: int) -> frozenset[str] | None:
    """Variables that may be read after the instruction at offset ``at`` before they are stored; None if unknown.

    None also in the middle of a ``for`` loop, whose iterator is on the stack.
    """
    instructions = [each for each in dis.get_instructions(code) if each.opname not in ("CACHE", "EXTENDED_ARG")]
    places = {each.offset: number for number, each in enumerate(instructions)}
    for each in instructions:
        if each.opname == "FOR_ITER" and each.offset <= at < each.argval:
            return None
    begin = next((number for number, each in enumerate(instructions) if each.offset > at), None)
    if begin is None or "exec" in code.co_names or "locals" in code.co_names:
        return None
    successors = [_successors(instructions, number, places) for number in range(len(instructions))]
    for entry in dis._parse_exception_table(code):  # type: ignore[attr-defined]
        handler = _place(places, entry.target)
        for number, each in enumerate(instructions):
            if entry.start <= each.offset < entry.end:
                successors[number].append(handler)
    return _read_first(instructions, successors, begin)


def _successors(instructions: list[dis.Instruction], number: int, places: dict[int, int]) -> list[int]:
    each = instructions[number]
    found = [] if each.opname in _NO_FALL_THROUGH or number + 1 == len(instructions) else [number + 1]
    if each.opcode in _JUMPS:
        found.append(_place(places, each.argval))
    return found


def _place(places: dict[int, int], offset: int) -> int:
    # A target may be the prefix of an instruction, which was left out.
    while offset not in places:
        offset += 2
    return places[offset]


def _read_first(
    instructions: list[dis.Instruction], successors: list[list[int]], begin: int
) -> frozenset[str]:
    live: list[frozenset[str]] = [frozenset()] * len(instructions)
    changed = True
    while changed:
        changed = False
        for number in range(len(instructions) - 1, -1, -1):
            after: frozenset[str] = frozenset().union(*(live[there] for there in successors[number]))
            now = _before(instructions[number], after)
            if now != live[number]:
                live[number] = now
                changed = True
    return live[begin]


def _before(each: dis.Instruction, after: frozenset[str]) -> frozenset[str]:
    name = each.opname
    if name in _LOADS:
        return after | {each.argval}
    if name in _STORES or name in _DELETES:
        return after - {each.argval}
    if name in ("STORE_FAST_STORE_FAST", "STORE_FAST_LOAD_FAST", "LOAD_FAST_LOAD_FAST"):
        one, other = each.argval
        first, second = name.split("_FAST_")[0], name.split("_FAST_")[1].split("_")[0]
        after = after | {other} if second == "LOAD" else after - {other}
        return after | {one} if first == "LOAD" else after - {one}
    return after


def here() -> FrameType:
    """The frame of the caller of the caller."""
    return sys._getframe(2)
