"""Telling frames of the program under exploration from those of the explorer."""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType

_OWN = ("kvlint.explore.", "kvlint.loading.")


def program_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """``frame`` and its callers as far as they run code under exploration, innermost first."""
    while frame is not None:
        if not frame.f_globals.get("__name__", "").startswith(_OWN):
            yield frame
        frame = frame.f_back
