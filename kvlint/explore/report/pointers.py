"""What the reports point to: the command line that runs a schedule again, and the rules of `kvlint check`."""

from __future__ import annotations

import shlex

from kvlint.properties import rules_of
from kvlint.registry import known_codes


def replay_command(tree: str, scheduler: bool, token: str) -> str:
    """As it can be pasted into a shell, in the folder that ``tree`` is relative to."""
    words = ["kvlint", "explore", *(() if scheduler else ("--no-scheduler",)), "--replay", token]
    words += ["--", tree] if tree.startswith("-") else [tree]
    return shlex.join(words)


def rules_that_find(name: str) -> list[str]:
    """The codes of the rules that there are whose findings break the property ``name``."""
    return [code for code in rules_of(name) if code in known_codes()]
