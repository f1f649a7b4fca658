"""Opening rooms before threads race: what happens to every room in the same order, done once."""

from __future__ import annotations

import sys
from contextlib import suppress
from types import CodeType
from typing import Any

from kvlint.explore.backend import Backend, Frames, Sender
from kvlint.explore.program_frames import program_frames


class Unsupported(Exception):
    """The tree cannot be explored; the message says why."""


class _NoMessage(BaseException):
    """Ends the listener when everything was handed to it."""


_MOST_CALLS = 100


def hand_over(backend: Backend, messages: list[Frames]) -> None:
    """Let the backend's listener handle ``messages``, one after the other, and then end it.

    In every run it starts anew, so what it keeps in local variables from one
    message to the next would be lost.

    Raises:
        Unsupported: It keeps something, or cannot be ended.
        Exception: What the listener raised.
    """
    left = list(messages)
    stands: list[dict[CodeType, dict[str, Any]]] = []
    calls = 0

    def receive() -> Frames:
        nonlocal calls
        calls += 1
        if calls > len(messages) + _MOST_CALLS:
            raise Unsupported("the listener catches BaseException and goes on, so that it cannot be ended")
        stands.append(_locals())
        if not left:
            raise _NoMessage
        return left.pop(0)

    backend.hooks.receive = receive
    listener = backend.bodies()[-1][1]
    with suppress(_NoMessage):
        listener()
    for code, values in stands[0].items():
        for name, value in values.items():
            if stands[-1].get(code, {}).get(name, value) is not value:
                raise Unsupported(f"the listener keeps {name} from one message to the next ({code.co_qualname})")


def open_room(backend: Backend, room: int, chunks: int, messages: list[Frames]) -> Sender:
    """Make the sender, hand over its peer's messages, and queue its chunks.

    Raises:
        Unsupported: The room does not come to wait for its input.
    """
    sender: Sender = backend.make_sender(room)
    hand_over(backend, messages)
    status = sender.poll()
    if status != backend.poll.WaitingForInput:
        raise Unsupported(f"a room has the status {status} after its metadata arrived, not WaitingForInput")
    backend.begin(sender)
    for number in range(chunks):
        backend.send(sender, number, number + 1 == chunks)
    return sender


def _locals() -> dict[CodeType, dict[str, Any]]:
    return {frame.f_code: dict(frame.f_locals) for frame in program_frames(sys._getframe(2))}
