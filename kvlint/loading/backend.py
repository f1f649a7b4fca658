"""A loaded backend, as whoever explores it sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

from kvlint.loading.captured import CapturedThread
from kvlint.loading.errors import UnforeseenUse
from kvlint.loading.frames import BOOTSTRAP_ADDRESS, DecodeSide
from kvlint.loading.hooks import Frame, Hooks
from kvlint.loading.memory import Pool, page_indices
from kvlint.loading.senders import Senders
from kvlint.loading.tree import Tree


@dataclass(frozen=True, eq=False)
class Backend:
    """The real backend of a tree, built as the release builds it, with nothing running.

    What the release's scheduler does with a sender (senders has the calls), as far as rooms are concerned
    (sglang/srt/disaggregation/prefill.py and managers/scheduler.py, 0.5.14 and 0.5.23 read side by side):

    * `PrefillBootstrapQueue.create_sender()` makes it: make_sender().
    * `pop_bootstrapped()` polls it every step. WaitingForInput: `finalize_bootstrap()`, which is begin().
      Bootstrapping: polled again (or prefilled before that, where the server is told to be optimistic). Failed:
      `handle_bootstrap_failure()`, which calls `failure_exception()` and catches what it raises. Anything else raises
      RuntimeError.
    * `send_kv_chunk()` sends each chunk: send().
    * `process_disagg_prefill_inflight_queue()` polls it every step after the last chunk was sent, without a deadline.
      WaitingForInput and Transferring: polled again. Success: `clear()`. Failed: `failure_exception()`, whose text
      goes to the client; it calls `clear()` itself. Bootstrapping: 0.5.14 warns once and polls again, 0.5.23 raises
      RuntimeError.
    * `abort_request()` calls `sender.abort()` for a request in the bootstrap queue or the inflight queue. The request
      stays in its queue and is polled as before, so `failure_exception()` follows. One that is between the queues is
      aborted too; 0.5.23 then drops it and polls no more.

    Attributes:
        tree: Where it was loaded from.
        version: The tree's release, or None.
        digest: SHA-256 of the modules that were loaded.
        loaded: The tree's modules that were really loaded, by name.
        stubbed: What is not real, in words.
        hooks: What the stand-ins call; set them at any time.
        faults: The uses that stand-ins refused so far, none in a backend that works. Each was raised as UnforeseenUse,
            and stands here too, for code that catches everything.
        manager: The `NixlKVManager` in PREFILL mode.
        poll: The class `KVPoll`.
        workers: The transfer workers that the manager started: none in releases that transfer on the scheduler's
            thread (0.5.10 and before).
        listener: The bootstrap listener.
        others: What else the manager started: it is neither.
        threads: All threads that were started, the decode side's too, and those started later.
        sender_class: The class `NixlKVSender`.
        no_state: What the last chunk of a model without state has for its indices.
        decode: The decode side.
        memory: What the managers' addresses lead to, kept from being freed.
    """

    tree: Tree
    version: str | None
    digest: str
    loaded: Mapping[str, ModuleType]
    stubbed: tuple[str, ...]
    hooks: Hooks
    faults: list[UnforeseenUse]
    manager: Any
    poll: Any
    workers: tuple[CapturedThread, ...]
    listener: CapturedThread
    others: tuple[CapturedThread, ...]
    threads: Sequence[CapturedThread]
    sender_class: Any
    no_state: list[object] | None
    decode: DecodeSide
    memory: tuple[Pool, ...]

    def make_sender(self, room: int) -> Any:
        """A sender as `PrefillBootstrapQueue.create_sender()` makes it. The manager knows the room from then on."""
        return self._senders.make(room)

    def begin(self, sender: Any, pages: int) -> None:
        """Do what `finalize_bootstrap()` does once a sender polls WaitingForInput.

        Args:
            sender: A sender of make_sender().
            pages: How many pages will be sent: as many as metadata_frames() announced.
        """
        self._senders.begin(sender, pages, 0)

    def send(self, sender: Any, chunk: int, last: bool) -> None:
        """Do what `send_kv_chunk()` does: send one page.

        Args:
            sender: A sender that was begun.
            chunk: The chunk's number, from 0.
            last: Whether it is the last one. The sender itself counts pages: chunk + 1 must then be what begin() said.
        """
        self._senders.send(sender, page_indices(chunk, 1), last)

    def clear(self, sender: Any) -> None:
        """Do what the scheduler does on Success: releases before 0.5.12 have nothing to clear."""
        self._senders.clear(sender)

    def abort(self, sender: Any) -> bool:
        """Do what the scheduler does when the client gives a request up; False in releases that cannot."""
        return self._senders.abort(sender)

    @cached_property
    def _senders(self) -> Senders:
        return Senders(self.manager, self.sender_class, BOOTSTRAP_ADDRESS, self.no_state)

    def registration_frames(self) -> list[Frame]:
        """What the decode side sends the listener once, before everything else."""
        return self.decode.registration()

    def metadata_frames(self, room: int, pages: int) -> list[Frame]:
        """What the decode side sends the listener to have a room's pages: after it the room is WaitingForInput."""
        return self.decode.metadata(room, pages)

    def abort_frames(self, room: int, pages: int) -> list[Frame] | None:
        """What the decode side sends the listener to give a room up, or None where the release sends nothing."""
        return self.decode.abort(room, pages) or None

    @cached_property
    def no_abort_frames(self) -> str | None:
        """Why abort_frames() gives None, or None if it gives frames."""
        return None if self.decode.abort(1, 1) else self.decode.why_no_abort()
