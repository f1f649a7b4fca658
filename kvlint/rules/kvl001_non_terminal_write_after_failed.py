"""# non-terminal-write-after-failed (KVL001)

## What it does
Reports a write of a non-terminal status, outside the constructor that opens the room, that can replace a stored failure.

The call is followed to the writer it reaches from its class, across files and `super()`, and that writer's whole
transition table is computed; a direct store into the status table has no writer to stop it. A test of the stored status
just before the write narrows the window and does not close it, unless test and write stand under one lock that every
write of the failure takes too.

## Why is this bad?
The thread that saw the failure (an abort from the peer, a lost node) has written it and moved on. The late write of
another thread puts the room back to a status that nobody will ever change again: the scheduler polls it for ever, the
client hangs, and nothing is logged.

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
        if room in self.request_status and status != KVPoll.Failed:
            status = max(self.request_status[room], status)
        self.request_status[room] = status

    def worker(self):
        while True:
            chunk = self.queue.get()
            self.send(chunk)
            if chunk.is_last:
                self.update_status(chunk.room, KVPoll.Success)
            else:
                self.update_status(chunk.room, KVPoll.Transferring)
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
        threading.Thread(target=self.worker).start()

    def update_status(self, room, status: KVPoll):
        if self.request_status.get(room) in (KVPoll.Failed, KVPoll.Success):
            return
        if room in self.request_status and status != KVPoll.Failed:
            status = max(self.request_status[room], status)
        self.request_status[room] = status

    def worker(self):
        while True:
            chunk = self.queue.get()
            self.send(chunk)
            if chunk.is_last:
                self.update_status(chunk.room, KVPoll.Success)
            else:
                self.update_status(chunk.room, KVPoll.Transferring)
```

## Fix
`sticky-terminal` (safe) in the writer: once a terminal status is stored, later writes are ignored. A direct store has no
automatic fix.

## References
- SGLang 0.5.14, `srt/disaggregation/nixl/conn.py` lines 718, 881 and 1882, with the writer in `common/conn.py` line 214
- SGLang 0.5.20, `common/conn.py` line 395: the writer that keeps a stored failure
"""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.analysis.exposure import Exposed, exposed_writes
from kvlint.analysis.facts import Facts
from kvlint.analysis.flows import flows_of_overwrite, other_failure
from kvlint.analysis.plans import sticky_terminal
from kvlint.analysis.threads import thread_of
from kvlint.diagnostics import Finding, Related, Severity, StickyTerminal
from kvlint.registry import rule


@rule(
    code="KVL001",
    name="non-terminal-write-after-failed",
    severity=Severity.ERROR,
    since="0.1.0",
    default=True,
    fix=StickyTerminal,
)
def check(facts: Facts) -> Iterator[Finding]:
    """Report each exposed write with the writer and table cell that let it through."""
    for exposed in exposed_writes(facts):
        writer = exposed.write.writer
        plan = None if writer is None else sticky_terminal(writer)
        yield check.finding(
            facts.location(exposed.write.node),
            _message(facts, exposed),
            _related(facts, exposed),
            plan,
            flows_of_overwrite(facts, exposed),
        )


def _message(facts: Facts, exposed: Exposed) -> str:
    write, enum = exposed.write, exposed.write.subject.enum.info.name
    thread = thread_of(write.place)
    consequence = f"then the room is pinned in {exposed.outcome}: polled for ever, the client hangs"
    if exposed.outcome in write.subject.enum.successes:
        consequence = f"then the failure is lost and the room counts as {exposed.outcome}"
    if write.writer is None:
        where = f"the direct store into {write.subject.attribute} has no writer to stop it"
    else:
        method = write.writer.method
        where = (
            f"{method.owner.name}.{write.writer.name} ({facts.cited(method.node, method.owner.module)}) "
            f"turns {exposed.failure} into {exposed.outcome}"
        )
    return (
        f"{enum}.{exposed.member} written by the {thread} ({write.place.qualified}) can replace a stored "
        f"{exposed.failure}: {where}; {_other_thread(facts, exposed)}{consequence}"
    )


def _other_thread(facts: Facts, exposed: Exposed) -> str:
    found = other_failure(facts, exposed)
    if found is None:
        return ""
    thread, write = found
    return f"the {thread} writes {exposed.failure} at {facts.cited(write.node, write.place.module)}; "


def _related(facts: Facts, exposed: Exposed) -> Iterator[Related]:
    writer = exposed.write.writer
    if writer is not None:
        module = writer.method.owner.module
        yield Related(
            facts.location(writer.method.node, module),
            f"the writer; its table (stored: written) is {writer.table.notation}",
        )
    found = other_failure(facts, exposed)
    if found is not None:
        thread, write = found
        yield Related(facts.location(write.node, write.place.module), f"the {thread} writes {exposed.failure} here")
