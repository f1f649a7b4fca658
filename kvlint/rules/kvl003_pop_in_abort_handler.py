"""# pop-in-abort-handler (KVL003)

## What it does
Reports an abort handler that removes a room from a table which a worker consults, on a path where the room may not have
ended for good, while the worker does not conclude a room that it misses in that table.

A handler is what runs on an abort message (by its tag, also after a negative test of it, or as a method called there) or
carries the word in its name. The room has not ended for good if its status may be non-terminal, if a write of the worker
can still undo the terminal status, or if the room does not exist yet: its sender then opens it without metadata.

## Why is this bad?
The removal takes away what the worker needs to bring the room to an end. The next chunk finds nothing and is dropped, and
the status stays non-terminal for ever.

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

    def clear(self, room):
        self.request_status.pop(room, None)
        self.transfer_infos.pop(room, None)
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
        self.status_lock = threading.Lock()
        self.transfer_infos = {}
        threading.Thread(target=self.worker).start()
        threading.Thread(target=self.listener).start()

    def update_status(self, room, status: KVPoll):
        with self.status_lock:
            if self.request_status.get(room) not in (KVPoll.Failed, KVPoll.Success):
                self.request_status[room] = status

    def listener(self):
        while True:
            message = self.socket.recv_multipart()
            if message[0] == b"ABORT":
                self.update_status(int(message[1]), KVPoll.Failed)

    def worker(self):
        while True:
            chunk = self.queue.get()
            if self.request_status.get(chunk.room) == KVPoll.Failed:
                continue
            self.send(chunk)
            self.update_status(chunk.room, KVPoll.Success)

    def clear(self, room):
        with self.status_lock:
            self.request_status.pop(room, None)
        self.transfer_infos.pop(room, None)
```

## Fix
`defer-abort-cleanup` (unsafe): the removal is dropped where `clear()` or the worker's success path removes the room anyway.
Failing the room in the worker (`skip-guard`, KVL002) also closes the finding.

## References
- SGLang 0.5.14, `srt/disaggregation/mooncake/conn.py` line 1417: an abort branch that removes nothing
"""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.analysis.facts import Facts
from kvlint.analysis.flows import flows_of_drop
from kvlint.analysis.plans import defer_abort_cleanup
from kvlint.analysis.removals import RemovalSite, Verdict
from kvlint.analysis.values import EXCEPTION, STATUS
from kvlint.analysis.workers import Drop
from kvlint.diagnostics import DeferAbortCleanup, Finding, Related, Severity
from kvlint.registry import rule


@rule(
    code="KVL003",
    name="pop-in-abort-handler",
    severity=Severity.ERROR,
    since="0.1.0",
    default=True,
    fix=DeferAbortCleanup,
)
def check(facts: Facts) -> Iterator[Finding]:
    """Report each unsafe removal of an abort handler that a worker's drop depends on, in this module or one built on it."""
    seen: set[object] = set()
    for source in (facts, *facts.dependents):
        for drop in source.drops:
            for site in _abort_removals(source, drop):
                if site.place.module is facts.module and site.node not in seen:
                    seen.add(site.node)
                    plan = defer_abort_cleanup(source, site, drop)
                    where = (source.location(drop.leave or drop.at), "the worker drops the item here")
                    yield check.finding(
                        facts.location(site.node),
                        _message(source, site, drop),
                        (Related(*where),),
                        plan,
                        flows_of_drop(source, drop, site),
                    )


def _abort_removals(facts: Facts, drop: Drop) -> Iterator[RemovalSite]:
    cls = drop.worker.holder
    if cls is not None:
        for table in sorted(drop.causes - {STATUS, EXCEPTION}):
            for site in facts.removals(table, cls):
                if site.abort is not None and site.verdict is Verdict.UNSAFE:
                    yield site


def _message(facts: Facts, site: RemovalSite, drop: Drop) -> str:
    node = drop.leave or drop.at
    return (
        f"the abort handler {site.place.qualified} removes a room from {site.table} that may not have ended "
        f"({site.reason}); the worker {drop.worker.place.qualified} consults it and does not conclude a room that it "
        f"misses there ({facts.cited(node)}): the request hangs"
    )
