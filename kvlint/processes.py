"""Checking files in several processes, where that is faster than doing it here."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence

from kvlint.config import Config
from kvlint.file_check import FileCheck, Outcome
from kvlint.report.model import Crash

# Starting and feeding workers costs about 50 ms where processes can be forked
# and several times that where they start afresh; the analysis takes about a
# second for every 1.5 MB of candidates.
_FORKS = sys.platform == "linux"
_SMALLEST_SHARE = 200_000 if _FORKS else 1_000_000

_check_file: FileCheck | None = None


def worth_starting(candidates: Sequence[tuple[str, int]], jobs: int | None) -> int:
    """How many processes to use for candidates of these sizes in bytes, at most ``jobs``."""
    available = jobs if jobs is not None else len(os.sched_getaffinity(0)) if _FORKS else os.cpu_count() or 1
    share = sum(size for _, size in candidates) // _SMALLEST_SHARE
    return max(1, min(available, len(candidates), share))


def check_files(candidates: Sequence[tuple[str, int]], check_file: FileCheck, workers: int) -> Iterator[Outcome]:
    """Check ``candidates`` as ``check_file`` would, in ``workers`` processes and no particular order."""
    # Nothing of this is needed where the work is done in one process.
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    # Imported before the fork, the analysis is there in every worker at no cost.
    import kvlint.analysis.facts  # noqa: F401

    pool = ProcessPoolExecutor(
        workers, get_context("fork" if _FORKS else "spawn"), _start, (check_file.config, check_file.overlay)
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


def _start(config: Config, overlay: Mapping[str, bytes]) -> None:
    global _check_file
    # Ctrl-C reaches the whole process group; the parent alone answers it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _check_file = FileCheck(config, overlay)


def _check(path: str) -> Outcome:
    assert _check_file is not None
    return _check_file.check(path)
