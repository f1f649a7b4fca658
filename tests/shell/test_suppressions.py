"""Comments silence what they silence in flake8; flake8 itself is asked."""

from __future__ import annotations

from argparse import Namespace

import pytest
from flake8.processor import FileProcessor
from flake8.violation import Violation
from hypothesis import given
from hypothesis import strategies as st

from kvlint.source.suppressions import NamedCode, Suppressions
from kvlint.source.text import decode

CODES = ("KVL001", "KVL002", "E501")

COMMENTS = st.sampled_from(
    [
        "# noqa",
        "# NOQA",
        "# noqa: KVL001",
        "# noqa:KVL001",
        "# noqa:  KVL001",
        "# noqa: KVL001,E501",
        "# noqa: KVL001 KVL002",
        "# noqa: KVL001, because: of this",
        "# noqa: KVL0",
        "# noqa: kvl001",
        "# noqa: KVL",
        "# noqa : KVL001",
        "# noqa KVL001",
        "#noqa",
        "# see noqa",
        "# type: ignore  # noqa: KVL002",
        "# flake8: noqa",
        "",
    ]
)
STATEMENTS = st.sampled_from(
    [
        "x = 1  {}",
        "x = '''one  {}\ntwo'''  # after",
        "x = '''one\ntwo'''  {}",
        "x = (  {}\n    1,\n)",
        "x = (\n    1,  {}\n)",
        "x = 1 + \\\n    2  {}",
        "x = f('''\n''',\n    2)  {}",
        "if x:  {}\n    y = 1",
        "def f():\n    {}\n    return 1",
        "x = '{}'",
        "x = f'{{y}}'  {}",
        "{}",
        "\n\n",
    ]
)
MODULES = st.lists(st.builds(str.format, STATEMENTS, COMMENTS), max_size=4).map(lambda parts: "\n".join(parts) + "\n")


def suppressions(text: str) -> Suppressions:
    return Suppressions(decode("a.py", text.encode()))


def asked_flake8(text: str, line: int, code: str) -> bool:
    lines = text.splitlines(keepends=True)
    processor = FileProcessor(
        "a.py",
        Namespace(
            disable_noqa=False,
            hang_closing=False,
            indent_size=4,
            max_line_length=79,
            max_doc_length=None,
            verbose=0,
        ),
        lines,
    )
    if processor.should_ignore_file():
        return True
    violation = Violation(code, "a.py", line, 1, "", processor.noqa_line_for(line))
    return bool(violation.is_inline_ignored(disable_noqa=False))


@given(MODULES)
def test_agrees_with_flake8(text: str) -> None:
    ours = suppressions(text)
    for line in range(1, text.count("\n") + 1):
        for code in CODES:
            assert ours.silences(line, code) == asked_flake8(text, line, code), (line, code)


def test_a_file_that_does_not_tokenize_is_read_line_by_line() -> None:
    ours = suppressions("x = (  # noqa: KVL001\n")
    assert ours.silences(1, "KVL001")
    assert not ours.silences(1, "KVL002")


def named(text: str) -> list[NamedCode]:
    return list(suppressions(text).named_codes())


def test_named_codes_have_places() -> None:
    assert named("x = 1\ny = 2  # noqa: KVL001, E501\n") == [
        NamedCode("KVL001", 2, 16, range(2, 3)),
        NamedCode("E501", 2, 24, range(2, 3)),
    ]
    assert named("x = '''\n'''  # noqa: KVL001\n") == [NamedCode("KVL001", 2, 14, range(1, 3))]


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\n",
        "x = 1  # noqa\n",
        "'''example: # noqa: KVL001'''\n",
        "# flake8: noqa\nx = 1  # noqa: KVL001\n",
        # flake8 reads the first of the two, which is in the string.
        "x = '# noqa: E501'  # noqa: KVL001\n",
    ],
)
def test_nothing_named(text: str) -> None:
    assert named(text) == []
