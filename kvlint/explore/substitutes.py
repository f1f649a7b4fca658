"""The modules ``threading``, ``queue`` and ``time`` as a program under exploration sees them."""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from kvlint.explore import primitives
from kvlint.explore.control import Control


class Clock:
    """Time that stands still until somebody moves it: no deadline passes by itself."""

    start = 1_000_000.0

    def __init__(self) -> None:
        self.now = self.start

    def read(self) -> float:
        """Seconds."""
        return self.now

    def read_nanoseconds(self) -> int:
        """Nanoseconds."""
        return int(self.now * 1e9)


def substitutes(control: Control, clock: Clock) -> dict[str, ModuleType]:
    """Modules under the names that they take the place of; ``threading.Thread`` is not among what they have."""
    waiting = primitives.Waiting(control, "time", is_of_time=True)
    return {
        "threading": _threading(control),
        "queue": _queue(control),
        "time": _time(clock, waiting),
    }


def _maker(control: Control, primitive: Any, word: str) -> Callable[..., Any]:
    def make(*arguments: Any, **named: Any) -> Any:
        return primitive(control, _label(word), *arguments, **named)

    return make


def _label(word: str) -> str:
    """A name for what is made here, until it is known which attribute holds it."""
    frame = sys._getframe(2)
    return f"{word} of {frame.f_code.co_name}:{frame.f_lineno}"


def _threading(control: Control) -> ModuleType:
    module = ModuleType("threading")
    for name, primitive in (
        ("Lock", primitives.Lock),
        ("RLock", primitives.RLock),
        ("Condition", primitives.Condition),
        ("Event", primitives.Event),
        ("Semaphore", primitives.Semaphore),
        ("BoundedSemaphore", primitives.BoundedSemaphore),
    ):
        setattr(module, name, _maker(control, primitive, name.lower()))
    for name in ("get_ident", "current_thread", "main_thread", "get_native_id", "local"):
        setattr(module, name, getattr(threading, name))
    return module


def _queue(control: Control) -> ModuleType:
    module = ModuleType("queue")
    for name, primitive in (
        ("Queue", primitives.Queue),
        ("SimpleQueue", primitives.SimpleQueue),
        ("LifoQueue", primitives.LifoQueue),
        ("PriorityQueue", primitives.PriorityQueue),
    ):
        setattr(module, name, _maker(control, primitive, "queue"))
    module.Empty, module.Full = queue.Empty, queue.Full  # type: ignore[attr-defined]
    return module


def _time(clock: Clock, waiting: primitives.Waiting) -> ModuleType:
    module = ModuleType("time")
    for name in ("time", "monotonic", "perf_counter", "process_time"):
        setattr(module, name, clock.read)
        setattr(module, f"{name}_ns", clock.read_nanoseconds)
    for name in ("strftime", "gmtime", "localtime", "struct_time", "ctime", "asctime", "mktime"):
        setattr(module, name, getattr(time, name))
    module.sleep = waiting.sleep  # type: ignore[attr-defined]
    return module
