"""A whole drill: processes for a tree or two, rounds without aborts, then the storm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Final

import msgspec
from msgspec.structs import replace

from kvlint.drill.messages import Setup
from kvlint.drill.parent import DrillError, Pair, Processes
from kvlint.drill.results import Comparison, DrillResult, StormResult, Throughput, TreeResult, storm_result
from kvlint.drill.run import Moment, StormRun, places_for
from kvlint.drill.statistics import median_interval
from kvlint.drill.storm import Storm
from kvlint.loading.errors import LoadError
from kvlint.loading.tree import find_tree

#: Rooms of a round without aborts.
ROUND_ROOMS: Final = 12
#: Seconds of a scheduler's step in such a round: pages, not steps, are to take the time.
ROUND_STEP: Final = 0.0005
_ROUND_SETTLE: Final = 0.1
_WARMING_SETTLE: Final = 1.0
#: Numbers of rooms are never used twice.
_FIRST_ROUND: Final = 1_000_000
_BETWEEN_ROUNDS: Final = 1_000


class Request(msgspec.Struct, frozen=True):
    """What is asked for.

    Attributes:
        roots: The tree, and perhaps one to compare it with.
        storm: The storm; None for none.
        rounds: Rounds without aborts, of each tree.
        measures: What rooms are like where there is no storm to tell.
        device: `cpu`, `cuda` or `auto`.
        one_process: Whether both sides of a tree are to be in one process.
        workers: Transfer workers; None for the release's number.
        backend: The plugin of NIXL.
        settle: Seconds for which nothing must happen, twice, before what is left counts as pinned.
    """

    roots: tuple[str, ...]
    storm: Storm | None = Storm()
    rounds: int = 5
    measures: Storm = Storm()
    device: str = "auto"
    one_process: bool = False
    workers: int | None = None
    backend: str = "UCX"
    settle: float = 1.0


def drill(request: Request, progress: Callable[[Moment], None], processes: Processes | None = None) -> DrillResult:
    """Do what is asked for; code of the trees runs in other processes only.

    Args:
        request: What is asked for.
        progress: Called as it goes on.
        processes: The processes, which are made here if they are not given.

    Raises:
        DrillError: A tree cannot be loaded, or one of its processes has ended, is silent, or cannot go on.
    """
    for root in request.roots:
        try:
            find_tree(Path(root))
        except LoadError as error:
            raise DrillError(str(error)) from error
    with processes or Processes() as started:
        return _Drill(request, progress, started).result()


class _Drill:
    def __init__(self, request: Request, progress: Callable[[Moment], None], processes: Processes) -> None:
        self._request = request
        self._progress = progress
        self._processes = processes
        self._measures = request.storm or request.measures
        #: Of each tree: the seconds of each round, None if a room of it did not succeed.
        self._seconds: list[list[float | None]] = []

    def result(self) -> DrillResult:
        request = self._request
        names = [""] if len(request.roots) == 1 else ["first tree's", "second tree's"]
        pairs = [self._processes.start(name, request.one_process) for name in names]
        for root, pair in zip(request.roots, pairs, strict=True):
            self._progress(Moment(0, 0, 0, f"loading {root}"))
            self._set_up(root, pair)
        # The rounds go first: a storm may leave a tree in no state to be measured.
        rounds = self._rounds(pairs)
        storms = [self._storm(pair) if request.storm else None for pair in pairs]
        trees = []
        for root, pair, storm, measured in zip(request.roots, pairs, storms, rounds, strict=True):
            assert pair.ready is not None
            trees.append(TreeResult(root, pair.ready, storm, measured))
        return DrillResult(
            device=request.device,
            processes=1 if request.one_process else 2,
            trees=tuple(trees),
            comparison=_comparison(self._seconds),
        )

    def _set_up(self, root: str, pair: Pair) -> None:
        request = self._request
        setup = Setup(
            root=root,
            device=request.device,
            storm=self._measures,
            places=places_for(self._measures),
            workers=request.workers,
            backend=request.backend,
        )
        self._processes.set_up(pair, setup)

    def _storm(self, pair: Pair) -> StormResult:
        storm = self._request.storm
        assert storm is not None
        run = self._run(pair, storm, self._request.settle, "storm")
        prefill, decode = run.run()
        return storm_result(storm, prefill, decode, run.not_started)

    def _run(self, pair: Pair, storm: Storm, settle: float, what: str) -> StormRun:
        return StormRun(self._processes, pair, storm, settle, self._progress, what)

    def _rounds(self, pairs: Sequence[Pair]) -> list[Throughput | None]:
        """The rounds of the trees, interleaved: which is first changes from one round to the next."""
        request = self._request
        if not request.rounds:
            return [None for _ in pairs]
        measures = replace(
            self._measures, rooms=ROUND_ROOMS, step=ROUND_STEP, abort_probability=0.0, transfer=0.0, checked=False
        )
        seconds: list[list[float | None]] = [[] for _ in pairs]
        failed, wrong = [0 for _ in pairs], [0 for _ in pairs]
        # The first round of each makes connections, and is not counted.
        for number in range(request.rounds + 1):
            storm = replace(measures, first=_FIRST_ROUND + number * _BETWEEN_ROUNDS)
            order = list(range(len(pairs)))
            for index in order if number % 2 else reversed(order):
                what = f"round {number} of {request.rounds}" if number else "warming up"
                settle = _ROUND_SETTLE if number else _WARMING_SETTLE
                prefill, decode = self._run(pairs[index], storm, settle, what).run()
                missing = storm.rooms - min(len(prefill.succeeded), len(decode.succeeded))
                failed[index] += missing
                wrong[index] += sum(decode.wrong.values())
                if number:
                    seconds[index].append(None if missing else decode.seconds)
        self._seconds = seconds
        return [
            Throughput(measures, tuple(time for time in taken if time is not None), missing, bad)
            for taken, missing, bad in zip(seconds, failed, wrong, strict=True)
        ]


def _comparison(seconds: Sequence[Sequence[float | None]]) -> Comparison | None:
    """The comparison of two trees' rounds; only rounds of one pair, run one right after the other, are compared."""
    if len(seconds) != 2:
        return None
    ratios = [before / after for before, after in zip(*seconds, strict=True) if before is not None and after]
    return Comparison(tuple(ratios), median(ratios), median_interval(ratios)) if ratios else None
