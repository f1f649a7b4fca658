"""Whatever lies in a folder, the real command says clearly what it made of it, loses nothing and goes on with the rest.

Every file here speaks of a status protocol, so that the text test lets it through to the parser and the analysis.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from .backends import BACKEND, FINDING, assert_only_inserted, kvlint

LINES = BACKEND.count("\n")
DEEP = 5_000


def unreadable(text: str | bytes, line: int, message: str) -> tuple[bytes, str]:
    return text.encode() if isinstance(text, str) else text, f"{line}:1: KVL900 {message}"


#: Content and the report that it must get.
UNREADABLE = {
    "syntax_error": unreadable(BACKEND + "def f(:\n", LINES + 1, "cannot be parsed: "),
    "unfinished": unreadable(BACKEND + "def f():", LINES + 1, "cannot be parsed: "),
    "python_2": unreadable(BACKEND + 'print "failed"\n', LINES + 1, "cannot be parsed: Missing parentheses"),
    "null_byte": unreadable(BACKEND + 'x = "\0"\n', LINES + 1, "holds a null byte"),
    "unknown_encoding": unreadable("# coding: klingon\n" + BACKEND, 1, "declares an unknown encoding, klingon"),
    "no_text_encoding": unreadable("# coding: hex\n" + BACKEND, 1, "declares hex, which is no text encoding"),
    "lying_ascii": unreadable("# coding: ascii\n" + BACKEND + "# é\n", LINES + 2, "is not valid ascii"),
    "lying_utf_8": unreadable(BACKEND.encode() + b"# \xff\n", LINES + 1, "is not valid utf-8"),
    "lying_bom": unreadable("\ufeff# coding: latin-1\n" + BACKEND, 1, "starts with a UTF-8 byte order mark but"),
    "tabs_and_spaces": unreadable(BACKEND.replace(" " * 8 + "self.statuses[", "\tself.statuses["), 12, "cannot be"),
}

READABLE = {
    "crlf": BACKEND.replace("\n", "\r\n"),
    "cr": BACKEND.replace("\n", "\r"),
    "mixed": BACKEND.replace("\n", "\r\n", 8).replace("status\n", "status\r"),
    "bom": "\ufeff" + BACKEND,
    "bom_and_crlf": "\ufeff" + BACKEND.replace("\n", "\r\n"),
    "tabs": BACKEND.replace("    ", "\t"),
    "no_final_newline": BACKEND.removesuffix("\n"),
    "form_feed": BACKEND.replace("\n\n\n", "\n\n\x0c\n"),
    "long": BACKEND + "".join(f"x{number} = {number}\n" for number in range(50_000)),
    "long_line": BACKEND + f"x = {'0,' * 50_000}\n",
}

#: Python versions differ in what their parsers take; a file that is too deep for one is said to be so.
NESTED = {
    "brackets": BACKEND + "x = " + "(" * DEEP + ")" * DEEP + "\n",
    "lists": BACKEND + "x = " + "[" * DEEP + "]" * DEEP + "\n",
    "attributes": BACKEND + "x = a" + ".b" * DEEP + "\n",
    "calls": BACKEND + "x = a" + "()" * DEEP + "\n",
    "nots": BACKEND + "x = " + "not " * DEEP + "a\n",
    "sum": BACKEND + "x = " + "1+" * DEEP + "1\n",
    "shallow_sum": BACKEND + "x = " + "1+" * 500 + "1\n",
    "lambdas": BACKEND + "x = " + "lambda: " * DEEP + "1\n",
    "elifs": BACKEND + "if x: pass\n" + "elif x: pass\n" * DEEP,
    "blocks": BACKEND + "".join(" " * depth + "if x:\n" for depth in range(90)) + " " * 90 + "pass\n",
    "sum_in_the_writer": BACKEND.replace("= status\n", "= status" + "+0" * DEEP + "\n"),
    "attributes_in_the_writer": BACKEND.replace("= status\n", "= status" + ".x" * DEEP + "\n"),
    "member": BACKEND.replace("Bootstrapping = 1", "Bootstrapping = 0" + "+1" * DEEP),
}
TOO_DEEP = r"\d+:1: KVL900 cannot be (parsed|analysed): (nested too deeply|too many nested parentheses|.*too complex)"


def contents() -> dict[str, bytes]:
    files = {name: content for name, (content, _) in UNREADABLE.items()}
    files |= {name: text.encode() for name, text in (READABLE | NESTED).items()}
    return {f"{name}.py": content for name, content in files.items()} | {"zz_last.py": BACKEND.encode()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bad input")
    for name, content in contents().items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture(scope="module")
def checked(folder: Path) -> str:
    """What `kvlint check` prints for all the files together."""
    done = kvlint(folder, "check", ".")
    assert done.returncode == 1
    assert b"kvlint failed" not in done.stderr
    assert b"Traceback" not in done.stderr
    return done.stdout.decode()


@pytest.fixture(scope="module")
def fixed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder after one `kvlint fix`."""
    copy = tmp_path_factory.mktemp("fixed") / "folder"
    shutil.copytree(folder, copy)
    done = kvlint(copy, "fix", ".")
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
    assert not list(copy.glob(".kvlint-*"))
    return copy


def reports(output: str, name: str) -> list[str]:
    """The findings in a file, without its name."""
    return [line.removeprefix(f"{name}.py:") for line in output.splitlines() if line.startswith(f"{name}.py:")]


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_is_said(name: str, checked: str) -> None:
    (report,) = reports(checked, name)
    assert report.startswith(UNREADABLE[name][1])
    assert report.endswith("; nothing in this file was checked")


@pytest.mark.parametrize("name", READABLE)
def test_an_unusual_file_is_checked_as_any_other(name: str, checked: str) -> None:
    (report,) = reports(checked, name)
    assert report.startswith(FINDING.replace(":5:", ":2:") if name == "tabs" else FINDING)


@pytest.mark.parametrize("name", NESTED)
def test_a_deep_file_is_checked_or_said_to_be_too_deep(name: str, checked: str) -> None:
    found = reports(checked, name)
    if name in ("shallow_sum", "blocks"):
        assert [report[: len(FINDING)] for report in found] == [FINDING]
    else:
        assert found
        assert all(report.startswith(FINDING) or re.match(TOO_DEEP, report) for report in found)


def test_other_files_are_still_checked(checked: str) -> None:
    assert [report[: len(FINDING)] for report in reports(checked, "zz_last")] == [FINDING]


@pytest.mark.parametrize("name", [*UNREADABLE, *NESTED])
def test_fix_leaves_alone_what_it_cannot_judge(name: str, fixed: Path, folder: Path, checked: str) -> None:
    before, after = ((where / f"{name}.py").read_bytes() for where in (folder, fixed))
    if any("KVL900" in report for report in reports(checked, name)):
        assert after == before
    else:
        assert_only_inserted(before, after)


@pytest.mark.parametrize("name", [*READABLE, "zz_last"])
def test_fix_inserts_and_touches_nothing_else(name: str, fixed: Path) -> None:
    assert_only_inserted(contents()[f"{name}.py"], (fixed / f"{name}.py").read_bytes())


def test_a_second_fix_changes_nothing(fixed: Path) -> None:
    before = {path: path.read_bytes() for path in fixed.iterdir()}
    done = kvlint(fixed, "fix", ".")
    assert done.returncode == 1
    assert done.stderr.decode().splitlines()[-1].startswith("0 files changed, ")
    assert {path: path.read_bytes() for path in fixed.iterdir()} == before


def test_inspect_says_what_it_left_out(folder: Path) -> None:
    done = kvlint(folder, "inspect", "--output-format", "json", ".")
    assert done.returncode == 0
    json.loads(done.stdout)
    for name, (_, report) in UNREADABLE.items():
        assert f"warning: {name}.py: {report.partition('KVL900 ')[2]}" in done.stderr.decode()


def test_a_base_class_in_a_bad_file_costs_its_heirs_nothing_else(tmp_path: Path) -> None:
    heir = "from BASE import Base\n\n\n" + BACKEND.replace("class Manager:", "class Manager(Base):")
    names = [*UNREADABLE, *NESTED]
    for name in names:
        (tmp_path / f"{name}.py").write_bytes(contents()[f"{name}.py"])
        (tmp_path / f"heir_of_{name}.py").write_text(heir.replace("BASE", name))
    done = kvlint(tmp_path, "check", ".")
    assert done.returncode == 1
    assert b"kvlint failed" not in done.stderr
    for name in names:
        assert all("KVL900" not in report for report in reports(done.stdout.decode(), f"heir_of_{name}"))
