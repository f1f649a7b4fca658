"""A source of three releases of one package: 1.0 and 1.1 are affected, 2.0 is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kvlint.bundle import fetch
from kvlint.cli import cli

from .samples import AFFECTED, FolderReleases, mended


@pytest.fixture(scope="session")
def clean(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The affected backend with all fixes."""
    return mended(AFFECTED, tmp_path_factory.mktemp("clean"), unsafe=True)


@pytest.fixture
def releases(tmp_path: Path, clean: dict[str, bytes]) -> FolderReleases:
    source = FolderReleases(tmp_path / "index")
    source.add("kvdemo", "1.0", AFFECTED)
    source.add("kvdemo", "1.1", AFFECTED)
    source.add("kvdemo", "2.0", clean)
    return source


@pytest.fixture
def run(releases: FolderReleases, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    """Run the command with those releases in the index's place."""
    monkeypatch.setattr(fetch, "configured_releases", lambda: releases)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")

    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(cli, list(arguments), catch_exceptions=False)

    return invoke
