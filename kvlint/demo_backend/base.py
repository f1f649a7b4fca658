"""Shared half of the demo's prefill-side KV-transfer backend: statuses, manager and sender.

The demo lints, explores and mends this package.  It is small, runs on the
standard library alone, and loses requests the way a production backend did.
"""

from __future__ import annotations

import queue
import threading
from typing import Protocol


class Poll:
    """How far one request's transfer is; Failed and Success end it."""

    Failed = 0
    Bootstrapping = 1
    WaitingForInput = 2
    Transferring = 3
    Success = 4


class Socket(Protocol):
    """The receiving end of a message socket."""

    def recv_multipart(self) -> list[bytes]:
        """Wait for the next message and return its frames."""


class LoopbackSocket:
    """A socket whose two ends are in one process."""

    def __init__(self) -> None:
        self._messages: queue.Queue[list[bytes]] = queue.Queue()

    def send_multipart(self, frames: list[bytes]) -> None:
        self._messages.put(frames)

    def recv_multipart(self) -> list[bytes]:
        return self._messages.get()


class TransferError(Exception):
    """A transfer failed; the text goes to the client."""


class CommonManager:
    """What every backend shares: one status per room, and where the room's pages go.

    The dicts are read and written by the scheduler, the listener and the workers.
    """

    def __init__(self, server_socket: Socket) -> None:
        self.server_socket = server_socket
        self.request_status: dict[int, int] = {}
        self.transfer_infos: dict[int, dict[str, list[int]]] = {}
        self.req_to_decode_prefix_len: dict[int, int] = {}
        self.failure_records: dict[int, str] = {}
        self.failure_lock = threading.Lock()

    def check_status(self, room: int) -> int:
        return self.request_status[room]

    def update_status(self, room: int, status: int) -> None:
        if room not in self.request_status:
            # The room was cleared: nobody is left to hear of its failure.
            if status != Poll.Failed:
                self.request_status[room] = status
        elif status == Poll.Failed:
            self.request_status[room] = Poll.Failed
        else:
            # Peers may report early, so a status never moves backwards.
            self.request_status[room] = max(self.request_status[room], status)

    def record_failure(self, room: int, reason: str) -> None:
        with self.failure_lock:
            self.failure_records[room] = reason


class CommonSender:
    """The scheduler's handle on one room."""

    def __init__(self, kv_mgr: CommonManager, room: int) -> None:
        self.kv_mgr = kv_mgr
        self.room = room
        self.kv_mgr.update_status(room, Poll.Bootstrapping)

    def poll(self) -> int:
        """The room's status; the scheduler asks once a step until it is Success or Failed."""
        return self.kv_mgr.check_status(self.room)

    def clear(self) -> None:
        """Forget the room, after its last poll."""
        self.kv_mgr.request_status.pop(self.room, None)
        self.kv_mgr.req_to_decode_prefix_len.pop(self.room, None)
        self.kv_mgr.transfer_infos.pop(self.room, None)

    def failure_exception(self) -> None:
        """Clear a failed room and raise TransferError with the recorded reason."""
        self.clear()
        with self.kv_mgr.failure_lock:
            reason = self.kv_mgr.failure_records.pop(self.room, "unknown reason")
        raise TransferError(f"room {self.room}: {reason}")
