"""Output that cannot be written: one line says so and the exit status is 2; a pipe that nobody reads is no error."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

import click
import pytest

from kvlint import cli as cli_module
from kvlint.commands.guard import run_guarded

ROOT = Path(__file__).parent.parent.parent
CASE = ROOT / "fixtures" / "rules" / "kvl001_non_terminal_write_after_failed"
FULL = "error: standard output cannot be written: No space left on device\n"

COMMANDS = [
    ("check", "bad.py", "--no-cache", "--quiet"),
    ("check", "bad.py", "--no-cache", "--quiet", "--output-format", "json"),
    ("check", "--help"),
    ("fix", "bad.py", "--diff", "--quiet"),
    ("inspect", "bad.py"),
    ("rule",),
    ("patch", "list"),
    ("patch", "show", "0.5.14"),
    ("cache", "path"),
    ("demo",),
    ("--help",),
    ("--version",),
]

each_command = pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")


def start(arguments: tuple[str, ...], stdout: int | TextIO, stderr: int | TextIO) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-m", "kvlint", *arguments],
        cwd=CASE,
        env=environment,
        stdout=stdout,
        stderr=stderr,
        encoding="utf-8",
    )


@needs_full
@each_command
def test_a_full_disk(arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        process = start(arguments, full, subprocess.PIPE)
    _, errors = process.communicate()
    assert (process.returncode, errors) == (2, FULL)


@each_command
def test_a_pipe_that_nobody_reads(arguments: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = start(arguments, writing, subprocess.PIPE)
    os.close(writing)
    _, errors = process.communicate()
    assert (process.returncode, errors) == (1, "")


def test_a_reader_that_has_seen_enough() -> None:
    process = start(("patch", "list", "--all", "--output-format", "json"), subprocess.PIPE, subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        # More than a pipe holds, so that the writer still has some when the reader goes.
        assert process.stdout.readline() == "[\n"
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.wait() == 1


# -- in this process ---------------------------------------------------------


@pytest.fixture
def streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], None]]:
    """Have the standard streams lead to files, or be closed where the name is empty."""
    opened: list[TextIO] = []

    def lead_to(output: str, errors: str) -> None:
        for name, path in (("stdout", output), ("stderr", errors)):
            stream = open(tmp_path / path, "w", encoding="utf-8") if path else None  # noqa: SIM115
            opened.extend([stream] if stream is not None else [])
            monkeypatch.setattr(sys, name, stream)

    yield lead_to
    for stream in opened:
        stream.close()


def status_of(command: Callable[[], object]) -> object:
    with pytest.raises(SystemExit) as ended:
        run_guarded(command)
    return ended.value.code


def speak() -> None:
    click.echo("result")
    click.echo("message", err=True)
    sys.exit(1)


def test_streams_that_can_be_written(streams: Callable[[str, str], None], tmp_path: Path) -> None:
    streams("out", "err")
    assert status_of(speak) == 1
    assert ((tmp_path / "out").read_text("utf-8"), (tmp_path / "err").read_text("utf-8")) == ("result\n", "message\n")


@needs_full
@pytest.mark.parametrize("output", ["/dev/full", ""])
def test_lost_results(output: str, streams: Callable[[str, str], None], tmp_path: Path) -> None:
    streams(output, "err")
    assert status_of(lambda: sys.stdout.write("result")) == 2
    reason = "No space left on device" if output else "Bad file descriptor"
    assert (tmp_path / "err").read_text("utf-8") == f"error: standard output cannot be written: {reason}\n"


@needs_full
def test_more_than_a_buffer_holds(streams: Callable[[str, str], None], tmp_path: Path) -> None:
    streams("/dev/full", "err")
    assert status_of(lambda: sys.stdout.buffer.write(b"x" * 1_000_000)) == 2
    assert (tmp_path / "err").read_text("utf-8") == FULL


@needs_full
@pytest.mark.parametrize("errors", ["/dev/full", ""])
def test_lost_messages_change_nothing(errors: str, streams: Callable[[str, str], None], tmp_path: Path) -> None:
    streams("out", errors)
    assert status_of(speak) == 1
    assert (tmp_path / "out").read_text("utf-8") == "result\n"


@needs_full
def test_all_is_lost(streams: Callable[[str, str], None]) -> None:
    streams("/dev/full", "/dev/full")
    assert status_of(speak) == 2


def test_an_unread_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w", encoding="utf-8") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert status_of(lambda: sys.stdout.write("result")) == 1


def test_other_errors_are_not_taken_for_that(streams: Callable[[str, str], None]) -> None:
    streams("out", "err")

    def fail() -> None:
        raise OSError(11, "Resource temporarily unavailable")

    with pytest.raises(OSError, match="temporarily"):
        run_guarded(fail)


def test_the_console_script(
    streams: Callable[[str, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams("out", "err")
    monkeypatch.setattr(sys, "argv", ["kvlint", "--version"])
    with pytest.raises(SystemExit) as ended:
        cli_module.main()
    assert ended.value.code == 0
    assert (tmp_path / "out").read_text("utf-8").startswith("kvlint ")
