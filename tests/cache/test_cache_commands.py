"""The cache as users meet it: options, variables, `kvlint cache`, flake8, and what is said where it cannot be used."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kvlint.cli import cli
from kvlint.integrations import flake8 as integration

ROOT = Path(__file__).parent.parent.parent
CASE = ROOT / "fixtures" / "rules" / "kvl001_non_terminal_write_after_failed" / "cross_file_override"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(CASE, tmp_path / "project")
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("KVLINT_NO_CACHE", "KVLINT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)


def kvlint(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments), catch_exceptions=False)


def kept(folder: str = "../home/.cache/kvlint/results") -> list[str]:
    return sorted(file.name for file in Path(folder).glob("kvlint-v1/*") if len(file.name) == 64)


@pytest.mark.parametrize("output_format", ["text", "json", "github"])
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_the_same_bytes_with_and_without(output_format: str, jobs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvlint.processes._SMALLEST_SHARE", 1)
    command = ("check", ".", "--output-format", output_format)
    plain = kvlint(*command, "--no-cache")
    assert plain.stdout
    assert kept() == []
    for _ in range(2):
        run = kvlint(*command, "--jobs", jobs)
        assert (run.stdout_bytes, run.stderr, run.exit_code) == (plain.stdout_bytes, plain.stderr, 1)
    assert len(kept()) == 3


def test_the_folder_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    kvlint("check", "--cache-dir", "../a")
    monkeypatch.setenv("KVLINT_CACHE", "../b")
    kvlint("check")
    assert kept("../a") == kept("../b/results") != []
    assert kept() == []


@pytest.mark.parametrize(
    ("variable", "options", "expected"),
    [("1", (), 0), ("0", (), 3), ("1", ("--cache-dir", "../home/.cache/kvlint/results"), 3), ("", ("--no-cache",), 0)],
)
def test_it_can_be_switched_off(
    variable: str, options: tuple[str, ...], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KVLINT_NO_CACHE", variable)
    kvlint("check", *options)
    assert len(kept()) == expected


def test_a_folder_that_was_asked_for_and_cannot_be_used_is_worth_a_warning() -> None:
    Path("../file").touch()
    run = kvlint("check", "--cache-dir", "../file/folder", "--quiet")
    assert run.stderr.startswith("warning: no results are kept: ")
    assert run.stderr.rstrip().endswith("Not a directory")
    assert run.stdout == kvlint("check", "--no-cache").stdout


@pytest.mark.parametrize("command", [("check",), ("cache", "path"), ("cache", "clear")])
def test_an_empty_name_is_no_folder(command: tuple[str, ...]) -> None:
    run = kvlint(*command, "--cache-dir", "")
    assert run.exit_code == 2
    assert "--cache-dir" in run.stderr


def test_the_project_itself_can_be_named_and_stays_what_it_was() -> None:
    before = sorted(os.listdir())
    run = kvlint("check", "--cache-dir", ".")
    assert kvlint("check", "--cache-dir", ".").stdout == run.stdout != ""
    assert sorted(os.listdir()) == sorted([*before, "kvlint-v1"])


def test_any_other_that_cannot_be_used_only_costs_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVLINT_CACHE", os.path.abspath("base.py"))
    assert kvlint("check", "--quiet").stderr == ""
    assert "no results are kept: " in kvlint("check", "--verbose").stderr


def test_verbose_names_the_folder() -> None:
    assert "/.cache/kvlint/results\n" in kvlint("check", "--verbose").stderr


def test_nothing_else_uses_it() -> None:
    kvlint("fix", "--diff")
    kvlint("inspect")
    CliRunner().invoke(cli, ["check", "-"], input=Path("base.py").read_bytes())
    assert kept() == []


def test_path_and_clear() -> None:
    folder = kvlint("cache", "path").stdout.rstrip("\n")
    assert folder == os.path.abspath("../home/.cache/kvlint/results")
    assert not os.path.exists(folder)
    assert kvlint("cache", "clear").stderr == f"Removed 0 results (0 kB) from {folder}.\n"
    kvlint("check", "base.py")
    kvlint("check", "--cache-dir", "../a")
    assert kvlint("cache", "clear").stderr.startswith("Removed 1 result (")
    assert kept() == []
    assert len(kept("../a")) == 3
    assert kvlint("cache", "clear", "--cache-dir", "../a").exit_code == 0
    assert kept("../a") == []


def test_a_folder_that_cannot_be_cleared() -> None:
    Path("../a").mkdir()
    Path("../a/kvlint-v1").touch()
    run = kvlint("cache", "clear", "--cache-dir", "../a")
    assert run.exit_code == 2
    assert run.stderr.startswith("error: the cache cannot be cleared: ")


def test_without_a_home_there_is_nothing_to_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    run = kvlint("cache", "path")
    assert (run.exit_code, run.stdout) == (2, "")
    assert "--cache-dir" in run.stderr
    assert kvlint("check").exit_code == 1


@pytest.fixture
def fresh_plugin() -> Iterator[None]:
    memories = (integration._config_file, integration._config, integration._file_check, integration._results)
    for memory in memories:
        memory.cache_clear()
    yield
    for memory in memories:
        memory.cache_clear()


def by_flake8(name: str) -> list[tuple[int, int, str]]:
    lines = Path(name).read_text().splitlines(keepends=True)
    plugin = integration.Plugin(tree=None, filename=name, lines=lines)  # type: ignore[arg-type]
    return [found[:3] for found in plugin.run()]


@pytest.mark.usefixtures("fresh_plugin")
def test_flake8_and_the_command_share_results(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = by_flake8("plain_backend.py")
    assert expected
    (name,) = kept()
    kvlint("check")
    assert name in kept()
    integration._file_check.cache_clear()
    monkeypatch.setattr("kvlint.file_check.FileCheck.check", None)
    assert by_flake8("plain_backend.py") == expected


@pytest.mark.usefixtures("fresh_plugin")
@pytest.mark.parametrize("variable", ["KVLINT_NO_CACHE", "KVLINT_CACHE"])
def test_flake8_without_results(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, os.path.abspath("base.py"))
    assert by_flake8("plain_backend.py")
    assert kept() == []


@pytest.mark.usefixtures("fresh_plugin")
def test_flake8_on_a_file_that_cannot_be_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> bytes:
        raise PermissionError(13, "Permission denied")

    expected = by_flake8("plain_backend.py")
    integration._file_check.cache_clear()
    monkeypatch.setattr("kvlint.source.text.read_bytes", refuse)
    assert by_flake8("plain_backend.py") == expected


LOADED = """
import runpy, sys
sys.argv = ["kvlint", "check", "--quiet"]
try:
    runpy.run_module("kvlint", run_name="__main__")
except SystemExit:
    pass
heavy = ("libcst", "rich", "kvlint.analysis", "kvlint.rules")
print(*(name for name in sys.modules if name.startswith(heavy)))
"""


def test_a_run_that_finds_everything_known_loads_no_analysis() -> None:
    kvlint("check")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", LOADED], env=environment, capture_output=True, text=True, check=True)
    assert "KVL001" in done.stdout
    assert done.stdout.splitlines()[-1] == ""
