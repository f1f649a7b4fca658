"""Explores small trees with the session of `fake_session`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from loading import minitree

from kvlint.explore.parent import Limits
from kvlint.explore.request import Request
from kvlint.explore.run import Outcome, explore

from .trees import LIMITS, ROOT, SESSION, Explore


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
