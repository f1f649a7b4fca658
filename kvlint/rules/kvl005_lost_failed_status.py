"""# lost-failed-status (KVL005)

## What it does
Reports the definition of a status writer that drops a failure written to a live room, as a plain `max()` over an enum whose
failure is the smallest member does.

## Why is this bad?
Whoever failed the room believes it has ended. The stored status stays non-terminal, so the request goes on as if nothing had
happened: an aborted request is transferred to a peer that no longer waits for it, or it waits for ever itself.

## Example
```python
class KVPoll:
    Failed = 0
    Bootstrapping = 1
    Transferring = 3
    Success = 4


class Manager:
    def __init__(self):
        self.request_status = {}

    def update_status(self, room, status: KVPoll):
        self.request_status[room] = max(self.request_status.get(room, status), status)
```

## Use instead
```python
class KVPoll:
    Failed = 0
    Bootstrapping = 1
    Transferring = 3
    Success = 4


class Manager:
    def __init__(self):
        self.request_status = {}

    def update_status(self, room, status: KVPoll):
        stored = self.request_status.get(room)
        if stored in (KVPoll.Failed, KVPoll.Success):
            return
        if stored is None or status == KVPoll.Failed:
            self.request_status[room] = status
        else:
            self.request_status[room] = max(stored, status)
```

## Fix
`record-failure` (unsafe): a failure written to a room that is present and not terminal is stored. Callers that relied on the
failure being ignored behave differently afterwards.

## References
- SGLang 0.5.5, `srt/disaggregation/nixl/conn.py` line 266
"""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.analysis.facts import Facts
from kvlint.analysis.plans import record_failure
from kvlint.diagnostics import Finding, RecordFailure, Severity
from kvlint.registry import rule


@rule(
    code="KVL005",
    name="lost-failed-status",
    severity=Severity.ERROR,
    since="0.1.0",
    default=True,
    fix=RecordFailure,
)
def check(facts: Facts) -> Iterator[Finding]:
    """Report each writer defined in the module by the cells that lose a failure."""
    for writer in facts.judged_writers:
        cells = list(writer.table.lost_failures())
        if cells:
            moves = ", ".join(f"{stored} + {failure}" for stored, failure in cells)
            yield check.finding(
                facts.location(writer.method.node),
                f"{writer.method.owner.name}.{writer.name} loses a failure written to a live room ({moves} stays live): "
                f"an abort has no effect; table (stored: written) {writer.table.notation}",
                plan=record_failure(writer, cells[0][1]),
            )
