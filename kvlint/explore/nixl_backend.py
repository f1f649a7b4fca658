"""The real NIXL backend of a tree as an explored one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from kvlint.explore.backend import Found, Frames
from kvlint.explore.elsewhere import in_functions, in_modules
from kvlint.loading import load_backend


class NixlBackend:
    """The manager of a tree, its threads, and frames that its own receiver has made.

    ``pages`` is the number of pages of a room, one in each chunk.
    """

    def __init__(self, root: Path, pages: int, replaced: Mapping[str, ModuleType]) -> None:
        self.loaded = loaded = load_backend(root, substitutes=replaced)
        self.root: Path = loaded.tree.package
        self.digest = loaded.digest
        self.pages = pages
        self.manager: Any = loaded.manager
        self.poll: Any = loaded.poll
        self.hooks: Any = loaded.hooks
        self.stubbed = loaded.stubbed
        self.faults = loaded.faults
        self.make_sender = loaded.make_sender
        self.registration_frames = loaded.registration_frames
        self._modules = frozenset(loaded.loaded)

    def left_out(self) -> list[str]:
        """Threads of the manager that take no part, in words."""
        return [f"the thread {thread.name} of the manager takes no part" for thread in self.loaded.others]

    def elsewhere(self) -> Found:
        """Containers of the tree's modules, and around the functions of its threads."""
        threads = [*self.loaded.workers, self.loaded.listener]
        yield from in_modules(self.loaded.loaded)
        yield from in_functions(thread.target for thread in threads)

    def bodies(self) -> list[tuple[str, Callable[[], None]]]:
        """Workers, then the listener."""
        workers = self.loaded.workers
        names = ["worker"] if len(workers) == 1 else [f"worker {number}" for number in range(len(workers))]
        found: list[tuple[str, Callable[[], None]]] = [
            (name, worker.run) for name, worker in zip(names, workers, strict=True)
        ]
        return [*found, ("listener", self.loaded.listener.run)]

    def is_ours(self, kind: type) -> bool:
        """Whether a class is the tree's."""
        return kind.__module__ in self._modules

    def begin(self, sender: Any) -> None:
        """What the scheduler does once the room waits for input."""
        self.loaded.begin(sender, self.pages)

    def send(self, sender: Any, number: int, last: bool) -> None:
        """Queue one page."""
        self.loaded.send(sender, number, last)

    def metadata_frames(self, room: int) -> list[Frames]:
        """The decode side wants the room's pages."""
        return self.loaded.metadata_frames(room, self.pages)

    def abort_frames(self, room: int) -> list[Frames]:
        """The decode side gives the room up; none where the release sends nothing."""
        return self.loaded.abort_frames(room, self.pages) or []
