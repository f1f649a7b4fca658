"""The progress bar: late, on a terminal only, and gone at the end."""

from __future__ import annotations

import io
import sys
import threading
from typing import TYPE_CHECKING

from kvlint.commands.progress import Bar

if TYPE_CHECKING:
    import pytest


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nobody_looks() -> None:
    with Bar("releases") as bar:
        assert bar.update is None


def test_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with Bar("releases", quiet=True) as bar:
        assert bar.update is None


def test_it_comes_after_a_while_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    now = [0.0]
    with Bar("releases", clock=lambda: now[0]) as bar:
        assert bar.update is not None
        bar.update(0, 3)
        assert terminal.getvalue() == ""
        now[0] = 1.5
        before = threading.active_count()
        bar.update(1, 3)
        bar.update(2, 3)
        # Processes are forked while it is shown, which another thread's locks would not outlive.
        assert threading.active_count() == before
    assert "2/3" in terminal.getvalue()
    assert "releases" in terminal.getvalue()
    with Bar("releases", clock=lambda: 0.0) as bar:
        pass
