"""The small tree of the tests of loading, with code put into it; and how the tests of this folder have it explored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from loading import minitree

from kvlint.explore.parent import Limits
from kvlint.explore.run import Outcome

ROOT = Path(__file__).parent.parent.parent.parent
SESSION = "tests.explore.shell.fake_session"
#: Long enough for a busy machine to come by, short enough for a test.
LIMITS = Limits(memory=2 << 30, stall=1.5, silence=6.0, grace=20.0)
Explore = Callable[..., Outcome]


def at_import(code: str) -> dict[str, str]:
    """The small tree with ``code`` run when its backend is imported."""
    return {minitree.CONN: minitree.FILES[minitree.CONN] + code}


def in_worker(code: str, scenario: str = "") -> dict[str, str]:
    """The small tree with ``code`` run by its worker once it has an item, in the named scenario or in every one."""
    condition = f"self.scenario == {scenario!r}" if scenario else "True"
    lines = "".join(f"                {line}\n" for line in code.splitlines())
    before = "            room, pages, last = work.get()\n"
    return minitree.edited(minitree.CONN, before, f"{before}            if {condition}:\n{lines}")
