"""What a drill finds out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

import msgspec

from kvlint.drill.messages import DecodeReport, Flip, PrefillReport, Ready, StuckRoom
from kvlint.drill.statistics import Interval
from kvlint.drill.storm import Storm
from kvlint.drill.threads import DeadThread


class Ends(msgspec.Struct, frozen=True):
    """How rooms ended for the prefill side's scheduler, in rooms.

    Attributes:
        succeeded: In Success.
        failed: In Failed.
        pinned: In no way: nothing happened to them any more, and no thread had anything to do.
    """

    succeeded: int
    failed: int
    pinned: int


class Integrity(msgspec.Struct, frozen=True):
    """What became of bytes.

    Attributes:
        compared: Rooms whose bytes were all compared, the metadata's included.
        not_compared: Rooms that succeeded and whose memory was another's, too, since rooms that linger held the rest.
        wrong: Wrong bytes of each room that has some.
    """

    compared: int
    not_compared: int
    wrong: dict[int, int]


class PeakMemory(msgspec.Struct, frozen=True):
    """The most memory that each process has had, in bytes; one number twice if there is but one process."""

    prefill: int
    decode: int


class StormResult(msgspec.Struct, frozen=True):
    """What a storm did to a tree.

    Attributes:
        storm: The storm.
        aborted: The ends of rooms that were given up.
        not_aborted: The ends of the others.
        early: Rooms that were given up before the prefill side had made their sender.
        not_started: Rooms that there was no time for: those before them took too long.
        pinned: The rooms that ended in no way.
        settled: Whether all stood still in the end; if not, a room that counts as pinned may have been slow.
        flips: What was written over Failed, and when it was last so, in order.
        zombies: Rooms that the scheduler was done with and that are in the status table again, with their status.
        orphan_records: Rooms that it was done with and of which a failure record is kept.
        orphan_exceptions: The same, of exceptions.
        orphan_metadata: The same, of metadata.
        dead_threads: Threads that ended while they were needed.
        errors: What the schedulers' calls raised, with tracebacks. It would have ended a scheduler.
        integrity: What became of bytes.
        decode_waiting: Rooms that the decode side still waits for.
        transfers: Transfers that were posted to NIXL, since the process began.
        log: The last warnings and errors that the tree has logged.
        peak_memory: Of the processes.
    """

    storm: Storm
    aborted: Ends
    not_aborted: Ends
    early: int
    not_started: int
    pinned: tuple[StuckRoom, ...]
    settled: bool
    flips: tuple[Flip, ...]
    zombies: dict[int, str]
    orphan_records: tuple[int, ...]
    orphan_exceptions: tuple[int, ...]
    orphan_metadata: tuple[int, ...]
    dead_threads: tuple[DeadThread, ...]
    errors: tuple[str, ...]
    integrity: Integrity
    decode_waiting: int
    transfers: int
    log: tuple[str, ...]
    peak_memory: PeakMemory

    def faults(self) -> list[str]:
        """What is wrong, in words; nothing in a storm that a backend withstands."""
        wrong = self.integrity.wrong
        pinned = "pinned" if self.settled else "not at an end when the time was up"
        found = {
            f"{_rooms(len(self.pinned))} {pinned}": self.pinned,
            f"{_rooms(self.not_started)} not even let in": self.not_started,
            f"{_many(len(self.dead_threads), 'dead thread')}": self.dead_threads,
            f"{_many(len(self.zombies), 'zombie room')}": self.zombies,
            f"{_rooms(len(wrong))} with {_many(sum(wrong.values()), 'wrong byte')}": wrong,
            f"{_many(len(self.errors), 'error')} in a scheduler": self.errors,
            f"{_rooms(self.not_aborted.failed)} failed though nobody gave up": self.not_aborted.failed,
            f"the decode side waits for {_rooms(self.decode_waiting)}": self.decode_waiting,
        }
        return [words for words, there in found.items() if there]


def _rooms(count: int) -> str:
    return _many(count, "room")


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


class Throughput(msgspec.Struct, frozen=True):
    """How fast pages moved while nobody gave up.

    Attributes:
        storm: The measures of a round; nobody gives up, and a scheduler's step is short.
        seconds: Each round's, from the first room's start to the last one's success.
        failed: Rooms that did not succeed, in all rounds: a round with one has no time.
        wrong_bytes: Wrong bytes, in all rounds.
    """

    storm: Storm
    seconds: tuple[float, ...]
    failed: int
    wrong_bytes: int

    def gigabytes_per_second(self) -> list[float]:
        """10⁹ bytes per second, of each round."""
        return [self.storm.rooms * self.storm.room_bytes / 1e9 / taken for taken in self.seconds]

    def rooms_per_second(self) -> list[float]:
        """Of each round."""
        return [self.storm.rooms / taken for taken in self.seconds]

    def faults(self) -> list[str]:
        """What is wrong, in words."""
        found = {
            f"{_rooms(self.failed)} without an abort did not succeed": self.failed,
            f"{_many(self.wrong_bytes, 'wrong byte')} without an abort": self.wrong_bytes,
        }
        return [words for words, there in found.items() if there]


@dataclass(frozen=True, slots=True)
class Spread:
    """The least, the middle and the greatest of several numbers."""

    least: float
    middle: float
    greatest: float


def spread(numbers: Sequence[float]) -> Spread:
    """The spread of some numbers; there has to be one."""
    return Spread(min(numbers), median(numbers), max(numbers))


class TreeResult(msgspec.Struct, frozen=True):
    """What is known of a tree.

    Attributes:
        root: As it was given.
        ready: What its prefill side has told of itself.
        storm: What the storm did; None if it was not run.
        throughput: How fast pages moved; None if that was not measured.
    """

    root: str
    ready: Ready
    storm: StormResult | None
    throughput: Throughput | None

    def faults(self) -> list[str]:
        """What is wrong, in words."""
        return [fault for part in (self.storm, self.throughput) if part is not None for fault in part.faults()]


class Comparison(msgspec.Struct, frozen=True):
    """How fast the second tree is, as a part of the first.

    Attributes:
        ratios: Of each pair of rounds, one right after the other: bytes per second of the second tree by the first's.
        median: Their median.
        interval: Where the true median is.
    """

    ratios: tuple[float, ...]
    median: float
    interval: Interval | None


class DrillResult(msgspec.Struct, frozen=True):
    """All of a drill.

    Attributes:
        device: What was asked for: `cpu`, `cuda` or `auto`.
        processes: Of a tree: 2, or 1.
        trees: The tree, and the one that it was compared with.
        comparison: The comparison, if there are two.
    """

    device: str
    processes: int
    trees: tuple[TreeResult, ...]
    comparison: Comparison | None

    @property
    def has_faults(self) -> bool:
        """Whether there is anything wrong with a tree."""
        return any(tree.faults() for tree in self.trees)


def storm_result(storm: Storm, prefill: PrefillReport, decode: DecodeReport, not_started: int = 0) -> StormResult:
    """What the two sides have told of a storm."""
    aborted = set(decode.aborted)
    stuck = [entry.room for entry in prefill.stuck]

    def ends(which: bool) -> Ends:
        def count(rooms: Iterable[int]) -> int:
            return sum((room in aborted) is which for room in rooms)

        return Ends(count(prefill.succeeded), count(prefill.failed), count(stuck))

    return StormResult(
        storm=storm,
        aborted=ends(True),
        not_aborted=ends(False),
        early=len(decode.early),
        not_started=not_started,
        pinned=prefill.stuck,
        settled=prefill.settled,
        flips=prefill.flips,
        zombies=prefill.zombies,
        orphan_records=prefill.orphan_records,
        orphan_exceptions=prefill.orphan_exceptions,
        orphan_metadata=prefill.orphan_metadata,
        dead_threads=(*prefill.dead_threads, *decode.dead_threads),
        errors=(*prefill.errors, *decode.errors),
        integrity=Integrity(decode.compared, len(decode.succeeded) - decode.compared, decode.wrong),
        decode_waiting=len(decode.waiting),
        transfers=prefill.transfers,
        log=(*prefill.log, *decode.log),
        peak_memory=PeakMemory(prefill.peak_bytes, decode.peak_bytes),
    )


def counted_statuses(statuses: Iterable[str]) -> dict[str, int]:
    """How often each occurs, the most frequent first."""
    return dict(Counter(statuses).most_common())
