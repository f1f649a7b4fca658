"""Everything that a program can wait for, under the names of the standard library."""

from kvlint.explore.locks import BoundedSemaphore, Condition, Event, Lock, RLock, Semaphore
from kvlint.explore.queues import LifoQueue, PriorityQueue, Queue, SimpleQueue
from kvlint.explore.waiting import Waiting

__all__ = [
    "BoundedSemaphore",
    "Condition",
    "Event",
    "LifoQueue",
    "Lock",
    "PriorityQueue",
    "Queue",
    "RLock",
    "Semaphore",
    "SimpleQueue",
    "Waiting",
]
