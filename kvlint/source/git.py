"""Questions to Git about a working tree, put so that neither its environment nor anybody's settings change an answer.

Every call is a list of arguments without a shell.  Names come back as they are
on disk, undecoded bytes included (`os.fsdecode`).
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from kvlint.config import KvlintError
from kvlint.source.display import one_line

# Settings that run programs or colour what is read here.
_SETTINGS = ("-c", "core.fsmonitor=false", "-c", "core.quotePath=false", "-c", "color.ui=false")

# Variables that say what the configuration is, not which repository is meant.
_KEPT = ("GIT_CONFIG", "GIT_EXEC_PATH", "GIT_CEILING", "GIT_DISCOVERY", "GIT_ALLOW", "GIT_SSH", "GIT_ASKPASS")


class GitError(KvlintError):
    """Git is missing, or cannot answer: what it said, and what to do."""


@dataclass(frozen=True, slots=True)
class Repository:
    """A working tree; ``root`` is the absolute path of its topmost folder."""

    root: str

    def ask(self, *arguments: str) -> str:
        """What a Git command prints; raises GitError if it fails."""
        done = run_git(self.root, arguments)
        if done.returncode != 0:
            raise GitError(f"git {arguments[0]} failed in {one_line(self.root)}: {complaint(done)}")
        return os.fsdecode(done.stdout)

    def tells(self, *arguments: str) -> str | None:
        """The line that a Git command prints (empty if none), None if it fails."""
        done = run_git(self.root, arguments)
        return os.fsdecode(done.stdout.removesuffix(b"\n")) if done.returncode == 0 else None

    def listed(self, *arguments: str) -> list[str]:
        """The names that a Git command ends with a null byte each; raises GitError if it fails."""
        return self.ask(*arguments).split("\0")[:-1]


def repository_at(folder: str) -> Repository:
    """The working tree that ``folder`` lies in; raises GitError."""
    done = run_git(folder, ("rev-parse", "--show-toplevel"))
    if done.returncode == 0:
        return Repository(os.path.realpath(os.fsdecode(done.stdout.removesuffix(b"\n"))))
    said = complaint(done)
    if "not a git repository" in said:
        raise GitError(f"{one_line(folder)} lies in no Git repository")
    if "must be run in a work tree" in said:
        raise GitError(f"{one_line(folder)} lies in a Git repository, but not in a working tree of it")
    raise GitError(f"{one_line(folder)}: git says: {said}")


def run_git(folder: str, arguments: tuple[str, ...]) -> subprocess.CompletedProcess[bytes]:
    """Run a Git command in ``folder``; raises GitError if there is no Git."""
    command = ["git", "--no-pager", "--literal-pathspecs", *_SETTINGS, *arguments]
    try:
        return subprocess.run(
            command,
            cwd=folder,
            env=_environment(os.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        if isinstance(error, FileNotFoundError) and os.path.isdir(folder):
            raise GitError("git was not found: install it, or put it on PATH") from error
        raise GitError(f"git cannot be run in {one_line(folder)}: {error.strerror or error}") from error


def complaint(done: subprocess.CompletedProcess[bytes]) -> str:
    """What a failed command said."""
    lines = os.fsdecode(done.stderr).strip().splitlines()
    return one_line("; ".join(line.strip() for line in lines if line.strip())) or f"exit status {done.returncode}"


def _environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment without what names a repository (hooks are given that), changes answers or translates them."""
    kept = {name: value for name, value in inherited.items() if not name.startswith("GIT_") or name.startswith(_KEPT)}
    return {
        **kept,
        "LC_ALL": "C",
        # No index is written, no user asked.
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
    }
