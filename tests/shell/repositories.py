"""Git repositories for tests, and what kvlint says of them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from click.testing import Result

CANDIDATE = "status = KVPoll.Failed\n"
FILE = CANDIDATE + "first = LOST\nmiddle = 1\nlast = LOST\n"


def git(*arguments: str, folder: str = ".") -> str:
    command = ["git", "-c", "protocol.file.allow=always", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return os.fsdecode(done.stdout).strip()


def write(path: str, text: str | bytes) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text)


def commit(message: str = "more", folder: str = ".") -> None:
    git("add", "--all", folder=folder)
    git("commit", "--quiet", "--allow-empty", "--message", message, folder=folder)


def repository(folder: str = ".", **files: str | bytes) -> None:
    """A repository whose branch ``main`` has one commit of ``files`` (without their suffix)."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    git("init", "--quiet", "--initial-branch", "main", folder=folder)
    for name, text in files.items():
        write(f"{folder}/{name}.py", text)
    commit("base", folder)


def places(result: Result) -> list[str]:
    assert result.exit_code in (0, 1), result.stderr
    return re.findall(r"^(\S.*?:\d+):\d+: KVL", result.stdout, flags=re.MULTILINE)


def refusal(result: Result) -> str:
    assert (result.exit_code, result.stdout) == (2, "")
    return result.stderr
