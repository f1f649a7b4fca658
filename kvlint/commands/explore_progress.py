"""A line on the terminal that says how far an exploration is, once it has taken a while."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

import click

from kvlint.commands.streams import PATIENCE

if TYPE_CHECKING:
    from kvlint.explore.events import Event


class ExploreProgress:
    """To be called with every event; draws nothing where nobody looks."""

    def __init__(self, *, quiet: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start = clock()
        self._is_wanted = not quiet and sys.stderr.isatty()
        self._is_shown = False
        self._told = "the tree is being loaded"

    def __enter__(self) -> ExploreProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_shown:
            click.echo("\r\x1b[K", err=True, nl=False)
            self._is_shown = False

    def __call__(self, event: Event) -> None:
        """Note what has happened."""
        if not self._is_wanted:
            return
        from kvlint.explore.events import Progress

        if isinstance(event, Progress):
            self._told = f"{event.scenario}: {event.states:,} states, {event.runs:,} runs"
        seconds = self._clock() - self._start
        if seconds >= PATIENCE:
            self._is_shown = True
            click.echo(f"\r\x1b[K{self._told}, {seconds:.0f} s", err=True, nl=False)
