"""What an exploration found, as data: it goes from the process that explores to the one that reports."""

from __future__ import annotations

from enum import Enum

import msgspec


class Verdict(Enum):
    """What is known of a property, a scenario, or a tree."""

    HOLDS = "HOLDS"
    VIOLATED = "VIOLATED"
    INCONCLUSIVE = "INCONCLUSIVE"


class Place(msgspec.Struct, frozen=True):
    """A line of the tree's code; ``path`` is as it was loaded."""

    path: str
    line: int
    function: str


class Step(msgspec.Struct, frozen=True):
    """One operation of a schedule, as it was done.

    Attributes:
        actor: Who did it: an entry of ``Witness.actors``.
        operation: What was done, in words of the program: ``in``, ``[]``, ``[]=``, ``pop``, ``acquire``, ``transfer``.
        label: On what: ``request_status``, ``failure_lock``.
        key: Of which entry, as Python writes it, or "" where it is about all of it.
        observed: What came of it, or what was written, in words.
        writes: Whether it changed something.
        place: The innermost line of the tree that did it; None for the world outside.
        preempts: Whether it took the turn from an actor that could have gone on.
        breaks: The property that it breaks, or "".
    """

    actor: str
    operation: str
    label: str
    key: str
    observed: str
    writes: bool
    place: Place | None
    preempts: bool = False
    breaks: str = ""


class Witness(msgspec.Struct, frozen=True):
    """A schedule that breaks a property, with the fewest preemptions.

    Attributes:
        detail: What is broken, in a sentence.
        actors: The columns, in order.
        token: What ``--replay`` takes.
        waiting: What every actor waits for at the end, by its name: an operation and on what (``take chunks``), or
            words (``a change of request_status``); "" when it has ended.
        status_table: The label of the table of statuses; "" where its name has to tell.
        statuses: The status of every room before the first step, by the room's key, as far as it is known.
    """

    property: str
    detail: str
    preemptions: int
    actors: tuple[str, ...]
    steps: tuple[Step, ...]
    waiting: dict[str, str]
    token: str
    status_table: str = ""
    statuses: dict[str, str] = {}


class PropertyResult(msgspec.Struct, frozen=True):
    """A property in one scenario.

    Attributes:
        schedules: How many schedules break it; None where the search was cut short.
        details: Every way in which it is broken.
    """

    property: str
    verdict: Verdict
    schedules: int | None
    details: tuple[str, ...]
    witness: Witness | None


class ScenarioResult(msgspec.Struct, frozen=True):
    """One scenario.

    Attributes:
        schedules: How many schedules there are; None where the search was cut short.
        states: How many states were seen.
        runs: How often the program was run.
        seconds: Of the complete search.
        quick_seconds: From the beginning to the first witness; None without one.
        reason: Why the search was cut short, or why there is nothing to explore.
        shared: The tables and locks that several actors use, by name.
        properties: In the order of ``PROPERTIES``.
    """

    scenario: str
    summary: str
    verdict: Verdict
    schedules: int | None
    states: int
    runs: int
    seconds: float
    quick_seconds: float | None
    reason: str
    shared: tuple[str, ...]
    properties: tuple[PropertyResult, ...]


class Exploration(msgspec.Struct, frozen=True):
    """A whole run of ``kvlint explore``.

    Attributes:
        tree: The folder, as given.
        version: The release, where it is known.
        digest: SHA-256 of the modules that were loaded.
        loaded: The real modules.
        stubbed: What is not real, in words.
        scheduler: Whether the scheduler took part.
        verdict: The worst of the scenarios'.
    """

    tree: str
    version: str | None
    digest: str
    loaded: tuple[str, ...]
    stubbed: tuple[str, ...]
    scheduler: bool
    verdict: Verdict
    scenarios: tuple[ScenarioResult, ...]
