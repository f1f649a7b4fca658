"""How rooms are let into a storm, over processes that are played."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from kvlint.drill.messages import Begin, Begun, Done, Opened, Released, Settle, Start, StuckRoom
from kvlint.drill.run import Moment, StormRun, places_for
from kvlint.drill.storm import Storm, planned

from . import made, sides

STORM = Storm(rooms=5, live=2, chunks=1)


class Link:
    def __init__(self, name: str, clock: sides.Clock) -> None:
        self.side = name
        self.clock = clock
        self.silences: list[float] = []
        self.stuck_reports = 0
        self.longest_silence = 0.0
        self.sent: list[Any] = []
        self.told: deque[Any] = deque()

    @property
    def heard(self) -> float:
        return self.clock.now - (self.silences.pop() if self.silences else 0.0)

    def send(self, command: Any) -> None:
        self.sent.append(command)
        if isinstance(command, Settle):
            stuck = (StuckRoom(1, "Transferring", False, "inflight"),) if self.stuck_reports else ()
            self.stuck_reports = max(0, self.stuck_reports - 1)
            prefill = replace(made.prefill_report(), stuck=stuck)
            self.told.append(prefill if self.side == "prefill" else made.decode_report())

    def started(self) -> list[Start]:
        return [command for command in self.sent if isinstance(command, Start)]


class Played:
    """In place of Processes: each turn of the loop takes a tenth of a second, and the test says what happens in it."""

    def __init__(self, clock: sides.Clock, turn: Callable[[Played], None]) -> None:
        self.clock = clock
        self.turn = turn
        self.turns = 0
        self.prefill, self.decode = Link("prefill", clock), Link("decode", clock)
        self.awaited: list[str] = []

    def next(self, pair: Any, link: Link, kind: Any, seconds: float) -> Any:
        self.awaited.append(f"{link.side} {kind.__name__}")
        return {Begun: Begun()}[kind]

    def until(self, pair: Any, end: float) -> Iterator[None]:
        while self.clock.now < end:
            self.turns += 1
            self.turn(self)
            yield
            self.clock.now += 0.1

    def ends(self, room: int, *, released: bool = True) -> None:
        self.decode.told.append(Done(room, True, False))
        if released:
            self.prefill.told.append(Released(room))


def run(clock: sides.Clock, turn: Callable[[Played], None], storm: Storm = STORM) -> tuple[Played, list[Moment]]:
    played = Played(clock, turn)
    moments: list[Moment] = []
    pair = SimpleNamespace(prefill=played.prefill, decode=played.decode, links=lambda: (played.prefill, played.decode))
    found = StormRun(played, pair, storm, 1.0, moments.append, "storm").run()  # type: ignore[arg-type]
    assert found == (made.prefill_report(), made.decode_report())
    return played, moments


def newest_end(played: Played) -> None:
    """Whatever has been let in and not ended yet ends."""
    known = getattr(played, "known", 0)
    for start in played.decode.started()[known:]:
        played.ends(start.room)
    played.known = len(played.decode.started())  # type: ignore[attr-defined]


def test_a_storm_in_order(clock: sides.Clock) -> None:
    played, moments = run(clock, newest_end)
    assert played.prefill.sent[0] == played.decode.sent[0] == Begin(STORM)
    assert played.prefill.started() == played.decode.started()
    assert [start.room for start in played.decode.started()] == [1, 2, 3, 4, 5]
    assert played.prefill.sent[-1] == Settle(1.0, 22.0)
    assert played.decode.sent[-1] == Settle(0.2, 22.0)
    assert played.awaited == ["prefill Begun", "decode Begun"]
    assert moments[-1] == Moment(5, 5, 5, "settling")
    assert {moment.what for moment in moments[:-1]} == {"storm"}


def test_a_decode_side_without_a_processor_is_not_blamed(clock: sides.Clock) -> None:
    """As long as it stands still nothing can happen to a room, and nothing follows from that."""
    silent = [5.0, 2.0]

    def turn(played: Played) -> None:
        newest_end(played)
        if played.turns == 1:
            played.decode.silences = silent
            played.prefill.stuck_reports = 2

    played, _ = run(clock, turn)
    assert [command for command in played.prefill.sent if isinstance(command, Settle)] == [Settle(1.0, 22.0)] * 3
    assert silent == []


def test_an_early_room_reaches_the_prefill_side_when_it_was_given_up(clock: sides.Clock) -> None:
    storm = Storm(rooms=40, live=2, chunks=1, abort_probability=1.0)
    early = [entry.room for entry in planned(storm) if entry.is_early]
    assert early
    before: list[int] = []

    def turn(played: Played) -> None:
        there = {start.room for start in played.prefill.started()}
        before.extend(start.room for start in played.decode.started() if start.room not in there)
        newest_end(played)

    played, _ = run(clock, turn, storm)
    assert set(before) >= set(early)
    assert {start.room for start in played.prefill.started()} == set(range(1, 41))


def test_a_sender_that_was_made_is_told_of(clock: sides.Clock) -> None:
    def turn(played: Played) -> None:
        if played.turns == 2:
            played.prefill.told.append(Opened(1))
        newest_end(played)

    played, _ = run(clock, turn)
    assert played.decode.sent.count(Opened(1)) == 1


def test_rooms_for_which_there_was_no_time_are_counted(clock: sides.Clock) -> None:
    def turn(played: Played) -> None:
        # So little time the machine has for this.
        played.clock.now += 5.0

    played = Played(clock, turn)
    pair = SimpleNamespace(prefill=played.prefill, decode=played.decode, links=lambda: (played.prefill, played.decode))
    storm = Storm(rooms=400, live=1, chunks=1)
    storm_run = StormRun(played, pair, storm, 1.0, lambda _: None, "storm")  # type: ignore[arg-type]
    storm_run.run()
    assert storm_run.not_started == 400 - len(played.decode.started()) > 0


def test_no_more_are_let_in_than_may_live(clock: sides.Clock) -> None:
    live: list[int] = []

    def turn(played: Played) -> None:
        live.append(len(played.decode.started()) - played.turns // 3)
        if played.turns % 3 == 0:
            played.ends(played.turns // 3)

    played, _ = run(clock, turn)
    assert max(live) <= STORM.live
    assert len(played.decode.started()) == 5


def test_a_place_is_free_when_both_sides_are_done_with_it(clock: sides.Clock) -> None:
    places: dict[int, int] = {}

    def turn(played: Played) -> None:
        started = played.decode.started()
        places.update({start.room: start.place for start in started})
        if played.turns > 1 and started:
            room = started[-1].room
            # Odd rooms are never released.
            for ended in (room - 1, room):
                played.ends(ended, released=ended % 2 == 0)

    played, _ = run(clock, turn, Storm(rooms=8, live=2, chunks=1))
    assert places_for(STORM) == 13
    starts = {start.room: start for start in played.decode.started()}
    held = [starts[room].place for room in (1, 3, 5, 7) if starts[room].checked]
    assert len(set(held)) == len(held)
    assert all(starts[room].place not in {starts[odd].place for odd in (1, 3, 5, 7) if odd < room} for room in (6, 8))


@pytest.mark.parametrize("order", [1, -1])
def test_it_does_not_matter_who_tells_first(clock: sides.Clock, order: int) -> None:
    def turn(played: Played) -> None:
        started = played.decode.started()
        steps = [lambda room: played.decode.told.append(Done(room, False, True))]
        steps.append(lambda room: played.prefill.told.append(Released(room)))
        for start in started:
            age = played.turns - start.room * 2
            if age in (2, 3):
                steps[::order][age - 2](start.room)

    storm = Storm(rooms=20, live=1, chunks=1)
    played, _ = run(clock, turn, storm)
    assert len(played.decode.started()) == 20
    assert all(start.checked for start in played.decode.started())


def test_rooms_that_are_stuck_are_passed_by(clock: sides.Clock) -> None:
    played, moments = run(clock, lambda played: None, Storm(rooms=15, live=2, chunks=1))
    starts = played.decode.started()
    assert [start.room for start in starts] == list(range(1, 16))
    # Each is waited for as long as patience lasts; then the places are all held, and the last is shared.
    assert [start.place for start in starts] == [*range(13), 12, 12]
    assert [start.checked for start in starts] == [True] * 12 + [False] * 3
    assert moments[-1].done == 0


def test_time_is_up_in_the_end(clock: sides.Clock) -> None:
    begin = clock.now

    def turn(played: Played) -> None:
        played.clock.now += 5.0

    _, moments = run(clock, turn, Storm(rooms=1000, live=1, chunks=1))
    assert clock.now - begin == pytest.approx(1.5 * 0.75 * 1000 + 30, abs=21.0)
    assert 0 < moments[-1].started < 1000


def test_what_belongs_to_another_time_is_passed_over(clock: sides.Clock) -> None:
    def turn(played: Played) -> None:
        played.decode.told.append(Begun())
        played.prefill.told.append(Released(99))
        played.decode.told.append(Done(1, True, False))
        newest_end(played)

    played, moments = run(clock, turn)
    assert moments[-1].done == 5
    assert not played.decode.told
