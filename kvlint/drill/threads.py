"""The threads that a backend starts: they run, and it is known what each is, where it stands and how it died."""

from __future__ import annotations

import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable
from queue import Queue
from typing import Any

import msgspec

from kvlint.loading.threads import given_to, is_listener, is_worker


class DeadThread(msgspec.Struct, frozen=True):
    """A thread that ended while it was needed.

    Attributes:
        kind: `worker`, `listener` or `thread`.
        name: Its name.
        reason: The exception, or that it returned.
        traceback: Python's, "" if it returned.
    """

    kind: str
    name: str
    reason: str
    traceback: str


class TreeThread(threading.Thread):
    """A thread of a tree. Every tree has its own class, made by Threads.thread_class().

    Attributes:
        kind: What it does.
        queues: The queues that it was given.
    """

    owner: Threads

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.target = self._target  # type: ignore[attr-defined]
        self.args = self._args  # type: ignore[attr-defined]
        self.kwargs = self._kwargs  # type: ignore[attr-defined]
        self.kind = "thread"
        self.queues: list[object] = []

    def start(self) -> None:
        """Start, and be known."""
        # What it does is told by what it was given, which it forgets once it has run.
        if is_worker(self):
            self.kind = "worker"
            self.queues = [value for value in given_to(self) if hasattr(value, "put") and hasattr(value, "get")]
        elif is_listener(self):
            self.kind = "listener"
        self.daemon = True
        type(self).owner.started.append(self)
        super().start()


class Threads:
    """The threads of one side.

    Attributes:
        started: Those that were started.
        dead: Those that an exception has ended.
    """

    def __init__(self) -> None:
        self.started: list[TreeThread] = []
        self.dead: list[DeadThread] = []
        #: The threads of `dead`: names need not differ.
        self.raised: list[threading.Thread] = []

    def thread_class(self) -> type[TreeThread]:
        """The class `Thread` of the tree's modules."""
        return type("Thread", (TreeThread,), {"owner": self})

    def all_dead(self) -> list[DeadThread]:
        """Those that an exception has ended, and the workers and listeners that returned."""
        # First who is over: one that raises has been noted by then.
        over = [thread for thread in self.started if thread.kind != "thread" and not thread.is_alive()]
        returned = [
            DeadThread(thread.kind, thread.name, "it returned", "") for thread in over if thread not in self.raised
        ]
        return [*self.dead, *returned]

    def workers(self) -> list[TreeThread]:
        """The transfer workers."""
        return [thread for thread in self.started if thread.kind == "worker"]

    def idle_workers(self) -> list[TreeThread]:
        """The workers that wait for an item while there is none; one that is dead does nothing, either."""
        frames = sys._current_frames()
        return [thread for thread in self.workers() if _is_idle(thread, frames)]

    def listeners_are_idle(self) -> bool:
        """Whether every listener waits for a message; one that is dead does nothing, either."""
        frames = sys._current_frames()
        listeners = [thread for thread in self.started if thread.kind == "listener" and thread.is_alive()]
        return all(_receives(frames.get(thread.ident or 0)) for thread in listeners)


def _receives(frame: Any) -> bool:
    """Whether a frame stands in ZMQ: its receiving is C code below a method of its own."""
    return frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "zmq"


def _is_idle(thread: TreeThread, frames: dict[int, Any]) -> bool:
    if not thread.is_alive():
        return True
    frame = frames.get(thread.ident or 0)
    # Condition.wait(). A worker that has just taken an item may stand in threading, too, but in another function; one
    # that waits for something else while it works on an item does not come from get().
    waits = frame is not None and frame.f_globals.get("__name__") == "threading" and frame.f_code.co_name == "wait"
    caller = None if frame is None else frame.f_back
    takes = caller is not None and caller.f_code.co_name == "get"
    return waits and takes and not any(map(_length, thread.queues))


def _length(queue: object) -> int:
    if isinstance(queue, Queue):
        return queue.qsize()
    if hasattr(queue, "qsize"):
        return int(queue.qsize())
    return sum(len(value) for value in vars(queue).values() if isinstance(value, (list, deque)))


def watch_threads(before: Callable[[threading.ExceptHookArgs], object] | None = None) -> None:
    """Have the ends of trees' threads kept by their Threads; other threads' go to ``before``.

    Sets threading.excepthook, once for the process.
    """
    before = threading.excepthook if before is None else before

    def ended(what: threading.ExceptHookArgs) -> None:
        thread = what.thread
        if not isinstance(thread, TreeThread):
            before(what)
            return
        text = "".join(traceback.format_exception(what.exc_type, what.exc_value, what.exc_traceback))
        reason = f"{what.exc_type.__name__}: {what.exc_value}".rstrip(": ")
        type(thread).owner.raised.append(thread)
        type(thread).owner.dead.append(DeadThread(thread.kind, thread.name, reason, text))

    threading.excepthook = ended
