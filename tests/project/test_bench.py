"""The measuring itself: what counts as a round, a ratio and a breakdown."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parent.parent.parent / "bench"


@pytest.fixture
def measure() -> dict[str, Any]:
    return runpy.run_path(str(BENCH / "measure.py"))


def writing(name: str) -> list[str]:
    """A command that adds its name to a file."""
    return [sys.executable, "-c", f"open('log', 'a').write('{name}')"]


def test_rounds_alternate_and_the_first_does_not_count(measure: dict[str, Any], tmp_path: Path) -> None:
    rows = measure["compare"]({"a": writing("a"), "b": writing("b")}, tmp_path, 2)
    assert (tmp_path / "log").read_text() == "abbaab"
    assert [row.name for row in rows] == ["a", "b"]
    assert rows[0].ratio == rows[0].lowest == rows[0].highest == 1
    assert 0 < rows[1].lowest <= rows[1].ratio <= rows[1].highest
    assert all(row.seconds > 0 and 1 < row.megabytes < 1000 for row in rows)


def test_a_table_is_printed(measure: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    measure["show"](
        "Title", [measure["Row"]("ruff", 0.5, 1.0, 1.0, 1.0, 30.0), measure["Row"]("x", 1.0, 2.0, 1.9, 2.1, 60)]
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "Title"
    assert lines[-1].split() == ["x", "1.00", "2.00", "(1.90-2.10)", "60", "MB"]


@pytest.mark.parametrize("status", [0, 1, 2])
def test_a_tool_that_breaks_down_is_not_timed(measure: dict[str, Any], tmp_path: Path, status: int) -> None:
    command = [sys.executable, "-c", f"import sys; sys.stderr.write('why'); sys.exit({status})"]
    if status < 2:
        assert measure["run_once"](command, tmp_path).seconds > 0
    else:
        with pytest.raises(measure["CommandFailed"], match="exit status 2\nwhy"):
            measure["run_once"](command, tmp_path)


@pytest.mark.parametrize("how", ["ast", "libcst", "libcst-positions"])
def test_parsers_take_a_file(how: str) -> None:
    subprocess.run([sys.executable, str(BENCH / "parse.py"), how, str(BENCH / "parse.py")], check=True)


def test_flake8_alone_does_not_know_kvlint() -> None:
    command = [sys.executable, str(BENCH / "flake8_alone.py"), "--isolated", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "pycodestyle" in done.stdout
    assert "kvlint" not in done.stdout
