"""Outcomes of earlier runs: found again if nothing that they rest on has changed.

An outcome rests on kvlint, Python and the settings (`identity`), on the file's
own bytes, on those of the files that were read for its sake, and on where
modules were looked for, found or not.  All of it is compared by content; times
and sizes of files are not trusted, as they survive an edit where a tool
restores them.
"""

from __future__ import annotations

import contextlib
import hashlib
from functools import lru_cache

from kvlint.cache.identity import identity
from kvlint.cache.records import Kept, Unstorable, decode, encode, outcome_of
from kvlint.cache.store import CacheUnusable, Store
from kvlint.config import Config
from kvlint.file_check import FileCheck, Outcome
from kvlint.semantics.disk import Asked, Disk
from kvlint.source.text import read_bytes


class Results:
    """The outcomes under ``config`` that are kept in ``folder``; raises CacheUnusable.

    The disk is asked each question once, as in a `World`.
    """

    def __init__(self, folder: str, config: Config) -> None:
        self.folder = folder
        self._store = Store(folder)
        try:
            self._identity = identity(config)
        except OSError as error:
            self._store.close()
            raise CacheUnusable(f"kvlint's own source cannot be read: {error}") from error
        self._disk = Disk(config.root_folders)
        self._digest_of_file = lru_cache(maxsize=None)(_digest_of_file)

    def close(self) -> None:
        """Let go of the folder."""
        self._store.close()

    def find(self, path: str, data: bytes) -> Outcome | None:
        """What the file at absolute ``path`` with content ``data`` came to, None where that has to be computed."""
        blob = self._store.get(self._key(path, _digest(data)))
        if blob is None:
            return None
        try:
            kept = decode(blob)
            return outcome_of(path, kept) if self._holds(kept) else None
        except Unstorable:
            return None

    def check(self, check_file: FileCheck, path: str) -> Outcome:
        """Check a candidate and keep what it came to."""
        outcome = check_file.check(path)
        world = check_file.world
        # What a defect or the depth of the stack cut short must not outlive them.
        if outcome.crash is None and not (outcome.failed and world.has_parsed(path)):
            with contextlib.suppress(RecursionError):
                self._keep(outcome, *world.seen_from(path))
        return outcome

    def check_comments(self, check_file: FileCheck, path: str, data: bytes) -> Outcome:
        """Look at the noqa comments of a file that is no candidate, and keep what that came to."""
        outcome = check_file.check_comments(path, data)
        self._keep(outcome, {path: data}, Asked())
        return outcome

    def _keep(self, outcome: Outcome, contents: dict[str, bytes | None], asked: Asked) -> None:
        digests = {path: None if data is None else _digest(data) for path, data in contents.items()}
        own = digests.pop(outcome.path, None)
        if own is None:
            return
        try:
            self._store.put(self._key(outcome.path, own), encode(outcome, digests, asked))
        except Unstorable:
            # It will be computed each time.
            return

    def _key(self, path: str, digest: bytes) -> str:
        return hashlib.sha256(self._identity + digest + path.encode(errors="surrogateescape")).hexdigest()

    def _holds(self, kept: Kept) -> bool:
        """Whether the disk would answer as it did."""
        asked = kept.asked()
        return (
            all(self._digest_of_file(other) == digest for other, digest in kept.contents.items())
            and all(self._disk.finds(*key) == answer for key, answer in asked.finds.items())
            and all(self._disk.stands(stem) == answer for stem, answer in asked.stands.items())
            and all(self._disk.neighbours(*key) == answer for key, answer in asked.neighbours.items())
        )


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _digest_of_file(path: str) -> bytes | None:
    try:
        return _digest(read_bytes(path))
    except OSError:
        return None
