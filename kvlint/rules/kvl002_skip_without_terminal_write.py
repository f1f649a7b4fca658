"""# skip-without-terminal-write (KVL002)

## What it does
Reports a place where a worker drops a work item because of its room's shared state, or because it caught an exception and
did no more than log it, while the room may still be waiting for an end.

Every path from taking the item to taking the next one is followed, helpers included, for every status that may be stored.
A branch counts as a drop if the room can no longer be concluded once it is taken, although it could on the other side.
It is no finding where the status is terminal on that path, where the item was handed on, where the item itself decided
(a chunk that is not the last), or where the room's absence from a table implies its end because every removal from that
table does: see `kvlint inspect` for that catalogue.

## Why is this bad?
The chunk that was dropped is the one that would have concluded the room. Nobody else will: the status stays as it is, the
scheduler polls for ever, the client hangs, and nothing is logged.

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
        self.transfer_infos = {}
        threading.Thread(target=self.worker).start()
        threading.Thread(target=self.listener).start()

    def update_status(self, room, status: KVPoll):
        if self.request_status.get(room) not in (KVPoll.Failed, KVPoll.Success):
            self.request_status[room] = status

    def listener(self):
        while True:
            message = self.socket.recv_multipart()
            if message[0] == b"ABORT":
                self.transfer_infos.pop(int(message[1]), None)

    def worker(self):
        while True:
            chunk = self.queue.get()
            if chunk.room not in self.transfer_infos:
                continue
            self.send(chunk)
            self.update_status(chunk.room, KVPoll.Success)
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
        self.transfer_infos = {}
        threading.Thread(target=self.worker).start()
        threading.Thread(target=self.listener).start()

    def update_status(self, room, status: KVPoll):
        if self.request_status.get(room) not in (KVPoll.Failed, KVPoll.Success):
            self.request_status[room] = status

    def listener(self):
        while True:
            message = self.socket.recv_multipart()
            if message[0] == b"ABORT":
                self.transfer_infos.pop(int(message[1]), None)

    def worker(self):
        while True:
            chunk = self.queue.get()
            if chunk.room not in self.transfer_infos:
                if self.request_status.get(chunk.room) not in (None, KVPoll.Failed, KVPoll.Success):
                    self.update_status(chunk.room, KVPoll.Failed)
                continue
            self.send(chunk)
            self.update_status(chunk.room, KVPoll.Success)
```

## Fix
`skip-guard` (safe): before the item is dropped, a room that is present and not terminal is failed, with a recorded reason
where the class keeps reasons. Absent rooms and rooms that have succeeded are left alone.

## References
- SGLang 0.5.20, `srt/disaggregation/nixl/conn.py`, `transfer_worker`: a skip that is safe, because every removal follows a
  terminal status
"""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.analysis.facts import Facts
from kvlint.analysis.flows import flows_of_drop
from kvlint.analysis.plans import skip_guard
from kvlint.analysis.removals import RemovalSite
from kvlint.analysis.values import EXCEPTION, STATUS
from kvlint.analysis.workers import Drop
from kvlint.diagnostics import Finding, Related, Severity, SkipGuard
from kvlint.registry import rule


@rule(
    code="KVL002",
    name="skip-without-terminal-write",
    severity=Severity.ERROR,
    since="0.1.0",
    default=True,
    fix=SkipGuard,
)
def check(facts: Facts) -> Iterator[Finding]:
    """Report each drop that no removal catalogue excuses."""
    seen: set[tuple[int, int]] = set()
    for drop in facts.drops:
        sites = facts.unsafe_removals(drop)
        if not sites and not drop.causes & {STATUS, EXCEPTION} and facts.revival(drop) is None:
            continue
        place = facts.place_of(drop.frame)
        if place is None or place.module is not facts.module:
            continue
        node = drop.leave or drop.at
        location = facts.location(node)
        key = (location.span.line, location.span.column)
        if key in seen:
            continue
        seen.add(key)
        related = tuple(_related(facts, drop, sites))
        flows = flows_of_drop(facts, drop, sites[0] if sites else None)
        yield check.finding(location, _message(facts, drop, sites), related, skip_guard(facts, drop), flows)


def _message(facts: Facts, drop: Drop, sites: tuple[RemovalSite, ...]) -> str:
    enum = drop.worker.subject.enum
    stored = sorted(name for value in drop.stored if (name := enum.name_of(value)) is not None)
    revived = facts.revival(drop)
    evidence = "" if revived is None else f"; {revived}"
    if sites:
        site = sites[0]
        evidence = f"; {site.place.qualified} removes it at {facts.cited(site.node, site.place.module)}: {site.reason}"
    return (
        f"{drop.worker.place.qualified} drops a work item because {_why(drop, sites)}, while the status may be "
        f"{' or '.join(stored)}: nothing concludes the room any more and whoever waits for it hangs{evidence}"
    )


def _why(drop: Drop, sites: tuple[RemovalSite, ...]) -> str:
    tables = sorted(drop.causes - {STATUS, EXCEPTION})
    if tables and (sites or not drop.causes & {STATUS, EXCEPTION}):
        return f"its room is not in {sites[0].table if sites else tables[0]}"
    if EXCEPTION in drop.causes:
        return "an exception was caught and only logged"
    if tables:
        return f"of {', '.join(tables)} and the status it reads"
    return "of the status it reads"


def _related(facts: Facts, drop: Drop, sites: tuple[RemovalSite, ...]) -> Iterator[Related]:
    if drop.leave is not None:
        yield Related(facts.location(drop.at), "the decision to drop it")
    for site in sites:
        where = facts.location(site.node, site.place.module)
        yield Related(where, f"removes the room from {site.table}: {site.reason}")
