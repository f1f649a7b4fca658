"""A small backend with one finding, the real command, and what its fix may do to a file."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

BACKEND = """\
class Poll:
    Failed = 0
    Bootstrapping = 1
    Success = 2


class Manager:
    def __init__(self):
        self.statuses = {}

    def update(self, room, status):
        self.statuses[room] = status

    def finish(self, room):
        self.update(room, Poll.Success)
"""
FINDING = "11:5: KVL004"
INSERTED = [
    "# A stored terminal status is final.",
    "if self.statuses.get(room) in (Poll.Failed, Poll.Success):",
    "return",
]


def kvlint(folder: Path, *arguments: str | bytes) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "kvlint", *arguments]
    # A run that waits for a pipe's other end would wait for ever.
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False, timeout=300)


def assert_only_inserted(before: bytes, after: bytes) -> None:
    ast.parse(after)
    old, new = (re.split(rb"(?<=\n)|(?<=\r)(?!\n)", content) for content in (before, after))
    start = next(index for index, line in enumerate(new) if b"# A stored terminal status" in line)
    inserted = new[start : start + 3]
    assert [line.strip().decode() for line in inserted] == INSERTED
    assert new[:start] + new[start + 3 :] == old
    ends = {re.sub(rb"[^\r\n]", b"", line) for line in old if line.endswith((b"\r", b"\n"))}
    assert {re.sub(rb"[^\r\n]", b"", line) for line in inserted} <= ends
