"""How rooms are let into a storm, over processes that are played."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from kvlint.drill.messages import Begin, Begun, DecodeReport, Done, PrefillReport, Released, Settle, Start
from kvlint.drill.run import Moment, StormRun, places_for
from kvlint.drill.storm import Storm

from . import made, sides

STORM = Storm(rooms=5, live=2, chunks=1)


class Link:
    def __init__(self, name: str) -> None:
        self.side = name
        self.sent: list[Any] = []
        self.told: deque[Any] = deque()

    def send(self, command: Any) -> None:
        self.sent.append(command)

    def started(self) -> list[Start]:
        return [command for command in self.sent if isinstance(command, Start)]


class Played:
    """In place of Processes: each turn of the loop takes a tenth of a second, and the test says what happens in it."""

    def __init__(self, clock: sides.Clock, turn: Callable[[Played], None]) -> None:
        self.clock = clock
        self.turn = turn
        self.turns = 0
        self.prefill, self.decode = Link("prefill"), Link("decode")
        self.awaited: list[str] = []

    def next(self, pair: Any, link: Link, kind: Any, seconds: float) -> Any:
        self.awaited.append(f"{link.side} {kind.__name__}")
        return {Begun: Begun(), PrefillReport: made.prefill_report(), DecodeReport: made.decode_report()}[kind]

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
    assert played.prefill.sent[-1] == Settle(1.0, 20.0)
    assert played.decode.sent[-1] == Settle(0.2, 20.0)
    # The decode side sees all that comes only if the prefill side has settled.
    assert played.awaited == ["prefill Begun", "decode Begun", "prefill PrefillReport", "decode DecodeReport"]
    assert moments[-1] == Moment(5, 5, 5, "settling")
    assert {moment.what for moment in moments[:-1]} == {"storm"}


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
    assert places_for(STORM) == 7
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
    played, moments = run(clock, lambda played: None, Storm(rooms=9, live=2, chunks=1))
    starts = played.decode.started()
    assert [start.room for start in starts] == list(range(1, 10))
    # Each is waited for as long as patience lasts; then the places are all held, and the last is shared.
    assert [start.place for start in starts] == [0, 1, 2, 3, 4, 5, 6, 6, 6]
    assert [start.checked for start in starts] == [True] * 6 + [False] * 3
    assert moments[-1].done == 0


def test_time_is_up_in_the_end(clock: sides.Clock) -> None:
    begin = clock.now
    storm = Storm(rooms=1000, live=1, chunks=1)
    _, moments = run(clock, lambda played: None, storm)
    assert clock.now - begin == pytest.approx(20 * storm.duration * 1000 + 30, abs=0.2)
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
