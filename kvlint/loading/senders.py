"""What a release's scheduler calls on the prefill side, with the arguments that the release knows.

Sources: sglang/srt/disaggregation/prefill.py, releases 0.5.2 to 0.5.23; Backend has the order of the calls.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from kvlint.loading.calls import known_names
from kvlint.loading.foreseen import PAGE_TOKENS

#: What prefill.py has given a sender: the ranks up to 0.5.21, whether the request names a rank from 0.5.16 on.
_ARGUMENTS = (
    *("mgr", "bootstrap_addr", "bootstrap_room", "dest_tp_ranks", "pp_rank", "req_has_disagg_prefill_dp_rank"),
)


class Senders:
    """The senders of a manager in PREFILL mode.

    Args:
        manager: The manager.
        sender_class: The release's `NixlKVSender`.
        bootstrap_address: The bootstrap server's, as `host:port`.
        no_state: What the last chunk of a model without state has for its indices: see memory.no_state().
    """

    def __init__(self, manager: Any, sender_class: Any, bootstrap_address: str, no_state: list[object] | None) -> None:
        self._no_state = no_state
        self._manager = manager
        self._class = sender_class
        self._address = bootstrap_address

    def make(self, room: int) -> Any:
        """Do what `PrefillBootstrapQueue.create_sender()` does. The manager knows the room from then on."""
        values = {
            "mgr": self._manager,
            "bootstrap_addr": self._address,
            "bootstrap_room": room,
            "dest_tp_ranks": [0],
            "pp_rank": 0,
            "req_has_disagg_prefill_dp_rank": False,
        }
        return self._class(**{name: values[name] for name in self._names})

    def begin(self, sender: Any, pages: int, auxiliary: int) -> None:
        """Do what `finalize_bootstrap()` does once a sender polls WaitingForInput.

        Args:
            sender: A sender of make().
            pages: How many pages will be sent: as many as the receiver announced.
            auxiliary: The index of the request's metadata.
        """
        if hasattr(sender, "pop_decode_prefix_len"):
            # Its answer is the prefix that need not be sent: none is, here.
            sender.pop_decode_prefix_len()
        sender.init(pages, auxiliary)

    def send(self, sender: Any, pages: Any, last: bool) -> None:
        """Do what `send_kv_chunk()` does: send a chunk.

        Args:
            sender: A sender that was begun.
            pages: The indices of the chunk's pages, shape (pages,), 32-bit integers.
            last: Whether it is the last chunk: the pages that were sent are then as many as begin() said.
        """
        if hasattr(sender, "should_send_kv_chunk") and not sender.should_send_kv_chunk(len(pages), last):
            return
        tokens = PAGE_TOKENS * len(pages)
        values: dict[str, object] = {"state_indices": self._no_state if last else None, "num_kv_tokens": tokens}
        sender.send(pages, **{name: values[name] for name in self._send_names})

    def clear(self, sender: Any) -> None:
        """Do what the scheduler does on Success: releases before 0.5.12 have nothing to clear."""
        if hasattr(sender, "clear"):
            sender.clear()

    def abort(self, sender: Any) -> bool:
        """Do what the scheduler does when the client gives a request up; False in releases that cannot."""
        if not hasattr(sender, "abort"):
            return False
        sender.abort()
        return True

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return known_names(self._class, _ARGUMENTS)

    @cached_property
    def _send_names(self) -> tuple[str, ...]:
        return known_names(self._class.send, ("state_indices", "num_kv_tokens"))
