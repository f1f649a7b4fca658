"""The manifest is checked when it is read, and written the same way every time."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from packaging.version import Version

from kvlint.bundle import BundleError, manifest
from kvlint.bundle.manifest import FileEntry, Manifest, ReleaseEntry, ResultEntry, WriterEntry, load, render

ENTRY = ReleaseEntry(
    package="kvdemo",
    version="1.10",
    patch="kvdemo-1.10.patch",
    fixes=("skip-guard",),
    closed=("KVL002",),
    remaining=("KVL003", "KVL005"),
    files=(FileEntry(path="kvdemo/a.py", before="0" * 64, after="1" * 64, closed={"KVL002": 2}),),
    writers=(WriterEntry(name="M.write", path="kvdemo/a.py", before="-:F", after="-:B"),),
    results=(
        ResultEntry(
            tool="explore",
            state="before",
            kvlint="0.2.0",
            figures={"schedules": 6_662_462, "share": 0.5, "holds": False, "first pin": 'a "quoted" \\ \x7f ü'},
        ),
    ),
)
CLEAN = ReleaseEntry(package="kvdemo", version="1.9")
STUCK = ReleaseEntry(
    package="kvdemo",
    version="1.8",
    remaining=("KVL001", "KVL004"),
    insufficient={"KVL001": ("kvdemo/a.py:7", "kvdemo/b.py:8")},
)


def written(folder: Path, text: str) -> Path:
    (folder / "manifest.toml").write_text(text, encoding="utf-8")
    return folder


def test_what_is_written_is_read(tmp_path: Path) -> None:
    found = load(written(tmp_path, render([ENTRY, CLEAN])))
    assert found.releases == (CLEAN, ENTRY)
    assert render(found.releases) == render([ENTRY, CLEAN])


def test_why_there_is_no_patch_is_written_and_read(tmp_path: Path) -> None:
    text = render([STUCK])
    assert 'insufficient = { KVL001 = ["kvdemo/a.py:7", "kvdemo/b.py:8"] }\n' in text
    assert load(written(tmp_path, text)).releases == (STUCK,)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (replace(ENTRY, insufficient={"KVL003": ("kvdemo/a.py:1",)}), "a patch, and a reason why there is none"),
        (replace(STUCK, remaining=("KVL004",)), "not among those that remain"),
        (replace(STUCK, insufficient={"E501": ()}), "matching regex"),
    ],
)
def test_reasons_that_cannot_be(entry: ReleaseEntry, said: str, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=said):
        load(written(tmp_path, render([entry])))


@pytest.mark.parametrize(
    ("clean", "affected", "expected"),
    [
        (("2.0", "2.1"), ("1.9",), "2.0"),
        (("2.0", "2.2"), ("2.1",), "2.2"),
        (("2.0rc1", "2.1"), ("2.0",), "2.1"),
        (("1.7", "2.0rc1"), (), None),
        (("2.0",), ("2.1",), None),
        (("2.0",), ("2.1rc1",), "2.0"),
    ],
)
def test_from_where_on_no_release_is_affected(
    clean: tuple[str, ...], affected: tuple[str, ...], expected: str | None
) -> None:
    others = [ReleaseEntry(package="kvdemo", version=version) for version in clean]
    others += [replace(STUCK, version=version) for version in affected]
    known = Manifest(format=1, releases=(STUCK, *others, ReleaseEntry(package="other", version="3"), STUCK))
    assert known.clean_since(STUCK) == expected


def test_a_release_is_found_however_it_is_spelled(tmp_path: Path) -> None:
    found = load(written(tmp_path, render([ENTRY, CLEAN])))
    assert found.find("KVDemo", "1.10.0") == ENTRY
    assert found.find("kvdemo", "1.9") == CLEAN
    assert found.find("kvdemo", "2") is None
    assert found.find("other", "1.9") is None
    assert found.find("kvdemo", "not a version") is None


def test_what_is_affected() -> None:
    assert ENTRY.affected
    assert replace(CLEAN, remaining=("KVL005",)).affected
    assert not CLEAN.affected


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("format = 1", "format = 2", "has format 2, this kvlint reads format 1"),
        ("format = 1", "", "has format None"),
        ("format = 1", "format = ", "not valid TOML"),
        ("format = 1", "format = 1\nextra = 1", "unknown field `extra`"),
        ("[[release.file]]", "[[release.filed]]", "unknown field `filed`"),
        ('package = "kvdemo"\n', "", "required field `package`"),
        ('package = "kvdemo"', 'package = "KvDemo"', "written 'kvdemo'"),
        ('version = "1.10"', 'version = "one"', "no version"),
        ('version = "1.10"', 'version = "1.9"', "listed twice"),
        ('patch = "kvdemo-1.10.patch"', 'patch = "../x.patch"', "matching regex"),
        ('patch = "kvdemo-1.10.patch"\n', "", "files without a patch"),
        ("0" * 64, "0" * 63, "matching regex"),
        ('closed = ["KVL002"]', 'closed = ["E501"]', "matching regex"),
        ('tool = "explore"', 'tool = "guess"', "Invalid enum value 'guess'"),
        ('kvlint = "0.2.0"', "kvlint = 2", "Expected `str`, got `int`"),
    ],
)
def test_mistakes_are_named(old: str, new: str, said: str, tmp_path: Path) -> None:
    text = render([CLEAN, ENTRY])
    assert old in text
    with pytest.raises(BundleError, match=said) as caught:
        load(written(tmp_path, text.replace(old, new)))
    assert "manifest.toml" in str(caught.value)


def test_a_manifest_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="cannot be read"):
        load(tmp_path)
    (tmp_path / "manifest.toml").write_bytes(b"\xff")
    with pytest.raises(BundleError, match="not valid TOML"):
        load(tmp_path)


def test_the_bundle_of_a_checkout() -> None:
    assert manifest.bundle_folder() == Path(__file__).parent.parent.parent / "fixes"


def test_the_bundle_of_an_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "site-packages/kvlint/bundle/manifest.py"
    (module.parent / "fixes").mkdir(parents=True)
    (module.parent / "fixes/manifest.toml").write_bytes(b"")
    monkeypatch.setattr(manifest, "__file__", str(module))
    assert manifest.bundle_folder() == module.parent / "fixes"


def test_an_installation_without_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "__file__", str(tmp_path / "a/b/manifest.py"))
    with pytest.raises(BundleError, match="install flake8-kvlint again"):
        manifest.bundle_folder()
    assert manifest.affected_releases("kvdemo") == {}


def test_what_is_known_without_looking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, render([ENTRY, CLEAN]))
    monkeypatch.setattr(manifest, "bundle_folder", lambda: tmp_path)
    assert manifest.affected_releases("kvdemo") == {Version("1.9"): False, Version("1.10"): True}
    assert manifest.affected_releases("other") == {}
