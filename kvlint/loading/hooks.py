"""Where the stand-ins ask, and tell, whoever runs the backend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kvlint.loading.captured import CapturedThread
from kvlint.loading.errors import refuse

#: The parts of one ZMQ message.
Frame = list[bytes]


@dataclass(slots=True, eq=False)
class Transfer:
    """An RDMA write of which nothing is written.

    Attributes:
        number: The how-manieth of its agent, from 1.
        operation: What NIXL is asked to do: `WRITE`.
        peer: The agent of the decode side, or "" where NIXL is not told (prepared descriptors).
        notification: What the decode side is told when it is done.
        posted: Whether transfer() was called.
    """

    number: int
    operation: str
    peer: str
    notification: bytes
    posted: bool = False


def _no_receive() -> Frame:
    refuse("zmq.Socket.recv_multipart", "no hook says what the listener receives")


def _sent(endpoint: str, frame: Frame) -> None: ...


def _done(transfer: Transfer) -> str:  # noqa: ARG001
    return "DONE"


def _posted(transfer: Transfer) -> None: ...


def _started(thread: CapturedThread) -> None: ...


@dataclass(slots=True, eq=False)
class Hooks:
    """What the stand-ins call. Each may be set at any time, and may raise.

    Attributes:
        receive: The next frame for the manager's listener.
        sent: A frame that the prefill side sends, with the endpoint: from release 0.5.20 on the room's end
            (`KV_STATUS`), and where pages are held back until it comes, `ABORT_ACK`.
        transfer_state: What NIXL answers to check_xfer_state(): "DONE", "PROC" or "ERR".
        posted: A transfer is posted to NIXL.
        started: The real code starts a thread, after the manager was built.
    """

    receive: Callable[[], Frame] = _no_receive
    sent: Callable[[str, Frame], None] = _sent
    transfer_state: Callable[[Transfer], str] = _done
    posted: Callable[[Transfer], None] = _posted
    started: Callable[[CapturedThread], None] = _started
