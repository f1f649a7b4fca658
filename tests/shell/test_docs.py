from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parent.parent.parent / "tools" / "generate_docs.py"


@pytest.fixture
def tool(stub: None, tmp_path: Path) -> dict[str, Any]:
    module = runpy.run_path(str(SCRIPT))
    module["main"].__globals__["PAGE"] = tmp_path / "docs" / "rules.md"
    return module


def test_the_page_is_written_and_checked(tool: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    main, page = tool["main"], tool["main"].__globals__["PAGE"]
    assert main(["--check"]) == 1
    assert "run `python tools/generate_docs.py`" in capsys.readouterr().err
    assert main([]) == 0
    assert page.read_text().startswith("<!-- Generated from the rules' docstrings")
    assert main(["--check"]) == 0
    page.write_text(page.read_text() + "more\n")
    assert main(["--check"]) == 1
    assert "-more\n" in capsys.readouterr().out
