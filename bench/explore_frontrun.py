"""Lets frontrun explore what `kvlint explore --scenario abort --no-scheduler` does; prints one line of JSON.

Usage: frontrun python explore_frontrun.py ROOT SECONDS OPTIONS; the last are those of
frontrun.explore(), in JSON.

The backend is loaded once, with the threading primitives that frontrun puts in place, and given back its state before
every run: loading it takes as long as a run does. What that costs is measured and told apart.
"""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from kvlint.explore.nixl_backend import NixlBackend
from kvlint.explore.opening import hand_over, open_room

ROOM = 7
CHUNKS = 2
_CONTAINERS = (dict, set, list, deque)


class Ended(BaseException):
    """Ends a thread of the backend where it would wait for ever."""


class Program:
    """One room, two chunks, one ABORT: the real worker and the real listener, without a scheduler."""

    def __init__(self, load: Callable[[], Any]) -> None:
        self._load = load
        self._backend: Any = None
        self._saved: list[tuple[Any, Any]] = []
        self._ended: list[str] = []
        self.building = 0.0

    def setup(self) -> Any:
        """The backend with its room open and its chunks queued."""
        began = time.perf_counter()
        if len(self._ended) != 2:
            # The first time, or a thread was left standing, with what it held.
            self._backend = self._loaded()
        backend = self._backend
        self._ended = []
        for live, saved in self._saved:
            _refill(live, saved)
        open_room(backend, ROOM, CHUNKS, backend.metadata_frames(ROOM))
        left = list(backend.abort_frames(ROOM))

        def receive() -> Any:
            if not left:
                raise Ended
            return left.pop(0)

        backend.hooks.receive = receive
        for worker in backend.loaded.workers:
            queue = next(given for given in (*worker.args, *worker.kwargs.values()) if hasattr(given, "put"))
            queue.put(_Last())
        self.building += time.perf_counter() - began
        return backend

    def _loaded(self) -> Any:
        backend = self._load()
        hand_over(backend, backend.registration_frames())
        backend.metadata_frames(ROOM)
        backend.abort_frames(ROOM)
        tables = [value for value in vars(backend.manager).values() if isinstance(value, _CONTAINERS)]
        self._saved = [(table, _copied(table)) for table in tables]
        return backend

    def worker(self, backend: Any) -> None:
        """The transfer worker, until its queue is empty."""
        self._run(*backend.bodies()[0])

    def listener(self, backend: Any) -> None:
        """The bootstrap listener, until there is no message."""
        self._run(*backend.bodies()[-1])

    def _run(self, name: str, body: Callable[[], None]) -> None:
        with suppress(Ended):
            body()
        self._ended.append(name)

    def is_terminal(self, backend: Any) -> bool:
        """Whether the room was concluded; both threads have ended, so nobody will do it later."""
        return backend.manager.request_status[ROOM] in (backend.poll.Failed, backend.poll.Success)


class _Last:
    """Stands in the queue behind the last chunk: the worker ends as soon as it looks at it."""

    def __getattr__(self, _: str) -> Any:
        raise Ended


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(entry) for key, entry in value.items()}
    return value.copy() if isinstance(value, _CONTAINERS) else value


def _refill(live: Any, saved: Any) -> None:
    live.clear()
    if isinstance(live, (dict, set)):
        live.update(_copied(saved))
    else:
        live.extend(_copied(saved))


def main(root: str, seconds: float, options: dict[str, Any]) -> dict[str, object]:
    """Explore, and say how it went."""
    frontrun = import_module("frontrun")

    program = Program(lambda: NixlBackend(Path(root), CHUNKS, {}))
    began = time.perf_counter()
    # Nothing here is done to files or sockets, and a schedule that was found need not be run again.
    result = frontrun.explore(
        setup=program.setup,
        workers=[program.worker, program.listener],
        invariant=program.is_terminal,
        total_timeout=seconds,
        detect_io=False,
        reproduce_on_failure=0,
        **options,
    )
    return {
        "seconds": time.perf_counter() - began,
        "building": program.building,
        "runs": result.num_explored,
        "holds": result.property_holds,
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], float(sys.argv[2]), json.loads(sys.argv[3]))))
