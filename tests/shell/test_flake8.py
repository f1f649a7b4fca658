"""The plugin reports what the command reports, line for line and column for column."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from click.testing import Result
from flake8.main.cli import main

from kvlint import __version__
from kvlint.integrations import flake8 as integration
from kvlint.integrations.flake8 import Plugin

Run = Callable[..., Result]

CANDIDATE = "status = KVPoll.Failed\n"
FILES: dict[str, str | bytes] = {
    "plain.py": CANDIDATE + "LOST\n    \nLOST\n",
    "wide.py": CANDIDATE + "x = 'é日本', LOST\n",
    "crlf.py": CANDIDATE.replace("\n", "\r\n") + "LOST\r\n\r\nLOST\r\n",
    "cr.py": CANDIDATE.replace("\n", "\r") + "LOST\r\rLOST\r",
    "bom.py": "\ufeff" + CANDIDATE + "LOST\n",
    "latin.py": b"# coding: latin-1\n" + CANDIDATE.encode() + b"x = '\xe9', LOST\n",
    "lying.py": CANDIDATE.encode() + b"# \xff\nLOST\n",
    "silenced.py": CANDIDATE + "LOST  # noqa: KVL001\nLOST  # noqa\nx = '''LOST\n'''  # noqa: KVL001\nLOST\n",
    "unused.py": CANDIDATE + "x = 1  # noqa: KVL001\ny = 2  # noqa: KVL555,E501\nz = 3  # noqa: KVL001, KVL901\n",
    "whole.py": CANDIDATE + "# flake8: noqa\nLOST\nx = 1  # noqa: KVL555\n",
    "other.py": "LOST\nx = 1  # noqa: KVL001\n",
    "no_newline.py": CANDIDATE + "LOST",
    "tabs.py": CANDIDATE + "if x:\n\ty = 1\n\tLOST\n",
}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    memories = (integration._config_file, integration._config, integration._file_check, integration._results)
    for memory in memories:
        memory.cache_clear()
    yield
    for memory in memories:
        memory.cache_clear()


@pytest.fixture
def flake8(kvlint: Run, capsysbinary: pytest.CaptureFixture[bytes]) -> Callable[..., list[str]]:
    """Run flake8 with the plugin alone selected."""
    lines = ["[flake8]", "select = KVL", "jobs = 1"]
    if "KVL" not in entry_points(group="flake8.extension").names:
        lines += ["[flake8:local-plugins]", "extension =", "  KVL = kvlint.integrations.flake8:Plugin"]
    Path("setup.cfg").write_text("\n".join(lines) + "\n")

    def run(*arguments: str) -> list[str]:
        main(["--config", "setup.cfg", *arguments])
        return sorted(capsysbinary.readouterr().out.decode().splitlines())

    return run


def command(kvlint: Run, *paths: str, stdin: bytes | None = None) -> list[str]:
    output = kvlint("check", *paths, stdin=stdin).stdout
    return sorted(line for line in output.splitlines() if not line.startswith(" "))


@pytest.mark.parametrize("name", FILES)
def test_the_same_findings(kvlint: Run, flake8: Callable[..., list[str]], name: str) -> None:
    content = FILES[name]
    Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    expected = command(kvlint, name)
    assert flake8(name) == expected
    assert bool(expected) is (name != "whole.py")


def test_configuration_counts(kvlint: Run, flake8: Callable[..., list[str]]) -> None:
    os.makedirs("sub/folder")
    for path in ("a.py", "sub/folder/a.py"):
        Path(path).write_text(CANDIDATE + "LOST\nx = 1  # noqa: KVL555\n")
    Path("pyproject.toml").write_text("[tool.kvlint]\nignore = ['KVL901']\nper-file-ignores = {'a.py' = ['KVL001']}\n")
    Path("sub/kvlint.toml").write_text("ignore = ['KVL001']\n")
    assert flake8("a.py") == command(kvlint, "a.py") == []
    assert flake8("sub/folder/a.py") == command(kvlint, "sub/folder/a.py") != []


def test_standard_input(kvlint: Run, flake8: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.py").write_text("x = 1\n")
    source = b"# coding: latin-1\n" + CANDIDATE.encode() + b"x = '\xe9', LOST\n"

    def given(*arguments: str) -> list[str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(source)))
        # flake8 reads standard input once per process.
        from flake8.utils import stdin_get_value

        stdin_get_value.cache_clear()
        return flake8("-", *arguments)

    expected = command(kvlint, "--stdin-filename", "a.py", stdin=source)
    assert given("--stdin-display-name", "a.py") == expected
    assert [re.sub("^[^:]+", "a.py", line) for line in given()] == expected


def test_a_file_without_a_protocol_loads_no_analysis(stub: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvlint.engine.outcome_of_source", None)
    assert list(Plugin(tree=None, filename="a.py", lines=["x = 1\n"]).run()) == []  # type: ignore[arg-type]


def test_what_flake8_shows() -> None:
    assert Plugin.name == "kvlint"
    assert Plugin.version == __version__


def test_the_configured_baseline(flake8: Callable[..., list[str]], kvlint: Run) -> None:
    Path("kvlint.toml").write_text("baseline = 'known.json'\n")
    Path("a.py").write_text(CANDIDATE + "LOST\nLOST  # noqa: KVL001\nx = 1  # noqa: KVL777\n")
    assert kvlint("check", "--write-baseline").exit_code == 0
    assert flake8("a.py") == []
    # Another run is another process, which reads everything afresh.
    for memory in (integration._config_file, integration._config, integration._file_check, integration._results):
        memory.cache_clear()
    Path("a.py").write_text(CANDIDATE + "\nLOST\nLOST  # noqa: KVL001\nx = 1  # noqa: KVL777\ny = LOST\n")
    assert flake8("a.py") == ["a.py:6:5: KVL001 the failure is lost"]
    Path("b.py").write_text("x = 1\n")
    assert flake8("b.py") == []
