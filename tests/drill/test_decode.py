"""The decode side's scheduler and its clients, over a backend that is played."""

from __future__ import annotations

from typing import Any

import pytest

from kvlint.drill.messages import Begin, Done, Opened, Start
from kvlint.drill.storm import PlannedRoom, Storm, permutation
from kvlint.loading.errors import LoadError, UnforeseenUse

from . import made, sides
from .sides import Poll


def begun(side: Any, storm: Storm = sides.STORM, *plan: PlannedRoom) -> Any:
    side._take(Begin(storm))
    sides.plan(side, *plan or [PlannedRoom(room, None) for room in range(1, 5)])
    for entry in side.plan.values():
        side._take(Opened(entry.room))
    return side


def step(side: Any, clock: sides.Clock) -> None:
    clock.now += 0.01
    side.step()


def awaiting(side: Any, clock: sides.Clock, start: Start | None = None) -> Any:
    """The receiver of a room whose metadata was sent."""
    start = start or Start(1, 0)
    side._take(start)
    receiver = side.backend.endpoints.of[start.room]
    step(side, clock)
    receiver.status = Poll.WaitingForInput
    step(side, clock)
    return receiver


def test_a_room_is_received_and_compared(decode: Any, clock: sides.Clock) -> None:
    receiver = awaiting(begun(decode), clock, Start(2, 3))
    pages = decode.memory.pages(3)
    assert decode.backend.endpoints.pages[2] == [pages.start + page for page in permutation(2, len(pages))]
    assert not decode.is_empty()
    receiver.status = Poll.Success
    step(decode, clock)
    assert decode.memory.compared == [(3, 2)]
    assert receiver.calls == ["send_metadata", "clear"]
    assert decode.channel.of(Done) == [Done(2, True, False)]
    report = decode.report(True)
    assert (report.succeeded, report.compared, report.wrong) == ((2,), 1, {})
    assert report.seconds == pytest.approx(0.03)
    assert decode.is_empty()
    assert decode.is_still()


def test_wrong_bytes_are_told(decode: Any, clock: sides.Clock) -> None:
    decode.memory.wrong = {1: 16}
    awaiting(begun(decode), clock).status = Poll.Success
    step(decode, clock)
    report = decode.report(True)
    assert (report.succeeded, report.wrong) == ((1,), {1: 16})


def test_a_place_that_is_shared_is_not_compared(decode: Any, clock: sides.Clock) -> None:
    awaiting(begun(decode), clock, Start(1, 0, checked=False)).status = Poll.Success
    step(decode, clock)
    report = decode.report(True)
    assert (report.succeeded, report.compared, decode.memory.compared) == ((1,), 0, [])


@pytest.mark.parametrize("has_metadata", [False, True])
def test_a_room_that_fails_is_told(decode: Any, clock: sides.Clock, has_metadata: bool) -> None:
    begun(decode)
    if has_metadata:
        receiver = awaiting(decode, clock)
    else:
        decode._take(Start(1, 0))
        receiver = decode.backend.endpoints.of[1]
    receiver.status = Poll.Failed
    step(decode, clock)
    report = decode.report(True)
    assert (report.failed, report.aborted, report.errors) == ((1,), (), ())
    assert receiver.calls[-2:] == ["failure_exception", "clear"]
    assert decode.channel.of(Done) == [Done(1, False, False)]


@pytest.mark.parametrize("call", ["poll", "send_metadata"])
def test_what_raises_before_the_metadata_ends_the_room(decode: Any, clock: sides.Clock, call: str) -> None:
    begun(decode)._take(Start(1, 0))
    receiver = decode.backend.endpoints.of[1]
    receiver.broken, receiver.status = {call}, Poll.WaitingForInput
    step(decode, clock)
    report = decode.report(True)
    assert (report.failed, report.waiting) == ((1,), ())
    assert f"{call} is broken" in report.errors[0]


@pytest.mark.parametrize(("call", "failed"), [("poll", (1,)), ("clear", ())])
def test_what_raises_later_is_told(decode: Any, clock: sides.Clock, call: str, failed: tuple[int, ...]) -> None:
    receiver = awaiting(begun(decode), clock)
    receiver.broken, receiver.status = {call}, Poll.Success
    step(decode, clock)
    report = decode.report(True)
    assert report.failed == failed
    assert f"{call} is broken" in report.errors[0]
    assert decode.is_empty()


@pytest.mark.parametrize("what", ["unmakable", "unopenable"])
def test_a_receiver_that_cannot_be_had_fails(decode: Any, clock: sides.Clock, what: str) -> None:
    begun(decode)
    setattr(decode.backend.endpoints, what, {1})
    decode._take(Start(1, 0))
    assert decode.channel.of(Done) == [Done(1, False, False)]
    assert decode.is_empty()


def test_a_room_that_nothing_comes_of_is_waited_for(decode: Any, clock: sides.Clock) -> None:
    awaiting(begun(decode), clock, Start(2, 0)).status = Poll.Transferring
    decode._take(Start(1, 1))
    step(decode, clock)
    assert decode.report(False).waiting == (1, 2)


# -- clients that give up -----------------------------------------------------------------


def test_a_client_gives_up_to_the_point(decode: Any, clock: sides.Clock) -> None:
    begun(decode, sides.STORM, PlannedRoom(1, 0.004), PlannedRoom(2, 5.0))
    first, second = awaiting(decode, clock), awaiting(decode, clock, Start(2, 1))
    begin = clock.now
    for request in decode._transferring:
        request.abort_at = begin + {1: 0.004, 2: 5.0}[request.room]
    first.calls.clear()
    clock.slept.clear()
    decode.sleep(begin + 0.01)
    assert clock.slept == pytest.approx([0.004, 0.006])
    assert (first.calls, second.calls) == (["abort"], ["send_metadata"])
    # Once only.
    decode.sleep(begin + 0.02)
    assert first.calls == ["abort"]
    first.status = Poll.Failed
    step(decode, clock)
    report = decode.report(True)
    assert (report.aborted, report.failed, report.early) == ((1,), (), ())
    assert decode.channel.of(Done) == [Done(1, False, True)]


def test_the_time_counts_from_the_metadata(decode: Any, clock: sides.Clock) -> None:
    begun(decode, sides.STORM, PlannedRoom(1, 0.5))
    receiver = awaiting(decode, clock)
    sent = clock.now
    assert [request.abort_at for request in decode._transferring] == [sent + 0.5]
    receiver.status = Poll.Transferring
    clock.now = sent + 0.49
    decode.step()
    assert "abort" not in receiver.calls
    clock.now = sent + 0.5
    decode.step()
    assert receiver.calls[-1] == "abort"


def test_an_abort_waits_for_the_sender_if_it_is_not_to_be_early(decode: Any, clock: sides.Clock) -> None:
    begun(decode, sides.STORM, PlannedRoom(1, 0.0))
    decode._opened.clear()
    receiver = awaiting(decode, clock)
    decode.sleep(clock.now + 1.0)
    assert "abort" not in receiver.calls
    decode._take(Opened(1))
    decode.sleep(clock.now)
    assert receiver.calls[-1] == "abort"


def test_a_release_without_aborts_has_no_storm(decode: Any) -> None:
    decode.backend.no_abort = "conn.py:1: this release's receiver has no abort()"
    with pytest.raises(LoadError, match=r"conn\.py:1: .* no abort\(\), so there is no storm; --abort-probability 0"):
        decode._take(Begin(sides.STORM))


def test_a_refused_use_of_a_stand_in_is_no_fault_of_the_trees(decode: Any) -> None:
    decode.backend.faults.append(UnforeseenUse("torch.x", "it was called", "conn.py:2"))
    with pytest.raises(UnforeseenUse, match="it was called"):
        decode._end(settled=True)


def test_an_abort_before_the_sender_is_early(decode: Any, clock: sides.Clock) -> None:
    begun(decode, sides.STORM, PlannedRoom(1, 0.0, True, True), PlannedRoom(2, 0.0))
    for room in (1, 2):
        receiver = awaiting(decode, clock, Start(room, room))
        receiver.status = Poll.Failed
        step(decode, clock)
    report = decode.report(True)
    assert (report.aborted, report.early) == ((1, 2), (1,))


def test_an_abort_that_comes_too_late_does_not_undo_success(decode: Any, clock: sides.Clock) -> None:
    begun(decode, sides.STORM, PlannedRoom(1, 0.0))
    receiver = awaiting(decode, clock)
    receiver.status = Poll.Success
    step(decode, clock)
    assert receiver.calls.count("abort") == 1
    assert decode.channel.of(Done) == [Done(1, True, True)]
    report = decode.report(True)
    assert (report.succeeded, report.aborted) == ((1,), ())


def test_an_abort_that_raises_is_an_error_of_the_scheduler(decode: Any, clock: sides.Clock) -> None:
    begun(decode, sides.STORM, PlannedRoom(1, 0.0))
    decode._take(Start(1, 0))
    receiver = decode.backend.endpoints.of[1]
    receiver.broken, receiver.status = {"abort"}, Poll.WaitingForInput
    step(decode, clock)
    step(decode, clock)
    assert "abort is broken" in decode.report(True).errors[0]


# -- rounds without aborts -------------------------------------------------------------------


def test_a_round_compares_at_the_end(decode: Any, clock: sides.Clock) -> None:
    decode.memory.wrong = {101: 8}
    begun(decode, Storm(rooms=4, chunks=2, checked=False, first=100))
    for room, place in ((1, 0), (2, 1), (3, 1)):
        awaiting(decode, clock, Start(room, place)).status = Poll.Success
        step(decode, clock)
    assert decode.memory.compared == []
    report = decode.report(True)
    # The last of each place, and what is right is the place's.
    assert decode.memory.compared == [(0, 100), (1, 101)]
    assert (report.compared, report.wrong) == (2, {3: 8})
    begun(decode)
    assert decode.report(True).compared == 0


def test_an_empty_storm_takes_no_time(decode: Any, clock: sides.Clock) -> None:
    decode.backend.threads.dead = [made.DEAD]
    report = begun(decode).report(True)
    assert (report.seconds, report.dead_threads, report.log) == (0.0, (made.DEAD,), ("warned",))
