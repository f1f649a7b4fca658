"""flake8, which sees one file at a time, reports what `kvlint check` reports with the whole folder before it."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from collections import Counter
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from kvlint.registry import rules

ROOT = Path(__file__).parent.parent.parent
FIXTURES = ROOT / "fixtures"
RELEASES = ROOT / "tests" / "upstream" / "releases.py"
VERSION = "0.5.14"
BACKENDS = ("common", "nixl", "mooncake", "mori")

#: path, line, column, code
Place = tuple[str, int, int, str]
Places = Counter[Place]


def cases_of_one_file() -> list[Path]:
    return sorted(path for path in FIXTURES.rglob("*.py") if is_alone(path))


def cases_of_several_files() -> list[Path]:
    return sorted(path for path in FIXTURES.rglob("*.py") if not is_alone(path))


def is_alone(path: Path) -> bool:
    return path.name in ("good.py", "bad.py", "fixed.py") or path.is_relative_to(FIXTURES / "tables")


def case_of(path: Path) -> Path:
    """The folder of a case of several files: fixtures/rules/RULE/CASE."""
    return FIXTURES / Path(*path.relative_to(FIXTURES).parts[:3])


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which flake8 finds the plugin, also where kvlint is not installed but stands in a checkout."""
    folders = [str(ROOT)]
    if "KVL" not in entry_points(group="flake8.extension").names:
        metadata = tmp_path_factory.mktemp("installed") / "flake8_kvlint-0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: flake8-kvlint\nVersion: 0\n")
        (metadata / "entry_points.txt").write_text("[flake8.extension]\nKVL = kvlint.integrations.flake8:Plugin\n")
        folders.append(str(metadata.parent))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}


def by_flake8(environment: dict[str, str], folder: Path, *paths: str) -> Places:
    command = [sys.executable, "-m", "flake8", "--select", "KVL", "--isolated", "--jobs", "1"]
    command += ["--format", "%(path)s\t%(row)d\t%(col)d\t%(code)s", *paths]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (bool(done.stdout), "")
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    return Counter((path, int(line), int(column), code) for path, line, column, code in rows)


def by_kvlint(environment: dict[str, str], folder: Path, *paths: str) -> Places:
    command = [sys.executable, "-m", "kvlint", "check", "--isolated", "--output-format", "json", *paths]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    findings = json.loads(done.stdout)["findings"]
    return Counter((f["path"], f["line"], f["column"], f["code"]) for f in findings)


def in_file(places: Places, path: str) -> Places:
    return Counter({place: count for place, count in places.items() if place[0] == path})


def test_cases_of_one_file(environment: dict[str, str]) -> None:
    paths = [path.relative_to(FIXTURES).as_posix() for path in cases_of_one_file()]
    expected = by_kvlint(environment, FIXTURES, *paths)
    assert {code for _, _, _, code in expected} >= {"KVL001", "KVL002", "KVL003", "KVL004", "KVL005"}
    assert by_flake8(environment, FIXTURES, *paths) == expected


@pytest.fixture(scope="module")
def of_folders(environment: dict[str, str]) -> dict[Path, Places]:
    """What the command finds in each case of several files."""
    cases = {case_of(path) for path in cases_of_several_files()}
    return {case: by_kvlint(environment, FIXTURES, case.relative_to(FIXTURES).as_posix()) for case in sorted(cases)}


@pytest.mark.parametrize("path", cases_of_several_files(), ids=lambda path: path.relative_to(FIXTURES).as_posix())
def test_cases_of_several_files(path: Path, environment: dict[str, str], of_folders: dict[Path, Places]) -> None:
    name = path.relative_to(FIXTURES).as_posix()
    assert by_flake8(environment, FIXTURES, name) == in_file(of_folders[case_of(path)], name)


def test_cases_of_several_files_have_findings(of_folders: dict[Path, Places]) -> None:
    assert len(of_folders) >= 6
    asked = {rule.code.lower() for rule in rules() if rule.default}
    assert all(found for case, found in of_folders.items() if case.parent.name.partition("_")[0] in asked)


@pytest.fixture(scope="module")
def release() -> Path:
    releases = runpy.run_path(str(RELEASES))
    try:
        tree = releases["tree"](VERSION)
    except releases["IndexUnreachable"] as reason:
        pytest.skip(str(reason))
    assert isinstance(tree, Path)
    return tree


@pytest.fixture(scope="module")
def of_the_release(environment: dict[str, str], release: Path) -> Places:
    return by_kvlint(environment, release, "sglang")


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_real_release(backend: str, environment: dict[str, str], release: Path, of_the_release: Places) -> None:
    name = f"sglang/srt/disaggregation/{backend}/conn.py"
    assert (release / name).is_file()
    assert by_flake8(environment, release, name) == in_file(of_the_release, name)


def test_a_real_release_has_findings(of_the_release: Places) -> None:
    found = {path for path, _, _, _ in of_the_release}
    assert found >= {f"sglang/srt/disaggregation/{backend}/conn.py" for backend in ("common", "nixl")}
