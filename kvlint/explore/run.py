"""A whole exploration: one process for all scenarios, and another for those that are left when it came to grief."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from kvlint.explore.events import Alive, Ended, Event, Failed, FailureKind, Found, Loaded, Progress, Replayed
from kvlint.explore.parent import Limits, Printed, Process
from kvlint.explore.request import Request
from kvlint.explore.results import Exploration, PropertyResult, ScenarioResult, Verdict
from kvlint.explore.scenarios import scenario
from kvlint.explore.search.verdicts import worst
from kvlint.properties import PROPERTIES

_NOTHING_TOLD = Failed(FailureKind.CRASH, "the exploration ended without a result for every scenario")
#: Failures that other scenarios would meet as well.
_FINAL = {FailureKind.LOAD, FailureKind.TOKEN, FailureKind.CRASH}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a request.

    Attributes:
        exploration: What is known of every scenario; none for a replay.
        replayed: What came of the replay.
        failure: Why there is less than was asked for, where it is not a scenario's own reason.
        printed: What the tree printed.
    """

    exploration: Exploration
    replayed: Replayed | None
    failure: Failed | None
    printed: Printed

    @property
    def verdict(self) -> Verdict:
        """Of the exploration; of a replay, whether it shows again what it is to show."""
        if self.replayed is not None:
            return Verdict.VIOLATED if self.replayed.confirmed else Verdict.INCONCLUSIVE
        return self.exploration.verdict


def explore(
    request: Request,
    limits: Limits | None = None,
    progress: Callable[[Event], None] | None = None,
    *,
    session: str | None = None,
    path: Sequence[str] | None = None,
) -> Outcome:
    """Explore a tree; code of the tree runs in other processes only.

    Args:
        request: What is asked for.
        limits: What a process may take.
        progress: Called with every event, the signs of life included.
        session: The module that does the work in the process, where it is not kvlint's own.
        path: The `sys.path` of the process, where it is not this one's.

    Raises:
        StartError: No process can be started.
    """
    run = _Run(request, limits or Limits(), progress or _ignore, session, path)
    run.all()
    return run.outcome()


def _ignore(event: Event) -> None: ...


@dataclass(slots=True)
class _Run:
    request: Request
    limits: Limits
    progress: Callable[[Event], None]
    session: str | None
    path: Sequence[str] | None
    printed: Printed = field(default_factory=Printed)
    loaded: Loaded | None = None
    replayed: Replayed | None = None
    failure: Failed | None = None
    results: dict[str, ScenarioResult] = field(default_factory=dict)

    def all(self) -> None:
        """Processes, until there is nothing left to ask for."""
        if self.request.replay is not None:
            process = self._process(self.request)
            if self.replayed is None and self.failure is None:
                self.failure = Failed(FailureKind.LIMIT, process.ending) if process.ending else _NOTHING_TOLD
            return
        while self.failure is None and (left := self._left()):
            self.current = left[0]
            self.is_loaded = False
            process = self._process(replace(self.request, scenarios=left))
            self._conclude(process.ending)

    def _left(self) -> tuple[str, ...]:
        return tuple(name for name in self.request.scenarios if name not in self.results)

    is_loaded: bool = False
    current: str = ""

    def _process(self, request: Request) -> Process:
        with Process(request, self.limits, self.printed, self.session, self.path) as process:
            self._wait(process)
            for event in process.events():
                self._take(event, process)
                self.progress(event)
        if not process.has_started:
            # The tree has printed nothing yet: it was Python that did.
            self.failure = Failed(FailureKind.CRASH, process.ending, self.printed.head.decode("utf-8", "replace"))
            self.printed = Printed()
        return process

    def _wait(self, process: Process) -> None:
        """Give it the time of a scenario."""
        process.deadline = time.monotonic() + self.limits.allowance(self.request)

    def _take(self, event: Event, process: Process) -> None:
        match event:
            case Loaded():
                self.loaded = event
                self.is_loaded = True
                self._wait(process)
            case Progress():
                if event.scenario in self._left():
                    self.current = event.scenario
            case Found():
                self.results.setdefault(event.result.scenario, event.result)
                self.current = next(iter(self._left()), "")
                self._wait(process)
            case Replayed():
                self.replayed = event
            case Failed():
                self.failure = event
            case Alive() | Ended():
                pass

    def _conclude(self, ending: str) -> None:
        """What the end of a process means for the scenarios that are left."""
        left = self._left()
        failure = self.failure
        if not left or (failure is not None and failure.kind in _FINAL):
            return
        self.failure = None
        reason = ending if failure is None else failure.message
        if not reason:
            self.failure = _NOTHING_TOLD
        # What goes wrong before any scenario begins goes wrong in every one.
        for name in left if self.failure or not self.is_loaded else (self.current,):
            self.results[name] = _cut(name, reason or _NOTHING_TOLD.message)

    def outcome(self) -> Outcome:
        """What is known now."""
        loaded = self.loaded or Loaded(None, "", (), ())
        scenarios = [self.results[name] for name in self.request.scenarios if name in self.results]
        exploration = Exploration(
            tree=self.request.root,
            version=loaded.version,
            digest=loaded.digest,
            loaded=loaded.loaded,
            stubbed=loaded.stubbed,
            scheduler=self.request.scheduler,
            verdict=worst(result.verdict for result in scenarios),
            scenarios=tuple(scenarios),
        )
        return Outcome(exploration, self.replayed, self.failure, self.printed)


def _cut(name: str, reason: str) -> ScenarioResult:
    """A scenario of which nothing is known."""
    return ScenarioResult(
        scenario=name,
        summary=scenario(name).summary,
        verdict=Verdict.INCONCLUSIVE,
        schedules=None,
        states=0,
        runs=0,
        seconds=0.0,
        quick_seconds=None,
        reason=reason,
        shared=(),
        properties=tuple(PropertyResult(entry, Verdict.INCONCLUSIVE, None, (), None) for entry in PROPERTIES),
    )
