"""Checking files in several processes, where that is faster than doing it here."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from kvlint.config import Config
from kvlint.file_check import FileCheck, Outcome
from kvlint.report.model import Crash

# Starting and feeding workers costs about 50 ms where processes can be forked
# and several times that where they start afresh; the analysis takes about a
# second for every 1.5 MB of candidates.
_FORKS = sys.platform == "linux"
_SMALLEST_SHARE = 200_000 if _FORKS else 1_000_000

# Processes share what one of them may load, as most modules are loaded by each; less than this and the same
# few are parsed again and again.
_SMALLEST_WORLD = 3_000_000

# The analysis makes millions of objects and next to no cycles.  With Python's own
# thresholds a tenth of its time goes into looking for them, and no memory is won.
_THRESHOLDS = (200_000, 10, 10)

_check_one: Callable[[str], Outcome] | None = None


def worth_starting(candidates: Sequence[tuple[str, int]], jobs: int | None) -> int:
    """How many processes to use for candidates of these sizes in bytes, at most ``jobs``."""
    available = jobs if jobs is not None else len(os.sched_getaffinity(0)) if _FORKS else os.cpu_count() or 1
    share = sum(size for _, size in candidates) // _SMALLEST_SHARE
    return max(1, min(available, len(candidates), share))


@contextlib.contextmanager
def collecting_rarely() -> Iterator[None]:
    """Let Python look for cyclic garbage as often as suits the analysis."""
    thresholds = gc.get_threshold()
    gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def check_files(
    candidates: Sequence[tuple[str, int]], check_file: FileCheck, workers: int, cache_folder: str | None = None
) -> Iterator[Outcome]:
    """Check ``candidates`` as ``check_file`` would, in ``workers`` processes and no particular order.

    Outcomes are kept in ``cache_folder``.
    """
    # Nothing of this is needed where the work is done in one process.
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    # Imported before the fork, the analysis is there in every worker at no cost.
    import kvlint.analysis.facts  # noqa: F401

    pool = ProcessPoolExecutor(
        workers,
        get_context("fork" if _FORKS else "spawn"),
        _start,
        (check_file.config, check_file.overlay, cache_folder, max(_SMALLEST_WORLD, check_file.max_loaded // workers)),
    )
    try:
        # The largest first, so that no process is left alone with one at the end.
        ordered = sorted(candidates, key=lambda candidate: -candidate[1])
        futures = {pool.submit(_check, path): path for path, _ in ordered}
        for future in as_completed(futures):
            try:
                yield future.result()
            except BrokenProcessPool as error:
                path = futures[future]
                yield Outcome(path, failed=True, crash=Crash(path, "its worker process died", str(error)))
    finally:
        pool.shutdown(cancel_futures=True)


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
