"""A clock, and sides of a tree that is played."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kvlint.drill import child, drill
from kvlint.drill.decode import DecodeSide
from kvlint.drill.prefill import PrefillSide

from . import sides


@pytest.fixture
def no_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Roots are words that the processes of a test know, and lead to no folder."""
    for module in (drill, child):
        monkeypatch.setattr(module, "find_tree", lambda root: SimpleNamespace(package=root))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> sides.Clock:
    return sides.Clock().install(monkeypatch)


@pytest.fixture
def channel() -> sides.PlayedChannel:
    return sides.PlayedChannel()


@pytest.fixture
def prefill(monkeypatch: pytest.MonkeyPatch, clock: sides.Clock, channel: sides.PlayedChannel) -> Any:
    sides.played(monkeypatch)
    made: Callable[..., Any] = PrefillSide
    return made(sides.setup(), channel)


@pytest.fixture
def decode(monkeypatch: pytest.MonkeyPatch, clock: sides.Clock, channel: sides.PlayedChannel) -> Any:
    sides.played(monkeypatch)
    made: Callable[..., Any] = DecodeSide
    return made(sides.setup(), channel)
