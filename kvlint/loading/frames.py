"""Produces the frames of the decode side by running the tree's own receiver, so that their format is the release's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kvlint.loading.errors import LoadError, place_of_code
from kvlint.loading.foreseen import BOOTSTRAP_PORT, HOST
from kvlint.loading.hooks import Frame
from kvlint.loading.memory import page_indices
from kvlint.loading.network import Wire
from kvlint.loading.receivers import Receivers

#: The bootstrap server's address, as prefill.py and decode.py write it.
BOOTSTRAP_ADDRESS = f"{HOST}:{BOOTSTRAP_PORT}"


class DecodeSide:
    """The decode side of rooms: a manager in DECODE mode, whose receivers' frames are caught.

    Args:
        manager: The manager.
        receiver: The class of its receivers.
        wire: Where their frames come by.
        no_state: What a model without state has for its indices.
    """

    def __init__(self, manager: Any, receiver: Any, wire: Wire, no_state: list[object] | None) -> None:
        self._manager = manager
        self._receiver = receiver
        self._receivers = Receivers(manager, receiver, BOOTSTRAP_ADDRESS, no_state)
        self._wire = wire
        self._reason: object = None
        self._registration: list[Frame] = []
        self._metadata: dict[tuple[int, int], list[Frame]] = {}
        self._aborts: dict[tuple[int, int], list[Frame]] = {}

    def open(self) -> None:
        """Make the decode side known to the prefill side, as its first receiver does.

        Raises:
            LoadError: It refuses what the prefill side registered, or sends nothing.
        """
        if not self._receivers.ensure():
            ensure = self._manager.try_ensure_parallel_info
            raise LoadError(f"{place_of_code(ensure)}: the decode side refuses what the prefill side registered.")
        frames: list[Frame] = []
        with self._room(0, frames):
            pass
        self._registration = frames
        if not frames or not self.metadata(0, 1):
            why = f" It says: {self._reason}" if self._reason else ""
            raise LoadError(
                f"{place_of_code(self._receiver.__init__)}: the decode side's receiver does not send its frames.{why}"
            )

    @contextmanager
    def _room(self, room: int, frames: list[Frame]) -> Iterator[Any]:
        """A receiver that is ready to send the metadata of its room; what it sent so far goes to `frames`."""
        receiver: Any = None

        def open_room() -> None:
            nonlocal receiver
            receiver = self._receivers.make(room)
            self._receivers.open(receiver)

        frames += self._wire.captured(open_room)
        try:
            yield receiver
        finally:
            self._wire.captured(lambda: self._close(receiver))

    def _close(self, receiver: Any) -> None:
        self._reason = getattr(self._manager, "failure_records", {}).get(receiver.bootstrap_room)
        clear = getattr(receiver, "clear", None)
        if clear is not None:
            clear()
        for table in vars(self._manager).values():
            if isinstance(table, dict):
                table.pop(receiver.bootstrap_room, None)

    def registration(self) -> list[Frame]:
        """The frames by which the decode side makes itself known, once."""
        return _copied(self._registration)

    def metadata(self, room: int, pages: int) -> list[Frame]:
        """The frames that say where the pages of a room are to be written."""
        frames = self._metadata.get((room, pages))
        if frames is None:
            with self._room(room, []) as receiver:
                frames = self._wire.captured(lambda: self._send_metadata(receiver, pages))
            self._metadata[room, pages] = frames
        return _copied(frames)

    def abort(self, room: int, pages: int) -> list[Frame]:
        """The frames by which a receiver that waits for its pages gives them up; empty if the release sends none."""
        frames = self._aborts.get((room, pages))
        if frames is None:
            frames = self._aborted(room, pages) if hasattr(self._receiver, "abort") else []
            self._aborts[room, pages] = frames
        return _copied(frames)

    def _aborted(self, room: int, pages: int) -> list[Frame]:
        with self._room(room, []) as receiver:
            self._wire.captured(lambda: self._send_metadata(receiver, pages))
            return self._wire.captured(receiver.abort)

    def why_no_abort(self) -> str:
        """Why abort() gives no frames."""
        abort = getattr(self._receiver, "abort", None)
        if abort is None:
            return f"{place_of_code(self._receiver.__init__)}: this release's receiver has no abort()."
        return f"{place_of_code(abort)}: this release's receiver sends nothing when it aborts."

    def _send_metadata(self, receiver: Any, pages: int) -> None:
        self._receivers.send_metadata(receiver, page_indices(0, pages), 0)


def _copied(frames: list[Frame]) -> list[Frame]:
    # Who receives a frame may change its list.
    return [list(frame) for frame in frames]
