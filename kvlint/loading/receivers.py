"""What a release's scheduler calls on the decode side, with the arguments that the release knows.

Sources: sglang/srt/disaggregation/decode.py, releases 0.5.2 to 0.5.23.
"""

from __future__ import annotations

from typing import Any

from kvlint.loading.calls import call_known


class Receivers:
    """The receivers of a manager in DECODE mode.

    Args:
        manager: The manager.
        receiver_class: The release's `NixlKVReceiver`.
        bootstrap_address: The bootstrap server's, as `host:port`.
        no_state: What a model without state has for its indices: see memory.no_state().
    """

    def __init__(
        self, manager: Any, receiver_class: Any, bootstrap_address: str, no_state: list[object] | None
    ) -> None:
        self._no_state = no_state
        self._manager = manager
        self._class = receiver_class
        self._address = bootstrap_address

    def ensure(self) -> bool:
        """Have the manager ask the bootstrap server for the prefill side; False if it cannot be had yet."""
        ensure = getattr(self._manager, "try_ensure_parallel_info", None)
        return ensure is None or bool(ensure(self._address))

    def make(self, room: int) -> Any:
        """A receiver. The manager knows the room from then on."""
        arguments = {"mgr": self._manager, "bootstrap_addr": self._address, "bootstrap_room": room}
        # Releases up to 0.5.10 take the rank when the receiver is made, later ones in init().
        return call_known(self._class, **arguments, prefill_dp_rank=0, data_parallel_rank=0)

    def open(self, receiver: Any) -> None:
        """Have it connect to the prefill side; the first one makes the decode side known there."""
        if hasattr(receiver, "send_metadata"):
            call_known(receiver.init, prefill_dp_rank=0)

    def send_metadata(self, receiver: Any, pages: Any, auxiliary: int) -> None:
        """Have it tell the prefill side where the pages of its room are to be written.

        Args:
            receiver: A receiver that was opened.
            pages: The indices of the pages, shape (pages,), 32-bit integers.
            auxiliary: The index of the request's metadata.
        """
        # Releases before 0.5.11 name it init().
        send = receiver.send_metadata if hasattr(receiver, "send_metadata") else receiver.init
        call_known(send, kv_indices=pages, aux_index=auxiliary, state_indices=self._no_state, decode_prefix_len=0)
