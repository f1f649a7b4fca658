"""Anchors: what a place is called, and which edits leave the name alone."""

from __future__ import annotations

import textwrap

import pytest

from kvlint.diagnostics import Span
from kvlint.source.anchor import LONGEST, Anchor, Anchors, normalised
from kvlint.source.text import decode


def anchors(text: str) -> Anchors:
    return Anchors(decode("/a.py", text.encode("utf-8", "surrogatepass")))


def at(text: str, mark: str = "LOST") -> Anchor:
    """The anchor of the first ``mark`` in dedented ``text``."""
    text = textwrap.dedent(text)
    before, _, _ = text.partition(mark)
    line, column = before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1
    return anchors(text).at(Span(line, column, line, column + len(mark)))


PLAIN = """\
class Manager:
    def worker(self):
        while True:
            self.update(room, LOST)
"""


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        "\n\n# moved\n" + PLAIN,
        PLAIN.replace("room, LOST", "\n    room,  # a comment\n\n    LOST,\n"),
        PLAIN.replace("room, LOST)", "room ,LOST)  # kept"),
        PLAIN.replace("self.update(", "self.update( \\\n"),
        PLAIN.replace("while True:", "if x:\n          with lock:"),
        PLAIN.replace("def worker", "async def worker"),
        PLAIN.replace("    def worker", "    @decorated(\n        1)\n    def worker"),
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("while True:", "while True: x = 1; #\n        while True:"),
        PLAIN.replace("self.update(room, LOST)", "x = 'é'; self.update(room, LOST); y = 2"),
    ],
)
def test_what_leaves_an_anchor_alone(text: str) -> None:
    found = at(text)
    assert (found.function, found.text) == ("Manager.worker", "self.update(room, LOST)")


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace("room,", "other,"),
        PLAIN.replace("def worker", "def listener"),
        PLAIN.replace("Manager", "Other"),
        PLAIN.replace("self.update(room, LOST)", "x = self.update(room, LOST)"),
        PLAIN.replace("self.update(room, LOST)", "def inner():\n                self.update(room, LOST)"),
    ],
)
def test_what_makes_another_anchor(text: str) -> None:
    found = at(text)
    assert (found.function, found.text) != ("Manager.worker", "self.update(room, LOST)")


@pytest.mark.parametrize(
    ("text", "function", "statement", "lines"),
    [
        ("LOST = 1\n", "", "LOST=1", range(1, 2)),
        ("x = 1\nf(\n  1,\n  LOST,\n)\n", "", "f(1, LOST)", range(2, 6)),
        ("@d\n@e(1)\ndef LOST(a,\n         b):\n    x = 1\n    return x\n", "LOST", "def LOST", range(1, 7)),
        ("class LOST(Base):\n    x = 1\n", "LOST", "class LOST", range(1, 3)),
        ("if (a and\n    LOST):  # why\n    # because\n    x = 1\n", "", "if(a and LOST)", range(2, 3)),
        ("for x in LOST:\n    @d\n    def f(): pass\n", "", "for x in LOST", range(1, 2)),
        ("while True:\n    if a:\n        x = 1\n        continue#LOST\n", "", "LOST", range(4, 5)),
        ("try:\n    x = 1\nexcept LOST as e:\n    y = 2\n", "", "except LOST as e", range(3, 4)),
        (
            "match x:\n    case LOST(a=1) if b:\n        y = 2\n    case _:\n        z = 3\n",
            "",
            "case LOST(a=1)if b",
            range(2, 3),
        ),
        ("if a:\n    x = 1\n\n# LOST\ny = 2\n", "", "LOST", range(4, 5)),
        ("x = '''\nLOST  # no comment\n'''\n", "", 'x="""LOST#no comment"""', range(1, 4)),
        ("if a:\n    x = 1\nelse:  # LOST\n    y = 2\n", "", "LOST", range(3, 4)),
        ("if LOST: x = 1\n", "", "if LOST", range(1, 2)),
        ("def f():\n    return (LOST)\n", "f", "return(LOST)", range(2, 3)),
    ],
)
def test_statements(text: str, function: str, statement: str, lines: range) -> None:
    assert at(text) == Anchor(function, statement, lines)


@pytest.mark.parametrize(
    ("text", "mark", "statement", "lines"),
    [
        (
            "while True:\n    if a is None:\n        x = 1\n        continue\n",
            "continue",
            "if a is None:continue",
            range(2, 5),
        ),
        ("if a:\n    x = 1\nelse:\n    return\n", "return", "if a:else:return", range(1, 5)),
        ("if a:\n    x = 1\nelif b:\n    pass\n", "pass", "if b:pass".replace("if", "elif"), range(3, 5)),
        ("try:\n    x = 1\nexcept KeyError:  # gone\n    break\n", "break", "except KeyError:break", range(3, 5)),
        ("match x:\n    case 1:\n        y = 2\n        return\n", "return", "case 1:return", range(2, 5)),
        ("while True:\n    x = 1\n    continue\n", "continue", "continue", range(3, 4)),
        ("if a:\n    return 1\n", "return", "return 1", range(2, 3)),
    ],
)
def test_a_bare_exit_is_known_by_its_branch(text: str, mark: str, statement: str, lines: range) -> None:
    found = at(text, mark)
    assert (found.text, found.lines) == (statement, lines)


def test_an_empty_span_is_the_whole_file() -> None:
    assert anchors("a\nb\n(").at(Span(3, 1, 3, 1)) == Anchor("", "", range(5))


def test_a_file_that_is_no_python() -> None:
    assert at("x = (\n  LOST  1\n'''\n") == Anchor("", "LOST 1", range(2, 3))
    assert at("print 'a'  # noqa: LOST\n", "LOST").text == "LOST"
    assert anchors("(").at(Span(9, 1, 9, 2)).text == ""


def test_a_long_statement_is_cut_and_still_itself() -> None:
    one, other = (at(f"f(LOST, {'1, ' * 500}{last})\n").text for last in (2, 3))
    assert len(one) == len(other) == LONGEST + 10
    assert one[:LONGEST] == other[:LONGEST]
    assert one != other


def test_deep_nesting_needs_no_recursion() -> None:
    text = "".join(f"{' ' * depth}if x{depth}:\n" for depth in range(90)) + " " * 90 + "LOST\n"
    assert at(text).text == "LOST"


def test_text_that_utf_8_cannot_hold() -> None:
    source = decode("/a.py", b"# coding: utf-7\nx = '+2AA-', LOST\n")
    assert Anchors(source).at(Span(2, 10, 2, 14)).text == 'x="\\ud800", LOST'


@pytest.mark.parametrize(
    ("one", "other"),
    [("f(a,b)", "f( a, b )"), ("f('x')", 'f("x")'), ("f(a,)", "f(a)"), ("a  in\tb", "a in b"), ("[1,\n]", "[1]")],
)
def test_formatting_does_not_count(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)
