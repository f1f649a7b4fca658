"""# room-recreated-by-late-write (KVL006)

## What it does
Reports the definition of a status writer that creates an absent room from a status other than those that open rooms.

Opening statuses are the live ones that constructors write, and those that a listener writes for a room whose metadata it
keeps, since a peer's metadata may come before the room's own sender is made. A configured `opening` replaces the latter.
Writers of tables from which nothing removes a room are not reported, nor are those that raise.

## Why is this bad?
The scheduler forgets a room with `clear()`, and a worker that is still busy with it writes its status once more. The room is
back as a zombie: nobody polls or clears it, and the next request that is given the same room number starts with its
status, as failed or as finished before it has begun.

## Example
```python
import threading


class KVPoll:
    Failed = 0
    Bootstrapping = 1
    Transferring = 3
    Success = 4


class Manager:
    def __init__(self):
        self.request_status = {}
        threading.Thread(target=self.worker).start()

    def update_status(self, room, status: KVPoll):
        if self.request_status.get(room) not in (KVPoll.Failed, KVPoll.Success):
            self.request_status[room] = status

    def worker(self):
        while True:
            chunk = self.queue.get()
            self.send(chunk)
            self.update_status(chunk.room, KVPoll.Success)


class Sender:
    def __init__(self, manager: Manager, room):
        self.manager = manager
        self.room = room
        self.manager.update_status(self.room, KVPoll.Bootstrapping)

    def clear(self):
        self.manager.request_status.pop(self.room, None)
```

## Use instead
```python
import threading


class KVPoll:
    Failed = 0
    Bootstrapping = 1
    Transferring = 3
    Success = 4


class Manager:
    def __init__(self):
        self.request_status = {}
        self._status_lock = threading.RLock()
        threading.Thread(target=self.worker).start()

    def update_status(self, room, status: KVPoll):
        with self._status_lock:
            if status != KVPoll.Bootstrapping and self.request_status.get(room) is None:
                return
            if self.request_status.get(room) not in (KVPoll.Failed, KVPoll.Success):
                self.request_status[room] = status

    def worker(self):
        while True:
            chunk = self.queue.get()
            self.send(chunk)
            self.update_status(chunk.room, KVPoll.Success)


class Sender:
    def __init__(self, manager: Manager, room):
        self.manager = manager
        self.room = room
        self.manager.update_status(self.room, KVPoll.Bootstrapping)

    def clear(self):
        with self.manager._status_lock:
            self.manager.request_status.pop(self.room, None)
```

## Fix
`opening-status` (unsafe): a write to an absent room is ignored unless it opens one. It goes into the definition that is wrong,
a base's rather than each override's. A failure written before its room exists is ignored, too, where it used to be kept.

## References
- SGLang 0.5.14, `srt/disaggregation/common/conn.py` line 214: a writer that ignores failures of absent rooms and nothing else
- SGLang 0.5.16, `nixl/conn.py` line 637: an override that keeps failures and still lets late writes through
- SGLang 0.5.20, `common/conn.py` line 395: the writer that lets only opening statuses create a room
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvlint.analysis.facts import Facts
from kvlint.diagnostics import Finding, OpeningStatus, Related, Severity
from kvlint.registry import rule

if TYPE_CHECKING:
    from kvlint.analysis.opening import Revival


@rule(
    code="KVL006",
    name="room-recreated-by-late-write",
    severity=Severity.WARNING,
    since="0.1.0",
    default=False,
    fix=OpeningStatus,
)
def check(facts: Facts) -> Iterator[Finding]:
    """Report each writer defined in the module by the statuses from which it creates a room."""
    # Imported here: most runs leave this rule off and must not pay for it.
    from kvlint.analysis.opening import opening_status, revivals

    for revival in revivals(facts):
        yield check.finding(
            facts.location(revival.writer.method.node),
            _message(facts, revival),
            _related(facts, revival),
            opening_status(revival),
        )


def _message(facts: Facts, revival: Revival) -> str:
    writer, removal = revival.writer, revival.removal
    late = "a late write"
    if revival.late is not None:
        where = facts.cited(revival.late.node, revival.late.place.module)
        late = f"a late write by the {revival.thread} ({revival.late.place.qualified}, {where})"
    return (
        f"{writer.method.owner.name}.{writer.name} creates an absent room from {', '.join(revival.written)}, though rooms "
        f"are opened with {', '.join(revival.opening)}: {late} after {removal.place.qualified} "
        f"({facts.cited(removal.node, removal.place.module)}) brings the room back as a zombie, and the next request of "
        f"that number starts with its status; table (stored: written) {writer.table.notation}"
    )


def _related(facts: Facts, revival: Revival) -> Iterator[Related]:
    removal, late = revival.removal, revival.late
    yield Related(facts.location(removal.node, removal.place.module), "the room is forgotten here")
    if late is not None:
        yield Related(facts.location(late.node, late.place.module), f"the {revival.thread} may write after that")
