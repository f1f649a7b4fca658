"""The measuring itself: what counts as a round, a ratio, growth and a breakdown."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).parent.parent.parent / "bench"
MODULES = ("memory", "measure", "growth", "tools", "speed")


@pytest.fixture(autouse=True)
def bench_on_the_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As for a script in that folder; what was imported from there is forgotten afterwards."""
    monkeypatch.syspath_prepend(str(BENCH))
    yield
    for name in MODULES:
        sys.modules.pop(name, None)


def module(name: str) -> ModuleType:
    return importlib.import_module(name)


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def writing(name: str) -> list[str]:
    """A command that adds its name to a file."""
    return python(f"open('log', 'a').write('{name}')")


def test_rounds_alternate_and_the_first_does_not_count(tmp_path: Path) -> None:
    measure = module("measure")
    commands = {name: measure.Command(writing(name)) for name in "ab"}
    rows = measure.compare(commands, tmp_path, 2)
    assert (tmp_path / "log").read_text() == "abbaab"
    assert [row.name for row in rows] == ["a", "b"]
    assert rows[0].ratio == rows[0].lowest == rows[0].highest == 1
    assert 0 < rows[1].lowest <= rows[1].ratio <= rows[1].highest
    # A command may be over before anybody has looked at its memory.
    assert all(row.seconds > 0 and row.processor >= 0 and 0 <= row.megabytes < 1000 for row in rows)


def test_what_needs_an_earlier_run_gets_it_before_memory_is_watched(tmp_path: Path) -> None:
    measure = module("measure")
    measure.compare({"a": measure.Command(writing("a"), is_warm=True)}, tmp_path, 1)
    assert (tmp_path / "log").read_text() == "aaa"


def test_a_command_gets_its_variables_and_may_write_bytecode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    code = "import os, sys; open('log', 'w').write(f'{os.environ[\"X\"]} {sys.dont_write_bytecode}')"
    measure = module("measure")
    measure.run_once(measure.Command(python(code), {"X": "y"}), tmp_path)
    assert (tmp_path / "log").read_text() == "y False"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_is_that_of_all_processes_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure, memory = module("measure"), module("memory")
    # The child tells when it holds its memory, and both wait until they were looked at.
    child = "held = bytearray(80 << 20); print(len(held), flush=True); input()"
    code = (
        "import subprocess, sys; held = bytearray(80 << 20);"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}], stdin=-1, stdout=-1);"
        "child.stdout.readline(); open('ready', 'w').close();"
        "import os\nwhile not os.path.exists('seen'): pass\nchild.communicate(b'\\n')"
    )
    peak = memory.PeakMemory()
    looked_at = memory._family

    def noted(pid: int) -> list[int]:
        ready = (tmp_path / "ready").exists()
        family = list(looked_at(pid))
        peak.megabytes = max(peak.megabytes, sum(map(memory._megabytes, family)))
        if ready:
            (tmp_path / "seen").touch()
        return family

    monkeypatch.setattr(memory, "_family", noted)
    measure.run_once(measure.Command(python(code)), tmp_path, peak)
    # More than either of the two has for itself.
    assert 100 < peak.megabytes < 400


def test_a_table_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    measure = module("measure")
    measure.show(
        "Title", [measure.Row("ruff", 0.5, 0.4, 1.0, 1.0, 1.0, 30), measure.Row("x", 1.0, 1.9, 2.0, 1.9, 2.1, 60)]
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "Title"
    assert lines[-1].split() == ["x", "1.00", "1.90", "2.00", "(1.90-2.10)", "60", "MB"]


@pytest.mark.parametrize("status", [0, 1, 2])
def test_a_tool_that_breaks_down_is_not_timed(tmp_path: Path, status: int) -> None:
    measure = module("measure")
    command = measure.Command(python(f"import sys; sys.stderr.write('why'); sys.exit({status})"))
    if status < 2:
        assert measure.run_once(command, tmp_path).seconds > 0
    else:
        with pytest.raises(measure.CommandFailed, match="exit status 2\nwhy"):
            measure.run_once(command, tmp_path)


@pytest.mark.parametrize("how", ["ast", "libcst", "libcst-positions"])
def test_parsers_take_a_file(how: str) -> None:
    subprocess.run([sys.executable, str(BENCH / "parse.py"), how, str(BENCH / "parse.py")], check=True)


def test_flake8_alone_does_not_know_kvlint() -> None:
    command = [sys.executable, str(BENCH / "flake8_alone.py"), "--isolated", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "pycodestyle" in done.stdout
    assert "kvlint" not in done.stdout


@pytest.mark.parametrize("power", [0.5, 1, 2])
def test_the_exponent_of_a_power_is_that_power(power: float) -> None:
    assert module("growth").exponent([(n, 3 * n**power) for n in (1, 2, 5, 10)]) == pytest.approx(power)


def test_a_larger_tree_has_other_folders_and_the_same_files(tmp_path: Path) -> None:
    package = tmp_path / "package"
    (package / "sub").mkdir(parents=True)
    (package / "sub" / "a.py").write_text("x = 1\n")
    (package / "data.bin").touch()
    tree = module("growth").copies(package, 2, tmp_path / "large")
    found = sorted(path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file())
    assert found == ["copy_00/package/sub/a.py", "copy_01/package/sub/a.py"]


def test_a_longer_file_has_the_same_classes_under_other_names() -> None:
    speed, growth = module("speed"), module("growth")
    source = speed.BACKEND.read_text()
    text = growth.repeated(source, 3 * source.count("\n"))
    compile(text, "repeated", "exec")
    assert text.count("\nclass ") == 3 * source.count("\nclass ")
    assert growth.repeated(source, 1).count("\nclass ") == source.count("\nclass ")


def test_a_tool_is_found_where_it_was_said_to_be(tmp_path: Path) -> None:
    tools = module("tools")
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "semgrep"
    script.write_text("#!/bin/sh\necho semgrep, version 1.2.3\n")
    script.chmod(0o755)
    assert tools.find_command("semgrep", tmp_path) == tools.Tool("semgrep", (str(script),), "1.2.3")
    script.write_text("#!/bin/sh\nexit 1\n")
    assert isinstance(tools.find_command("semgrep", tmp_path), tools.Missing)


def test_a_tool_that_is_not_there_is_missing_with_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = module("tools")
    monkeypatch.setenv("PATH", str(tmp_path))
    missing = tools.find_command("fixit", None)
    assert missing.name == "fixit"
    assert "--tools .venv-bench" in missing.advice
    assert tools.REQUIREMENTS.is_file()
    assert "pip install no_such_tool" in tools.find_module("no_such_tool").advice
    assert isinstance(tools.find_module("ruff"), tools.Tool)


def test_every_option_is_understood() -> None:
    environment = {**os.environ, "PYTHONPATH": str(BENCH.parent)}
    command = [sys.executable, str(BENCH / "speed.py"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert all(table in done.stdout for table in module("speed").TABLES)
