import ast
import os
import socket
import warnings
from pathlib import Path

import pytest

from kvlint.source.text import BOM, SourceText, UnreadableSource, decode, encode, parse, read_bytes, read_source


def source(data: bytes) -> SourceText:
    return decode("a.py", data)


def refusal(data: bytes) -> UnreadableSource:
    with pytest.raises(UnreadableSource) as caught:
        parse(source(data))
    assert caught.value.path == "a.py"
    return caught.value


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"a = 1\r\nb = 2\r\n", ("a = 1", "b = 2", "")),
        (b"a = 1\rb = 2\r", ("a = 1", "b = 2", "")),
        (b"a = 1\r\nb = 2\nc = 3\rd = 4", ("a = 1", "b = 2", "c = 3", "d = 4")),
        (BOM + b"a = 1\n", ("a = 1", "")),
        (b"a = 1", ("a = 1",)),
        (b"", ("",)),
        (b"a = '\x0c\x0b\xe2\x80\xa8'\nb = 2", ("a = '\x0c\x0b\u2028'", "b = 2")),
    ],
    ids=["crlf", "cr", "mixed", "bom", "no final newline", "empty", "other separators"],
)
def test_lines_are_those_of_the_syntax_tree(data: bytes, lines: tuple[str, ...]) -> None:
    read = source(data)
    assert read.lines == lines
    assert read.data == data
    statements = [text for text in lines if text]
    assert [node.lineno for node in parse(read).body] == list(range(1, len(statements) + 1))


def test_columns_behind_a_byte_order_mark_start_at_zero() -> None:
    (statement,) = parse(source(BOM + b"x = 1\n")).body
    assert (statement.lineno, statement.col_offset) == (1, 0)


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"# coding: latin-1\nx = '\xe9'\n", "iso8859-1"),
        (b"#!/usr/bin/python\n# -*- coding: cp1252 -*-\nx = '\xe9'\n", "cp1252"),
        (b"#!/usr/bin/python\r# vim: set fileencoding=cp1252 :\rx = '\xe9'\r", "cp1252"),
        (BOM + b"# coding: utf-8\nx = '\xc3\xa9'\n", "utf-8"),
        (b"# coding: utf-8-sig\nx = '\xc3\xa9'\n", "utf-8"),
        ("x = 'é'\n".encode(), "utf-8"),
    ],
)
def test_declared_encodings(data: bytes, encoding: str) -> None:
    read = source(data)
    assert read.encoding == encoding
    assert read.lines[-2] == "x = 'é'"
    assert decode("a.py", encode(read.text)).text == read.text


def test_a_declaration_below_code_declares_nothing() -> None:
    assert source(b"x = 1\n# coding: latin-1\n").encoding == "utf-8"
    assert source(b"# one\n# two\n# coding: latin-1\n").encoding == "utf-8"


@pytest.mark.parametrize(
    ("data", "line", "reason"),
    [
        (b"# coding: klingon\n", 1, "declares an unknown encoding, klingon"),
        (b"#!\n# coding: hex\n00\n", 2, "declares hex, which is no text encoding"),
        (b"# coding: ascii\n\nx = '\xe9'\n", 3, "is not valid ascii: ordinal not in range(128)"),
        (b"x = 1\r\ny = 2\r\nz = '\xe9'\r\n", 3, "is not valid utf-8: invalid continuation byte"),
        (b"# coding: idna\n\xff\n", 2, "is not valid idna: ordinal not in range(128)"),
        (b"# coding: undefined\n", 1, "is not valid undefined: "),
        (BOM + b"# coding: latin-1\n", 1, "starts with a UTF-8 byte order mark but declares latin-1"),
        (b"x = 1\ny = '\0'\n", 2, "holds a null byte"),
        (b"print 'hello'\n", 1, "cannot be parsed: "),
        (b"x = 1\nraise ValueError, 'no'\n", 2, "cannot be parsed: "),
        (b"def f(:\n", 1, "cannot be parsed: "),
        (b"if x:\n        a\n\tb\n", 3, "cannot be parsed: "),
        (b"x = '''\n", 1, "cannot be parsed: "),
    ],
)
def test_refusals_name_the_line_and_the_reason(data: bytes, line: int, reason: str) -> None:
    failure = refusal(data)
    assert failure.line == line
    assert failure.reason.startswith(reason)
    assert str(failure) == f"a.py:{line}: {failure.reason}"


@pytest.mark.parametrize(
    "data",
    [
        b"(" * 5_000 + b")" * 5_000,
        b"-" * 5_000 + b"1",
        b"x = " + b"a." * 5_000 + b"b",
        b"x = " + b"f(" * 5_000 + b")" * 5_000,
        b"".join(b" " * level + b"if x:\n" for level in range(5_000)),
        b"x = " + b"[" * 5_000 + b"]" * 5_000,
    ],
    ids=["parentheses", "signs", "attributes", "calls", "blocks", "lists"],
)
def test_deep_nesting_is_refused_and_kills_nothing(data: bytes) -> None:
    assert refusal(data).reason.startswith("cannot be parsed: ")


def test_fifty_thousand_lines() -> None:
    tree = parse(source(b"x = 1\n" * 50_000))
    assert tree.body[-1].lineno == 50_000


def test_reading_goes_on_where_the_system_stops_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"0123456789")
    read = os.read
    monkeypatch.setattr(os, "read", lambda descriptor, size: read(descriptor, min(size, 4)))
    assert read_bytes(str(file)) == b"0123456789"


def test_text_that_no_encoding_could_hold_is_refused() -> None:
    assert refusal(b"# coding: unicode_escape\nx = '\\ud800'\n").reason.startswith("cannot be parsed: ")


def test_tabs_and_form_feeds_parse() -> None:
    assert len(parse(source(b"if x:\n\ta = 1\n\x0c\tb = 2\n")).body) == 1


def test_warnings_of_the_parser_and_of_codecs_stay_inside() -> None:
    filters = list(warnings.filters)
    parse(source(b"x = '\\d' is 1\n"))
    source(b"# coding: unicode_escape\nx = 1 \\d\n")
    assert warnings.filters == filters


def test_reading(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"x = 1\n" * 100_000)
    assert read_bytes(str(file)) == file.read_bytes()
    assert read_source(str(file)).text == "x = 1\n" * 100_000
    assert read_source(str(file), {str(file): b"y = 2"}).text == "y = 2"


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSource, match="cannot be read: No such file or directory"):
        read_source(str(tmp_path / "absent.py"))
    with pytest.raises(UnreadableSource, match="cannot be read: Is a directory"):
        read_source(str(tmp_path))
    endpoint = tmp_path / "socket.py"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(endpoint))
        with pytest.raises(UnreadableSource, match="cannot be read: "):
            read_source(str(endpoint))


def test_encoding_what_declares_the_impossible_falls_back_to_utf_8() -> None:
    assert encode("# coding: ascii\né") == "# coding: ascii\né".encode()
    assert encode("# coding: klingon\né") == "# coding: klingon\né".encode()


def test_parse_gives_a_module() -> None:
    assert isinstance(parse(source(b"x = 1")), ast.Module)
