"""Loads the real NIXL backend of a tree with all that it needs to move bytes, and builds its objects.

Real are the disaggregation package with its utilities, SGLang's environment and network modules, torch, ZMQ, the
bootstrap server over HTTP, threads, and NIXL. The rest of SGLang (models, schedulers, the command line) has stand-ins,
as for `kvlint explore`: one rank, no tracing.

To load a tree is to run its code, with the rights of the process.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import os
import socket
import threading
import time
import warnings
from collections import deque
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from kvlint.drill.agent import Transfers, agent_class
from kvlint.drill.memory import Memory
from kvlint.drill.messages import Setup
from kvlint.drill.threads import Threads
from kvlint.loading.calls import call_known
from kvlint.loading.errors import LoadError, place_of_code
from kvlint.loading.foreseen import HOST, server_args, sglang_modules
from kvlint.loading.importer import SHARED, Importer
from kvlint.loading.memory import arguments, no_state
from kvlint.loading.receivers import Receivers
from kvlint.loading.senders import Senders
from kvlint.loading.stand_in import Overlay, StandIn, StandInModule
from kvlint.loading.system import SilentLogger, logging_module
from kvlint.loading.tree import digest_of, find_tree, find_version

_CONN = "sglang.srt.disaggregation.nixl.conn"
_BASE = "sglang.srt.disaggregation.base.conn"
_UTILS = "sglang.srt.disaggregation.utils"
_REAL = frozenset({"torch", "zmq", "requests", "aiohttp", "psutil", "nixl"})
_LOGGED = 20  # lines kept
_SERVER_SECONDS = 10.0
_SERVER_TRIES = 3
_PARALLEL_SECONDS = 15.0


class Backend:
    """A side's part of a tree: its manager, running, and the calls of its scheduler.

    Args:
        setup: What to load.
        mode: `PREFILL` or `DECODE`.
        memory: Where the pages are.

    Raises:
        LoadError: There is no backend, or it needs something that is not there; the message says what and where.
    """

    def __init__(self, setup: Setup, mode: str, memory: Memory) -> None:
        self.threads = Threads()
        self.transfers = Transfers(setup.storm.transfer)
        self.log: deque[str] = deque(maxlen=_LOGGED)
        self.nixl_version = _nixl_version()
        tree = find_tree(Path(setup.root))
        port = int(setup.address.rpartition(":")[2]) if setup.address else _free_port()
        self._importer = Importer(tree, self._modules(setup, mode, port), SHARED | _REAL)
        #: The uses that stand-ins refused so far, none in a backend that works.
        self.faults = self._importer.marker.faults
        self._importer.guarded("the backend", lambda: self._importer.load(_CONN))
        self.poll = self._importer.name(_BASE, "KVPoll")
        self.statuses = {
            value: name for name, value in vars(self.poll).items() if isinstance(value, int) and name[0] != "_"
        }
        self.address = setup.address or f"{HOST}:{self._served(port)}"
        modes = self._importer.name(_UTILS, "DisaggregationMode")
        described = arguments(self._importer.name(_BASE, "KVArgs"), memory.cache(), memory.metadata())
        given = server_args(int(self.address.rpartition(":")[2]))
        manager_class = self._importer.name(_CONN, "NixlKVManager")
        self.manager = self._importer.guarded(
            f"NixlKVManager in {mode} mode", lambda: manager_class(described, getattr(modes, mode), given, False)
        )
        self.version = find_version(tree)
        self.digest = digest_of(self._importer.sources)

    def senders(self) -> Senders:
        """The senders, on the prefill side."""
        return Senders(self.manager, self._importer.name(_CONN, "NixlKVSender"), self.address, self._no_state())

    def receivers(self) -> Receivers:
        """The receivers, on the decode side, once the prefill side is known.

        Raises:
            LoadError: It does not become known.
        """
        made = Receivers(self.manager, self._importer.name(_CONN, "NixlKVReceiver"), self.address, self._no_state())
        end = time.monotonic() + _PARALLEL_SECONDS
        while not self._importer.guarded("the decode side", made.ensure):
            if time.monotonic() > end:
                raise LoadError(
                    f"{self._importer.tree.package}: the decode side did not get to know the prefill side within "
                    f"{_PARALLEL_SECONDS:g} s. It has logged: {'; '.join(self.log) or 'nothing'}"
                )
            time.sleep(0.05)
        return made

    def why_no_abort(self) -> str | None:
        """Why nobody can give up, or None if a receiver can."""
        receiver = self._importer.name(_CONN, "NixlKVReceiver")
        if hasattr(receiver, "abort"):
            return None
        return f"{place_of_code(receiver.__init__)}: this release's receiver has no abort()"

    def _no_state(self) -> list[object] | None:
        return no_state(self._importer.name(_BASE, "KVArgs"))

    def status(self, room: int) -> str:
        """The name of a room's status in the manager's table, `absent` if it has none."""
        value = self.manager.request_status.get(room)
        return "absent" if value is None else self.statuses.get(int(value), str(value))

    def known_rooms(self) -> list[int]:
        """The rooms of the manager's table of statuses."""
        table = self.manager.request_status
        return [int(room) for room in (list(table.keys()) if hasattr(table, "keys") else list(table))]

    def table(self, name: str) -> set[int]:
        """The rooms of one of the manager's dicts; none if the release does not have it."""
        found = getattr(self.manager, name, None)
        return {room for room in list(found) if isinstance(room, int)} if isinstance(found, dict) else set()

    # -- parts ---------------------------------------------------------------------

    def _modules(self, setup: Setup, mode: str, port: int) -> dict[str, object]:
        on_host = setup.device == "cpu"
        environment = {
            "SGLANG_HOST_IP": HOST,
            "SGLANG_LOCAL_IP_NIC": "",
            "SGLANG_DISAGGREGATION_NIXL_BACKEND": setup.backend,
            "SGLANG_DISAGGREGATION_NIXL_BACKEND_PARAMS": '{"num_threads": "1"}' if mode == "PREFILL" else "{}",
        }
        if setup.workers is not None:
            environment["SGLANG_DISAGGREGATION_QUEUE_SIZE"] = str(setup.workers)
        api = importlib.import_module("nixl._api")
        log = self.log

        def logger(name: str = "") -> SilentLogger:
            return _Logger(name, log)

        modules: dict[str, object] = {
            **sglang_modules(port),
            "transformers": StandInModule("transformers"),
            "triton": StandInModule("triton"),
            "logging": logging_module(logger),
            "os": Overlay(os, {"environ": environment, "getenv": environment.get}),
            "warnings": Overlay(warnings, {"warn": _nothing, "warn_explicit": _nothing}),
            "threading": Overlay(threading, {"Thread": self.threads.thread_class()}),
            "nixl._api": Overlay(api, {"nixl_agent": agent_class(api.nixl_agent, self.transfers, on_host)}),
        }
        for name in ("sglang.srt.utils", "sglang.srt.utils.common"):
            known = vars(modules[name])
            known |= {"get_free_port": _free_port, "get_zmq_socket_on_host": _bound_socket}
        if on_host:
            device = StandIn("torch.get_device_module()", set_device=_nothing)
            modules["torch"] = Overlay(importlib.import_module("torch"), {"get_device_module": lambda *_: device})
        return modules

    def _served(self, port: int) -> int:
        """The port of a bootstrap server that was started."""
        server = self._importer.name(_CONN, "NixlKVBootstrapServer")
        for _ in range(_SERVER_TRIES):
            start = partial(call_known, server, host=HOST, port=port)
            self.server = self._importer.guarded("the bootstrap server", start)
            if _answers(port):
                return port
            port = _free_port()
        raise LoadError(
            f"{self._importer.tree.package}: the bootstrap server does not answer. It has logged: "
            f"{'; '.join(self.log) or 'nothing'}"
        )


class _Logger(SilentLogger):
    """A logger that keeps what goes wrong."""

    def __init__(self, name: str, kept: deque[str]) -> None:
        super().__init__(name)
        self.__dict__["_kept"] = kept

    def _keep(self, *values: object, **_: object) -> None:
        text = str(values[0]) if values else ""
        with contextlib.suppress(TypeError, ValueError):
            text %= values[1:]
        self.__dict__["_kept"].append(text)

    warning = error = exception = critical = warning_once = error_once = _keep

    def getChild(self, suffix: str) -> SilentLogger:  # noqa: N802 (logging's name)
        return _Logger(f"{self.name}.{suffix}", self.__dict__["_kept"])


def _nixl_version() -> str | None:
    """The release of NIXL, None if nothing tells it.

    Raises:
        LoadError: There is no NIXL.
    """
    try:
        module = importlib.import_module("nixl")
    except ImportError as error:
        raise LoadError(f"NIXL cannot be imported: {error}. pip install 'flake8-kvlint[drill]'") from error
    for name in ("nixl", getattr(getattr(module, "_pkg", None), "__name__", "").replace("_", "-")):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError, ValueError):
            return importlib.metadata.version(name)
    return None


def _free_port() -> int:
    with socket.socket() as found:
        found.bind((HOST, 0))
        return int(found.getsockname()[1])


def _bound_socket(context: Any, socket_type: int, host: str | None = None) -> tuple[int, Any]:
    """As get_zmq_socket_on_host() of sglang/srt/utils/common.py before release 0.5.10: a port, and its socket."""
    made = context.socket(socket_type)
    return made.bind_to_random_port(f"tcp://{host or HOST}"), made


def _answers(port: int) -> bool:
    import requests

    for _ in _until(_SERVER_SECONDS):
        with contextlib.suppress(requests.RequestException):
            # Whatever it answers, it is there; releases before 0.5.4 have no /health.
            requests.get(f"http://{HOST}:{port}/health", timeout=1)
            return True
    return False


def _until(seconds: float) -> Iterator[None]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(0.02)


def _nothing(*_: object, **__: object) -> None: ...
