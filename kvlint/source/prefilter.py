"""The text test that spares nearly every file its parse: does it speak of a status protocol at all?

It works on undecoded bytes and must never miss a file that a rule could report
in; how many files it lets through decides how long a run takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING

from kvlint.protocol import FAILURE_WORDS, SUCCESS_WORDS

if TYPE_CHECKING:
    from kvlint.config import ProtocolOverride


def _spellings(word: str) -> Iterator[str]:
    """``timed_out`` as members are usually written: timed_out, TIMED_OUT, TimedOut, timedout, TIMEDOUT, Timedout."""
    yield from (word, word.upper(), word.title().replace("_", ""))
    flat = word.replace("_", "")
    yield from (flat, flat.upper(), flat.title())


def _alternatives(words: Iterable[str]) -> str:
    """A pattern for any of ``words``; sharing first letters, it is twice as fast as a plain list of them."""
    by_initial = groupby(sorted(words), key=lambda word: word[0])
    return "|".join(f"{initial}(?:{'|'.join(word[1:] for word in group)})" for initial, group in by_initial)


_NAMES = _alternatives({spelling for word in FAILURE_WORDS | SUCCESS_WORDS for spelling in _spellings(word)})

# Every search starts with a literal, which makes it several times faster than
# one that starts with a name or a choice; the name in front of a hit is looked
# at afterwards.
_MEMBER = re.compile(rf"\.(?:{_NAMES})\b".encode())
_STORE = re.compile(rb"\[([A-Za-z_][\w.]*)\]\s*=[^=]")
_WRITE = {
    word: re.compile(word + rb"\w*\((?:[^()]|\([^()]{0,100}\)){0,100}?\b[A-Z]\w*\.[A-Z]\w+")
    for word in (b"status", b"poll")
}
_CODE = re.compile(rb"KVL\d")

_LONGEST_NAME = 80
_CLASS = re.compile(rb"(?<!\w)[A-Z]\w*$")
_STATUS_TABLE = re.compile(rb"(?:status|poll)\w*$")
_STATE_TABLE = re.compile(rb"states?$")
_TRANSFER_KEY = re.compile(rb"(?i)room|req|session|transfer")


def is_candidate(data: bytes, overrides: tuple[ProtocolOverride, ...] = ()) -> bool:
    """Whether a file with this content can hold a finding.

    It names a terminal member of some class (``KVPoll.Failed``), stores into a
    table of statuses, passes a member to something called after a status, or
    uses a name that ``overrides`` configures.
    """
    if any(_CLASS.search(_before(data, match)) for match in _MEMBER.finditer(data)):
        return True
    if any(_is_status_store(data, match) for match in _STORE.finditer(data)):
        return True
    if any(_passes_member(data, word) for word in _WRITE):
        return True
    configured = _configured(overrides) if overrides else None
    return configured is not None and configured.search(data) is not None


def may_name_codes(data: bytes) -> bool:
    """Whether the file can hold a noqa comment that names one of kvlint's codes."""
    return _CODE.search(data) is not None


def _passes_member(data: bytes, word: bytes) -> bool:
    """Whether something called after ``word`` is passed a member; `find` is faster than the search it often saves."""
    start = data.find(word)
    return start >= 0 and _WRITE[word].search(data, start) is not None


def _before(data: bytes, match: re.Match[bytes]) -> bytes:
    return data[max(0, match.start() - _LONGEST_NAME) : match.start()]


def _is_status_store(data: bytes, match: re.Match[bytes]) -> bool:
    """Whether a subscript store goes to a table of statuses, as ``self.request_status[room] = status`` does.

    "state" is a busier word (``hidden_states[index] = …``), so there the key
    must be a transfer's as well.
    """
    table = _before(data, match).lower()
    if b"stat" not in table and b"poll" not in table:
        return False
    if _STATUS_TABLE.search(table):
        return True
    return bool(_STATE_TABLE.search(table) and _TRANSFER_KEY.search(match[1]))


@lru_cache
def _configured(overrides: tuple[ProtocolOverride, ...]) -> re.Pattern[bytes] | None:
    names: set[str] = set()
    members: set[str] = set()
    for override in overrides:
        lone = (override.status_enum, override.table, override.writer, override.reader, override.failure_recorder)
        # A dotted name is looked for by its last part: a file may import the rest away.
        names |= {name.rpartition(".")[2] for name in lone if name}
        names |= {name.rpartition(".")[2] for name in (*override.terminal_helpers, *override.room_tables)}
        members |= {name.rpartition(".")[2] for name in (*override.failure, *override.success, *override.opening)}
    patterns = [rf"\b{re.escape(name)}\b" for name in sorted(names)]
    patterns += [rf"\.{re.escape(name)}\b" for name in sorted(members)]
    return re.compile("|".join(patterns).encode()) if patterns else None
