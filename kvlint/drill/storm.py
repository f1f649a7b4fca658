"""What a storm is: its measures, and the plan of its rooms, which is a pure function of them.

Both sides and the process that starts them make the plan for themselves; nobody has to be told.
"""

from __future__ import annotations

import random
from typing import Final

import msgspec

#: Of the aborts, how many come before the prefill side has made the room's sender.
EARLY: Final = 0.1
#: Steps of the scheduler from the metadata to the first abort that is not early: the sender exists by then.
_FIRST_STEPS = 3


class Storm(msgspec.Struct, frozen=True):
    """One storm.

    Attributes:
        seed: What the plan follows from.
        rooms: How many there are.
        live: How many the decode side works on at a time.
        chunks: Chunks of a room.
        chunk_bytes: Bytes of a chunk, over all layers, keys and values.
        step: Seconds that a scheduler sleeps after each of its steps.
        abort_probability: How likely a room is given up, from 0 to 1.
        transfer: Seconds that a transfer takes at least.
        early_reaches_prefill: Whether an abort that comes before the sender exists is the prefill side's to know, too,
            as it is when a router passes on that a client is gone. Otherwise the decode side alone has given up.
        first: The number of the first room.
        checked: Whether every room's bytes are its own and are compared when it has succeeded. Else the bytes are the
            place's, and are compared at the end: nothing but the transfer takes time.
    """

    seed: int = 1
    rooms: int = 100
    live: int = 4
    chunks: int = 8
    chunk_bytes: int = 2 << 20
    step: float = 0.010
    abort_probability: float = 0.6
    transfer: float = 0.0
    early_reaches_prefill: bool = True
    first: int = 1
    checked: bool = True

    @property
    def sending(self) -> float:
        """Seconds from a room's metadata to its last chunk, about: a step for each."""
        return self.chunks * (self.step + 0.001 + self.transfer)

    @property
    def duration(self) -> float:
        """Seconds that a room takes about, if nothing is in its way."""
        return self.sending + 3 * (self.step + 0.001)

    @property
    def room_bytes(self) -> int:
        """Bytes of a room."""
        return self.chunks * self.chunk_bytes


class PlannedRoom(msgspec.Struct, frozen=True):
    """What is to happen to a room.

    Attributes:
        room: Its number.
        abort_after: Seconds from the decode side's metadata to its abort; None if it is not to be given up.
        is_early: Whether that comes before the prefill side makes its sender: the request reaches it only then.
        tells_prefill: Whether the prefill side's scheduler is told of the abort, and gives up the sender at once.
    """

    room: int
    abort_after: float | None
    is_early: bool = False
    tells_prefill: bool = False


def planned(storm: Storm) -> tuple[PlannedRoom, ...]:
    """The plan of a storm's rooms, in the order in which they start."""
    # Only random() is used: what else a generator makes of it may differ from one Python to the next.
    draw = random.Random(storm.seed).random
    return tuple(_room(storm, room, (draw(), draw(), draw())) for room in range(storm.first, storm.first + storm.rooms))


def _room(storm: Storm, room: int, drawn: tuple[float, float, float]) -> PlannedRoom:
    aborted, early, when = drawn
    if aborted >= storm.abort_probability:
        return PlannedRoom(room, None)
    if early < EARLY:
        return PlannedRoom(room, when * storm.sending, True, storm.early_reaches_prefill)
    first = _FIRST_STEPS * (storm.step + 0.001)
    return PlannedRoom(room, first + when * max(0.0, storm.sending - first))


def permutation(room: int, pages: int) -> list[int]:
    """Where the decode side wants the pages of a room: a misdirected page would go unnoticed if it were in order."""
    draw = random.Random(room).random
    return sorted(range(pages), key=lambda _: draw())
