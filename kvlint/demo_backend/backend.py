"""The demo's RDMA backend: a worker that writes KV pages and a listener for the decode side."""

from __future__ import annotations

import logging
import queue
import threading
import time
from dataclasses import dataclass
from typing import Protocol

from .base import CommonManager, CommonSender, Poll, Socket

logger = logging.getLogger(__name__)

ABORT = b"ABORT"
PEER = b"PEER"


class Engine(Protocol):
    """The network card: writes are posted, then polled."""

    def post_write(self, peer: str, pages: list[int], addresses: list[int]) -> int: ...

    def is_done(self, handle: int) -> bool: ...


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a prompt whose KV pages are ready; long prompts are prefilled in several."""

    room: int
    pages: list[int]
    is_last: bool


class RdmaManager(CommonManager):
    """One worker thread and one listener thread over the shared dicts."""

    def __init__(self, server_socket: Socket, engine: Engine) -> None:
        super().__init__(server_socket)
        self.engine = engine
        self.chunks: queue.Queue[Chunk] = queue.Queue()

    def start(self) -> None:
        threading.Thread(target=self.transfer_worker, args=(self.chunks,), daemon=True).start()
        threading.Thread(target=self.bootstrap_listener, daemon=True).start()

    def add_transfer_request(self, chunk: Chunk) -> None:
        self.chunks.put(chunk)

    def transfer_worker(self, chunks: queue.Queue[Chunk]) -> None:
        while True:
            chunk = chunks.get()
            room = chunk.room
            try:
                # An aborted room has no peers any more, so there is nothing to write to.
                if room not in self.transfer_infos or self.check_status(room) == Poll.Failed:
                    logger.debug("room %s is gone, its chunk is dropped", room)
                    continue

                self.update_status(room, Poll.Transferring)
                peers = list(self.transfer_infos[room].items())
                handles = [self.engine.post_write(peer, chunk.pages, to) for peer, to in peers]
                # Milliseconds pass here, and aborts arrive.
                while not all(self.engine.is_done(handle) for handle in handles):
                    time.sleep(0)

                if chunk.is_last:
                    self.update_status(room, Poll.Success)
                    self.transfer_infos.pop(room, None)
                    self.req_to_decode_prefix_len.pop(room, None)
                else:
                    self.update_status(room, Poll.Transferring)
            except Exception as problem:
                logger.exception("room %s: the transfer broke off", room)
                self.record_failure(room, str(problem))
                self.update_status(room, Poll.Failed)

    def bootstrap_listener(self) -> None:
        while True:
            frames = self.server_socket.recv_multipart()
            if frames[0] == ABORT:
                room = int(frames[1])
                if room in self.request_status and self.check_status(room) != Poll.Success:
                    self.record_failure(room, "aborted by the decode side")
                    self.update_status(room, Poll.Failed)
                # The decode side frees its pages: forget where they were.
                self.transfer_infos.pop(room, None)
                self.req_to_decode_prefix_len.pop(room, None)
                continue
            if frames[0] != PEER:
                logger.warning("foreign message %r is ignored", frames[0])
                continue
            self.add_peer(int(frames[1]), frames[2].decode(), frames[3:])

    def add_peer(self, room: int, peer: str, numbers: list[bytes]) -> None:
        """Note where one decode rank wants the room's pages; the last rank opens the room."""
        needed, prefix_len, *addresses = (int(number) for number in numbers)
        infos = self.transfer_infos.setdefault(room, {})
        infos[peer] = addresses
        if len(infos) == needed:
            self.req_to_decode_prefix_len[room] = prefix_len
            self.update_status(room, Poll.WaitingForInput)


class RdmaSender(CommonSender):
    """Sends one room's chunks; the scheduler owns it and calls it from its own thread."""

    kv_mgr: RdmaManager

    def send(self, pages: list[int], *, is_last: bool) -> None:
        """Queue a chunk, less the pages that the decode side says it has already."""
        cached = self.kv_mgr.req_to_decode_prefix_len.pop(self.room, 0)
        self.kv_mgr.add_transfer_request(Chunk(self.room, pages[cached:], is_last))
