"""The situations that are explored: how many rooms, what arrives from the decode side, what the scheduler does."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What a message from the decode side is about."""

    REGISTRATION = "registration"
    METADATA = "metadata"
    ABORT = "abort"


@dataclass(frozen=True, slots=True)
class Message:
    """A message of the decode side; it is sent when ``life`` lives of its room are over."""

    kind: Kind
    room: int
    life: int = 0


@dataclass(frozen=True, slots=True)
class Scenario:
    """One situation.

    Attributes:
        name: As on the command line.
        summary: One sentence for people.
        rooms: The rooms, in the order in which the scheduler takes them up.
        orders: The messages that arrive while threads race, in every order in which they can.
        opened: Whether the rooms are open and their chunks queued before threads race.
        lives: How often each room id is used.
        chunks: Chunks per room.
        transfers: What a transfer can end in.
        sender_aborts: Whether the scheduler aborts each room after its chunks are queued.
    """

    name: str
    summary: str
    rooms: tuple[int, ...] = (7,)
    orders: tuple[tuple[Message, ...], ...] = ((),)
    opened: bool = True
    lives: int = 1
    chunks: int = 2
    transfers: tuple[str, ...] = ("DONE",)
    sender_aborts: bool = False

    @property
    def needs_scheduler(self) -> bool:
        """Whether there is nothing to see without the scheduler's part."""
        return self.sender_aborts or self.lives > 1 or not self.opened


_ABORT = Message(Kind.ABORT, 7)
_METADATA = Message(Kind.METADATA, 7)

SCENARIOS = (
    Scenario("abort", "one room, two chunks, and an ABORT from the decode side", orders=((_ABORT,),)),
    Scenario(
        "abort-before-init",
        "metadata and ABORT arrive in either order, before or after the sender exists",
        orders=((_METADATA, _ABORT), (_ABORT, _METADATA)),
        opened=False,
        chunks=1,
    ),
    Scenario("scheduler-abort", "the scheduler aborts a room whose chunks are queued", sender_aborts=True),
    Scenario("transfer-error", "every transfer can end in an error", transfers=("DONE", "ERR")),
    Scenario(
        "room-reuse",
        "the room's id comes back after the room was aborted and cleared",
        orders=((_ABORT, Message(Kind.METADATA, 7, life=1)),),
        lives=2,
        chunks=1,
    ),
    Scenario("two-rooms", "two rooms on one worker, one of them aborted", rooms=(7, 8), orders=((_ABORT,),), chunks=1),
)


def scenario(name: str) -> Scenario:
    """The scenario called ``name``.

    Raises:
        KeyError: There is none.
    """
    return {known.name: known for known in SCENARIOS}[name]
