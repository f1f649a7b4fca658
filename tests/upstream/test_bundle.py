"""The audit, the page of releases and the patches, on four released packages."""

from __future__ import annotations

import hashlib
import json
import py_compile
import runpy
import shutil
import subprocess
import tomllib
from collections import Counter
from pathlib import Path

import pytest

import kvlint
from kvlint.bundle import pip
from kvlint.bundle.audit import Run
from kvlint.bundle.fetch import IndexReleases, configured_releases
from kvlint.bundle.manifest import ReleaseEntry, affected_releases, bundle_folder, load
from kvlint.bundle.requirements import parse
from kvlint.bundle.tables import KNOWN_TABLES
from kvlint.bundle.trees import unpacked
from kvlint.bundle.verify import verify
from kvlint.config import Config
from kvlint.report.audit_model import Audit, Release

from .observed import BACKENDS, JUDGED, run

TRUTH = tomllib.loads(Path(__file__).with_name("ground_truth.toml").read_text(encoding="utf-8"))
TOOL = runpy.run_path(str(Path(__file__).parent.parent.parent / "tools" / "generate_releases.py"))
VERSIONS = tuple(TRUTH["release"])
MENDED = ("KVL001", "KVL002", "KVL004")

each_version = pytest.mark.parametrize("version", VERSIONS)


@pytest.fixture(scope="module")
def released() -> IndexReleases:
    """The releases of the index; the tests are skipped where none answers and the cache has not all four."""
    try:
        releases = configured_releases()
        for version in VERSIONS:
            releases.archive("sglang", version)
    except pip.Unreachable as reason:
        pytest.skip(str(reason))
    return releases


@pytest.fixture(scope="module")
def audit(released: IndexReleases) -> Audit:
    return Run(released, known=affected_releases)([parse(f"sglang=={version}") for version in VERSIONS])


@pytest.fixture(params=VERSIONS)
def entry(request: pytest.FixtureRequest) -> ReleaseEntry:
    found = load().find("sglang", request.param)
    assert found is not None
    return found


@pytest.fixture
def site(entry: ReleaseEntry, released: IndexReleases, tmp_path: Path) -> Path:
    """A folder that holds the package as it was released."""
    with unpacked(released, "sglang", entry.version) as tree:
        shutil.move(tree.folder, tmp_path / "site")
    return tmp_path / "site"


def of(audit: Audit, version: str) -> Release:
    (found,) = [release for release in audit.releases if release.version == version]
    return found


@each_version
def test_the_audit_counts_what_the_ground_truth_lists(version: str, audit: Audit) -> None:
    truth = TRUTH["release"][version]
    expected = Counter((place.rpartition(":")[0], code) for code in JUDGED for place in truth.get(code, ()))
    found = Counter(
        {
            (backend.path.removeprefix(BACKENDS), code): count
            for backend in of(audit, version).backends
            for code, count in backend.findings.items()
        }
    )
    assert found == expected
    assert of(audit, version).affected == bool(expected)
    assert of(audit, version).incomplete == ()


@each_version
def test_the_audit_names_the_tables_of_the_ground_truth(version: str, audit: Audit) -> None:
    writers = {writer for backend in of(audit, version).backends for writer in backend.writers}
    found = {f"{writer.path.removeprefix(BACKENDS)}:{writer.line}": writer.kind for writer in writers}
    expected = TRUTH["release"][version]["writer"]
    assert {place: found.get(place) for place in expected} == expected


def test_the_tables_are_those_of_the_ground_truth() -> None:
    assert TRUTH["table"] == KNOWN_TABLES


@each_version
def test_the_audit_names_the_release_that_fixed_it(version: str, audit: Audit) -> None:
    assert of(audit, version).fixed_in == ("0.5.20" if of(audit, version).affected else None)


def test_the_audit_knows_which_loops_an_exception_ends(audit: Audit) -> None:
    ends = {
        (release.version, backend.name, loop.line)
        for release in audit.releases
        for backend in release.backends
        for loop in backend.loops
        if loop.fate == "ends"
    }
    # The listener's assert on the first frame, and the worker that raises what it caught.
    assert {("0.5.14", "nixl/conn.py", 1849), ("0.5.14", "mooncake/conn.py", 1389)} <= ends
    assert all(name != "mori/conn.py" for _, name, _ in ends)


def test_the_page_of_releases_is_up_to_date(audit: Audit) -> None:
    assert not TOOL["print_differences"](audit, whole=False)


def test_the_patches_are_what_the_releases_give(released: IndexReleases) -> None:
    entries = [entry for entry in load().releases if entry.version in VERSIONS]
    assert len(entries) == len(VERSIONS)
    result = verify(released, entries, bundle_folder())
    assert (result.differences, result.failures, result.compared) == ((), (), len(VERSIONS))


def test_a_patched_release_is_clean_and_compiles(entry: ReleaseEntry, site: Path) -> None:
    done = run("patch", "apply", str(site), "--release", entry.version, cwd=site.parent)
    assert done.returncode == 0, done.stderr
    for file in entry.files:
        assert hashlib.sha256((site / file.path).read_bytes()).hexdigest() == file.after
        py_compile.compile(str(site / file.path), str(site.parent / "compiled.pyc"), doraise=True)
    assert kvlint.check([site], config=Config(select=MENDED, folder=str(site))) == []
    assert run("patch", "revert", str(site), "--release", entry.version, cwd=site.parent).returncode == 0
    for file in entry.files:
        assert hashlib.sha256((site / file.path).read_bytes()).hexdigest() == file.before


@pytest.mark.parametrize(
    "command", [["git", "apply", "--unidiff-zero", "-p1"], ["patch", "--batch", "-p1", "-i"]], ids=["git", "patch"]
)
def test_other_programs_apply_the_patch(command: list[str], entry: ReleaseEntry, site: Path) -> None:
    if entry.patch is None:
        assert not entry.affected
        return
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    subprocess.run([*command, str(bundle_folder() / entry.patch)], cwd=site, check=True)
    for file in entry.files:
        assert hashlib.sha256((site / file.path).read_bytes()).hexdigest() == file.after


def test_the_command_on_a_real_release(released: IndexReleases, tmp_path: Path) -> None:
    done = run("audit", "sglang==0.5.14", "--output-format", "json", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    (release,) = json.loads(done.stdout)["releases"]
    assert release["verdict"] == "an abort can be lost or the request pinned; fixed in 0.5.20"
