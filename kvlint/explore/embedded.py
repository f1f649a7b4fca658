"""The demo's backend as an explored one, and its exploration in this process."""

from __future__ import annotations

import importlib.util
import logging
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from kvlint.explore.backend import Found, Frames
from kvlint.explore.elsewhere import in_modules
from kvlint.explore.exploration import Plan, explore_scenario
from kvlint.explore.results import Exploration
from kvlint.explore.scenarios import SCENARIOS, Scenario
from kvlint.explore.search.verdicts import worst

_PACKAGE = "kvlint_explored_demo"
_PLAN = Plan(scheduler=False)


class EmbeddedBackend:
    """Loads ``base.py`` and ``backend.py`` of a folder and builds the manager that they define."""

    stubbed = ("transfers", "the message socket")

    def __init__(self, folder: Path, replaced: Mapping[str, ModuleType]) -> None:
        self._modules = modules = _loaded(folder, replaced)
        self.root = folder
        self.digest = ""
        self._backend = modules["backend"]
        self.poll: Any = modules["base"].Poll
        self.hooks = SimpleNamespace(receive=None, transfer_state=None)
        socket = SimpleNamespace(recv_multipart=lambda: self.hooks.receive())
        engine = SimpleNamespace(
            post_write=lambda *_: 1,
            is_done=self._is_done,
        )
        self.manager = self._backend.RdmaManager(socket, engine)

    def _is_done(self, handle: int) -> bool:
        if self.hooks.transfer_state(handle) == "ERR":
            raise RuntimeError("the transfer broke off")
        return True

    def left_out(self) -> list[str]:
        """Nothing."""
        return []

    def elsewhere(self) -> Found:
        """Containers of the two modules."""
        return in_modules(self._modules)

    def bodies(self) -> list[tuple[str, Callable[[], None]]]:
        """The worker and the listener."""
        manager = self.manager
        return [("worker", lambda: manager.transfer_worker(manager.chunks)), ("listener", manager.bootstrap_listener)]

    def is_ours(self, kind: type) -> bool:
        """Whether a class is the backend's."""
        return kind.__module__.startswith(_PACKAGE)

    def make_sender(self, room: int) -> Any:
        """The sender of a room; this opens it."""
        return self._backend.RdmaSender(self.manager, room)

    def begin(self, sender: Any) -> None:
        """Nothing: the demo's senders have no second step."""

    def send(self, sender: Any, number: int, last: bool) -> None:
        """Queue a chunk."""
        sender.send([number], is_last=last)

    def registration_frames(self) -> list[Frames]:
        """A message that the listener ignores: peers come with the room."""
        return [[b"HELLO"]]

    def metadata_frames(self, room: int) -> list[Frames]:
        """One peer wants the room's pages."""
        return [[self._backend.PEER, str(room).encode(), b"decode-0", b"1", b"0", b"4096"]]

    def abort_frames(self, room: int) -> list[Frames]:
        """The decode side gives the room up."""
        return [[self._backend.ABORT, str(room).encode()]]


def _loaded(folder: Path, replaced: Mapping[str, ModuleType]) -> dict[str, ModuleType]:
    """The two modules, executed with ``replaced`` in place of modules of the standard library."""
    package = ModuleType(_PACKAGE)
    package.__path__ = [str(folder)]
    kept = {
        name: sys.modules.get(name) for name in (*replaced, _PACKAGE, *(f"{_PACKAGE}.{n}" for n in ("base", "backend")))
    }
    modules = {}
    # What it logs is of the schedules that are tried, thousands of them.
    logging.getLogger(_PACKAGE).setLevel(logging.CRITICAL + 1)
    threading = replaced["threading"]
    if not hasattr(threading, "Thread"):
        threading.Thread = None  # type: ignore[attr-defined]
    try:
        sys.modules.update(replaced)
        sys.modules[_PACKAGE] = package
        for name in ("base", "backend"):
            spec = importlib.util.spec_from_file_location(f"{_PACKAGE}.{name}", folder / f"{name}.py")
            assert spec is not None
            assert spec.loader is not None
            modules[name] = importlib.util.module_from_spec(spec)
            sys.modules[f"{_PACKAGE}.{name}"] = modules[name]
            setattr(package, name, modules[name])
            spec.loader.exec_module(modules[name])
    finally:
        for name, module in kept.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module
    return modules


def explore_embedded(folder: Path, scenarios: Iterable[Scenario] = SCENARIOS[:1], plan: Plan = _PLAN) -> Exploration:
    """Explore the demo's backend, or a copy of it, in this process."""
    results = tuple(explore_scenario(partial(EmbeddedBackend, folder), each, plan) for each in scenarios)
    return Exploration(
        tree=str(folder),
        version=None,
        digest="",
        loaded=("base", "backend"),
        stubbed=EmbeddedBackend.stubbed,
        scheduler=plan.scheduler,
        verdict=worst(result.verdict for result in results),
        scenarios=results,
    )
