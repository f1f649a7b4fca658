"""Times the status writers of two trees in this process; what update_status.py runs, several times over.

Usage: status_writes.py ROOT OTHER_ROOT PAIRS NUMBER. It loads both trees, which executes code of them, and prints JSON.
"""

from __future__ import annotations

import gc
import json
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from types import FunctionType
from typing import Any

from kvlint.loading import Backend, LoadError, UnforeseenUse, load_backend

#: Rooms that the manager knows at a time; each is written once per sweep.
ROOMS = 256
#: Sweeps that make one block. Its time is that of the median sweep: a sweep takes about a tenth of a millisecond, and
#: few lose the processor meanwhile. A sum of them would burden the slower tree, which has it longer, unduly.
SWEEPS = 17
#: Pairs of blocks that are not counted: the interpreter specialises what it runs often.
WARM_UP = 8


class BadWriter(Exception):
    """A tree whose writer cannot be timed; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Transition:
    """A write: the status to write, and the one that is stored before, None for a room that is absent."""

    stored: str | None
    status: str

    def __str__(self) -> str:
        return f"{self.stored or 'absent'} -> {self.status}"


TRANSITIONS = (
    Transition(None, "Bootstrapping"),
    Transition("Bootstrapping", "WaitingForInput"),
    Transition("WaitingForInput", "Transferring"),
    Transition("Transferring", "Transferring"),
    Transition("Transferring", "Success"),
    Transition("Transferring", "Failed"),
    Transition("Failed", "Transferring"),
    Transition("Success", "Failed"),
    Transition(None, "Transferring"),
)


def _sweep(manager: Any, rooms: Sequence[int], status: object) -> int:
    began = perf_counter_ns()
    for room in rooms:
        manager.update_status(room, status)
    return perf_counter_ns() - began


def _empty_sweep(manager: Any, rooms: Sequence[int], status: object) -> int:  # noqa: ARG001 (as many locals as _sweep)
    began = perf_counter_ns()
    for _room in rooms:
        pass
    return perf_counter_ns() - began


def _own_copy(function: Callable[..., int]) -> Callable[..., int]:
    """The function with bytecode of its own.

    The interpreter specialises a call for what was called there last (PEP 659): both trees at one place in the
    bytecode would undo each other's specialisation, which does not happen to either in a server.
    """
    return FunctionType(function.__code__.replace(), globals(), function.__name__)


class Writes:
    """One transition in one tree, as often as wanted.

    Raises:
        BadWriter: The tree has no such status, or keeps statuses otherwise than in a dict `request_status`.
    """

    def __init__(self, backend: Backend, transition: Transition, rooms: Sequence[int]) -> None:
        self._manager = backend.manager
        self._rooms = rooms
        self._sweep = _own_copy(_sweep)
        self._names = {value: name for name, value in vars(backend.poll).items() if name[0].isupper()}
        self._values = {name: value for value, name in self._names.items()}
        for name in (transition.stored, transition.status):
            if name is not None and name not in self._values:
                raise BadWriter(f"{backend.tree.package}: KVPoll has no {name}.")
        table = getattr(self._manager, "request_status", None)
        if not isinstance(table, dict):
            raise BadWriter(
                f"{backend.tree.package}: the manager's request_status is {type(table).__name__}; it has to be a dict, "
                "which is set before every write."
            )
        self._table: dict[int, object] = table
        self._stored = None if transition.stored is None else self._values[transition.stored]
        self._status = self._values[transition.status]

    def result(self) -> str:
        """The status that is stored after one write, by name, or `absent`."""
        self._reset()
        self._manager.update_status(self._rooms[0], self._status)
        after = self._table.get(self._rooms[0])
        return "absent" if after is None else self._names.get(after, repr(after))

    def block(self) -> float:
        """The nanoseconds of one write with its share of the loop, in the median sweep of one block."""
        sweeps = []
        for _ in range(SWEEPS):
            self._reset()
            sweeps.append(self._sweep(self._manager, self._rooms, self._status))
        return median(sweeps) / len(self._rooms)

    def _reset(self) -> None:
        # Rooms go as the releases' clear() lets them go, so that the dict is as large as a server's.
        for room in self._rooms:
            if self._stored is None:
                self._table.pop(room, None)
            else:
                self._table[room] = self._stored


def measured(backends: Sequence[Backend], pairs: int, number: int) -> dict[str, Any]:
    """What every transition takes in both trees, pair by pair, and what is stored afterwards.

    Args:
        backends: Both trees, in the order in which they are reported.
        pairs: How many pairs of blocks are counted.
        number: Which of several processes this is; in every other one the pairs begin with the other tree.

    Raises:
        BadWriter: A writer cannot be timed.
    """
    # As wide as rooms are: the warm-up of sglang/srt/entrypoints/http_server.py, 0.5.14, spreads its own over 2**63.
    drawn = random.Random(number)
    rooms = [drawn.getrandbits(63) for _ in range(ROOMS)]
    empty = _own_copy(_empty_sweep)
    loops: list[float] = []
    found: dict[str, dict[str, list[Any]]] = {}
    for transition in TRANSITIONS:
        writes = [Writes(backend, transition, rooms) for backend in backends]
        results = [each.result() for each in writes]
        times: list[list[float]] = []
        for pair in range(pairs + WARM_UP):
            order = (0, 1) if (pair + number) % 2 else (1, 0)
            of_pair = {which: writes[which].block() for which in order}
            loops.append(median(empty(None, rooms, None) for _ in range(SWEEPS)) / ROOMS)
            times.append([of_pair[0], of_pair[1]])
        found[str(transition)] = {"results": results, "pairs": times[WARM_UP:]}
    for backend in backends:
        # Code that catches everything may have caught it.
        if backend.faults:
            raise BadWriter(f"update_status() did not do what it does in a server: {backend.faults[0]}")
    loop = median(loops)
    for entry in found.values():
        entry["pairs"] = [[round(one - loop, 2) for one in pair] for pair in entry["pairs"]]
    return {"loop": loop, "transitions": found, "trees": [_description(backend) for backend in backends]}


def _description(backend: Backend) -> Mapping[str, str | None]:
    return {"version": backend.version, "sha256": backend.digest}


def main(root: Path, other: Path, pairs: int, number: int) -> dict[str, Any]:
    """Load both trees, in every other process the second one first, and time them.

    Raises:
        LoadError: A tree cannot be loaded.
        BadWriter: A writer cannot be timed, or raises.
    """
    roots = (root, other)
    loaded = {which: load_backend(roots[which]) for which in ((0, 1) if number % 2 else (1, 0))}
    # As timeit does: a collection would be counted for whichever tree runs then.
    gc.collect()
    gc.disable()
    try:
        return measured((loaded[0], loaded[1]), pairs, number)
    except (Exception, UnforeseenUse) as error:
        if isinstance(error, BadWriter):
            raise
        raise BadWriter(f"update_status() failed: {type(error).__name__}: {error}") from error
    finally:
        gc.enable()


if __name__ == "__main__":
    try:
        print(json.dumps(main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))))
    except (LoadError, BadWriter) as failure:
        sys.exit(str(failure))
