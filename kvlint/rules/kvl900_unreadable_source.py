"""# unreadable-source (KVL900)

## What it does
Reports a file that cannot be read, or that speaks of a status protocol and cannot be decoded or parsed.

## Why is this bad?
Nothing in the file was checked. A backend whose connector does not parse under this Python, or whose encoding
declaration lies, would otherwise pass without a word.

The run goes on with the other files. Files that never mention a status protocol are not parsed at all, so their
mistakes are not reported here; a syntax check is the business of other tools.

## Example
```python
class KVPoll:
    Failed = 0
    Success = 4


def conclude(manager, room):
    print "giving up on", room
    manager.update_status(room, KVPoll.Failed)
```

## Use instead
```python
class KVPoll:
    Failed = 0
    Success = 4


def conclude(manager, room):
    print("giving up on", room)
    manager.update_status(room, KVPoll.Failed)
```

## Fix
None: only its author knows what the file was meant to say. `exclude` leaves a file out on purpose.

## References
- [PEP 263, source code encodings](https://peps.python.org/pep-0263/)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvlint.diagnostics import Finding, Severity
from kvlint.registry import rule

if TYPE_CHECKING:
    from kvlint.analysis.facts import Facts


@rule(code="KVL900", name="unreadable-source", severity=Severity.ERROR, since="0.1.0", default=True, fix=None)
def check(facts: Facts) -> Iterator[Finding]:
    """Report nothing: where there are facts the file was readable; the engine makes these findings."""
    yield from ()
