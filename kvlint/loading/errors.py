"""What can go wrong while a backend is loaded, and the use of a stand-in that nobody foresaw."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Never

from kvlint.loading.unforeseen import UnforeseenUse as UnforeseenUse

#: Under this name the builtins of a tree's modules hold their Marker. It tells a stand-in which tree uses it.
MARKER = "__kvlint_tree__"


class LoadError(Exception):
    """A tree that cannot be loaded, or a backend that cannot be built; the message names what was missing and where."""


@dataclass(frozen=True, slots=True, eq=False)
class Marker:
    """Stands in the builtins of one tree's modules."""

    root: Path
    faults: list[UnforeseenUse] = field(default_factory=list)


def refuse(name: str, use: str) -> Never:
    """Say that a stand-in does not know a use.

    Raises:
        UnforeseenUse: Always.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and MARKER not in frame.f_builtins:
        frame = frame.f_back
    marker = frame.f_builtins.get(MARKER)
    place = f"{frame.f_code.co_filename}:{frame.f_lineno}" if isinstance(marker, Marker) else None
    fault = UnforeseenUse(name, use, place)
    if isinstance(marker, Marker):
        marker.faults.append(fault)
    raise fault


def place_of(error: BaseException, root: Path) -> str | None:
    """Where in a tree an exception was raised, as `path:line`: the innermost frame of the tree's own code."""
    place, trace = None, error.__traceback__
    while trace is not None:
        if _inside(trace.tb_frame.f_code, root):
            place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename:
        place = f"{error.filename}:{error.lineno}"
    return place


def _inside(code: CodeType, root: Path) -> bool:
    return Path(code.co_filename).is_relative_to(root)


def place_of_code(function: Callable[..., object]) -> str | None:
    """Where a function of a tree begins, as `path:line`, or None if it is not written in Python."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if isinstance(code, CodeType) else None
