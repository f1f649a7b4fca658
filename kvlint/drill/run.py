"""A storm as the process that drills runs it: it lets rooms in, gives them places, and asks what became of them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from kvlint.drill.messages import Begin, Begun, DecodeReport, Done, Opened, PrefillReport, Released, Settle, Start
from kvlint.drill.parent import Link, Pair, Processes
from kvlint.drill.storm import PlannedRoom, Storm, planned

#: Seconds after which a room that has not ended counts as one that nobody waits for: the next one is let in.
_PATIENCE: Final = 0.75
_PATIENCE_DURATIONS: Final = 5
#: Times of what a storm takes whose every room is stuck, and seconds on top, after which no more rooms are let in.
_LIMIT_FACTOR: Final = 1.5
_LIMIT_SECONDS: Final = 30.0
#: Seconds on top of twice what nothing must happen for.
_SETTLING_SECONDS: Final = 20.0
#: A decode side that says nothing for so long, in seconds, is not given the blame: how often is settled anew, then.
_SUSPECT_SILENCE: Final = 1.5
_SETTLES: Final = 4
_REPORT_SECONDS: Final = 30.0


_Report = TypeVar("_Report", PrefillReport, DecodeReport)


def places_for(storm: Storm) -> int:
    """How many rooms there is to be memory for.

    Those that are live, five times as many that linger on the prefill side, and one whose bytes prove nothing.
    """
    return 6 * storm.live + 1


@dataclass(frozen=True, slots=True)
class Moment:
    """How far a storm is.

    Attributes:
        started: Rooms that were let in.
        rooms: Rooms that there are.
        done: Rooms that the decode side is done with.
        what: What is going on, in words.
    """

    started: int
    rooms: int
    done: int
    what: str


@dataclass(slots=True)
class StormRun:
    """A storm over the two sides of a tree.

    A room's place is free again when the decode side is done with it and nothing of it is on its way from the prefill
    side. SGLang frees the pages of an aborted room at once; what it writes to pages that others have by then is not
    what a storm is to show.

    Args:
        processes: The drill's processes.
        pair: The tree's.
        storm: The storm.
        settle: Seconds for which nothing must happen, twice, before what is left counts as stuck.
        progress: Called as the storm goes on.
        what: What it is, in words.

    Attributes:
        not_started: Rooms that there was no time to let in, once it has run.
    """

    processes: Processes
    pair: Pair
    storm: Storm
    settle: float
    progress: Callable[[Moment], None]
    what: str
    not_started: int = 0
    _free: deque[int] = field(default_factory=deque)
    _place_of: dict[int, int] = field(default_factory=dict)
    _started: int = 0
    #: When each room was let in that somebody still waits for.
    _live: dict[int, float] = field(default_factory=dict)
    _done: set[int] = field(default_factory=set)
    _released: set[int] = field(default_factory=set)
    _held_back: dict[int, Start] = field(default_factory=dict)
    _reports: list[PrefillReport | DecodeReport] = field(default_factory=list)

    def run(self) -> tuple[PrefillReport, DecodeReport]:
        """Run it.

        Raises:
            DrillError: A side cannot go on, has ended, or is silent.
        """
        for link in self.pair.links():
            link.send(Begin(self.storm))
        for link in self.pair.links():
            self.processes.next(self.pair, link, Begun, _REPORT_SECONDS)
        self._let_in()
        self._tell("settling")
        most = _SETTLING_SECONDS + 2 * self.settle
        # The prefill side goes first, for the decode side to see all that comes.
        prefill, silent = self._settle_prefill(most)
        for _ in range(_SETTLES - 1):
            if not prefill.stuck or silent < _SUSPECT_SILENCE:
                break
            prefill, silent = self._settle_prefill(most)
        decode = self._settled(self.pair.decode, DecodeReport, Settle(min(0.2, self.settle), most))
        return prefill, decode

    def _settle_prefill(self, most: float) -> tuple[PrefillReport, float]:
        """What the prefill side reports, and how long the decode side was silent: without it nothing happens."""
        decode = self.pair.decode
        decode.longest_silence = 0.0
        report = self._settled(self.pair.prefill, PrefillReport, Settle(self.settle, most))
        return report, max(decode.longest_silence, time.monotonic() - decode.heard)

    def _settled(self, link: Link, kind: type[_Report], settle: Settle) -> _Report:
        """What a side reports once all has settled; what is told meanwhile is passed on as before.

        Raises:
            DrillError: A side cannot go on, has ended, or is silent, or the report does not come.
        """
        link.send(settle)
        seconds = settle.most + _REPORT_SECONDS
        for _ in self.processes.until(self.pair, time.monotonic() + seconds):
            self._hear()
            for report in self._reports:
                if isinstance(report, kind):
                    self._reports.remove(report)
                    return report
        return self.processes.give_up(link, f"the {link.side} side did not report within {seconds:g} s")

    def _let_in(self) -> None:
        storm = self.storm
        self._free.extend(range(places_for(storm) - 1))
        waiting = deque(planned(storm))
        patience = max(_PATIENCE, _PATIENCE_DURATIONS * storm.duration)
        longest = patience * -(-storm.rooms // storm.live)
        begin = time.monotonic()
        for _ in self.processes.until(self.pair, begin + _LIMIT_FACTOR * longest + _LIMIT_SECONDS):
            self._hear()
            now = time.monotonic()
            self._live = {room: at for room, at in self._live.items() if now - at <= patience}
            while waiting and len(self._live) < storm.live:
                self._start(waiting.popleft(), now)
            self._tell(self.what)
            if not waiting and not self._live:
                break
        self.not_started = len(waiting)

    def _start(self, plan: PlannedRoom, now: float) -> None:
        room = plan.room
        clean = bool(self._free)
        # Where stuck rooms hold every place, the rooms that follow share the last one, and are not compared.
        place = self._free.popleft() if clean else places_for(self.storm) - 1
        if clean:
            self._place_of[room] = place
        self._started += 1
        self._live[room] = now
        start = Start(room, place, clean)
        self.pair.decode.send(start)
        if plan.is_early:
            self._held_back[room] = start
        else:
            self.pair.prefill.send(start)

    def _hear(self) -> None:
        for link in self.pair.links():
            while link.told:
                match link.told.popleft():
                    case Done(room=room):
                        self._done.add(room)
                        self._live.pop(room, None)
                        if room in self._held_back:
                            # It was given up, and reaches the prefill side only now.
                            self.pair.prefill.send(self._held_back.pop(room))
                    case Opened(room=room) as opened:
                        self.pair.decode.send(opened)
                        continue
                    case Released(room=room):
                        self._released.add(room)
                    case PrefillReport() | DecodeReport() as report:
                        self._reports.append(report)
                        continue
                    case _:
                        continue
                if room in self._done and room in self._released and room in self._place_of:
                    self._free.append(self._place_of.pop(room))

    def _tell(self, what: str) -> None:
        self.progress(Moment(self._started, self.storm.rooms, len(self._done), what))
