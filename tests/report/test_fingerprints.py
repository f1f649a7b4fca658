"""Fingerprints stay when a finding's surroundings move, and tell findings apart."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from kvlint.diagnostics import Finding, Location, Severity, Span
from kvlint.report.fingerprint import fingerprints
from kvlint.source.text import decode

SOURCE = """\
class Manager:
    def worker(self):
        self.update(room, 3)
        self.update(room, 3)

    async def listener(self):
        def nested():
            self.update(room, 3)
        self.update(room, 3)


self.update(room, 3)
"""


def findings(source: str, path: str = "nixl/conn.py", code: str = "KVL001") -> list[Finding]:
    """A finding for each call in ``source``."""
    return [
        Finding(
            code, "some-rule", Severity.ERROR, f"cites line {number}", Location(path, Span(number, start, number, end))
        )
        for number, line in enumerate(source.split("\n"), 1)
        for match in re.finditer(r"self\.update\(.*?\)", line)
        for start, end in [(match.start() + 1, match.end() + 1)]
    ]


def of(source: str, path: str = "nixl/conn.py", code: str = "KVL001") -> Sequence[str]:
    return fingerprints(findings(source, path, code), lambda read: decode(read, source.encode()))


ORIGINAL = of(SOURCE)


def test_identical_findings_are_told_apart() -> None:
    assert len(set(ORIGINAL)) == len(ORIGINAL) == 5


@pytest.mark.parametrize(
    "edited",
    [
        "import os\n\n\n" + SOURCE,
        SOURCE.replace("class Manager:", "class Manager:\n    '''A docstring.'''\n"),
        SOURCE.replace("self.update(room, 3)", "self.update(room,  3)  # a comment"),
        SOURCE.replace("    def worker(self):\n", "    def worker(self):\n        log()\n"),
        SOURCE.replace("\n", "\r\n"),
    ],
    ids=["lines above", "a docstring", "white space and comments", "a neighbouring statement", "line ends"],
)
def test_unrelated_edits_keep_them(edited: str) -> None:
    assert of(edited) == ORIGINAL


def test_a_moved_function_keeps_them() -> None:
    head, worker, rest = SOURCE.split("    def worker")[0], "    def worker" + SOURCE.split("    def worker")[1], ""
    worker, _, rest = worker.partition("    async def")
    moved = head + "    async def" + rest.replace("\n\nself.update", "\n" + worker + "\n\nself.update")
    assert sorted(of(moved)) == sorted(ORIGINAL)


@pytest.mark.parametrize(
    ("source", "path", "code"),
    [
        (SOURCE, "mooncake/conn.py", "KVL001"),
        (SOURCE, "nixl/conn.py", "KVL002"),
        (SOURCE.replace("3", "4"), "nixl/conn.py", "KVL001"),
    ],
)
def test_other_findings_get_others(source: str, path: str, code: str) -> None:
    assert not set(of(source, path, code)) & set(ORIGINAL)


def test_only_the_renamed_function_gets_others() -> None:
    renamed = of(SOURCE.replace("def worker", "def transfer"))
    assert renamed[2:] == ORIGINAL[2:]
    assert not set(renamed[:2]) & set(ORIGINAL)


def test_a_text_that_cannot_be_parsed_has_no_scopes() -> None:
    assert len(set(of("def f(:\n    self.update(room, 3)\n"))) == 1
