"""A session that tells nothing of the scenarios it was asked about."""

from __future__ import annotations

from kvlint.explore.events import Emit, Loaded, Progress
from kvlint.explore.request import Request


def run(request: Request, emit: Emit) -> None:
    """Load nothing, find nothing, and claim to have begun something that nobody asked for."""
    emit(Loaded(None, "", (), ()))
    emit(Progress("another", 1, 1, 0.0))
