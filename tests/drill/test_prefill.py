"""The prefill side's scheduler, over a backend that is played."""

from __future__ import annotations

from typing import Any

import pytest

from kvlint.drill.messages import Begin, Flip, Released, Start, StuckRoom
from kvlint.drill.storm import PlannedRoom, Storm

from . import made, sides
from .sides import Poll


def begun(side: Any, storm: Storm = sides.STORM, *plan: PlannedRoom) -> Any:
    side._take(Begin(storm))
    sides.plan(side, *plan or [PlannedRoom(room, None) for room in range(1, 5)])
    return side


def step(side: Any, clock: sides.Clock) -> None:
    clock.now += 0.01
    side.step()


def started(side: Any, clock: sides.Clock, room: int = 1, place: int = 0) -> Any:
    side._take(Start(room, place))
    step(side, clock)
    return side.backend.endpoints.of[room]


def test_a_room_is_sent_chunk_by_chunk(prefill: Any, clock: sides.Clock) -> None:
    sender = started(begun(prefill), clock, room=2, place=3)
    assert prefill.memory.filled == [(3, 2)]
    assert sender.calls == []
    sender.status = Poll.WaitingForInput
    step(prefill, clock)
    step(prefill, clock)
    assert sender.calls == ["begin 32", "chunk", "last"]
    assert prefill.backend.endpoints.pages[2] == list(prefill.memory.pages(3))
    sender.status = Poll.Success
    step(prefill, clock)
    report = prefill.report(True)
    assert (report.succeeded, report.failed, report.stuck) == ((2,), (), ())
    assert sender.calls[-1] == "clear"
    assert prefill.is_empty()


def test_a_room_that_fails_is_the_clients_to_read(prefill: Any, clock: sides.Clock) -> None:
    waiting = started(begun(prefill), clock)
    waiting.status = Poll.Failed
    flying = started(prefill, clock, room=2, place=1)
    flying.status = Poll.WaitingForInput
    for _ in range(2):
        step(prefill, clock)
    flying.status = Poll.Failed
    step(prefill, clock)
    report = prefill.report(True)
    assert (report.failed, report.errors) == ((1, 2), ())
    assert waiting.calls == ["failure_exception"]
    assert flying.calls[-1] == "failure_exception"


@pytest.mark.parametrize("status", [Poll.Bootstrapping, Poll.Transferring])
def test_a_room_that_stays_is_stuck(prefill: Any, clock: sides.Clock, status: int) -> None:
    begun(prefill)
    for room in (3, 1, 2):
        started(prefill, clock, room, room).status = status
    endpoints = prefill.backend.endpoints.of
    endpoints[1].status = Poll.WaitingForInput
    endpoints[2].status = Poll.WaitingForInput
    step(prefill, clock)
    endpoints[1].status = status
    prefill._inflight += [request for request in prefill._running if request.room == 1]
    prefill._running = [request for request in prefill._running if request.room == 2]
    prefill.backend.manager.request_status = {1: Poll.Transferring, 2: 99}
    prefill.backend.tables = {"transfer_infos": {2, 9}}
    assert prefill.report(True).stuck == (
        StuckRoom(1, "Transferring", False, "inflight"),
        StuckRoom(2, "absent", True, "running"),
        StuckRoom(3, "absent", False, "bootstrap"),
    )
    assert not prefill.is_empty()


@pytest.mark.parametrize("call", ["poll", "begin 32", "chunk", "last"])
def test_what_raises_ends_the_room_and_frees_its_place(prefill: Any, clock: sides.Clock, call: str) -> None:
    sender = started(begun(prefill), clock)
    sender.broken = {call}
    sender.status = Poll.WaitingForInput
    for _ in range(4):
        step(prefill, clock)
    report = prefill.report(True)
    assert (report.failed, report.succeeded, report.stuck) == ((1,), (), ())
    assert len(report.errors) == 1
    assert f"{call} is broken" in report.errors[0]
    assert prefill.channel.of(Released) == [Released(1)]


def test_a_poll_that_raises_in_flight_ends_the_room(prefill: Any, clock: sides.Clock) -> None:
    sender = started(begun(prefill), clock)
    sender.status = Poll.WaitingForInput
    for _ in range(2):
        step(prefill, clock)
    sender.broken = {"poll"}
    for _ in range(2):
        step(prefill, clock)
    assert prefill.report(True).failed == (1,)
    assert prefill.channel.of(Released) == [Released(1)]


def test_a_sender_that_cannot_be_made_fails(prefill: Any, clock: sides.Clock) -> None:
    begun(prefill)
    prefill.backend.endpoints.unmakable = {1}
    prefill._take(Start(1, 0))
    step(prefill, clock)
    report = prefill.report(True)
    assert report.failed == (1,)
    assert "it cannot be made" in report.errors[0]


def test_an_early_abort_finds_the_sender_as_it_is_made(prefill: Any, clock: sides.Clock) -> None:
    begun(prefill, sides.STORM, PlannedRoom(1, 0.02, True, True), PlannedRoom(2, 0.02, True, False))
    for room in (1, 2):
        prefill._take(Start(room, room))
    step(prefill, clock)
    assert prefill.backend.endpoints.of == {}
    assert not prefill.is_empty()
    clock.now += 0.05
    step(prefill, clock)
    assert [prefill.backend.endpoints.of[room].calls for room in (1, 2)] == [["abort"], []]


def test_a_sender_waits_until_the_listener_has_got_at_the_abort(prefill: Any, clock: sides.Clock) -> None:
    begun(prefill, sides.STORM, PlannedRoom(1, 0.02, True, True), PlannedRoom(2, None))
    prefill.backend.threads.listens = False
    for room in (1, 2):
        prefill._take(Start(room, room))
    clock.now += 1.0
    step(prefill, clock)
    assert list(prefill.backend.endpoints.of) == [2]
    assert not prefill.is_still()
    prefill.backend.threads.listens = True
    step(prefill, clock)
    assert list(prefill.backend.endpoints.of) == [2, 1]


def test_a_listener_that_never_gets_there_is_not_waited_for(prefill: Any, clock: sides.Clock) -> None:
    begun(prefill, sides.STORM, PlannedRoom(1, 0.02, True, True))
    prefill.backend.threads.listens = False
    prefill._take(Start(1, 0))
    clock.now += 6.0
    step(prefill, clock)
    assert list(prefill.backend.endpoints.of) == [1]


def test_a_place_is_free_once_each_worker_was_idle(prefill: Any, clock: sides.Clock) -> None:
    first, second = "first worker", "second worker"
    prefill.backend.threads.all = [first, second]
    sender = started(begun(prefill), clock)
    sender.status = Poll.Failed
    step(prefill, clock)
    assert prefill.report(True).failed == (1,)
    step(prefill, clock)
    prefill.backend.threads.idle = [first]
    step(prefill, clock)
    assert prefill.channel.of(Released) == []
    # Not at the same time: each has done by then what was asked before.
    prefill.backend.threads.idle = [second]
    step(prefill, clock)
    assert prefill.channel.of(Released) == [Released(1)]
    step(prefill, clock)
    assert prefill.channel.of(Released) == [Released(1)]


def test_a_place_is_not_free_while_an_older_transfer_is_under_way(prefill: Any, clock: sides.Clock) -> None:
    sender = started(begun(prefill), clock)
    older, newer = object(), object()
    prefill.backend.transfers.post(older)
    sender.status = Poll.Failed
    step(prefill, clock)
    step(prefill, clock)
    assert prefill.channel.of(Released) == []
    prefill.backend.transfers.post(newer)
    prefill.backend.transfers.state(older, "DONE")
    step(prefill, clock)
    assert prefill.channel.of(Released) == [Released(1)]
    assert not prefill.is_still()
    prefill.backend.transfers.state(newer, "ERR")
    assert prefill.is_still()


def test_a_sent_room_is_free_before_it_has_ended(prefill: Any, clock: sides.Clock) -> None:
    sender = started(begun(prefill), clock)
    sender.status = Poll.WaitingForInput
    for _ in range(3):
        step(prefill, clock)
    assert prefill.channel.of(Released) == [Released(1)]
    sender.status = Poll.Success
    for _ in range(2):
        step(prefill, clock)
    assert prefill.channel.of(Released) == [Released(1)]


def test_writes_over_failed_are_seen(prefill: Any, clock: sides.Clock) -> None:
    manager = begun(prefill).backend.manager
    manager.update_status(1, Poll.Failed)
    manager.update_status(1, Poll.Failed)
    manager.update_status(1, Poll.Transferring)
    manager.update_status(bootstrap_room=2, status=Poll.Success)
    manager.update_status(2, status=Poll.Failed)
    manager.update_status(2, Poll.Success)
    begun_again = prefill.report(True).flips
    assert begun_again == (Flip(1, "Transferring"), Flip(2, "Success"))
    # It is watched once.
    begun(prefill)
    manager.update_status(1, Poll.Failed)
    manager.update_status(1, Poll.Success)
    assert prefill.report(True).flips == (Flip(1, "Success"),)


def test_a_write_that_failed_withstands_is_no_flip(prefill: Any, clock: sides.Clock) -> None:
    class Sticky(sides.Manager):
        def update_status(self, bootstrap_room: int, status: int) -> None:
            if self.request_status.get(bootstrap_room) != Poll.Failed:
                super().update_status(bootstrap_room, status)

    prefill.backend.manager = manager = Sticky()
    begun(prefill)
    manager.update_status(1, Poll.Failed)
    manager.update_status(1, Poll.Success)
    assert prefill.report(True).flips == ()


def test_a_release_without_that_writer_is_not_watched(prefill: Any, clock: sides.Clock) -> None:
    class Bare:
        def __init__(self) -> None:
            self.request_status: dict[int, int] = {}

    prefill.backend.manager = Bare()
    begun(prefill)
    assert list(vars(prefill.backend.manager)) == ["request_status"]


def test_a_round_fills_its_places_once_and_watches_nothing(prefill: Any, clock: sides.Clock) -> None:
    begun(prefill)
    assert "update_status" in vars(prefill.backend.manager)
    begun(prefill, Storm(rooms=4, chunks=2, checked=False, first=100))
    prefill._take(Start(1, 2))
    assert "update_status" not in vars(prefill.backend.manager)
    assert prefill.memory.filled == [(0, 100), (1, 101), (2, 102), (3, 103)]


def test_what_is_left_behind_is_told(prefill: Any, clock: sides.Clock) -> None:
    sender = started(begun(prefill), clock)
    sender.status = Poll.Failed
    step(prefill, clock)
    backend = prefill.backend
    backend.manager.request_status = {1: Poll.Success, 3: Poll.Failed}
    backend.tables = {
        "failure_records": {1, 3},
        "exceptions": {1},
        "transfer_infos": {3},
        "req_to_decode_prefix_len": {1},
    }
    backend.threads.dead = [made.DEAD]
    backend.transfers.posted = 5
    report = prefill.report(False)
    assert report.zombies == {1: "Success"}
    assert (report.orphan_records, report.orphan_exceptions, report.orphan_metadata) == ((1,), (1,), (1,))
    assert (report.settled, report.transfers, report.dead_threads, report.log) == (False, 5, (made.DEAD,), ("warned",))
    assert report.peak_bytes > 1 << 20
