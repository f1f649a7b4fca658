"""Which lines differ between a revision and the working tree, as Git sees it.

The comparison starts at the merge base, so that what others have added to the
revision since then does not count; staged, unstaged and untracked changes do.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from kvlint.config import KvlintError
from kvlint.source.display import one_line
from kvlint.source.git import GitError, Repository, complaint, repository_at, run_git
from kvlint.source.text import read_bytes

_HUNK = re.compile(rb"^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_LONE_CARRIAGE_RETURN = re.compile(rb"\r(?!\n)")

# Modified, renamed, copied, of another type: what has a former version to compare with.
_COMPARABLE = frozenset("MRCT")
_GITLINK = "160000"

# Tags of `git ls-files -v`: cached, unmerged.  In small letters they are assumed to be unchanged, S is left out of a
# sparse checkout.
_SEEN = frozenset("HM")

# How files are compared, whatever anybody's configuration and attributes say.
_COMPARISON = (
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-relative",
    "-O/dev/null",
    "--ignore-submodules=all",
    "--find-renames=50%",
    "-l1000",
)
_LINES = ("--text", "--unified=0", "--inter-hunk-context=0", "--diff-algorithm=histogram", "--ignore-cr-at-eol")


class RevisionError(KvlintError):
    """A revision that nothing can be compared with."""


@dataclass(frozen=True, slots=True)
class ChangedLines:
    """What changed in one file.

    ``lines`` are the added and changed ones, ``gaps`` the lines (0 for none)
    after which something was removed, both sorted; ``whole`` for a file all of
    whose lines count.
    """

    lines: tuple[int, ...] = ()
    gaps: tuple[int, ...] = ()
    whole: bool = False

    def touch(self, lines: range) -> bool:
        """Whether a line among ``lines`` was changed, or one removed from between two of them."""
        if self.whole:
            return True
        return _any_within(self.lines, lines) or _any_within(self.gaps, range(lines.start, lines.stop - 1))

    def __bool__(self) -> bool:
        return self.whole or bool(self.lines) or bool(self.gaps)


_NOTHING = ChangedLines()
_EVERYTHING = ChangedLines(whole=True)


class Changes:
    """The changes since a revision, in every repository that is asked about."""

    def __init__(self, revision: str) -> None:
        """Compare with ``revision``; raises RevisionError if it cannot be one."""
        if not revision or revision.startswith("-"):
            raise RevisionError(f"{one_line(revision)!r} is no revision: give a branch, a tag or a commit")
        self._revision = revision
        self._repositories: dict[str, Repository] = {}
        self._comparisons: dict[str, _Comparison] = {}

    def require(self, folders: Iterable[str]) -> None:
        """Find the repositories of ``folders`` and what to compare with there; raises RevisionError and GitError."""
        for folder in folders:
            self._comparison(os.path.realpath(folder))

    def of(self, path: str) -> ChangedLines:
        """The changed lines of the file at absolute ``path``; raises RevisionError and GitError."""
        real = os.path.realpath(path)
        return self._comparison(os.path.dirname(real)).changed_lines(real)

    @cached_property
    def _home(self) -> str | None:
        """The working tree that the user stands in."""
        try:
            return repository_at(os.getcwd()).root
        except GitError:
            return None

    def _comparison(self, folder: str) -> _Comparison:
        repository = self._repositories.get(folder)
        if repository is None:
            repository = self._repositories[folder] = repository_at(folder)
        known = self._comparisons.get(repository.root)
        if known is None:
            known = self._comparisons[repository.root] = _Comparison(repository, self._base(repository))
        return known

    def _base(self, repository: Repository) -> str | None:
        """The commit to compare with; None if there was nothing of ``repository`` yet."""
        above = repository.tells("rev-parse", "--show-superproject-working-tree")
        if not above or repository.root == self._home:
            return _merge_base(repository, self._revision)
        # Seen from the project around it, a submodule is compared with the commit that the project had recorded.
        outer = self._comparison(os.path.realpath(above))
        return outer.recorded(repository.root)


class _Comparison:
    """One working tree beside one commit."""

    def __init__(self, repository: Repository, base: str | None) -> None:
        self._repository = repository
        self._base = base
        self._lines: dict[str, ChangedLines] = {}

    def changed_lines(self, path: str) -> ChangedLines:
        """The changed lines of the file at absolute, real ``path``."""
        name = os.path.relpath(path, self._repository.root)
        if name not in self._lines:
            self._lines[name] = self._compare(name, path)
        return self._lines[name]

    def recorded(self, root: str) -> str | None:
        """The commit of the submodule at ``root`` that the base names, None if it names none."""
        if self._base is None:
            return None
        name = os.path.relpath(root, self._repository.root)
        for entry in self._repository.listed("ls-tree", "-z", self._base, "--", name):
            mode, _, rest = entry.partition(" ")
            if mode == _GITLINK:
                commit = rest.split()[1]
                inner = Repository(root)
                if inner.tells("cat-file", "-e", f"{commit}^{{commit}}") is None:
                    raise RevisionError(
                        f"{one_line(root)}: the submodule lacks commit {commit[:12]}, to be compared with; "
                        "fetch it there (`git fetch --unshallow`, or all of the history)"
                    )
                return commit
        return None

    def _compare(self, name: str, path: str) -> ChangedLines:
        if not os.path.exists(path):
            return _NOTHING
        if self._base is None or name not in self._tracked:
            return _EVERYTHING
        if name not in self._changed:
            return _NOTHING
        status, former = self._changed[name]
        if status not in _COMPARABLE or _counts_lines_otherwise(path):
            return _EVERYTHING
        names = (name,) if former is None else (former, name)
        return _parsed(self._diff(*_LINES, self._base, "--", *names))

    @cached_property
    def _tracked(self) -> frozenset[str]:
        """The files whose changes Git sees; not those that it was told to take for unchanged."""
        return frozenset(entry[2:] for entry in self._repository.listed("ls-files", "-v", "-z") if entry[0] in _SEEN)

    @cached_property
    def _changed(self) -> dict[str, tuple[str, str | None]]:
        """Name → status letter and, of a renamed or copied file, its former name."""
        assert self._base is not None
        fields = iter(os.fsdecode(self._diff("--name-status", "-z", self._base, "--")).split("\0")[:-1])
        found: dict[str, tuple[str, str | None]] = {}
        for status in fields:
            former = next(fields) if status[0] in "RC" else None
            found[next(fields)] = (status[0], former)
        return found

    def _diff(self, *arguments: str) -> bytes:
        done = run_git(self._repository.root, ("diff", *_COMPARISON, *arguments))
        if done.returncode != 0:
            raise GitError(f"git diff failed in {one_line(self._repository.root)}: {complaint(done)}")
        return done.stdout


def _merge_base(repository: Repository, revision: str) -> str:
    shown, root = one_line(revision), one_line(repository.root)
    is_shallow = repository.tells("rev-parse", "--is-shallow-repository") == "true"
    hint = (
        "; this clone is shallow, so fetch all of its history first (actions/checkout: `fetch-depth: 0`, "
        "GitLab: `GIT_DEPTH: 0`, elsewhere: `git fetch --unshallow`)"
    )
    commit = repository.tells("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if commit is None:
        raise RevisionError(f"{shown!r} names no commit in {root}{hint if is_shallow else '; is it fetched?'}")
    if repository.tells("rev-parse", "--verify", "--quiet", "HEAD^{commit}") is None:
        raise RevisionError(f"{root} has no commit on its current branch yet, so it cannot be compared with {shown!r}")
    base = repository.tells("merge-base", commit, "HEAD")
    if not base:
        raise RevisionError(f"{shown!r} and HEAD have no commit in common in {root}{hint if is_shallow else ''}")
    return base


def _parsed(patch: bytes) -> ChangedLines:
    lines: list[int] = []
    gaps: list[int] = []
    for hunk in _HUNK.finditer(patch):
        start, count = int(hunk[1]), 1 if hunk[2] is None else int(hunk[2])
        if count:
            lines.extend(range(start, start + count))
        else:
            gaps.append(start)
    return ChangedLines(tuple(sorted(lines)), tuple(sorted(gaps)))


def _counts_lines_otherwise(path: str) -> bool:
    """Whether the file has line ends that Python knows and Git does not."""
    try:
        return _LONE_CARRIAGE_RETURN.search(read_bytes(path)) is not None
    except OSError:
        return False


def _any_within(numbers: tuple[int, ...], lines: range) -> bool:
    index = bisect_left(numbers, lines.start)
    return index < len(numbers) and numbers[index] < lines.stop
