"""What depth-first searches have in common: one run of the program for each branch, until there is none left."""

from __future__ import annotations

import time
from collections.abc import Callable

from kvlint.explore.control import Control, Strategy
from kvlint.explore.operations import Choice, Violation
from kvlint.explore.search.limits import Limits
from kvlint.explore.sharing import Sharing

Run = Callable[[Strategy], None]
Final = Callable[[Control], list[Violation]]


class DepthFirst:
    """Runs the program once for each branch, and begins again when more turns out to be shared.

    ``run`` performs one run under this strategy, ``final`` judges a run that came to its end (nobody can go on).

    Attributes:
        runs: Runs that were made, over all beginnings.
        complete: Whether everything was gone through; else ``reason`` says what cut it.
        seconds: What the search took.
    """

    def __init__(self, run: Run, final: Final, limits: Limits) -> None:
        self._run = run
        self._final = final
        self._limits = limits
        self.script: list[Choice] = []
        self.histories: list[int] = []
        self.runs = 0
        self.complete = False
        self.reason = ""
        self.seconds = 0.0
        self._began = 0.0
        #: Set by ``choose``, which every run comes to.
        self._sharing: Sharing | None = None
        self._begin()

    def search(self) -> None:
        """Go on until everything was gone through or a limit is reached.

        Raises:
            Stubborn: An actor could not be ended.
        """
        self._began = time.perf_counter()
        while not self._all_runs():
            self._begin()
        self.reason = self.reason or self._why_not_all()
        self.complete = not self.reason
        self.seconds = self._passed()

    def choose(self, control: Control) -> Choice | None:
        """The next branch; None to end the run."""
        raise NotImplementedError

    def _begin(self) -> None:
        """Be as before the first run."""
        raise NotImplementedError

    def _back(self) -> bool:
        """Go back to the last branch that is left, and take it; False where there is none."""
        raise NotImplementedError

    def _limit(self) -> str:
        """The limit that was reached between two runs, in words, or ""."""
        return f"{self._limits.seconds:g} s were over" if self._passed() > self._limits.seconds else ""

    def _why_not_all(self) -> str:
        """What may happen although everything was gone through, or ""."""
        return ""

    def _passed(self) -> float:
        return time.perf_counter() - self._began

    def _all_runs(self) -> bool:
        """False when the set of shared things grew, so that the search has to begin again."""
        while True:
            self.runs += 1
            self._run(self)
            if self._sharing is not None and self._sharing.grown:
                return False
            if self.reason or not self._back():
                return True
            self.reason = self._limit()
            if self.reason:
                return True
