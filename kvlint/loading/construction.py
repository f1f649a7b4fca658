"""Builds the objects of a backend as its release builds them.

The modules of the tree run: see importer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from kvlint.loading.backend import Backend
from kvlint.loading.captured import CapturedThread
from kvlint.loading.errors import LoadError
from kvlint.loading.foreseen import ALLOCATION_POLICY, DTYPE, PAGE_TOKENS, PARALLEL, other_modules, server_args
from kvlint.loading.frames import DecodeSide
from kvlint.loading.hooks import Hooks
from kvlint.loading.importer import Importer
from kvlint.loading.memory import Pool, no_state
from kvlint.loading.network import BootstrapServer, Wire
from kvlint.loading.system import system_modules
from kvlint.loading.threads import is_listener, is_worker
from kvlint.loading.tree import digest_of, find_tree, find_version

_CONN = "sglang.srt.disaggregation.nixl.conn"
_BASE = "sglang.srt.disaggregation.base.conn"
_COMMON = "sglang.srt.disaggregation.common.conn"
_UTILS = "sglang.srt.disaggregation.utils"

STUBBED = (
    "RDMA transfers: a NIXL agent that moves nothing; whether a transfer is done is a choice of the schedule",
    "ZMQ: the frames of the decode side's real receiver are handed to the real listener; what is sent is kept",
    "HTTP: the bootstrap server answers for one prefill rank",
    "threads, locks, queues and time, where the exploration takes their place",
    "torch, CUDA, logging, the command line, and the rest of SGLang: one rank, no device, no tracing",
)


def load_backend(
    root: Path, *, substitutes: Mapping[str, object] | None = None, environment: Mapping[str, str] | None = None
) -> Backend:
    """Load the NIXL backend of a tree and build its manager, with nothing running.

    Args:
        root: A checkout, an installation, or a part of one: see find_tree().
        substitutes: Modules that the tree's modules get in place of others, by name: `threading`, `time`, `queue`, … .
            They need the names that are used. Threads are captured whatever `threading` is given.
        environment: Environment variables that the tree's modules see beside those of system.ENVIRONMENT. They see none
            of the process's.

    Raises:
        LoadError: There is no backend, or it needs something that is not there; the message says what and where.
    """
    tree = find_tree(root)
    hooks, threads = Hooks(), list[CapturedThread]()
    wire, server = Wire(hooks), BootstrapServer()

    def started(thread: CapturedThread) -> None:
        threads.append(thread)
        hooks.started(thread)

    system = system_modules(substitutes or {}, environment or {}, started)
    importer = Importer(tree, {**other_modules(hooks, wire, server), **system})
    return _Construction(importer, wire, server, threads).backend()


class _Construction:
    """Builds the objects of one tree."""

    def __init__(self, importer: Importer, wire: Wire, server: BootstrapServer, threads: list[CapturedThread]) -> None:
        self._importer = importer
        self._wire = wire
        self._threads = threads
        self._pools: list[Pool] = []
        self._conn = importer.load(_CONN)
        server.server_info = self._server_info

    def backend(self) -> Backend:
        prefill = self._manager("PREFILL")
        self._wire.listening = self._wire.bound[-1] if self._wire.bound else None
        started = tuple(self._threads)
        without_state = no_state(self._importer.name(_BASE, "KVArgs"))
        receiver = self._importer.name(_CONN, "NixlKVReceiver")
        decode = DecodeSide(self._manager("DECODE"), receiver, self._wire, without_state)
        self._importer.guarded("the decode side", decode.open)
        workers = tuple(thread for thread in started if is_worker(thread))
        listener = self._listener([thread for thread in started if thread not in workers])
        importer = self._importer
        return Backend(
            tree=importer.tree,
            version=find_version(importer.tree),
            digest=digest_of(importer.sources),
            loaded={name: importer.modules[name] for name in importer.sources},
            stubbed=STUBBED,
            hooks=self._wire.hooks,
            faults=importer.marker.faults,
            manager=prefill,
            poll=self._importer.name(_BASE, "KVPoll"),
            workers=workers,
            listener=listener,
            others=tuple(thread for thread in started if thread not in workers and thread is not listener),
            threads=self._threads,
            sender_class=self._importer.name(_CONN, "NixlKVSender"),
            no_state=without_state,
            decode=decode,
            memory=tuple(self._pools),
        )

    def _listener(self, others: list[CapturedThread]) -> CapturedThread:
        listeners = [thread for thread in others if is_listener(thread)]
        if len(listeners) != 1:
            raise LoadError(
                f"{self._conn.__file__}: the manager was built, and {len(listeners)} of the threads that it started "
                f"receive frames; a bootstrap listener is one thread. Its threads: {others}."
            )
        return listeners[0]

    def _manager(self, mode: str) -> Any:
        manager_class = self._importer.name(_CONN, "NixlKVManager")
        modes = self._importer.name(_UTILS, "DisaggregationMode")
        pool = Pool()
        self._pools.append(pool)
        arguments = pool.arguments(self._importer.name(_BASE, "KVArgs"))
        return self._importer.guarded(
            f"NixlKVManager in {mode} mode",
            lambda: manager_class(arguments, getattr(modes, mode), server_args(), False),
        )

    def _server_info(self, registered: Mapping[str, object]) -> Mapping[str, object]:
        """The bootstrap server's answer about the whole server, with the fields that the release's class has."""
        info = getattr(self._importer.load(_COMMON), "PrefillServerInfo", None)
        values = {**PARALLEL, "page_size": PAGE_TOKENS, "kv_cache_dtype": DTYPE, **registered}
        values |= {"follow_bootstrap_room": True, "decode_allocation_policy": ALLOCATION_POLICY}
        if not is_dataclass(info):
            # Releases before 0.5.10 answer with a dict, of these names.
            names = ("tp_size", "attn_tp_size", "dp_size", "pp_size", "page_size")
            return {f"prefill_{name}": values[name] for name in names}
        return {field.name: values[field.name] for field in fields(info) if field.name in values}
