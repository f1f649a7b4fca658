"""A release's patch is what ``kvlint fix`` does to it, and verification notices every difference."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

import kvlint
from kvlint import engine
from kvlint.bundle import BundleError, generate, manifest
from kvlint.bundle.generate import Made, make
from kvlint.bundle.manifest import NAME, load, render
from kvlint.bundle.patches import forward, parse
from kvlint.bundle.verify import differences
from kvlint.config import Config
from kvlint.fix_run import FixRun, fix_targets

from .samples import AFFECTED, BYPASSED_LINES, BYPASSING, FolderReleases, mended, sdist

if TYPE_CHECKING:
    from click.testing import Result

BASE, BACKEND = "kvdemo/base.py", "kvdemo/backend.py"


@pytest.fixture
def made(releases: FolderReleases) -> Made:
    return make(releases, "kvdemo", "1.0")


@pytest.fixture
def bundle(made: Made, releases: FolderReleases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bundle of 1.0 and 2.0."""
    folder = tmp_path / "fixes"
    folder.mkdir()
    assert made.patch is not None
    (folder / "kvdemo-1.0.patch").write_bytes(made.patch)
    (folder / NAME).write_text(render([made.entry, make(releases, "kvdemo", "2.0").entry]), encoding="utf-8")
    monkeypatch.setattr(manifest, "bundle_folder", lambda: folder)
    return folder


def test_the_patch_is_what_fix_does(made: Made, tmp_path: Path) -> None:
    wanted = mended(AFFECTED, tmp_path / "fixed", unsafe=False)
    assert made.patch is not None
    got = {patch.path: forward(patch, AFFECTED[patch.path]) for patch in parse("made", made.patch)}
    assert got == {BASE: wanted[BASE], BACKEND: wanted[BACKEND]}


def test_the_entry_says_what_changed(made: Made) -> None:
    entry = made.entry
    assert entry.title == "kvdemo 1.0"
    assert entry.patch == "kvdemo-1.0.patch"
    assert entry.fixes == ("skip-guard", "sticky-terminal")
    assert (entry.closed, entry.remaining) == (("KVL001", "KVL002", "KVL003", "KVL004"), ())
    assert [(file.path, file.closed) for file in entry.files] == [
        (BACKEND, {"KVL001": 3, "KVL002": 1, "KVL003": 1}),
        (BASE, {"KVL004": 1}),
    ]
    assert [file.before for file in entry.files] == [
        hashlib.sha256(AFFECTED[name]).hexdigest() for name in (BACKEND, BASE)
    ]
    (writer,) = entry.writers
    assert (writer.name, writer.path) == ("CommonManager.update_status", BASE)
    assert writer.before == "-:-BWTS F:FBWTS B:FBWTS W:FWWTS T:FTTTS S:FSSSS"
    assert writer.after == "-:-BWTS F:FFFFF B:FBWTS W:FWWTS T:FTTTS S:SSSSS"


def test_the_patch_holds_no_line_of_the_package(made: Made) -> None:
    assert made.patch is not None
    head, _, diffs = made.patch.partition(b"--- a/")
    for line in ("--- a/" + diffs.decode()).splitlines():
        assert line.startswith(("+", "--- a/", "@@ "))
    for file in made.entry.files:
        assert file.before.encode() in head
        assert file.after.encode() in head


def test_a_release_that_needs_nothing(releases: FolderReleases) -> None:
    made = make(releases, "kvdemo", "2.0")
    assert made.patch is None
    assert not made.entry.affected


def test_a_release_that_no_safe_fix_mends(releases: FolderReleases, tmp_path: Path) -> None:
    source = Path(__file__).parent.parent.parent / "fixtures/rules/kvl005_lost_failed_status/bad.py"
    files = mended({"kvdemo/a.py": source.read_bytes()}, tmp_path / "fixed", unsafe=False)
    releases.add("kvdemo", "3.0", files)
    made = make(releases, "kvdemo", "3.0")
    assert made.patch is None
    assert made.entry.remaining == ("KVL005",)
    assert made.entry.affected


def test_a_release_for_which_the_safe_fixes_are_not_enough(releases: FolderReleases) -> None:
    releases.add("kvdemo", "3.0", BYPASSING)
    made = make(releases, "kvdemo", "3.0")
    assert made.patch is None
    assert made.entry.insufficient == {"KVL001": tuple(f"{BACKEND}:{line}" for line in BYPASSED_LINES)}
    assert made.entry.remaining == ("KVL001", "KVL002", "KVL003", "KVL004")
    assert (made.entry.patch, made.entry.closed, made.entry.fixes, made.entry.files) == (None, (), (), ())


def test_a_release_of_which_nothing_can_be_fixed(releases: FolderReleases, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "fix_targets", partial(fix_nothing, fix_targets))
    made = make(releases, "kvdemo", "1.0")
    assert made.patch is None
    assert list(made.entry.insufficient) == ["KVL001", "KVL002", "KVL004"]
    assert made.entry.insufficient["KVL004"] == (f"{BASE}:65",)


def fix_nothing(fix: Callable[..., FixRun], targets: object, config: Config, **options: object) -> FixRun:
    run = fix(targets, config, **options)
    report = engine.check_targets(targets, config, jobs=1)  # type: ignore[arg-type]
    return dataclasses.replace(run, changes=(), report=report)


def test_a_source_distribution_has_other_paths(releases: FolderReleases) -> None:
    sdist(
        releases.folder / "kvdemo/4.0/kvdemo-4.0.tar.gz",
        {f"kvdemo-4.0/{name}": text for name, text in AFFECTED.items()},
    )
    with pytest.raises(BundleError, match="has no wheel"):
        make(releases, "kvdemo", "4.0")


def test_a_fixed_text_that_does_not_compile(releases: FolderReleases, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "compile", lambda *a, **k: (_ for _ in ()).throw(SyntaxError("bad")), raising=False)
    with pytest.raises(BundleError, match="does not compile: bad"):
        make(releases, "kvdemo", "1.0")


def test_a_patch_that_does_not_give_the_text(releases: FolderReleases, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "forward", lambda patch, before: before)
    with pytest.raises(BundleError, match="does not give the fixed text"):
        make(releases, "kvdemo", "1.0")


def test_the_patched_release_has_no_findings(made: Made, tmp_path: Path) -> None:
    assert made.patch is not None
    for patch in parse("made", made.patch):
        (tmp_path / patch.path).parent.mkdir(exist_ok=True)
        (tmp_path / patch.path).write_bytes(forward(patch, AFFECTED[patch.path]))
    assert kvlint.check([tmp_path / "kvdemo"], config=Config(folder=str(tmp_path))) == []


def test_verify_finds_no_difference(run: Callable[..., Result], bundle: Path) -> None:
    done = run("patch", "verify")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "2 of 2 releases compared, 0 differences." in done.stderr


def test_verify_leaves_measured_results_alone(run: Callable[..., Result], bundle: Path) -> None:
    measured = manifest.ResultEntry(tool="drill", state="after", kvlint="0.2", figures={"pinned": 0})
    entries = [replace(entry, results=(measured,)) for entry in load(bundle).releases]
    (bundle / NAME).write_text(render(entries), encoding="utf-8")
    assert run("patch", "verify", "1.0").exit_code == 0


def test_verify_tells_a_patch_that_differs(run: Callable[..., Result], bundle: Path) -> None:
    with (bundle / "kvdemo-1.0.patch").open("ab") as stream:
        stream.write(b"\n")
    done = run("patch", "verify", "--quiet", "--jobs", "1", "kvdemo==1.0", "2.0")
    assert (done.exit_code, done.stdout, done.stderr) == (1, "kvdemo 1.0: kvdemo-1.0.patch differs\n", "")


def test_verify_tells_a_patch_that_is_missing_and_one_too_many(run: Callable[..., Result], bundle: Path) -> None:
    (bundle / "kvdemo-1.0.patch").rename(bundle / "kvdemo-2.0.patch")
    assert run("patch", "verify").stdout == (
        "kvdemo 1.0: kvdemo-1.0.patch is missing\nkvdemo 2.0: kvdemo-2.0.patch is there, but nothing is to be mended\n"
    )


def test_verify_of_a_release_without_patch(run: Callable[..., Result], bundle: Path, releases: FolderReleases) -> None:
    releases.add("kvdemo", "3.0", BYPASSING)
    entries = [*load(bundle).releases, make(releases, "kvdemo", "3.0").entry]
    (bundle / NAME).write_text(render(entries), encoding="utf-8")
    assert (run("patch", "verify").exit_code, run("patch", "verify").stdout) == (0, "")
    (bundle / "kvdemo-3.0.patch").write_bytes((bundle / "kvdemo-1.0.patch").read_bytes())
    done = run("patch", "verify", "3.0")
    assert done.exit_code == 1
    assert done.stdout == (
        "kvdemo 3.0: kvdemo-3.0.patch is there, but the safe fixes are not enough for this release\n"
    )


def test_verify_tells_an_entry_that_differs(run: Callable[..., Result], bundle: Path) -> None:
    text = (bundle / NAME).read_text("utf-8")
    (bundle / NAME).write_text(text.replace("KVL002 = 1", "KVL002 = 2"), encoding="utf-8")
    assert run("patch", "verify", "1.0").stdout == "kvdemo 1.0: its entry in the manifest differs\n"


def test_a_release_that_is_not_in_the_manifest(made: Made, bundle: Path) -> None:
    other = Made(replace(made.entry, version="9"), made.patch)
    assert list(differences(other, load(bundle), bundle)) == ["kvdemo 9: is not in the manifest"]


def test_verify_tells_a_release_that_cannot_be_had(
    run: Callable[..., Result], bundle: Path, releases: FolderReleases
) -> None:
    next((releases.folder / "kvdemo/2.0").iterdir()).unlink()
    done = run("patch", "verify")
    assert done.exit_code == 2
    assert "error: kvdemo==2.0: there is no such release" in done.stderr
    assert "1 of 2 releases compared" in done.stderr


def test_a_patch_that_cannot_be_read(made: Made, bundle: Path) -> None:
    (bundle / "kvdemo-1.0.patch").unlink()
    (bundle / "kvdemo-1.0.patch").mkdir()
    with pytest.raises(BundleError, match="cannot be read"):
        list(differences(made, load(bundle), bundle))


def test_verify_of_a_release_that_is_not_known(run: Callable[..., Result], bundle: Path) -> None:
    done = run("patch", "verify", "7.0")
    assert done.exit_code == 2
    assert "it knows 1.0 to 2.0 of kvdemo" in done.stderr
