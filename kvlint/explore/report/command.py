"""The command line that runs a schedule again."""

from __future__ import annotations

import shlex


def replay_command(tree: str, scheduler: bool, token: str) -> str:
    """As it can be pasted into a shell, in the folder that ``tree`` is relative to."""
    words = ["kvlint", "explore", *(() if scheduler else ("--no-scheduler",)), "--replay", token]
    words += ["--", tree] if tree.startswith("-") else [tree]
    return shlex.join(words)
