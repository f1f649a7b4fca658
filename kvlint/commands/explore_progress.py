"""A line on the terminal that says how far an exploration is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from kvlint.commands.progress_line import ProgressLine

if TYPE_CHECKING:
    from kvlint.explore.events import Event


class ExploreProgress(ProgressLine):
    """To be called with every event."""

    def __init__(self, *, quiet: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(quiet=quiet, clock=clock)
        self._told = "the tree is being loaded"

    def __call__(self, event: Event) -> None:
        """Note what has happened."""
        from kvlint.explore.events import Progress

        if isinstance(event, Progress):
            self._told = f"{event.scenario}: {event.states:,} states, {event.runs:,} runs"
        self.tell(self._told)
