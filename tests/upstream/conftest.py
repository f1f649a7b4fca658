"""Fixtures that hand the fetched releases to the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from . import pin, releases


@pytest.fixture(scope="session")
def release() -> Callable[[str], Path]:
    """Version to unpacked tree; skips the test when no package index answers."""

    def fetch(version: str) -> Path:
        try:
            return releases.tree(version)
        except releases.IndexUnreachable as reason:
            pytest.skip(str(reason))

    return fetch


@pytest.fixture(scope="session")
def pinned(release: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree of 0.5.14 with the private commit, for tests that only read it."""
    release(pin.VERSION)
    destination = tmp_path_factory.mktemp("pinned")
    pin.write_tree(destination)
    return destination
