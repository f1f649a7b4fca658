"""The same work on several releases, side by side in processes; one that fails costs no other its result."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from kvlint.bundle import BundleError
from kvlint.bundle.fetch import Releases
from kvlint.processes import FORKS, available
from kvlint.report.audit_model import Failure
from kvlint.source.display import one_line

Result = TypeVar("Result")

#: Work on one release, given by name and version; it may raise BundleError, and has to be found by its name.
Work = Callable[[Releases, str, str], Result]

#: Called, also between two releases, with the number of releases done and their total.
Progress = Callable[[int, int], None]

_TICK_SECONDS = 0.2


def each(
    work: Work[Result],
    releases: Releases,
    chosen: Sequence[tuple[str, str]],
    *,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Iterator[Result | Failure]:
    """The results of ``work`` on the ``chosen`` releases, in no particular order, in at most ``jobs`` processes."""
    workers = min(available(jobs), len(chosen))
    if workers > 1 or (chosen and progress is not None):
        outcomes = _in_processes(work, releases, chosen, workers)
    else:
        outcomes = (_attempt(work, releases, *one) for one in chosen)
    done = 0
    for outcome in outcomes:
        if outcome is not None:
            done += 1
            yield outcome
        if progress is not None:
            progress(done, len(chosen))


def _in_processes(
    work: Work[Result], releases: Releases, chosen: Sequence[tuple[str, str]], workers: int
) -> Iterator[Result | Failure | None]:
    """Outcomes as they come, and None now and then while there is nothing new.

    A process that dies takes the pool with it, and nobody knows which of the
    releases at work was too much; each gets a process of its own, and the
    machine to itself, before it is given up.
    """
    lost: list[tuple[str, str]] = []
    yield from _side_by_side(work, releases, chosen, workers, lost)
    for one in lost:
        dead: list[tuple[str, str]] = [one] if len(chosen) == 1 else []
        if not dead:
            yield from _side_by_side(work, releases, [one], 1, dead)
        for name, version in dead:
            why = "its process died although no other ran beside it; memory may have run out"
            yield Failure(f"{name}=={version}", f"{name}=={version}: {why}")


def _side_by_side(
    work: Work[Result],
    releases: Releases,
    chosen: Sequence[tuple[str, str]],
    workers: int,
    lost: list[tuple[str, str]],
) -> Iterator[Result | Failure | None]:
    """As `_in_processes`; releases without an outcome, because a process died, are added to ``lost``."""
    from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    # Imported before the fork, the analysis is there in every worker at no cost.
    import kvlint.analysis.facts  # noqa: F401

    pool = ProcessPoolExecutor(workers, get_context("fork" if FORKS else "spawn"), _prepare)
    waiting: dict[Future[Result | Failure], tuple[str, str]] = {}
    try:
        for one in chosen:
            try:
                waiting[pool.submit(_interruptible, work, releases, one[0], one[1])] = one
            except BrokenProcessPool:
                lost.append(one)
        while waiting:
            ready, _ = wait(waiting, _TICK_SECONDS, FIRST_COMPLETED)
            for future in ready:
                one = waiting.pop(future)
                try:
                    yield future.result()
                except BrokenProcessPool:
                    lost.append(one)
                except Exception as error:
                    # A result that cannot be brought here from the process.
                    yield _defect(*one, error)
            if not ready:
                yield None
    finally:
        pool.shutdown(cancel_futures=True)


def _prepare() -> None:
    """Set a process up: Ctrl-C is for the one at work, and the pool ends all where one of them died."""
    _ignore_interrupts()
    signal.signal(signal.SIGTERM, _exit)


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _exit(*_: object) -> None:
    sys.exit(1)


def _interruptible(work: Work[Result], releases: Releases, name: str, version: str) -> Result | Failure:
    """Run ``work``; whatever ends it ends its pip, too, and what it had unpacked goes."""
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            return _attempt(work, releases, name, version)
        except KeyboardInterrupt:
            return Failure(f"{name}=={version}", f"{name}=={version}: interrupted")
        finally:
            _ignore_interrupts()
    except SystemExit:
        # The pool waits for this process to end and takes no answer any more.
        os._exit(1)


def _attempt(work: Work[Result], releases: Releases, name: str, version: str) -> Result | Failure:
    try:
        return work(releases, name, version)
    except BundleError as error:
        return Failure(f"{name}=={version}", str(error))
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        return Failure(f"{name}=={version}", f"{name}=={version}: {error.strerror or error}{where}")
    except MemoryError:
        return Failure(f"{name}=={version}", f"{name}=={version}: memory ran out; give --jobs a smaller number")
    except Exception as error:
        return _defect(name, version, error)


def _defect(name: str, version: str, error: Exception) -> Failure:
    what = type(error).__name__ + (f" ({one_line(str(error))})" if str(error) else "")
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(place.filename)}, line {place.lineno}"
    return Failure(
        f"{name}=={version}",
        f"{name}=={version}: {what} in {where}; this is a defect in kvlint, please report it",
    )
