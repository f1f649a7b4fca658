"""# unused-noqa (KVL901)

## What it does
Reports a `# noqa` comment that names a kvlint code which does not exist, or which suppressed nothing on its line.

## Why is this bad?
A comment that outlives its finding hides the next one on the same line, and one with a misspelt code suppresses
nothing although it reads as if it did. Codes are compared as flake8 compares them: with their case, and a shorter code
stands for all that begin with it.

Codes of other tools are left alone, and so are kvlint's codes that did not run. Comments are read in files that a
rule could report in and in files that name one of kvlint's codes.

## Example
```python
class KVPoll:
    Failed = 0
    Success = 4


def is_over(status):
    return status in (KVPoll.Failed, KVPoll.Success)  # noqa: KVL001
```

## Use instead
```python
class KVPoll:
    Failed = 0
    Success = 4


def is_over(status):
    return status in (KVPoll.Failed, KVPoll.Success)
```

## Fix
None: the comment may stand beside other tools' codes and words of explanation.

## References
- [flake8, selecting and ignoring violations](https://flake8.pycqa.org/en/latest/user/violations.html)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvlint.diagnostics import Finding, Severity
from kvlint.registry import rule

if TYPE_CHECKING:
    from kvlint.analysis.facts import Facts


@rule(code="KVL901", name="unused-noqa", severity=Severity.WARNING, since="0.1.0", default=True, fix=None)
def check(facts: Facts) -> Iterator[Finding]:
    """Report nothing: only the engine knows which findings a comment suppressed, and makes these findings."""
    yield from ()
