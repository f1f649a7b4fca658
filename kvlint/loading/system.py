"""What a tree's modules get in place of modules of the standard library that block, start things, print or leak.

The environment is their own: what the user's shell says about SGLang does not change what is explored.
"""

from __future__ import annotations

import builtins
import logging
import os
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from types import ModuleType

from kvlint.loading.captured import CapturedThread, captured_thread
from kvlint.loading.stand_in import Overlay, Placeholder, StandIn, StandInModule

#: The environment of a tree's modules. One worker, since all chunks of a room go to one; the address is never used.
#: Sources: sglang/srt/environ.py and sglang/srt/utils/network.py, get_local_ip_auto(), of release 0.5.14.
ENVIRONMENT: Mapping[str, str] = {
    "SGLANG_DISAGGREGATION_QUEUE_SIZE": "1",
    "SGLANG_DISAGGREGATION_THREAD_POOL_SIZE": "1",
    "SGLANG_DISAGGREGATION_NIXL_BACKEND_PARAMS": '{"num_threads": "1"}',
    "SGLANG_HOST_IP": "127.0.0.1",
    "SGLANG_LOCAL_IP_NIC": "",
}

#: Modules that reach out of the process, or wait for what comes into it. They are imported, and not to be used.
REFUSED = (
    *("asyncio", "concurrent.futures", "http.client", "http.server", "multiprocessing", "select", "selectors"),
    *("signal", "socket", "socketserver", "ssl", "subprocess", "urllib.request"),
)


class SilentLogger(StandIn):
    """A logger that nobody listens to: SGLang's own, with its `warning_once` and its like, and nothing is formatted."""

    def __init__(self, name: str = "") -> None:
        super().__init__("logging.Logger", name=name, level=logging.NOTSET, handlers=[], propagate=False)

    def _silent(self, *_: object, **__: object) -> None: ...

    debug = info = warning = warn = error = exception = critical = fatal = log = _silent
    debug_once = info_once = warning_once = error_once = _silent
    setLevel = addHandler = removeHandler = addFilter = _silent  # noqa: N815 (logging's names)

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 (logging's name)
        """No level is enabled."""
        return level > logging.CRITICAL

    def getEffectiveLevel(self) -> int:  # noqa: N802 (logging's name)
        """Above every level."""
        return logging.CRITICAL + 1

    def getChild(self, suffix: str) -> SilentLogger:  # noqa: N802 (logging's name)
        """A logger below."""
        return SilentLogger(f"{self.name}.{suffix}")


def logging_module(logger: Callable[..., SilentLogger] = SilentLogger) -> ModuleType:
    """A module `logging` whose getLogger() is ``logger``."""
    levels = {name: number for name, number in logging.getLevelNamesMapping().items() if name != "NOTSET"}
    known = {"getLogger": logger, "Logger": SilentLogger, "NOTSET": logging.NOTSET}
    return StandInModule("logging", known | levels | {"Filter": logging.Filter, "Formatter": logging.Formatter})


def system_modules(
    substitutes: Mapping[str, object],
    environment: Mapping[str, str],
    on_start: Callable[[CapturedThread], None],
) -> dict[str, object]:
    """The modules that a tree's modules get in place of the standard library's.

    Args:
        substitutes: The engine's modules, by name. They go before the ones of this module, except that the `Thread` of
            `threading` is always a CapturedThread.
        environment: What is added to ENVIRONMENT, or replaces parts of it.
        on_start: Gets the threads that are started.
    """
    own = dict(ENVIRONMENT) | dict(environment)
    modules: dict[str, object] = {name: StandInModule(name) for name in REFUSED}
    modules["logging"] = logging_module()
    modules["os"] = Overlay(os, {"environ": own, "getenv": own.get})
    modules["time"] = Overlay(time, {"sleep": _nothing})
    modules["warnings"] = Overlay(warnings, {"warn": _nothing, "warn_explicit": _nothing})
    modules.update(substitutes)
    thread = {"Thread": captured_thread(on_start), "Timer": Placeholder("threading.Timer")}
    modules["threading"] = Overlay(modules.get("threading", threading), thread)
    return modules


def _nothing(*_: object, **__: object) -> None: ...


def private_builtins(import_function: Callable[..., ModuleType]) -> dict[str, object]:
    """The builtins of a tree's modules: Python's, with an own `__import__` and a `print` that prints nothing."""
    return {**builtins.__dict__, "__import__": import_function, "print": _nothing}
