"""Checking files in several processes, where that is faster than doing it here."""

from __future__ import annotations

import contextlib
import gc
import heapq
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING

from kvlint.config import Config
from kvlint.file_check import FileCheck, Outcome
from kvlint.report.model import Crash

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

# Starting and feeding workers costs about 50 ms where processes can be forked
# and several times that where they start afresh; the analysis takes about a
# second for every 500 kB of candidates.
FORKS = sys.platform == "linux"
_SMALLEST_SHARE = 50_000 if FORKS else 1_000_000

# Processes share what one of them may load, as most modules are loaded by each; less than this and the same
# few are parsed again and again.
_SMALLEST_WORLD = 3_000_000

# Whole checkouts have some dozens of candidates, the largest of which takes as long as ten others.
_MOST_PROCESSES = 8

# The analysis makes millions of objects and next to no cycles.  With Python's own
# thresholds a sixth of its time goes into looking for them, and no memory is won.
_THRESHOLDS = (2_000_000, 10, 10)

_check_one: Callable[[str], Outcome] | None = None


def worth_starting(number: int, size: int, jobs: int | None) -> int:
    """How many processes to use for ``number`` candidates of ``size`` bytes together, at most ``jobs``."""
    return max(1, min(available(jobs), number, size // _SMALLEST_SHARE))


def available(jobs: int | None) -> int:
    """How many processes to use at most: ``jobs``, else as many as can run at the same time."""
    if jobs is not None:
        return jobs
    return len(os.sched_getaffinity(0)) if FORKS else os.cpu_count() or 1


@contextlib.contextmanager
def collecting_rarely() -> Iterator[None]:
    """Let Python look for cyclic garbage as often as suits the analysis."""
    thresholds = gc.get_threshold()
    gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


class Crew:
    """Checks candidates while others are still being looked for: here, or in processes once there is enough to do.

    ``keep`` checks a candidate and keeps the outcome; the processes keep theirs in
    ``cache_folder``.  Leaving the context ends the processes.
    """

    def __init__(
        self,
        check_file: FileCheck,
        jobs: int | None,
        cache_folder: str | None = None,
        keep: Callable[[FileCheck, str], Outcome] | None = None,
    ) -> None:
        self._check_file = check_file
        self._cache_folder = cache_folder
        self._keep = keep
        self._most = available(jobs)
        self._added: list[tuple[str, int]] = []
        self._size = 0
        self._waiting: list[tuple[int, str]] = []
        self._handed_out = 0  # candidates, until their outcomes are asked for
        self._done: SimpleQueue[tuple[str, Future[Outcome]]] = SimpleQueue()
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def add(self, path: str, size: int) -> None:
        """Have the candidate at ``path``, of ``size`` bytes, checked."""
        self._added.append((path, size))
        self._size += size
        heapq.heappush(self._waiting, (-size, path))
        if self._pool is None and worth_starting(len(self._added), self._size, self._most) > 1:
            self._pool = self._started()
        self._refill()

    def outcomes(self) -> Iterator[Outcome]:
        """The outcomes of all candidates, in no particular order; none may be added any more."""
        if self._pool is None:
            for path, _ in self._added:
                yield self._check_file.check(path) if self._keep is None else self._keep(self._check_file, path)
            return
        for _ in self._added:
            path, future = self._done.get()
            self._handed_out -= 1
            self._refill()
            error = future.exception()
            yield future.result() if error is None else _died(path, error)

    def _started(self) -> ProcessPoolExecutor:
        # Nothing of this is needed where the work is done in one process.
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        # Imported before the fork, the analysis is there in every worker at no cost.
        import kvlint.analysis.facts  # noqa: F401

        workers = min(self._most, _MOST_PROCESSES)
        loaded = max(_SMALLEST_WORLD, self._check_file.max_loaded // workers)
        self._most = workers
        return ProcessPoolExecutor(
            workers,
            get_context("fork" if FORKS else "spawn"),
            _start,
            (self._check_file.config, self._check_file.overlay, self._cache_folder, loaded),
        )

    def _refill(self) -> None:
        """Hand out the largest candidates, so that no process is left alone with one at the end.

        Each process has one more in store, since it may be a while until the search finds the next one.
        """
        while self._pool is not None and self._waiting and self._handed_out - self._done.qsize() < 2 * self._most:
            _, path = heapq.heappop(self._waiting)
            future = _submitted(self._pool, path)
            self._handed_out += 1
            # Nothing more happens in the callback: it may run with the pool's locks held.
            future.add_done_callback(partial(self._note, path))

    def _note(self, path: str, future: Future[Outcome]) -> None:
        self._done.put((path, future))


def _submitted(pool: ProcessPoolExecutor, path: str) -> Future[Outcome]:
    from concurrent.futures import BrokenExecutor, Future

    try:
        return pool.submit(_check, path)
    except BrokenExecutor as error:
        failed: Future[Outcome] = Future()
        failed.set_exception(error)
        return failed


def _died(path: str, error: BaseException) -> Outcome:
    return Outcome(path, failed=True, crash=Crash(path, "its worker process died", str(error)))


def _start(
    config: Config, overlay: Mapping[str, bytes], cache_folder: str | None = None, max_loaded: int = _SMALLEST_WORLD
) -> None:
    global _check_one
    # Ctrl-C reaches the whole process group; the parent alone answers it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    gc.set_threshold(*_THRESHOLDS)
    check_file = FileCheck(config, overlay, max_loaded)
    _check_one = check_file.check
    if cache_folder is not None:
        from kvlint.cache.results import Results
        from kvlint.cache.store import CacheUnusable

        # It could be used a moment ago; if not any more, it is only left out.
        with contextlib.suppress(CacheUnusable):
            _check_one = partial(Results(cache_folder, config).check, check_file)


def _end_with_parent() -> None:
    """Wait for the parent's end, which a killed parent cannot announce, and end as well."""
    from multiprocessing import connection, parent_process

    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _check(path: str) -> Outcome:
    assert _check_one is not None
    return _check_one(path)
