"""A stand-in for NIXL: an agent that keeps descriptors, posts nothing, and asks a hook how a transfer goes."""

from __future__ import annotations

from typing import Any

from kvlint.loading.hooks import Hooks, Transfer
from kvlint.loading.stand_in import StandIn, StandInModule

#: The backends of NIXL that a manager may ask for.
PLUGINS = ("UCX", "OBJ", "GDS", "GDS_MT", "POSIX", "UCCL", "LIBFABRIC")


class Descriptors(StandIn):
    """Memory that was described to an agent.

    Attributes:
        described: What was given.
        memory: The kind of memory: `VRAM`, `DRAM`.
        peer: Whose memory it is: "" for the agent's own.
    """

    def __init__(self, described: object, memory: str = "", peer: str = "") -> None:
        super().__init__("nixl descriptors", described=described, memory=memory, peer=peer)


class nixlBackendError(Exception):  # noqa: N801 (NIXL's name)
    """As in nixl._bindings; never raised here."""


class nixlCancelledError(Exception):  # noqa: N801 (NIXL's name)
    """As in nixl._bindings; never raised here."""


class nixlRemoteDisconnectError(Exception):  # noqa: N801 (NIXL's name)
    """As in nixl._bindings; never raised here."""


class Agent(StandIn):
    """As nixl._api.nixl_agent; every method that a backend calls is here, and any other is refused.

    Source: the calls in sglang/srt/disaggregation/nixl/conn.py, releases 0.5.2 to 0.5.23.
    """

    def __init__(self, hooks: Hooks, name: str) -> None:
        super().__init__("nixl._api.nixl_agent")
        self.name = name
        self._hooks = hooks
        self._transfers = 0

    def create_backend(self, backend: str, parameters: object = None) -> None:
        """Nothing is created."""

    def get_plugin_list(self) -> list[str]:
        """The plugins of PLUGINS."""
        return list(PLUGINS)

    def register_memory(self, described: object, memory: str = "", **_: object) -> Descriptors:
        """Keep what was described."""
        return Descriptors(described, memory)

    def deregister_memory(self, descriptors: Descriptors, **_: object) -> None:
        """Nothing is held."""

    def get_agent_metadata(self) -> bytes:
        """What a peer needs to know of this agent: its name."""
        return self.name.encode()

    def add_remote_agent(self, metadata: bytes) -> str:
        """The peer's name."""
        return metadata.decode()

    def remove_remote_agent(self, agent: str) -> None:
        """No connection is held."""

    def check_remote_metadata(self, agent: str, *_: object) -> bool:
        """A peer that was added stays known."""
        del agent
        return True

    def get_xfer_descs(self, described: object, memory: str = "", **_: object) -> Descriptors:
        """Keep what was described."""
        return Descriptors(described, memory)

    def prep_xfer_dlist(self, peer: str, described: object, memory: str = "", **_: object) -> Descriptors:
        """Keep what was described."""
        return Descriptors(described, memory, peer)

    def initialize_xfer(
        self, operation: str, local: object, remote: object, peer: str, notification: bytes = b"", **_: object
    ) -> Transfer:
        """A transfer between descriptors."""
        del local, remote
        return self._transfer(operation, peer, notification)

    def make_prepped_xfer(
        self,
        operation: str,
        local: object,
        local_indices: object,
        remote: Descriptors,
        remote_indices: object,
        notification: bytes = b"",
        **_: object,
    ) -> Transfer:
        """A transfer between parts of prepared descriptors."""
        del local, local_indices, remote_indices
        return self._transfer(operation, remote.peer, notification)

    def _transfer(self, operation: str, peer: str, notification: bytes) -> Transfer:
        self._transfers += 1
        return Transfer(self._transfers, operation, peer, notification)

    def transfer(self, handle: Transfer, *_: object) -> str:
        """Post a transfer: it is under way."""
        handle.posted = True
        self._hooks.posted(handle)
        return "PROC"

    def check_xfer_state(self, handle: Transfer) -> str:
        """What the hook says."""
        return self._hooks.transfer_state(handle)

    def release_xfer_handle(self, handle: Transfer) -> None:
        """Nothing is held."""

    def release_dlist_handle(self, handle: Descriptors) -> None:
        """Nothing is held."""

    def send_notif(self, peer: str, message: bytes, *_: object) -> None:
        """Nobody is told."""

    def get_new_notifs(self, *_: object) -> dict[str, list[bytes]]:
        """Nobody told anything."""
        return {}


def modules(hooks: Hooks) -> dict[str, object]:
    """The modules `nixl._api` and `nixl._bindings`. Agents are numbered, so that runs are alike."""
    agents: list[Agent] = []

    def nixl_agent(name: str, config: Any = None, **_: object) -> Agent:
        del name, config
        agents.append(Agent(hooks, f"agent-{len(agents) + 1}"))
        return agents[-1]

    def nixl_agent_config(**values: object) -> StandIn:
        return StandIn("nixl._api.nixl_agent_config", **values)

    sync = StandIn("nixl._api.nixl_thread_sync_t", **{f"NIXL_THREAD_SYNC_{kind}": kind for kind in _SYNC})
    known = {"nixl_agent": nixl_agent, "nixl_agent_config": nixl_agent_config, "nixl_thread_sync_t": sync}
    errors = (nixlBackendError, nixlCancelledError, nixlRemoteDisconnectError)
    return {
        "nixl": StandInModule("nixl"),
        "nixl._api": StandInModule("nixl._api", known),
        "nixl._bindings": StandInModule("nixl._bindings", {error.__name__: error for error in errors}),
    }


_SYNC = ("NONE", "STRICT", "RW", "DEFAULT")
