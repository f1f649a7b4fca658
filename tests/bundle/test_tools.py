"""The tools that make the bundle and the page of releases."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from kvlint.bundle.manifest import load, render

from .samples import AFFECTED, BYPASSING, FolderReleases

TOOLS = Path(__file__).parent.parent.parent / "tools"


def tool(name: str, releases: FolderReleases, **settings: object) -> dict[str, Any]:
    """A tool's names, with ``releases`` in the index's place."""
    module = runpy.run_path(str(TOOLS / name))
    module["main"].__globals__.update(configured_releases=lambda: releases, PACKAGE="kvdemo", **settings)
    return module


@pytest.fixture
def fixes(releases: FolderReleases, tmp_path: Path) -> dict[str, Any]:
    folder = tmp_path / "fixes"
    folder.mkdir()
    return tool("generate_fixes.py", releases, FOLDER=folder)


def test_a_bundle_is_made(fixes: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fixes["main"](["1.0", "2.0", "--jobs", "1"]) == 0
    assert "kvdemo 1.0: 2 files, closed ['KVL001'" in capsys.readouterr().out
    folder = tmp_path / "fixes"
    assert sorted(path.name for path in folder.iterdir()) == ["kvdemo-1.0.patch", "manifest.toml"]
    assert [entry.version for entry in load(folder).releases] == ["1.0", "2.0"]
    assert fixes["main"](["--check"]) == 0
    assert fixes["main"](["1.1", "--check"]) == 1
    assert "kvdemo 1.1: is not in the manifest" in capsys.readouterr().out


def test_measured_results_are_kept_for_the_same_files(
    fixes: dict[str, Any], releases: FolderReleases, tmp_path: Path, clean: dict[str, bytes]
) -> None:
    from msgspec.structs import replace

    from kvlint.bundle.manifest import ResultEntry

    assert fixes["main"](["1.0"]) == 0
    measured = ResultEntry(tool="explore", state="after", kvlint="0.2", figures={"pins": 0})
    manifest = tmp_path / "fixes/manifest.toml"
    manifest.write_text(render([replace(entry, results=(measured,)) for entry in load(manifest.parent).releases]))
    assert fixes["main"]([]) == 0
    assert load(manifest.parent).releases[0].results == (measured,)
    releases.add("kvdemo", "1.0", AFFECTED | {"kvdemo/base.py": AFFECTED["kvdemo/base.py"] + b"# other\n"})
    assert fixes["main"]([]) == 0
    assert load(manifest.parent).releases[0].results == ()
    releases.add("kvdemo", "1.0", clean)
    assert fixes["main"]([]) == 0
    assert sorted(path.name for path in manifest.parent.iterdir()) == ["manifest.toml"]


def test_a_patch_that_is_no_longer_enough_goes(
    fixes: dict[str, Any], releases: FolderReleases, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fixes["main"](["1.0"]) == 0
    releases.add("kvdemo", "1.0", BYPASSING)
    assert fixes["main"](["--check"]) == 1
    assert fixes["main"]([]) == 0
    assert "no patch, as findings of KVL001 are left" in capsys.readouterr().out
    assert sorted(path.name for path in (tmp_path / "fixes").iterdir()) == ["manifest.toml"]
    assert fixes["main"](["--check"]) == 0


def test_a_release_that_cannot_be_had(fixes: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert fixes["main"](["9"]) == 2
    assert "error: kvdemo==9: there is no such release" in capsys.readouterr().err
    assert fixes["main"](["9", "--check"]) == 2


@pytest.fixture
def page(
    fixes: dict[str, Any], releases: FolderReleases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    from kvlint.bundle import manifest

    assert fixes["main"](["1.0", "1.1", "2.0"]) == 0
    known = load(tmp_path / "fixes")
    monkeypatch.setattr(manifest, "load", lambda: known)
    return tool("generate_releases.py", releases, PAGE=tmp_path / "releases.md", load=lambda: known)


def test_the_page_is_written_and_checked(
    page: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert page["main"]([]) == 0
    path = tmp_path / "releases.md"
    text = path.read_text("utf-8")
    assert text.count("\n| kvdemo 1.0 |") == 2
    assert "fixed in 2.0 |" in text
    assert page["main"](["--check", "--jobs", "1"]) == 0
    assert page["main"](["--check", "1.1"]) == 0
    path.write_text(text.replace("| kvdemo 1.0 | kvdemo/backend.py |", "| kvdemo 1.0 | kvdemo/other.py |"), "utf-8")
    assert page["main"](["--check", "1.1"]) == 0
    assert page["main"](["--check"]) == 1
    out = capsys.readouterr().out
    assert "-| kvdemo 1.0 | kvdemo/other.py |" in out
    assert "+| kvdemo 1.0 | kvdemo/backend.py |" in out
    path.write_text("# Other\n" + text, "utf-8")
    assert page["main"](["--check"]) == 1
    assert capsys.readouterr().out == "the introduction differs\n"


def test_a_release_that_cannot_be_audited(page: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert page["main"](["--check", "9"]) == 2
    assert "no such release" in capsys.readouterr().err


def test_the_page_is_never_written_in_part(page: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        page["main"](["1.0"])
    assert "always written as a whole" in capsys.readouterr().err
