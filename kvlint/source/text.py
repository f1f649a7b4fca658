"""One file's bytes, the text they stand for, and its syntax tree, with positions as an editor shows them.

Nothing here knows what a status protocol is.  Every way in which bytes can fail
to be a Python module ends in one exception, `UnreadableSource`.
"""

from __future__ import annotations

import ast
import codecs
import io
import os
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

BOM = codecs.BOM_UTF8

# PEP 263: a comment on the first line, or on the second if the first is blank or a comment.
_COOKIE = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK_OR_COMMENT = re.compile(rb"[ \t\f]*(?:#.*)?$")
_LINE_END = re.compile(rb"\r\n|\r|\n")


class UnreadableSource(Exception):
    """A file whose bytes could not be read, decoded or parsed; ``line`` is the place where that showed."""

    def __init__(self, path: str, reason: str, line: int | None = None) -> None:
        super().__init__(path, reason, line)
        self.path = path
        self.reason = reason
        self.line = line

    def __str__(self) -> str:
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{place}: {self.reason}"


@dataclass(frozen=True)
class SourceText:
    r"""A decoded file.

    ``text`` has no byte order mark and only ``\n`` line ends, whatever ``data``
    has, so its lines are those that editors, flake8 and `ast` count.
    """

    path: str
    data: bytes
    text: str
    encoding: str

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The lines without their ends; ``lines[0]`` is line 1."""
        return tuple(self.text.split("\n"))


def read_bytes(path: str) -> bytes:
    """The content of the file at ``path``; raises OSError."""
    # One open, one stat, one read: half the cost of `open().read()` over thousands of small files.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        data = os.read(descriptor, size)
        while len(data) < size and (more := os.read(descriptor, size - len(data))):
            data += more
        return data
    finally:
        os.close(descriptor)


def diff_lines(data: bytes) -> list[bytes]:
    """The lines of ``data``, with their ends, as diffs count them: only a line feed ends one."""
    return io.BytesIO(data).readlines()


def read_source(path: str, overlay: Mapping[str, bytes] | None = None) -> SourceText:
    """The file at ``path``, or the bytes that ``overlay`` holds in its place; raises `UnreadableSource`."""
    data = overlay.get(path) if overlay else None
    if data is None:
        try:
            data = read_bytes(path)
        except OSError as error:
            raise UnreadableSource(path, f"cannot be read: {error.strerror or error}") from error
    return decode(path, data)


def decode(path: str, data: bytes) -> SourceText:
    """Decode ``data`` as Python does (PEP 263); raises `UnreadableSource`."""
    body = data.removeprefix(BOM)
    declared, line = _declared_encoding(body)
    encoding = _codec_name(path, declared, line)
    if len(body) != len(data) and encoding != "utf-8":
        raise UnreadableSource(path, f"starts with a UTF-8 byte order mark but declares {declared}", line)
    try:
        with warnings.catch_warnings():
            # Some codecs (unicode_escape) warn about what they decode.
            warnings.simplefilter("ignore")
            text = body.decode(encoding)
    except LookupError as error:
        raise UnreadableSource(path, f"declares {declared}, which is no text encoding", line) from error
    except UnicodeDecodeError as error:
        bad = _line_of(body, error.start)
        raise UnreadableSource(path, f"is not valid {encoding}: {error.reason}", bad) from error
    except ValueError as error:
        raise UnreadableSource(path, f"is not valid {encoding}: {error}", line) from error
    if "\0" in text:
        raise UnreadableSource(path, "holds a null byte", _normalise(text[: text.index("\0")]).count("\n") + 1)
    return SourceText(path, data, _normalise(text), encoding)


def encode(text: str) -> bytes:
    """The content of a file that reads as ``text``, in the encoding that it declares; `decode` gives ``text`` back."""
    data = text.encode("utf-8", "surrogatepass")
    declared, _ = _declared_encoding(data)
    try:
        return text.encode(declared)
    except (LookupError, ValueError):
        # It declares what it cannot be in, which `decode` will say.
        return data


def parse(source: SourceText) -> ast.Module:
    """The syntax tree of ``source``; raises `UnreadableSource` for whatever the parser cannot take."""
    return _parsed(source.text, source.path, tree_of)


def parse_piece(source: SourceText, piece: str) -> ast.Module:
    """The syntax tree of ``piece``, a part of ``source`` on its own lines; raises `UnreadableSource`."""
    return _parsed(piece, source.path, ast.parse)


def _parsed(text: str, path: str, parser: Callable[[str, str], ast.Module]) -> ast.Module:
    try:
        with warnings.catch_warnings():
            # Invalid escapes and the like are the business of other linters.
            warnings.simplefilter("ignore")
            return parser(text, path)
    except SyntaxError as error:
        raise UnreadableSource(path, f"cannot be parsed: {error.msg}", error.lineno or None) from error
    except (RecursionError, MemoryError) as error:
        # CPython reports an overflow of the parser's stack as MemoryError.
        raise UnreadableSource(path, "cannot be parsed: nested too deeply") from error
    except ValueError as error:
        raise UnreadableSource(path, f"cannot be parsed: {error}") from error


@lru_cache(maxsize=4)
def tree_of(text: str, path: str) -> ast.Module:
    """The syntax tree, not to be changed; raises what `ast.parse` does.

    The last few are remembered, as a fix looks at the same texts again and again:
    to find the place of an edit, to verify it, and in the next round.
    """
    return ast.parse(text, path)


def _declared_encoding(body: bytes) -> tuple[str, int]:
    """The encoding that the first two lines declare, and the line that does."""
    lines = _LINE_END.split(body[: _end_of_second_line(body)])[:2]
    for number, line in enumerate(lines, start=1):
        if match := _COOKIE.match(line):
            return match[1].decode("ascii", "replace"), number
        if not _BLANK_OR_COMMENT.match(line):
            break
    return "utf-8", 1


def _end_of_second_line(body: bytes) -> int:
    end = 0
    for _ in range(2):
        match = _LINE_END.search(body, end)
        if match is None:
            return len(body)
        end = match.end()
    return end


def _codec_name(path: str, declared: str, line: int) -> str:
    try:
        name = codecs.lookup(declared).name
    except (LookupError, ValueError) as error:
        raise UnreadableSource(path, f"declares an unknown encoding, {declared}", line) from error
    # The mark itself is already off, and with "-sig" a second one would go too.
    return "utf-8" if name == "utf-8-sig" else name


def _line_of(body: bytes, offset: int) -> int:
    return len(_LINE_END.findall(body, 0, offset)) + 1


def _normalise(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
