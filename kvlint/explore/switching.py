"""Actors as greenlets or as threads: exactly one of them runs at a time, and it says which is next."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

Body = Callable[[], None]


class Switching(Protocol):
    """Ways to hand the processor from one body to another.  Number -1 is whoever started them."""

    def start(self, bodies: list[Body]) -> None:
        """Have ``bodies`` ready; none of them runs yet."""

    def switch(self, here: int, there: int) -> None:
        """Go on in ``there``; returns when somebody switches back to ``here``."""

    def stop(self, number: int, stopped: type[BaseException]) -> None:
        """Raise ``stopped`` where ``number`` stands, from the starter, and wait until it has ended."""


class Greenlets:
    """Bodies on one thread: a hand-over costs well under a microsecond.

    Raises:
        ImportError: greenlet is not installed; it comes with the extra ``explore``.
    """

    def __init__(self) -> None:
        import greenlet

        self._module = greenlet
        self._greenlets: list[greenlet.greenlet] = []
        self._starter: greenlet.greenlet = greenlet.getcurrent()

    def start(self, bodies: list[Body]) -> None:
        """See Switching."""
        self._starter = self._module.getcurrent()
        self._greenlets = [self._module.greenlet(body, self._starter) for body in bodies]

    def switch(self, here: int, there: int) -> None:  # noqa: ARG002
        """See Switching.  A greenlet that ends goes on in its parent, which is the starter."""
        (self._greenlets[there] if there >= 0 else self._starter).switch()

    def stop(self, number: int, stopped: type[BaseException]) -> None:
        """See Switching."""
        body = self._greenlets[number]
        if body:
            body.throw(stopped)


class Threads:
    """Bodies on threads of their own, each waiting for its turn: slow, and what the program really runs on."""

    def __init__(self) -> None:
        self._turns: list[threading.Semaphore] = []
        self._threads: list[threading.Thread] = []
        self._stopped: dict[int, type[BaseException]] = {}

    def start(self, bodies: list[Body]) -> None:
        """See Switching."""
        # The last turn is the starter's, so that -1 finds it.
        self._turns = [threading.Semaphore(0) for _ in range(len(bodies) + 1)]
        self._stopped = {}
        self._threads = [
            threading.Thread(target=self._body, args=(number, body), daemon=True, name=f"explore-{number}")
            for number, body in enumerate(bodies)
        ]
        for thread in self._threads:
            thread.start()

    def _body(self, number: int, body: Body) -> None:
        self._turns[number].acquire()
        if number not in self._stopped:
            body()
        self._turns[-1].release()

    def switch(self, here: int, there: int) -> None:
        """See Switching."""
        self._turns[there].release()
        self._turns[here].acquire()
        stopped: Any = self._stopped.get(here)
        if stopped is not None:
            raise stopped

    def stop(self, number: int, stopped: type[BaseException]) -> None:
        """See Switching."""
        if self._threads[number].is_alive():
            self._stopped[number] = stopped
            self._turns[number].release()
            self._turns[-1].acquire()


def default_switching() -> Switching:
    """Greenlets where they are installed, else threads, which take ten times as long."""
    try:
        return Greenlets()
    except ImportError:
        return Threads()
