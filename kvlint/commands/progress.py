"""A progress bar on the terminal, for work that is done in few large pieces; rich is loaded when it is first drawn."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from kvlint.commands.streams import PATIENCE

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Bar:
    """Shows how many of some things are done, once the work has taken a while; nothing where nobody looks."""

    def __init__(self, what: str, *, quiet: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._what = what
        self._clock = clock
        self._start = clock()
        self._is_wanted = not quiet and sys.stderr.isatty()
        self._drawn: tuple[Progress, TaskID] | None = None

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._drawn is not None:
            self._drawn[0].stop()
            self._drawn = None

    @property
    def update(self) -> Callable[[int, int], None] | None:
        """What is to be called with the number done and the total, also while nothing new is done; None for nobody."""
        return self._update if self._is_wanted else None

    def _update(self, done: int, total: int) -> None:
        if self._drawn is None and self._clock() - self._start >= PATIENCE:
            self._drawn = self._draw(total)
        if self._drawn is not None:
            progress, task = self._drawn
            progress.update(task, completed=done, total=total, refresh=True)

    def _draw(self, total: int) -> tuple[Progress, TaskID]:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        # Drawn by `update` alone: a thread for it could hold a lock while the work forks its processes.
        progress = Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
        task = progress.add_task(self._what, total=total)
        progress.start()
        return progress, task
