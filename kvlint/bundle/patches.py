"""Patches that only insert lines: unified diffs without context, which hold no line of the file they are for.

Works on bytes and knows neither releases nor disks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from kvlint.bundle import BundleError
from kvlint.source.text import diff_lines

_HUNK = re.compile(rb"@@ -(\d+),0 \+(\d+)(?:,(\d+))? @@")
_PLAIN_PATH = re.compile(r"[\w.+-]+(?:/[\w.+-]+)*", re.ASCII)


class PatchError(BundleError):
    """A text that cannot be expressed as insertions, or a patch that is damaged or does not fit."""


@dataclass(frozen=True, slots=True)
class Insertion:
    """Lines, with their ends, put in after the line ``after`` (0: in front of all)."""

    after: int
    lines: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class FilePatch:
    """The insertions into the file at ``path``, relative to the folder that holds the package, from top to bottom."""

    path: str
    insertions: tuple[Insertion, ...]


def difference(path: str, before: bytes, after: bytes) -> FilePatch:
    """What has to be inserted into ``before`` to get ``after``; raises PatchError if something else changed."""
    _require_plain(path)
    old, new = diff_lines(before), diff_lines(after)
    # Not the similarity heuristics: what they call junk are lines like any other here.
    blocks = [code for code in SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if code[0] != "equal"]
    if all(tag == "insert" for tag, *_ in blocks):
        found = [Insertion(start, tuple(new[first:last])) for _, start, _, first, last in blocks]
    else:
        # The matcher prefers long runs and may miss that every old line is there, in order.
        found = list(_earliest(path, old, new))
    if any(not line.endswith(b"\n") for insertion in found for line in insertion.lines):
        raise PatchError(f"{path}: the fix inserts behind a last line without an end; that needs more than insertions")
    return FilePatch(path, tuple(found))


def forward(patch: FilePatch, before: bytes) -> bytes:
    """``before`` with the insertions; raises PatchError if it is too short."""
    old = diff_lines(before)
    pieces: list[bytes] = []
    done = 0
    for insertion in patch.insertions:
        if insertion.after > len(old):
            raise PatchError(f"{patch.path}: has {len(old)} lines, the patch inserts after line {insertion.after}")
        pieces += [*old[done : insertion.after], *insertion.lines]
        done = insertion.after
    return b"".join((*pieces, *old[done:]))


def backward(patch: FilePatch, after: bytes) -> bytes:
    """``after`` without the insertions; raises PatchError if they are not there."""
    new = diff_lines(after)
    pieces: list[bytes] = []
    done = grown = 0
    for insertion in patch.insertions:
        first = insertion.after + grown
        last = first + len(insertion.lines)
        if tuple(new[first:last]) != insertion.lines:
            raise PatchError(f"{patch.path}: the lines that the patch inserts are not there")
        pieces += new[done:first]
        done, grown = last, grown + len(insertion.lines)
    return b"".join((*pieces, *new[done:]))


def line_before(patch: FilePatch, line: int) -> int:
    """The line of the unpatched file that is ``line`` of the patched one; for an inserted line, the one before it."""
    grown = 0
    for insertion in patch.insertions:
        if line <= insertion.after + grown:
            break
        if line <= insertion.after + grown + len(insertion.lines):
            return max(1, insertion.after)
        grown += len(insertion.lines)
    return line - grown


def render(header: str, patches: Sequence[FilePatch]) -> bytes:
    """A patch file: ``header``, which every patch program skips, and the diffs."""
    return header.encode() + b"".join(piece for patch in patches for piece in _rendered(patch))


def parse(name: str, text: bytes) -> tuple[FilePatch, ...]:
    """The patches in a file that `render` wrote, called ``name`` in errors; raises PatchError for any other."""
    lines = diff_lines(text)
    starts = [number for number, line in enumerate(lines) if line.startswith(b"--- a/")]
    if not starts:
        raise PatchError(f"{name}: holds no diff")
    ends = [*starts[1:], len(lines)]
    return tuple(_parsed(name, lines[start:end]) for start, end in zip(starts, ends, strict=True))


def _earliest(path: str, old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[Insertion]:
    """Insertions, each old line taken at its first occurrence; raises PatchError where one is missing."""
    position = 0
    for number, line in enumerate(old):
        start = position
        while position < len(new) and new[position] != line:
            position += 1
        if position == len(new):
            raise PatchError(f"{path}: the fix changes or removes line {number + 1}, which insertions cannot express")
        if position > start:
            yield Insertion(number, tuple(new[start:position]))
        position += 1
    if position < len(new):
        yield Insertion(len(old), tuple(new[position:]))


def _rendered(patch: FilePatch) -> Iterator[bytes]:
    path = patch.path.encode()
    yield b"--- a/%s\n+++ b/%s\n" % (path, path)
    grown = 0
    for insertion in patch.insertions:
        count = len(insertion.lines)
        first = insertion.after + grown + 1
        yield b"@@ -%d,0 +%d%s @@\n" % (insertion.after, first, b"" if count == 1 else b",%d" % count)
        yield from (b"+" + line for line in insertion.lines)
        grown += count


def _parsed(name: str, lines: Sequence[bytes]) -> FilePatch:
    path = lines[0].removeprefix(b"--- a/").rstrip(b"\n").decode("utf-8", "replace")
    _require_plain(path)
    if lines[1:2] != [b"+++ b/" + lines[0].removeprefix(b"--- a/")]:
        raise PatchError(f"{name}: the two names of {path} differ")
    insertions: list[Insertion] = []
    position = 2
    while position < len(lines):
        match = _HUNK.fullmatch(lines[position].rstrip(b"\n"))
        if match is None:
            raise PatchError(f"{name}: {path}: not a hunk that inserts: {lines[position][:60]!r}")
        count = 1 if match[3] is None else int(match[3])
        block = lines[position + 1 : position + 1 + count]
        if len(block) < count or not all(line.startswith(b"+") and line.endswith(b"\n") for line in block):
            raise PatchError(f"{name}: {path}: the hunk after line {int(match[1])} is cut off")
        insertions.append(Insertion(int(match[1]), tuple(line[1:] for line in block)))
        position += 1 + count
    if [insertion.after for insertion in insertions] != sorted({insertion.after for insertion in insertions}):
        raise PatchError(f"{name}: {path}: its hunks are out of order")
    return FilePatch(path, tuple(insertions))


def _require_plain(path: str) -> None:
    """Refuse paths that leave the folder, or that patch programs would have to quote."""
    if not _PLAIN_PATH.fullmatch(path) or not {".", ".."}.isdisjoint(path.split("/")):
        raise PatchError(f"{path!r}: no plain relative path of a file")
