"""Diffs: what is printed is what ``git apply`` makes of the old file, byte for byte."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kvlint.fixing.diff import unified
from kvlint.fixing.fixpoint import Change

GIT = shutil.which("git")
LONG = b"".join(b"line %d\n" % number for number in range(40))

TEXTS = {
    "LF": (b"a\nb\nc\n", b"a\nx\nb\nc\n"),
    "CRLF": (b"a\r\nb\r\nc\r\n", b"a\r\nx\r\nb\r\nc\r\n"),
    "CR": (b"a\rb\rc\r", b"a\rx\rb\rc\r"),
    "mixed": (b"a\r\nb\nc\r", b"a\r\nx\nb\nc\r"),
    "no final newline": (b"a\nb", b"a\nx\nb"),
    "final newline lost by the last line only": (b"a\nb", b"a\nb\nx"),
    "latin-1": (b"# coding: latin-1\n\xe4\nb\n", b"# coding: latin-1\nx\n\xe4\nb\n"),
    "mark, form feed and U+2028": (b"\xef\xbb\xbfa\n\x0c\n\xe2\x80\xa8b\n", b"\xef\xbb\xbfa\nx\n\x0c\n\xe2\x80\xa8b\n"),
    "two hunks": (LONG, LONG.replace(b"line 5\n", b"").replace(b"line 30\n", b"line 30\nx\n")),
    "blank lines": (b"\n\n\n", b"\n\nx\n\n"),
}
NAMES = [
    "conn.py",
    "pkg/a conn.py",
    "pkg/conn\u00e4.py",
    'pkg/"quoted".py',
    "pkg/back\\slash.py",
    "tab\tand\nline.py",
    "bell\a\x01\x7f.py",
]


def _applies(root: Path, name: str, before: bytes, after: bytes) -> None:
    assert GIT is not None
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(before)
    subprocess.run([GIT, "init", "-q", "."], cwd=root, check=True)
    subprocess.run([GIT, "config", "core.autocrlf", "false"], cwd=root, check=True)
    patch = unified(Change(str(file), before, after, ("title",)), name)
    for command in (["apply", "--check", "-"], ["apply", "--whitespace=nowarn", "-"]):
        subprocess.run([GIT, *command], cwd=root, input=patch, check=True)
    assert file.read_bytes() == after


@pytest.mark.skipif(GIT is None, reason="needs git")
@pytest.mark.parametrize("name", TEXTS)
def test_git_applies_any_text(tmp_path: Path, name: str) -> None:
    _applies(tmp_path, "pkg/conn.py", *TEXTS[name])


@pytest.mark.skipif(GIT is None, reason="needs git")
@pytest.mark.parametrize("name", NAMES)
def test_git_applies_any_name(tmp_path: Path, name: str) -> None:
    _applies(tmp_path, name, b"a\nb\n", b"a\nx\nb\n")


def test_names_are_quoted_as_git_quotes_them() -> None:
    change = Change("", b"a\n", b"b\n", ())
    assert unified(change, "p/\u00e4\t\x01.py").startswith(b'--- "a/p/\\303\\244\\t\\001.py"\n+++ "b/p/')
    assert unified(change, "p/q r.py").startswith(b"--- a/p/q r.py\t\n+++ b/p/q r.py\t\n")


def test_missing_final_newline_is_marked() -> None:
    assert unified(Change("", b"a", b"b", ()), "p.py").endswith(
        b"-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"
    )


def test_unchanged_text_has_no_diff() -> None:
    assert unified(Change("", b"a\n", b"a\n", ()), "p.py") == b""
