"""The real agent of NIXL, told where memory really lies, and watched.

SGLang registers its cache as VRAM. Host memory cannot be registered so (NIXL_ERR_BACKEND, nixl 1.5.1), and there the
agent is told that it is DRAM.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any


class Transfers:
    """The transfers of a side's agent.

    Args:
        least: Seconds that a transfer takes at least: until then it is said to be under way, whatever NIXL says.
    """

    def __init__(self, least: float) -> None:
        self.least = least
        self.posted = 0
        #: When each transfer was posted, by the identity of its handle, until it is over.
        self.under_way: dict[int, float] = {}

    def post(self, handle: object) -> None:
        """A transfer is posted."""
        self.posted += 1
        self.under_way[id(handle)] = time.monotonic()

    def forget(self, handle: object) -> None:
        """A transfer is over, or nobody will ask about it any more."""
        self.under_way.pop(id(handle), None)

    def state(self, handle: object, state: str) -> str:
        """What the backend is told about a transfer of which NIXL says that it is in a state."""
        if state == "PROC":
            return state
        if self.least and state == "DONE":
            posted = self.under_way.get(id(handle))
            if posted is not None and time.monotonic() - posted < self.least:
                return "PROC"
        self.forget(handle)
        return state

    def watched(self, call: Callable[..., str], handle: object, *rest: Any, **named: Any) -> str:
        """What the backend is told when it asks NIXL about a transfer by a call."""
        try:
            return self.state(handle, call(handle, *rest, **named))
        except BaseException:
            # It is not under way, or nobody can tell.
            self.forget(handle)
            raise


def agent_class(real: type, transfers: Transfers, on_host: bool) -> Callable[..., Any]:
    """A class in place of `nixl._api.nixl_agent`.

    Args:
        real: That class.
        transfers: Told of the transfers.
        on_host: Whether what is called VRAM lies in host memory.
    """
    kinds, watched = partial(_with_kinds, on_host), transfers.watched

    # The methods pass on what they do not know: signatures differ between releases of NIXL.
    class Agent(real):  # type: ignore[misc]
        def register_memory(self, *given: Any, **named: Any) -> Any:
            return kinds(super().register_memory, given, named)

        def get_reg_descs(self, *given: Any, **named: Any) -> Any:
            return kinds(super().get_reg_descs, given, named)

        def get_xfer_descs(self, *given: Any, **named: Any) -> Any:
            return kinds(super().get_xfer_descs, given, named)

        def prep_xfer_dlist(self, *given: Any, **named: Any) -> Any:
            return kinds(super().prep_xfer_dlist, given, named)

        def transfer(self, handle: Any, *rest: Any, **named: Any) -> Any:
            transfers.post(handle)
            return watched(super().transfer, handle, *rest, **named)

        def check_xfer_state(self, handle: Any) -> Any:
            return watched(super().check_xfer_state, handle)

        def release_xfer_handle(self, handle: Any) -> Any:
            transfers.forget(handle)
            return super().release_xfer_handle(handle)

    return Agent


def _with_kinds(on_host: bool, call: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """A call, told that what is called VRAM is DRAM if it lies in host memory."""

    def kind(value: Any) -> Any:
        # What else is given may be an array, which has no one answer to whether it equals something.
        return "DRAM" if on_host and isinstance(value, str) and value == "VRAM" else value

    return call(*map(kind, given), **{name: kind(value) for name, value in named.items()})
