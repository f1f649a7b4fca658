"""A change as a unified diff that ``git apply`` takes; works on bytes, so that any encoding survives."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator

from kvlint.fixing.fixpoint import Change
from kvlint.source.text import diff_lines

_ODD = re.compile(rb'[\x00-\x1f"\\\x7f-\xff]')
_ESCAPES = {
    b"\a": b"\\a",
    b"\b": b"\\b",
    b"\t": b"\\t",
    b"\n": b"\\n",
    b"\v": b"\\v",
    b"\f": b"\\f",
    b"\r": b"\\r",
    b'"': b'\\"',
    b"\\": b"\\\\",
}


def unified(change: Change, display: str) -> bytes:
    """The diff of ``change`` with three lines of context; ``display`` names the file, relative to where it is applied.

    Empty if nothing changed.
    """
    name = os.fsencode(display).lstrip(b"/")
    lines = difflib.diff_bytes(
        difflib.unified_diff,
        diff_lines(change.before),
        diff_lines(change.after),
        _header_name(b"a/" + name),
        _header_name(b"b/" + name),
        lineterm=b"\n",
    )
    return b"".join(_closed(lines))


def _closed(lines: Iterator[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n"


def _header_name(name: bytes) -> bytes:
    """A file name as git writes it: quoted if it holds odd bytes, closed by a tab if it holds a space."""
    if _ODD.search(name):
        return b'"' + _ODD.sub(_escaped, name) + b'"'
    return name + b"\t" if b" " in name else name


def _escaped(match: re.Match[bytes]) -> bytes:
    byte = match[0]
    return _ESCAPES.get(byte) or b"\\%03o" % byte[0]
