"""Bounds of a search."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a search stops: after so many seconds, states, and steps of one schedule."""

    seconds: float = 60.0
    states: int = 2_000_000
    steps: int = 5_000
