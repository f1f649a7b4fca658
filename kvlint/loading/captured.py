"""Threads that the real code starts: they are kept instead of run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kvlint.loading.errors import refuse


class CapturedThread:
    """Takes the place of threading.Thread: start() hands it over, and run() does what the thread would do.

    Code may derive from it, as from threading.Thread.

    Attributes:
        target: The function that was given, or None.
        args: Its arguments.
        kwargs: Its keyword arguments.
        name: The thread's name.
        daemon: Whether the process may end without it.
        started: Whether start() was called.
    """

    #: Where started threads go. Every tree has its own class, made by captured_thread().
    on_start: Callable[[CapturedThread], None]

    def __init__(
        self,
        group: None = None,
        target: Callable[..., object] | None = None,
        name: str | None = None,
        args: Iterable[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        daemon: bool | None = None,
    ) -> None:
        del group  # it is None for every threading.Thread
        self.target = target
        self.args = tuple(args)
        self.kwargs = dict(kwargs or {})
        self.name = name or getattr(target, "__name__", None) or type(self).__name__
        self.daemon = bool(daemon)
        self.started = False

    def start(self) -> None:
        """Hand the thread over.

        Raises:
            RuntimeError: It was started before, as threading.Thread has it.
        """
        if self.started:
            raise RuntimeError("threads can only be started once")
        self.started = True
        type(self).on_start(self)

    def run(self) -> None:
        """Do what the thread would do, in the caller's thread."""
        if self.target is not None:
            self.target(*self.args, **self.kwargs)

    def is_alive(self) -> bool:
        """Whether it was started: captured threads are taken to run on."""
        return self.started

    def join(self, timeout: float | None = None) -> None:
        """Refused: nobody foresaw that a backend waits for the end of a thread."""
        refuse(f"threading.Thread.join({timeout})", "a thread's end was waited for")

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        refuse(f"threading.Thread.{attribute}", "its value was read")

    def __repr__(self) -> str:
        return f"<captured thread {self.name}>"


def captured_thread(on_start: Callable[[CapturedThread], None]) -> type[CapturedThread]:
    """A class of threads of its own, that hands started threads to `on_start`."""
    return type("Thread", (CapturedThread,), {"on_start": staticmethod(on_start)})
