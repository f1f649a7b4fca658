"""A file's text as numbered lines that go back to exactly the bytes they came from; knows nothing of syntax trees."""

from __future__ import annotations

import codecs
import re
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass

from kvlint.fixing.refusals import EditRefused

# Only what Python's own reader takes for a line end: str.splitlines() knows more (form feed, U+2028, …).
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


@dataclass(frozen=True, slots=True)
class Document:
    """Source text; ``lines`` keep their ends, ``mark`` is the byte order mark or empty."""

    path: str
    lines: tuple[str, ...]
    encoding: str
    mark: bytes

    @property
    def text(self) -> str:
        """The whole text, without the mark."""
        return "".join(self.lines)

    def newline_near(self, index: int) -> str:
        """The line end to use for a line that is put before ``lines[index]``: its neighbour's."""
        for line in (*reversed(self.lines[max(index - 1, 0) : index]), *self.lines[index:], *self.lines):
            if end := line_end(line):
                return end
        return "\n"


def line_end(line: str) -> str:
    """The line end that closes ``line``; empty for a last line without one."""
    return line[len(line.rstrip("\r\n")) :]


def split_lines(text: str) -> tuple[str, ...]:
    """The lines of ``text`` with their ends, numbered as Python's own reader numbers them."""
    return tuple(_LINE.findall(text))


def read_document(path: str, data: bytes) -> Document:
    """Decode ``data`` as Python would.

    Raises:
        EditRefused: it cannot be decoded, or encoding it again would give other bytes.
    """
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    try:
        encoding = _encoding_of(data)
        text = data[len(mark) :].decode(encoding)
        same = text.encode(encoding) == data[len(mark) :]
    except (SyntaxError, LookupError, UnicodeError) as error:
        raise EditRefused(path, f"cannot be decoded: {error}") from error
    if not same:
        raise EditRefused(path, f"does not survive decoding as {encoding} and encoding again")
    return Document(path, split_lines(text), encoding, mark)


def _encoding_of(data: bytes) -> str:
    # A declaration counts in the first two lines, which may end in a lone carriage return that readline() ignores.
    head = iter(re.split(rb"(?<=\n)|(?<=\r)(?!\n)", data[:4096])[:2])
    encoding, _ = tokenize.detect_encoding(lambda: next(head, b""))
    return "utf-8" if encoding == "utf-8-sig" else encoding


def encode(document: Document, lines: Sequence[str]) -> bytes:
    """The bytes of ``document`` with ``lines`` for its own.

    Raises:
        EditRefused: a new line holds a character that the file's encoding lacks.
    """
    try:
        return document.mark + "".join(lines).encode(document.encoding)
    except UnicodeError as error:
        raise EditRefused(document.path, f"the edit cannot be written in {document.encoding}: {error}") from error
