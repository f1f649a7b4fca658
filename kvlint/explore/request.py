"""What the process that explores is asked for."""

from __future__ import annotations

import msgspec

#: Searches: every state once; or partial-order reduction, which is there to cross-check the first.
STRATEGIES = ("states", "partial-order")


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One exploration, or one replay.

    Attributes:
        root: A tree, as the user named it.
        scenarios: Names, in the order in which they are explored.
        scheduler: Whether the scheduler takes part.
        seconds: Bound of the search of each scenario.
        states: Bound of the states of each scenario.
        steps: Bound of the steps of one schedule.
        preemptions: The highest preemption bound of the search for a quick witness; None for the engine's own choice.
        complete: Whether the complete search follows; without it nothing is ever said to hold.
        strategy: One of `STRATEGIES`.
        replay: The token of a schedule to be run again, in place of any search.
        threads: Whether it runs on real threads.
    """

    root: str
    scenarios: tuple[str, ...]
    scheduler: bool = True
    seconds: float = 60.0
    states: int = 2_000_000
    steps: int = 5_000
    preemptions: int | None = None
    complete: bool = True
    strategy: str = "states"
    replay: str | None = None
    threads: bool = False
