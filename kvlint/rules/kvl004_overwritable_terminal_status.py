"""# overwritable-terminal-status (KVL004)

## What it does
Reports the definition of a status writer whose transition table lets a failure become anything else, or a success
non-terminal again.

The table is computed by running the writer's body on every stored status (an absent room included) and every written one,
following `super()` and helpers. How the writer is built does not matter; what it cannot decide is not reported. A success
that becomes a failure is allowed.

## Why is this bad?
A terminal status is what the scheduler waits for. A writer that forgets it can lose an abort or pin a room in a status that
nobody will change again; whether that happens is left to the order in which threads run.

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
        if room in self.request_status and status != KVPoll.Failed:
            status = max(self.request_status[room], status)
        self.request_status[room] = status
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
        if self.request_status.get(room) in (KVPoll.Failed, KVPoll.Success):
            return
        if room in self.request_status and status != KVPoll.Failed:
            status = max(self.request_status[room], status)
        self.request_status[room] = status
```

## Fix
`sticky-terminal` (safe): once a terminal status is stored, later writes are ignored. It goes into the definition that is
wrong, a base's rather than each override's, and reads the table with `.get`, because a room may be cleared in between.

## References
- SGLang 0.5.14, `srt/disaggregation/common/conn.py` line 214: the overwritable writer
- SGLang 0.5.16, `nixl/conn.py` line 637: an override that makes the failure final
- SGLang 0.5.20, `common/conn.py` line 395: the fully guarded writer
"""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.analysis.facts import Facts
from kvlint.analysis.infer import Writer
from kvlint.analysis.plans import sticky_terminal
from kvlint.analysis.values import Stored
from kvlint.diagnostics import Finding, Severity, StickyTerminal
from kvlint.registry import rule


@rule(
    code="KVL004",
    name="overwritable-terminal-status",
    severity=Severity.ERROR,
    since="0.1.0",
    default=True,
    fix=StickyTerminal,
)
def check(facts: Facts) -> Iterator[Finding]:
    """Report each writer defined in the module by the cells that overwrite a terminal status."""
    for writer in facts.judged_writers:
        cells = list(dict.fromkeys(writer.table.overwritten()))
        if cells:
            yield check.finding(
                facts.location(writer.method.node), _message(writer, cells), plan=sticky_terminal(writer)
            )


def _message(writer: Writer, cells: list[tuple[str, str, Stored]]) -> str:
    enum = writer.subject.enum
    moves = [f"{stored} + {written} -> {enum.name_of(outcome)}" for stored, written, outcome in cells]
    return (
        f"{writer.method.owner.name}.{writer.name} lets a terminal status be overwritten ({', '.join(moves)}): an abort "
        f"can be lost or the request pinned; table (stored: written) {writer.table.notation}"
    )
