"""Whatever lies in a folder, the real command says clearly what it made of it, loses nothing and goes on with the rest.

Every file here speaks of a status protocol, so that the text test lets it through to the parser and the analysis.
"""

from __future__ import annotations

import ast
import errno
import json
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kvlint import engine, fix_run
from kvlint.cli import cli
from kvlint.fixing.write import write_atomically
from kvlint.source.text import read_bytes

ROOT = Path(__file__).parent.parent.parent

BACKEND = """\
class Poll:
    Failed = 0
    Bootstrapping = 1
    Success = 2


class Manager:
    def __init__(self):
        self.statuses = {}

    def update(self, room, status):
        self.statuses[room] = status

    def finish(self, room):
        self.update(room, Poll.Success)
"""
FINDING = "11:5: KVL004"
INSERTED = [
    "# A stored terminal status is final.",
    "if self.statuses.get(room) in (Poll.Failed, Poll.Success):",
    "return",
]
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


def kvlint(folder: Path, *arguments: str | bytes) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "kvlint", *arguments]
    # A run that waits for a pipe's other end would wait for ever.
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False, timeout=300)


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


def assert_only_inserted(before: bytes, after: bytes) -> None:
    ast.parse(after)
    old, new = (re.split(rb"(?<=\n)|(?<=\r)(?!\n)", content) for content in (before, after))
    start = next(index for index, line in enumerate(new) if b"# A stored terminal status" in line)
    inserted = new[start : start + 3]
    assert [line.strip().decode() for line in inserted] == INSERTED
    assert new[:start] + new[start + 3 :] == old
    ends = {re.sub(rb"[^\r\n]", b"", line) for line in old if line.endswith((b"\r", b"\n"))}
    assert {re.sub(rb"[^\r\n]", b"", line) for line in inserted} <= ends


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


def test_an_empty_folder_and_an_empty_file(tmp_path: Path) -> None:
    done = kvlint(tmp_path, "check", ".")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"No Python files found.\n")
    (tmp_path / "empty.py").touch()
    done = kvlint(tmp_path, "fix", "empty.py")
    assert (done.returncode, done.stderr) == (0, b"0 files changed, 0 findings left.\n")


@pytest.mark.parametrize("command", ["check", "fix", "inspect"])
def test_a_missing_path_is_an_error_before_anything_is_done(command: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(BACKEND)
    done = kvlint(tmp_path, command, "a.py", "absent.py")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"no such file or folder: absent.py" in done.stderr
    assert (tmp_path / "a.py").read_text() == BACKEND


def test_a_read_only_file_stays_as_it_is(tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(BACKEND)
    (tmp_path / "a.py").chmod(0o444)
    done = kvlint(tmp_path, "fix", ".")
    assert done.returncode == 1
    assert done.stdout.decode().startswith(f"a.py:{FINDING}")
    assert b"not fixed: a.py: is read-only; make it writable and run again\n" in done.stderr
    assert b"1 file changed, 1 finding left.\n" in done.stderr
    assert (tmp_path / "a.py").read_text() == BACKEND
    assert stat.S_IMODE((tmp_path / "a.py").stat().st_mode) == 0o444
    assert_only_inserted(BACKEND.encode(), (tmp_path / "b.py").read_bytes())


def test_links_that_lead_nowhere_or_back(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(BACKEND)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "back").symlink_to("..", target_is_directory=True)
    (tmp_path / "sub" / "loop.py").symlink_to("loop.py")
    (tmp_path / "sub" / "dangling.py").symlink_to("absent.py")
    done = kvlint(tmp_path, "check", ".")
    assert (done.returncode, done.stdout.count(b"KVL004")) == (1, 1)
    assert b"1 file checked" in done.stderr
    named = kvlint(tmp_path, "check", "a.py", "sub/loop.py")
    assert (named.returncode, named.stdout) == (2, b"")
    assert b"cannot look at sub/loop.py: Too many levels of symbolic links" in named.stderr
    assert b"no such file or folder: sub/dangling.py" in kvlint(tmp_path, "check", "sub/dangling.py").stderr


def test_pipes_and_sockets_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").write_text(BACKEND)
    os.mkfifo(tmp_path / "pipe.py")
    # A socket's path has to be short.
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket.py")
        done = kvlint(tmp_path, "check", ".")
        assert (done.returncode, done.stdout.count(b"KVL004")) == (1, 1)
        for name, kind in (("pipe.py", b"a named pipe"), ("socket.py", b"a socket")):
            named = kvlint(tmp_path, "check", name)
            assert (named.returncode, named.stdout) == (2, b"")
            assert name.encode() + b" is " + kind in named.stderr


@pytest.mark.parametrize("name", [b"two words.py", b"line\nbreak.py", b"caf\xe9.py", "日本.py".encode(), b"-dash.py"])
def test_any_path_will_do(name: bytes, tmp_path: Path) -> None:
    path = os.path.join(os.fsencode(tmp_path), name)
    try:
        with open(path, "xb") as file:
            file.write(BACKEND.encode())
    except OSError:
        pytest.skip("this file system takes no such name")
    done = kvlint(tmp_path, "check", ".")
    assert (done.returncode, done.stdout.count(b"\n")) == (1, 1)
    assert f":{FINDING}".encode() in done.stdout
    (finding,) = json.loads(kvlint(tmp_path, "check", "--output-format", "json", ".").stdout)["findings"]
    assert finding["code"] == "KVL004"
    assert kvlint(tmp_path, "check", "--", name).returncode == 1
    diff = kvlint(tmp_path, "fix", "--diff", ".").stdout
    assert kvlint(tmp_path, "fix", ".").returncode == 0
    with open(path, "rb") as file:
        assert_only_inserted(BACKEND.encode(), file.read())
    # What is printed is a patch of the same edit, also to git, whatever quoting the name needs.
    outside = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    subprocess.run(["git", "apply", "--reverse", "-"], input=diff, cwd=tmp_path, env=outside, check=True)
    with open(path, "rb") as file:
        assert file.read() == BACKEND.encode()
    assert os.listdir(os.fsencode(tmp_path)) == [name]


def in_process(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments), catch_exceptions=False)


@pytest.fixture
def two_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "conn.py").write_text(BACKEND)
    return tmp_path


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (PermissionError(errno.EACCES, "Permission denied"), "Permission denied"),
        (OSError(errno.EIO, "Input/output error"), "Input/output error"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory"), "No such file or directory"),
    ],
)
def test_a_file_that_cannot_be_read(
    error: OSError, reason: str, two_files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> bytes:
        if path.endswith("a/conn.py"):
            raise error
        return read_bytes(path)

    monkeypatch.setattr(engine, "read_bytes", refuse)
    checked = in_process("check")
    assert checked.exit_code == 1
    first, second = checked.stdout.splitlines()
    assert first == f"a/conn.py:1:1: KVL900 cannot be read: {reason}; nothing in this file was checked"
    assert second.startswith(f"b/conn.py:{FINDING}")
    fixed = in_process("fix")
    assert fixed.exit_code == 1
    assert "fixed b/conn.py: " in fixed.stderr
    assert (two_files / "a" / "conn.py").read_text() == BACKEND
    assert f"warning: a/conn.py: cannot be read: {reason}" in in_process("inspect").stderr


def saved_by_an_editor(path: str) -> None:
    Path(path).write_text(BACKEND + "# new\n")


@pytest.mark.parametrize(
    ("meanwhile", "reason", "left"),
    [
        (saved_by_an_editor, "was changed by someone else meanwhile; run again", BACKEND + "# new\n"),
        (os.unlink, "cannot be written: No such file or directory; nothing was changed", None),
    ],
    ids=["saved", "removed"],
)
def test_a_file_that_changes_while_it_is_fixed(
    meanwhile: Callable[[str], None],
    reason: str,
    left: str | None,
    two_files: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def late(path: str, before: bytes, after: bytes) -> None:
        if path.endswith("a/conn.py"):
            meanwhile(path)
        write_atomically(path, before, after)

    monkeypatch.setattr(fix_run, "write_atomically", late)
    result = in_process("fix")
    assert result.exit_code == 1
    assert f"not fixed: a/conn.py: {reason}" in result.stderr
    assert "1 file changed, 1 finding left.\n" in result.stderr
    path = two_files / "a" / "conn.py"
    assert (path.read_text() if path.exists() else None) == left
    assert os.listdir(two_files / "a") == (["conn.py"] if left else [])
    assert_only_inserted(BACKEND.encode(), (two_files / "b" / "conn.py").read_bytes())


@pytest.mark.parametrize("room_for", [0, 10])
@pytest.mark.parametrize("full", ["a", "b"])
def test_a_full_disk(full: str, room_for: int, two_files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: dict[int, int] = {}
    system_open, system_write = os.open, os.write

    def open_noted(path: str, flags: int, mode: int = 0o777) -> int:
        descriptor = system_open(path, flags, mode)
        opened.pop(descriptor, None)
        if f"/{full}/.kvlint-" in path:
            opened[descriptor] = room_for
        return descriptor

    def write_until_full(descriptor: int, data: bytes) -> int:
        if descriptor not in opened:
            return system_write(descriptor, data)
        if not opened[descriptor]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        opened[descriptor] = 0
        return system_write(descriptor, data[:room_for])

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", open_noted)
        patched.setattr(os, "write", write_until_full)
        result = in_process("fix")
    assert result.exit_code == 1
    assert result.stdout.startswith(f"{full}/conn.py:{FINDING}")
    expected = f"not fixed: {full}/conn.py: cannot be written: No space left on device; nothing was changed; free some"
    assert expected in result.stderr
    for name in ("a", "b"):
        content = (two_files / name / "conn.py").read_bytes()
        assert os.listdir(two_files / name) == ["conn.py"]
        if name == full:
            assert content == BACKEND.encode()
        else:
            assert_only_inserted(BACKEND.encode(), content)
