"""Folders that several modules of tests look into."""

from __future__ import annotations

from pathlib import Path

import pytest

import kvlint


@pytest.fixture
def demo_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the demo's backend in ``demo``."""
    monkeypatch.chdir(tmp_path)
    demo = Path(kvlint.__file__).with_name("demo_backend")
    (tmp_path / "demo").mkdir()
    for name in ("base.py", "backend.py"):
        (tmp_path / "demo" / name).write_bytes((demo / name).read_bytes())
    return tmp_path
