"""The whole command, and what becomes of the process that explores when the command is stopped."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from loading import minitree

from .trees import ROOT, at_import


class Running:
    """A command that explores a tree that loops for ever; the tree holds one end of a pipe."""

    def __init__(self, folder: Path) -> None:
        fifo = folder / "fifo"
        os.mkfifo(fifo)
        self._reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        code = f"held = open({str(fifo)!r}, 'w')\nheld.write('x')\nheld.flush()\nwhile True:\n    pass\n"
        tree = minitree.write(folder / "tree", at_import(code))
        (folder / "temporary").mkdir()
        self.command = subprocess.Popen(
            [sys.executable, "-m", "kvlint", "explore", str(tree)],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(folder / "temporary")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.read() == b"x"

    def read(self) -> bytes:
        """What comes next from the tree; b"" when nobody has the other end any more."""
        assert select.select([self._reading], [], [], 60)[0]
        return os.read(self._reading, 1)

    def close(self) -> None:
        self.command.kill()
        self.command.communicate()
        os.close(self._reading)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    made = Running(tmp_path)
    yield made
    made.close()


def test_an_interrupt_ends_all_of_it(running: Running, tmp_path: Path) -> None:
    running.command.send_signal(signal.SIGINT)
    output, errors = running.command.communicate(timeout=60)
    assert (running.command.returncode, output) == (130, b"")
    assert errors == b"interrupted; no file is half-written\n"
    assert running.read() == b""
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_kill_ends_the_process_that_explores(running: Running, number: signal.Signals) -> None:
    running.command.send_signal(number)
    running.command.wait(timeout=60)
    assert running.read() == b""
