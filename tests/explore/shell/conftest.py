"""Trees that do what a tree should not, explored by the session of `fake_session`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kvlint.explore.parent import Limits
from kvlint.explore.request import Request
from kvlint.explore.run import Outcome, explore

from tests.explore.loading import minitree

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


@pytest.fixture
def explored(tmp_path: Path) -> Explore:
    """Explores the small tree with some files changed."""

    def run(
        changes: dict[str, str] | None = None,
        *scenarios: str,
        limits: Limits = LIMITS,
        replay: str | None = None,
        threads: bool = False,
        seconds: float = 60.0,
        session: str = SESSION,
    ) -> Outcome:
        root = minitree.write(tmp_path / "tree", changes)
        names = scenarios or (() if replay else ("abort",))
        request = Request(root=str(root), scenarios=names, replay=replay, threads=threads, seconds=seconds)
        return explore(request, limits, session=session, path=[*sys.path, str(ROOT)])

    return run
