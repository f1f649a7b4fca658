"""``kvlint patch`` list, show, apply and revert: which release is meant, and what is said."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from kvlint.bundle import manifest
from kvlint.bundle.generate import Made, make
from kvlint.bundle.manifest import NAME, ReleaseEntry, load, render
from kvlint.cli import cli

from .samples import AFFECTED, BYPASSED_LINES, BYPASSING, FolderReleases, mended

BASE, BACKEND = "kvdemo/base.py", "kvdemo/backend.py"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle: 1.0, 1.1 with another base, 1.2 with stores that nothing mends, 2.0 and 3.0, both clean, and 2.1."""
    source = FolderReleases(tmp_path_factory.mktemp("index"))
    source.add("kvdemo", "1.0", AFFECTED)
    source.add("kvdemo", "1.1", {name: text + b"# 1.1\n" * (name == BASE) for name, text in AFFECTED.items()})
    folder = tmp_path_factory.mktemp("fixes")
    entries: list[ReleaseEntry] = []
    for version in ("1.0", "1.1"):
        made: Made = make(source, "kvdemo", version)
        assert made.patch is not None
        entries.append(made.entry)
        (folder / f"kvdemo-{version}.patch").write_bytes(made.patch)
    entries[1] = replace(entries[1], remaining=("KVL005",))
    entries.append(ReleaseEntry(package="kvdemo", version="2.0"))
    entries.append(ReleaseEntry(package="kvdemo", version="2.1", remaining=("KVL005",)))
    entries.append(ReleaseEntry(package="kvdemo", version="3.0"))
    source.add("kvdemo", "1.2", BYPASSING)
    entries.append(make(source, "kvdemo", "1.2").entry)
    (folder / NAME).write_text(render(entries), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def fixed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return mended(AFFECTED, tmp_path_factory.mktemp("fixed"), unsafe=False)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    for name, data in AFFECTED.items():
        (tmp_path / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / name).write_bytes(data)
    return tmp_path / "site"


@pytest.fixture
def patch(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.setattr(manifest, "bundle_folder", lambda: bundle)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(cli, ["patch", *arguments], catch_exceptions=False)

    return run


def installed(site: Path, version: str) -> None:
    info = site / f"kvdemo-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Name: kvdemo\nVersion: {version}\n", encoding="utf-8")
    (info / "RECORD").write_text(f"{BASE},sha256=x,1\n{BACKEND},sha256=y,1\n", encoding="utf-8")


Run = Callable[..., Result]


def test_list(patch: Run) -> None:
    assert patch("list").stdout.splitlines() == [
        "kvdemo 1.0             2 files   closes KVL001, KVL002, KVL003, KVL004",
        "kvdemo 1.1             2 files   closes KVL001, KVL002, KVL003, KVL004; leaves findings of KVL005",
        "kvdemo 1.2             0 files   no patch: the safe fixes leave findings of KVL001",
        "kvdemo 2.1             0 files   no patch: no safe fix mends KVL005",
    ]
    assert patch("list", "--all").stdout.splitlines()[3] == "kvdemo 2.0             0 files   needs no patch"


def test_list_as_json(patch: Run) -> None:
    listed = json.loads(patch("list", "--all", "--output-format", "json").stdout)
    assert [entry["version"] for entry in listed] == ["1.0", "1.1", "1.2", "2.0", "2.1", "3.0"]
    assert listed[2]["insufficient"] == {"KVL001": [f"{BACKEND}:{line}" for line in BYPASSED_LINES]}
    assert listed[2]["patch"] is None
    assert listed[0]["file"][0]["path"] == BACKEND


def test_show(patch: Run, bundle: Path) -> None:
    assert patch("show", "1.0").stdout_bytes == (bundle / "kvdemo-1.0.patch").read_bytes()
    assert patch("show", "KVDemo == 1.0").stdout_bytes == (bundle / "kvdemo-1.0.patch").read_bytes()
    assert json.loads(patch("show", "1.1", "--output-format", "json").stdout)[0]["remaining"] == ["KVL005"]
    assert "nothing found by kvlint's rules" in patch("show", "2.0").stderr
    assert "no safe fix mends KVL005" in patch("show", "2.1").stderr
    assert patch("show", "2.1").exit_code == 0


NOT_ENOUGH = (
    f"error: the safe fixes are not enough for kvdemo 1.2 (KVL001 remains at {BACKEND}:62, {BACKEND}:74): "
    "upgrade to 3.0 or later, or run `kvlint fix` and mend the rest by hand\n"
)


def test_a_release_for_which_the_safe_fixes_are_not_enough(patch: Run, site: Path) -> None:
    (site / BACKEND).write_bytes(BYPASSING[BACKEND])
    assert patch("show", "1.2", "--output-format", "json").exit_code == 0
    for arguments in (("show", "1.2"), ("apply", "site", "--release", "1.2"), ("apply", "-q", "site", "--release=1.2")):
        done = patch(*arguments)
        assert (done.exit_code, done.stdout, done.stderr) == (1, "", NOT_ENOUGH)
    assert patch("apply", "site").exit_code == 1
    installed(site, "1.2")
    assert patch("apply", "site", "--dry-run").stderr == NOT_ENOUGH
    assert sorted(path.name for path in (site / "kvdemo").iterdir()) == sorted(Path(name).name for name in AFFECTED)
    assert {name: (site / name).read_bytes() for name in AFFECTED} == BYPASSING
    done = patch("revert", "site")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == "kvdemo 1.2: no patch: the safe fixes leave findings of KVL001\n"


def test_where_no_release_is_known_to_be_clean(
    patch: Run, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = [entry for entry in load(bundle).releases if entry.version != "3.0"]
    (tmp_path / NAME).write_text(render(entries), encoding="utf-8")
    monkeypatch.setattr(manifest, "bundle_folder", lambda: tmp_path)
    assert patch("show", "1.2").stderr.endswith(f"{BACKEND}:74): run `kvlint fix` and mend the rest by hand\n")


def test_show_of_what_is_not_there(patch: Run) -> None:
    assert (done := patch("show", "7")).exit_code == 2
    assert "it knows 1.0 to 3.0 of kvdemo" in done.stderr
    assert "see `kvlint patch list --all`" in patch("show", "other==1").stderr


def test_a_patch_that_is_missing(patch: Run, tmp_path: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / NAME).write_bytes((bundle / NAME).read_bytes())
    monkeypatch.setattr(manifest, "bundle_folder", lambda: tmp_path)
    assert (done := patch("show", "1.0")).exit_code == 2
    assert "install flake8-kvlint again" in done.stderr


def test_apply_to_a_folder_and_revert(patch: Run, site: Path, fixed: dict[str, bytes]) -> None:
    dry = patch("apply", "site", "--dry-run")
    assert dry.stdout.splitlines()[0] == f"{site / BACKEND}: would be patched"
    done = patch("apply", "site")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"{site / BACKEND}: patched",
        f"{site / BASE}: patched",
        "kvdemo 1.0: the patch closes KVL001, KVL002, KVL003, KVL004",
    ]
    assert (site / BASE).read_bytes() == fixed[BASE]
    assert patch("apply", "site").stdout.splitlines()[1] == f"{site / BASE}: already patched"
    assert patch("revert", "site", "--dry-run").stdout.splitlines()[0] == f"{site / BACKEND}: would be restored"
    assert patch("revert", "site").stdout.splitlines() == [f"{site / BACKEND}: restored", f"{site / BASE}: restored"]
    assert patch("revert", "site").stdout.splitlines()[0] == f"{site / BACKEND}: not patched"
    assert (site / BASE).read_bytes() == AFFECTED[BASE]


def test_quiet(patch: Run, site: Path) -> None:
    assert patch("apply", "--quiet", "site").output == ""


def test_the_release_is_told_by_the_files(patch: Run, site: Path) -> None:
    (site / BASE).write_bytes(AFFECTED[BASE] + b"# 1.1\n")
    done = patch("apply", "site")
    assert done.stdout.splitlines()[-1].startswith("kvdemo 1.1: ")
    assert "leaves findings of KVL005" in done.stdout


def test_apply_to_an_installed_distribution(
    patch: Run, site: Path, fixed: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(site, "1.0")
    monkeypatch.syspath_prepend(str(site))
    done = patch("apply", "--installed", "KVDemo")
    assert done.exit_code == 0
    assert (site / BASE).read_bytes() == fixed[BASE]
    assert (site / "kvdemo-1.0.dist-info/RECORD").read_text() == f"{BASE},sha256=x,1\n{BACKEND},sha256=y,1\n"
    assert patch("revert", "--installed", "kvdemo").exit_code == 0
    assert (site / BASE).read_bytes() == AFFECTED[BASE]


def test_files_that_are_not_those_of_the_release_they_claim(patch: Run, site: Path) -> None:
    installed(site, "2.0")
    for options in ((), ("--release", "2.0")):
        done = patch("apply", "site", *options)
        assert (done.exit_code, done.stdout) == (1, "")
        assert "kvdemo 2.0 needs no patch, but these files are not those of that release: " in done.stderr
        assert ": KVL00" in done.stderr
    assert (site / BASE).read_bytes() == AFFECTED[BASE]


def test_a_release_that_needs_nothing(
    patch: Run, site: Path, clean: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, data in clean.items():
        (site / name).write_bytes(data)
    installed(site, "2.0")
    monkeypatch.syspath_prepend(str(site))
    for target in (("--installed", "kvdemo"), ("site",)):
        done = patch("apply", *target)
        assert (done.exit_code, done.stdout) == (
            0,
            "kvdemo 2.0: nothing found by kvlint's rules, so no patch is needed\n",
        )


def test_a_release_that_the_bundle_does_not_know(patch: Run, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(site, "4.0")
    monkeypatch.syspath_prepend(str(site))
    for target in (("--installed", "kvdemo"), ("site",)):
        done = patch("apply", *target)
        assert (done.exit_code, done.stdout) == (1, "")
        assert "does not know kvdemo 4.0 (it knows 1.0 to 3.0); run `kvlint fix`" in done.stderr


def test_files_of_no_release(patch: Run, site: Path) -> None:
    (site / BASE).write_bytes(b"a fork\n")
    done = patch("apply", "site")
    assert done.exit_code == 1
    assert "not those of any release that has a patch" in done.stderr
    assert "run `kvlint fix site`" in done.stderr
    named = patch("apply", "site", "--release", "1.0")
    assert named.exit_code == 1
    assert f"{site / BASE}: is neither the released file nor the patched one" in named.stderr
    assert (site / BACKEND).read_bytes() == AFFECTED[BACKEND]


def test_metadata_of_two_versions_says_nothing(patch: Run, site: Path) -> None:
    installed(site, "2.0")
    installed(site, "1.1")
    (site / "other-1.dist-info").mkdir()
    assert patch("apply", "site").stdout.splitlines()[-1].startswith("kvdemo 1.0: ")


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("nowhere", "is no folder"),
        ("empty", "holds no package that the bundle has patches for (kvdemo)"),
        ("site/kvdemo", "is the package itself; give the folder that holds it"),
        (".", "holds the package further down; give ./site"),
    ],
)
def test_a_folder_without_the_package(target: str, said: str, patch: Run, site: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = patch("apply", target)
    assert done.exit_code == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give either"),
        (("site", "--installed", "kvdemo"), "give either"),
        (("--installed", "kvdemo", "--release", "1.0"), "--release says what PATH holds"),
        (("--installed", "not-there"), "no distribution of that name is installed"),
        (("site", "--release", "9"), "does not know kvdemo 9"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], said: str, patch: Run, site: Path) -> None:
    done = patch("apply", *arguments)
    assert done.exit_code in (1, 2)
    assert said in done.stderr
    assert done.stdout == ""


def test_another_package(patch: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    done = patch("apply", "--installed", "click")
    assert done.exit_code == 1
    assert "has no patches for click" in done.stderr
