"""The tool that draws the README's picture."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kvlint.explore.report.swimlane import swimlane_svg

from .explorations import DEMO, PINNED

ROOT = Path(__file__).parent.parent.parent.parent


@pytest.fixture
def found() -> list[Any]:
    return [DEMO]


@pytest.fixture
def tool(found: list[Any], tmp_path: Path) -> dict[str, Any]:
    """The tool, which finds what is in ``found`` and writes to a folder of the test."""
    module = runpy.run_path(str(ROOT / "tools" / "generate_witness.py"))
    picture = tmp_path / "images" / "witness.svg"
    module["main"].__globals__.update(PICTURE=picture, explore_embedded=lambda folder: found[0])
    return module


def test_the_picture_is_drawn_and_checked(
    tool: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main, picture = tool["main"], tmp_path / "images" / "witness.svg"
    assert main(["--check"]) == 1
    assert "run `python tools/generate_witness.py`" in capsys.readouterr().err
    assert main([]) == 0
    assert picture.read_text(encoding="utf-8") == swimlane_svg(PINNED, standalone=True, width=900)
    assert main(["--check"]) == 0
    picture.write_text("another", encoding="utf-8")
    assert main(["--check"]) == 1


def test_nothing_to_draw(tool: dict[str, Any], found: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    found[0] = replace(DEMO, scenarios=DEMO.scenarios[1:])
    assert tool["main"]([]) == 2
    assert "no schedule of the demo's backend breaks pinned-room" in capsys.readouterr().err


def test_the_picture_of_the_readme_is_up_to_date() -> None:
    assert runpy.run_path(str(ROOT / "tools" / "generate_witness.py"))["main"](["--check"]) == 0
    assert "](docs/images/witness.svg)" in (ROOT / "README.md").read_text(encoding="utf-8")
    size = (ROOT / "docs" / "images" / "witness.svg").stat().st_size
    assert 5_000 < size < 60_000
