"""The prefill side: what the scheduler of prefill.py does with senders, step by step.

Source: sglang/srt/disaggregation/prefill.py, release 0.5.14; `loading.backend.Backend` has it in words.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from kvlint.drill.memory import PAGES
from kvlint.drill.messages import Flip, Opened, PrefillReport, Released, Setup, Start, StuckRoom
from kvlint.drill.side import Channel, Side
from kvlint.drill.threads import TreeThread

_MOST_FLIPS = 10_000
#: Seconds that a listener is given to get at an ABORT.
_LATEST_SECONDS = 5.0
#: Steps of the scheduler from the arrival of a request that was given up to its sender: its ABORT has come by then.
_LATE_STEPS = 3
_LEAST_STEP = 0.010  # seconds


@dataclass(slots=True, eq=False)
class _Request:
    """A request of the prefill side.

    Attributes:
        room: Its room.
        place: Where its pages are.
        due: When its sender is to be made.
        is_early: Whether it was given up on the decode side before it came here.
        is_given_up: Whether its client gives it up on this side as soon as there is one.
        sender: Its sender.
        sent: Chunks that were sent.
        status: What it polled last.
    """

    room: int
    place: int
    due: float
    is_early: bool
    is_given_up: bool
    sender: Any = None
    sent: int = 0
    status: object = None


class PrefillSide(Side[_Request]):
    """The prefill side."""

    mode = "PREFILL"

    def __init__(self, setup: Setup, channel: Channel) -> None:
        super().__init__(setup, channel)
        self._senders = self.backend.senders()
        self._clear()

    def _clear(self) -> None:
        self._arrived: list[_Request] = []
        self._bootstrap: list[_Request] = []
        self._running: list[_Request] = []
        self._inflight: list[_Request] = []
        self.succeeded: list[int] = []
        self.failed: list[int] = []
        #: Rooms of which everything was sent, or nothing will be, and since when; until nothing of them is on its way.
        self._leaving: dict[int, float] = {}
        #: When each worker was last seen to have nothing to do.
        self._idle_at: dict[TreeThread, float] = {}
        self._flips: deque[Flip] = deque(maxlen=_MOST_FLIPS)

    def begin(self) -> None:
        """Fill what will be sent, and have writes over Failed seen."""
        self._clear()
        if self.storm.checked:
            self._watch_statuses()
        else:
            self._unwatch_statuses()
            for place in range(self.places):
                self.memory.fill(place, self.storm.first + place)

    def _watch_statuses(self) -> None:
        """See what is written over Failed. A writer that is called in another way than by its name is not seen."""
        manager, poll = self.backend.manager, self.backend.poll
        if "update_status" in vars(manager) or not hasattr(manager, "update_status"):
            return
        write, table = manager.update_status, manager.request_status

        def watched(bootstrap_room: Any, status: Any, *rest: Any, **named: Any) -> Any:
            before = table.get(bootstrap_room)
            result = write(bootstrap_room, status, *rest, **named)
            if before == poll.Failed and status != poll.Failed and table.get(bootstrap_room, before) != poll.Failed:
                self._flips.append(Flip(int(bootstrap_room), self.backend.status(bootstrap_room)))
            return result

        manager.update_status = watched

    def _unwatch_statuses(self) -> None:
        vars(self.backend.manager).pop("update_status", None)

    def start(self, start: Start) -> None:
        """A request arrives."""
        if self.storm.checked:
            self.memory.fill(start.place, start.room)
        plan = self.plan[start.room]
        # The ABORT was sent before this was told, and may still be on its way.
        late = _LATE_STEPS * max(self.storm.step, _LEAST_STEP) if plan.is_early else 0.0
        request = _Request(start.room, start.place, time.monotonic() + late, plan.is_early, plan.tells_prefill)
        self._arrived.append(request)

    def opened(self, room: int) -> None:
        """It was this side that told so."""

    # -- a step --------------------------------------------------------------------------

    def step(self) -> None:
        """Poll the bootstrap queue, send a chunk of each running room, poll the inflight queue."""
        # Before anything is sent: it is now that the workers may have nothing to do.
        self._release()
        now = time.monotonic()
        # A request that was given up comes after its ABORT, however long the listener takes.
        has_early = any(request.is_early for request in self._arrived)
        is_free = has_early and self.backend.threads.listeners_are_idle()
        due = [
            request
            for request in self._arrived
            if request.due <= now and (is_free or not request.is_early or request.due + _LATEST_SECONDS < now)
        ]
        self._arrived = [request for request in self._arrived if request not in due]
        for request in due:
            self.moved()
            right, request.sender = self.guarded(partial(self._senders.make, request.room))
            if right:
                self.channel.tell(Opened(request.room))
                self._bootstrap.append(request)
                if request.is_given_up:
                    self.guarded(partial(self._senders.abort, request.sender))
            else:
                self.conclude(request, self.failed)
        self._bootstrap = [request for request in self._bootstrap if self._waits(request)]
        self._running = [request for request in self._running if self._runs(request)]
        self._inflight = [request for request in self._inflight if self._flies(request)]

    def _waits(self, request: _Request) -> bool:
        """Poll a room of the bootstrap queue; whether it stays there."""
        right, status = self.poll(request, request.sender)
        if right and status == self.backend.poll.WaitingForInput:
            pages = self.storm.chunks * PAGES
            right, _ = self.guarded(lambda: self._senders.begin(request.sender, pages, request.place))
            if right:
                self.moved()
                self._running.append(request)
                return False
        return self.stays(request, right, status)

    def _runs(self, request: _Request) -> bool:
        """Send a chunk of a running room; whether more are to come."""
        self.moved()
        chunk = request.sent
        first = self.memory.pages(request.place).start + chunk * PAGES
        pages = np.arange(first, first + PAGES, dtype=np.int32)
        last = chunk + 1 == self.storm.chunks
        right, _ = self.guarded(lambda: self._senders.send(request.sender, pages, last))
        if not right:
            self.conclude(request, self.failed)
            return False
        request.sent += 1
        if last:
            self._inflight.append(request)
            self._leaving[request.room] = time.monotonic()
        return not last

    def _flies(self, request: _Request) -> bool:
        """Poll a room of the inflight queue; whether it stays there."""
        right, status = self.poll(request, request.sender)
        if right and status == self.backend.poll.Success:
            self.guarded(lambda: self._senders.clear(request.sender))
            self.conclude(request, self.succeeded)
            return False
        return self.stays(request, right, status)

    def fail(self, request: _Request) -> None:
        """Do what the scheduler does with a room that polls Failed: the exception's text goes to the client."""
        # What it raises is the client's to read.
        with contextlib.suppress(Exception):
            request.sender.failure_exception()
        self.conclude(request, self.failed)

    def conclude(self, request: _Request, where: list[int]) -> None:
        """A room has come to an end."""
        self.moved()
        where.append(request.room)
        if request.sent < self.storm.chunks:
            # Later than its last chunk nothing is sent of it.
            self._leaving[request.room] = time.monotonic()

    def _release(self) -> None:
        """Tell of the rooms of which nothing is on its way: each worker was idle once after the last of it was sent."""
        if not self._leaving:
            return
        threads = self.backend.threads
        now = time.monotonic()
        self._idle_at.update(dict.fromkeys(threads.idle_workers(), now))
        quiet = min((self._idle_at.get(worker, 0.0) for worker in threads.workers()), default=now)
        under_way = min(list(self.backend.transfers.under_way.values()), default=now)
        for room, since in list(self._leaving.items()):
            if since < quiet and since < under_way:
                del self._leaving[room]
                self.channel.tell(Released(room))

    # -- the end -------------------------------------------------------------------------

    def is_empty(self) -> bool:
        """Whether every request has come to an end."""
        return not (self._arrived or self._bootstrap or self._running or self._inflight)

    def is_still(self) -> bool:
        """Whether no thread has anything to do, and no transfer is under way."""
        threads, transfers = self.backend.threads, self.backend.transfers
        workers_are_idle = len(threads.idle_workers()) == len(threads.workers())
        return not transfers.under_way and workers_are_idle and threads.listeners_are_idle()

    def report(self, settled: bool) -> PrefillReport:
        """What became of the rooms."""
        backend = self.backend
        queues = {"bootstrap": self._bootstrap, "running": self._running, "inflight": self._inflight}
        metadata = backend.table("transfer_infos")
        stuck = [
            StuckRoom(request.room, backend.status(request.room), request.room in metadata, name)
            for name, queue in queues.items()
            for request in queue
        ]
        over = {*self.succeeded, *self.failed}
        return PrefillReport(
            succeeded=tuple(self.succeeded),
            failed=tuple(self.failed),
            stuck=tuple(sorted(stuck, key=lambda entry: entry.room)),
            settled=settled,
            flips=tuple(self._flips),
            zombies={room: backend.status(room) for room in sorted(over.intersection(backend.known_rooms()))},
            orphan_records=_of(over, backend.table("failure_records")),
            orphan_exceptions=_of(over, backend.table("exceptions")),
            orphan_metadata=_of(over, metadata | backend.table("req_to_decode_prefix_len")),
            errors=tuple(self.errors),
            dead_threads=tuple(backend.threads.all_dead()),
            transfers=backend.transfers.posted,
            log=tuple(backend.log),
            peak_bytes=self.peak_bytes(),
        )


def _of(rooms: set[int], found: set[int]) -> tuple[int, ...]:
    return tuple(sorted(rooms & found))
