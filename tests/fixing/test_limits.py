"""Texts that are too deep, too long or no text at all: a refusal, never a crash, and no whole-file LibCST parse."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import libcst as cst
import pytest

from kvlint.fixing.edits import apply_plan, require_parses
from kvlint.fixing.refusals import EditRefused

from .plans import PATH, sticky

WRITER = "def update(self, room, status):\n    self.s = status\n"
DEEP = {
    "not": "not " * 5000 + "x",
    "sum": "x" + " + x" * 5000,
    "attributes": "x" + ".a" * 5000,
    "calls": "x" + "()" * 5000,
    "parentheses": "(" * 5000 + "x" + ")" * 5000,
    "lists": "[" * 5000 + "]" * 5000,
    "lambdas": "lambda: " * 5000 + "x",
    "conditions": "x if y else " * 5000 + "z",
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_expressions_do_not_end_the_process(name: str) -> None:
    script = (
        "import sys\n"
        "from kvlint.fixing.edits import apply_plan\n"
        "from kvlint.fixing.refusals import EditRefused\n"
        "from kvlint.diagnostics import StickyTerminal\n"
        "try:\n"
        "    apply_plan('a.py', sys.stdin.buffer.read(), StickyTerminal('a.py', 1, 'update', 'self.s', ('A', 'B')))\n"
        "except EditRefused as refusal:\n"
        "    print(refusal.reason)\n"
    )
    source = WRITER + f"    value = {DEEP[name]}\n"
    run = subprocess.run([sys.executable, "-c", script], input=source.encode(), capture_output=True, check=False)
    assert (run.returncode, run.stderr) == (0, b"")
    assert b"parse" in run.stdout or b"too deeply" in run.stdout


@pytest.mark.parametrize("depth", [250, 1500, 5000])
def test_depth_that_libcst_cannot_print_is_refused(depth: int) -> None:
    source = WRITER + f"    value = {'not ' * depth}x\n"
    with pytest.raises(EditRefused, match="too deeply"):
        apply_plan(PATH, source.encode(), sticky(1))


def test_depth_that_python_runs_out_of_frames_for_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvlint.fixing.region._MAX_DEPTH", 2000)
    source = WRITER + f"    value = {'not ' * 1500}x\n"
    with pytest.raises(EditRefused, match="too deeply to be edited"):
        apply_plan(PATH, source.encode(), sticky(1))


def test_depth_elsewhere_in_the_file_does_not_matter() -> None:
    source = WRITER + f"\n\nvalue = {'not ' * 900}x\n"
    assert b"final" in apply_plan(PATH, source.encode(), sticky(1))


def test_libcst_gets_only_the_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    filler = "".join(f"def f{number}(a):\n    return a\n\n\n" for number in range(12_500))
    source = filler + "class M:\n" + "".join(f"    {line}\n" for line in WRITER.splitlines()) + filler
    seen: list[int] = []
    parse = cst.parse_module

    def counted(text: str, *rest: Any) -> cst.Module:
        seen.append(len(text))
        return parse(text, *rest)

    monkeypatch.setattr(cst, "parse_module", counted)
    after = apply_plan(PATH, source.encode(), sticky(filler.count("\n") + 2))
    assert len(after) > len(source)
    assert max(seen) < 500


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (b"# coding: no-such-thing\n" + WRITER.encode(), "decoded"),
        (b"x = '\xe4'\n" + WRITER.encode(), "decoded"),
        (b"\xef\xbb\xbf# coding: latin-1\n" + WRITER.encode(), "decoded"),
        (b"# coding: utf-7\nx = '+AGE-'\n" + WRITER.encode(), "does not survive"),
    ],
)
def test_bytes_that_are_no_faithful_text_are_refused(source: bytes, reason: str) -> None:
    with pytest.raises(EditRefused, match=reason):
        apply_plan(PATH, source, sticky(3))


def test_word_that_the_encoding_lacks_is_refused() -> None:
    source = b"# coding: latin-1\n" + WRITER.encode()
    with pytest.raises(EditRefused, match="cannot be written in iso-8859-1"):
        apply_plan(PATH, source, sticky(2, stored="self.\u0142"))


@pytest.mark.parametrize(
    "source",
    [
        "\x0cdef update(self, room, status):\n    self.s = status\n",
        "if 1:\n  def update(self):\n \t  return 1\n",
    ],
)
def test_layout_that_libcst_cannot_keep_is_refused(source: str) -> None:
    with pytest.raises(EditRefused):
        apply_plan(PATH, source.encode(), sticky(source.split("def", 1)[0].count("\n") + 1))


def test_odd_escapes_do_not_warn() -> None:
    source = WRITER + "    '\\d'\n"
    apply_plan(PATH, source.encode(), sticky(1))
    require_parses(PATH, source.encode())


def test_nothing_but_an_edit_imports_libcst() -> None:
    script = (
        "import sys, kvlint.fixing.fixpoint, kvlint.fixing.write, kvlint.fixing.diff; print('libcst' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"
