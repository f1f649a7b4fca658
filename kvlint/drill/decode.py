"""The decode side: what the scheduler of decode.py does with receivers, step by step, and the clients that give up.

Source: sglang/srt/disaggregation/decode.py, release 0.5.14: `pop_preallocated()` sends the metadata of a receiver that
polls WaitingForInput, `pop_transferred()` polls it. Success: `clear()`; Failed: `failure_exception()`, then `clear()`.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from kvlint.drill.messages import DecodeReport, Done, Setup, Start
from kvlint.drill.side import Channel, Side
from kvlint.drill.storm import permutation
from kvlint.loading.errors import LoadError


@dataclass(slots=True, eq=False)
class _Request:
    """A request of the decode side.

    Attributes:
        room: Its room.
        start: How it started.
        order: Which of its place's pages takes the first page, the second, ….
        receiver: Its receiver.
        abort_at: When it is given up, once the metadata was sent.
        was_aborted: Whether it was.
        status: What it polled last.
    """

    room: int
    start: Start
    order: list[int]
    receiver: Any
    abort_at: float | None = None
    was_aborted: bool = False
    status: object = None


class DecodeSide(Side[_Request]):
    """The decode side."""

    mode = "DECODE"

    def __init__(self, setup: Setup, channel: Channel) -> None:
        super().__init__(setup, channel)
        self._receivers = self.backend.receivers()
        self._clear()

    def _clear(self) -> None:
        self._preallocated: list[_Request] = []
        self._transferring: list[_Request] = []
        self.succeeded: list[int] = []
        self.failed: list[int] = []
        self._aborted: list[int] = []
        self._wrong: dict[int, int] = {}
        self._compared = 0
        self._opened: set[int] = set()
        self._last_of_place: dict[int, _Request] = {}
        self._first_start = self._last_success = 0.0

    def begin(self) -> None:
        """Forget the rooms of the storm before.

        Raises:
            LoadError: Clients are to give up, and the release does not let them.
        """
        self._clear()
        why = self.backend.why_no_abort() if self.storm.abort_probability else None
        if why is not None:
            raise LoadError(f"{why}, so there is no storm; --abort-probability 0 drills without one.")

    def start(self, start: Start) -> None:
        """A request arrives."""
        self._first_start = self._first_start or time.monotonic()
        right, receiver = self.guarded(lambda: self._receivers.make(start.room))
        if right:
            right, _ = self.guarded(lambda: self._receivers.open(receiver))
        pages = len(self.memory.pages(start.place))
        request = _Request(start.room, start, permutation(start.room, pages), receiver)
        if right:
            self._preallocated.append(request)
        else:
            self.conclude(request, self.failed)

    def opened(self, room: int) -> None:
        """The room may be given up from now on."""
        self._opened.add(room)

    def sleep(self, end: float) -> None:
        """Let a time come; rooms that are to be given up meanwhile are, to the point."""
        while True:
            self._abort_due()
            due = min((at for at in map(self._abort_at, self._transferring) if at is not None), default=end)
            if due >= end:
                break
            super().sleep(due)
        super().sleep(end)

    def _abort_at(self, request: _Request) -> float | None:
        """When a room is to be given up, None for not yet, or not at all."""
        may_be = request.room in self._opened or self.plan[request.room].is_early
        return request.abort_at if may_be else None

    def _abort_due(self) -> None:
        now = time.monotonic()
        for request in self._transferring:
            at = self._abort_at(request)
            if at is not None and now >= at:
                request.abort_at = None
                request.was_aborted = True
                self.guarded(request.receiver.abort)

    # -- a step --------------------------------------------------------------------------

    def step(self) -> None:
        """Send the metadata of rooms that wait for it, and poll those that wait for pages."""
        self._preallocated = [request for request in self._preallocated if self._waits(request)]
        self._abort_due()
        self._transferring = [request for request in self._transferring if self._receives(request)]

    def _waits(self, request: _Request) -> bool:
        """Poll a room whose metadata was not sent yet; whether it stays so."""
        right, status = self.poll(request, request.receiver)
        if right and status == self.backend.poll.WaitingForInput:
            first = self.memory.pages(request.start.place).start
            pages = np.array([first + page for page in request.order], dtype=np.int32)
            right, _ = self.guarded(lambda: self._receivers.send_metadata(request.receiver, pages, request.start.place))
            after = self.plan[request.room].abort_after
            if right:
                self.moved()
                request.abort_at = None if after is None else time.monotonic() + after
                self._transferring.append(request)
                return False
        return self.stays(request, right, status)

    def _receives(self, request: _Request) -> bool:
        """Poll a room whose pages are awaited; whether it stays so."""
        right, status = self.poll(request, request.receiver)
        if right and status == self.backend.poll.Success:
            self._last_success = time.monotonic()
            self._compare(request)
            self._clear_receiver(request)
            self.conclude(request, self.succeeded)
            return False
        return self.stays(request, right, status)

    def _compare(self, request: _Request) -> None:
        if not request.start.checked:
            return
        if not self.storm.checked:
            self._last_of_place[request.start.place] = request
        else:
            self._count_wrong(request, request.room)

    def _count_wrong(self, request: _Request, key: int) -> None:
        self._compared += 1
        wrong = self.memory.wrong_bytes(request.start.place, key, request.order)
        if wrong:
            self._wrong[request.room] = wrong

    def fail(self, request: _Request) -> None:
        """Do what the scheduler does with a room that polls Failed."""
        # What it raises is the client's to read.
        with contextlib.suppress(Exception):
            request.receiver.failure_exception()
        self._clear_receiver(request)
        self.conclude(request, self._aborted if request.was_aborted else self.failed)

    def _clear_receiver(self, request: _Request) -> None:
        clear = getattr(request.receiver, "clear", None)
        if clear is not None:
            self.guarded(clear)

    def conclude(self, request: _Request, where: list[int]) -> None:
        """A room has come to an end."""
        self.moved()
        where.append(request.room)
        self.channel.tell(Done(request.room, where is self.succeeded, request.was_aborted))

    # -- the end -------------------------------------------------------------------------

    def is_empty(self) -> bool:
        """Whether every request has come to an end."""
        return not (self._preallocated or self._transferring)

    def is_still(self) -> bool:
        """The decode side has no thread whose work a room waits for."""
        return True

    def report(self, settled: bool) -> DecodeReport:
        """What was received."""
        del settled
        for place, request in self._last_of_place.items():
            self._count_wrong(request, self.storm.first + place)
        early = (room for room in self._aborted if self.plan[room].is_early)
        waiting = (request.room for request in (*self._preallocated, *self._transferring))
        return DecodeReport(
            succeeded=tuple(self.succeeded),
            failed=tuple(self.failed),
            aborted=tuple(self._aborted),
            early=tuple(early),
            waiting=tuple(sorted(waiting)),
            compared=self._compared,
            wrong=self._wrong,
            seconds=max(0.0, self._last_success - self._first_start),
            errors=tuple(self.errors),
            dead_threads=tuple(self.backend.threads.all_dead()),
            log=tuple(self.backend.log),
            peak_bytes=self.peak_bytes(),
        )
