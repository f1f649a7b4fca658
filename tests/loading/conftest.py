"""Small trees for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from kvlint.loading import Backend, load_backend

from . import driving, minitree


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The folder that holds the small `sglang`."""
    return minitree.write(tmp_path / "tree")


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Backend]:
    """Loads the small tree with some files changed, its queues not waiting."""

    def build(changes: Mapping[str, str | None] | None = None, **environment: str) -> Backend:
        root = minitree.write(tmp_path / "changed", changes)
        return load_backend(root, substitutes={"queue": driving.QUEUE}, environment=environment)

    return build


@pytest.fixture
def driver(load: Callable[..., Backend]) -> driving.Driver:
    """Drives the small tree."""
    return driving.Driver(load())
