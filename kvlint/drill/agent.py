"""The real agent of NIXL, told where memory really lies, and watched.

SGLang registers its cache as VRAM. Host memory cannot be registered so (NIXL_ERR_BACKEND, nixl 1.5.1), and there the
agent is told that it is DRAM.
"""

from __future__ import annotations

import time
from collections.abc import Callable
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

    def state(self, handle: object, state: str) -> str:
        """What the backend is told about a transfer of which NIXL says that it is in a state."""
        if state == "PROC":
            return state
        if self.least and state == "DONE":
            posted = self.under_way.get(id(handle))
            if posted is not None and time.monotonic() - posted < self.least:
                return "PROC"
        self.under_way.pop(id(handle), None)
        return state


def agent_class(real: type, transfers: Transfers, on_host: bool) -> Callable[..., Any]:
    """A class in place of `nixl._api.nixl_agent`.

    Args:
        real: That class.
        transfers: Told of the transfers.
        on_host: Whether what is called VRAM lies in host memory.
    """

    def kind(given: Any) -> Any:
        return "DRAM" if on_host and given == "VRAM" else given

    # The methods pass on what they do not know: signatures differ between releases of NIXL.
    class Agent(real):  # type: ignore[misc]
        def register_memory(self, described: Any, mem_type: Any = None, *rest: Any, **named: Any) -> Any:
            return super().register_memory(described, kind(mem_type), *rest, **named)

        def get_reg_descs(self, described: Any, mem_type: Any = None, *rest: Any, **named: Any) -> Any:
            return super().get_reg_descs(described, kind(mem_type), *rest, **named)

        def get_xfer_descs(self, described: Any, mem_type: Any = None, *rest: Any, **named: Any) -> Any:
            return super().get_xfer_descs(described, kind(mem_type), *rest, **named)

        def prep_xfer_dlist(self, name: Any, described: Any, mem_type: Any = None, *rest: Any, **named: Any) -> Any:
            return super().prep_xfer_dlist(name, described, kind(mem_type), *rest, **named)

        def transfer(self, handle: Any, *rest: Any, **named: Any) -> Any:
            transfers.post(handle)
            return transfers.state(handle, super().transfer(handle, *rest, **named))

        def check_xfer_state(self, handle: Any) -> Any:
            return transfers.state(handle, super().check_xfer_state(handle))

        def release_xfer_handle(self, handle: Any) -> Any:
            transfers.under_way.pop(id(handle), None)
            return super().release_xfer_handle(handle)

    return Agent
