"""A line on the terminal that says how far something is, once it has taken a while."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

import click

from kvlint.commands.streams import PATIENCE
from kvlint.source.display import one_line


class ProgressLine:
    """Draws nothing where nobody looks; enter it, and the line is gone when it is left."""

    def __init__(self, *, quiet: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start = clock()
        self._is_wanted = not quiet and sys.stderr.isatty()
        self._is_shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_shown:
            click.echo("\r\x1b[K", err=True, nl=False)
            self._is_shown = False

    def tell(self, text: str) -> None:
        """Say how far it is, if somebody looks and has waited long enough."""
        seconds = self._clock() - self._start
        if self._is_wanted and seconds >= PATIENCE:
            self._is_shown = True
            width = shutil.get_terminal_size().columns - 1
            line = one_line(f"{text}, {seconds:.0f} s")[:width]
            click.echo(f"\r\x1b[K{line}", err=True, nl=False)
