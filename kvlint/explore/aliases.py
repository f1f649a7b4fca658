"""Names of a plain container that was made a controlled one: they have to mean the controlled one from then on.

``infos = {}; self.transfer_infos[room] = infos; infos[peer] = info`` changes
what the table holds.  Local variables are bound anew; a change by any other
way, of which only the plain container knows, is found at the end of the run.
"""

from __future__ import annotations

import ctypes
import sys
from collections import deque
from types import FrameType
from typing import Any

from kvlint.explore.program_frames import program_frames


def bind_anew(plain: Any, controlled: Any, frame: FrameType | None) -> None:
    """Let the local variables of ``frame`` and its callers that hold ``plain`` hold ``controlled``."""
    for each in program_frames(frame):
        values = each.f_locals
        names = [name for name, value in values.items() if value is plain]
        for name in names:
            values[name] = controlled
        if names and sys.version_info < (3, 13):
            # Before PEP 667 the variables are a copy.
            ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(each), ctypes.c_int(0))


class Originals:
    """Plain containers that have controlled ones in their places."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, Any, list[Any]]] = {}
        self._kept: dict[int, tuple[Any, Any, list[Any]]] = {}

    def keep(self) -> None:
        """What is known now is known in every run."""
        self._kept.update(self._known)

    def begin(self) -> None:
        """Forget those of the last run."""
        self._known = dict(self._kept)

    def of(self, plain: Any) -> Any:
        """The controlled container in the place of ``plain``, or None."""
        known = self._known.get(id(plain))
        return None if known is None else known[1]

    def add(self, plain: Any, controlled: Any) -> None:
        """Note what is in the place of ``plain``."""
        self._known[id(plain)] = (plain, controlled, _held(plain))

    def changed(self) -> list[Any]:
        """Controlled containers in the places of plain ones that were changed since."""
        return [
            controlled
            for plain, controlled, held in self._known.values()
            if len(plain) * (1 + isinstance(plain, dict)) != len(held)
            or any(one is not other for one, other in zip(_held(plain), held, strict=True))
        ]


def _held(plain: Any) -> list[Any]:
    if isinstance(plain, dict):
        return [*plain, *plain.values()]
    assert isinstance(plain, (list, set, deque))
    return list(plain)
