"""What actors do to shared state: resources, operations on them, and the steps that a schedule is made of."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Whole:
    """The key of an operation on all of a container: its length, its iteration, its clearing."""

    def __repr__(self) -> str:
        return "…"


WHOLE = Whole()


@dataclass(slots=True, eq=False)
class Uses:
    """Who uses the resources of one label, over all runs.

    An operation is a yield point only on what several actors use and one of
    them changes (``shared``), and which is not always used with one and the
    same lock held (``exposed``): taking the lock is then the operation that
    counts.  Whatever is found to be so in the middle of a search starts the
    search again.

    ``waits_for_anything`` where whoever waits to do the operation may be let go
    on by any step of any actor; everywhere else by operations on the same
    resource alone.
    """

    label: str
    actors: int = 0
    writers: int = 0
    shared: bool = False
    exposed: bool = False
    waits_for_anything: bool = False


@dataclass(slots=True, eq=False)
class Resource:
    """One shared thing: a table, a lock, a queue.

    ``identity`` is its name in keys, ``content`` the number of what it holds;
    it is ``stale`` until it is computed again, and ``touched`` once it was
    changed in a run.
    """

    uses: Uses
    identity: int
    content: int = 0
    stale: bool = False
    touched: bool = False


#: The kind of operation that asks how a transfer ended.
TRANSFER = "transfer"


class Operation(NamedTuple):
    """What an actor is about to do; it does it when it is chosen."""

    resource: Resource
    kind: str
    key: Any
    writes: bool
    ready: Callable[[], bool] | None = None
    outcomes: int = 1


class Choice(NamedTuple):
    """Which actor goes on, and which way, where its operation can end in several."""

    actor: int
    outcome: int = 0


def entry_of(key: Any) -> Hashable:
    """A key as what tells one entry from another: None where that is not certain.

    True, 1 and 1.0 are one key of a dict, and so are equal objects of any class.
    """
    return key if type(key) in (int, str, bytes) else None


class Access(NamedTuple):
    """What an operation does to which resource.

    ``key`` is None where it is about all of it; ``waits`` tells whether it is
    one of the world's, which takes its time.
    """

    resource: int
    key: Hashable
    writes: bool
    waits: bool = False

    def commutes(self, other: Access) -> bool:
        """Whether the two have the same effects in either order.

        Two writes to one container do not, whatever their keys are, since a
        dict remembers the order of its items.
        """
        if self.resource != other.resource or not (self.writes or other.writes):
            return True
        if self.writes and other.writes:
            return False
        return self.key is not None and other.key is not None and self.key != other.key


@dataclass(frozen=True, slots=True, order=True)
class Violation:
    """A property that a schedule broke, with the room and the facts that show it."""

    property: str
    room: Hashable
    detail: str = field(compare=True, default="")
