"""``kvlint audit`` on releases that are made here."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from click.testing import Result
from packaging.version import Version

from kvlint.bundle import manifest
from kvlint.bundle.audit import Installed, Known, Run
from kvlint.bundle.requirements import parse
from kvlint.report import audit_json
from kvlint.report.audit_model import Audit
from kvlint.source.display import Target

from .samples import AFFECTED, FolderReleases, sdist

Invoke = Callable[..., Result]

ABORT_LOST = "an abort can be lost or the request pinned"


@pytest.fixture(autouse=True)
def no_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "affected_releases", lambda package: {})


def audited(releases: FolderReleases, *requirements: str, **options: object) -> Audit:
    return Run(releases, **options)([parse(text) for text in requirements])  # type: ignore[arg-type]


def told(audit: Audit) -> dict[str, tuple[bool, str | None]]:
    return {release.version: (release.affected, release.fixed_in) for release in audit.releases}


def test_a_range_of_releases(run: Invoke) -> None:
    done = run("audit", "kvdemo>=1")
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert lines[0].split("  ")[0] == "release"
    rows = [line.split() for line in lines if ".py" in line]
    assert next(row for row in rows if row[0] == "kvdemo") == [
        "kvdemo", "1.0", "kvdemo/backend.py", "CommonManager.update_status", "M3", "3", "1", "1", "-", "-",
        "yes:", "84", "4/3/0",
    ]  # fmt: skip
    assert lines[-3:] == [
        f"kvdemo 1.0: {ABORT_LOST}; fixed in 2.0",
        f"kvdemo 1.1: {ABORT_LOST}; fixed in 2.0",
        "kvdemo 2.0: nothing found by these rules, but an exception can end a loop",
    ]


def test_a_release_that_is_not_affected(run: Invoke) -> None:
    done = run("audit", "kvdemo")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "kvdemo 2.0: nothing found by these rules" in done.stdout
    assert "safe" not in done.stdout


def test_later_releases_are_looked_at(run: Invoke) -> None:
    done = run("audit", "kvdemo==1.0")
    assert done.stdout.splitlines()[-1] == f"kvdemo 1.0: {ABORT_LOST}; fixed in 2.0"
    assert "kvdemo 2.0" not in done.stdout


def test_later_releases_are_not_looked_at_if_not_wanted(run: Invoke) -> None:
    done = run("audit", "--no-look-ahead", "kvdemo==1.0")
    assert done.stdout.splitlines()[-1] == f"kvdemo 1.0: {ABORT_LOST}; no fixed release known"


def test_what_is_known_is_not_looked_at(releases: FolderReleases) -> None:
    known = {Version("1.1"): True, Version("1.5"): False}
    one = audited(replace(releases, offline=True), "kvdemo==1.0", known=lambda package: known)
    assert told(one) == {"1.0": (True, "1.5")}
    assert one.notes == ("later releases of kvdemo could not be looked up: kvdemo: no package index answered",)


def test_what_was_judged_counts_more_than_what_is_known(releases: FolderReleases) -> None:
    known = {Version("1.1"): False}
    assert told(audited(releases, "kvdemo<2", known=lambda package: known))["1.0"] == (True, "2.0")


def test_a_release_that_cannot_be_had_fixes_nothing(releases: FolderReleases, clean: dict[str, bytes]) -> None:
    releases.add("kvdemo", "1.5", clean)
    one = audited(replace(releases, fail=("1.5",)), "kvdemo==1.0")
    assert told(one) == {"1.0": (True, "2.0")}
    assert one.notes == ("left out while looking for a fixed release: kvdemo==1.5: the cable is cut",)


def test_a_release_without_any_backend_fixes_nothing(releases: FolderReleases) -> None:
    releases.add("kvdemo", "1.5", {"kvdemo/other.py": b"X = 1\n"})
    assert told(audited(releases, "kvdemo==1.1")) == {"1.1": (True, "2.0")}


def test_pre_releases_fix_nothing_for_others(releases: FolderReleases, clean: dict[str, bytes]) -> None:
    releases.add("kvdemo", "1.5rc1", clean)
    releases.add("kvdemo", "1.5.dev1", clean)
    releases.add("kvdemo", "1.2rc1", AFFECTED)
    found = told(audited(releases, "kvdemo==1.1", "kvdemo==1.2rc1"))
    assert found == {"1.1": (True, "2.0"), "1.2rc1": (True, "1.5rc1")}


def test_no_later_release_is_fixed(releases: FolderReleases) -> None:
    releases.add("other", "1", AFFECTED)
    releases.add("other", "2", AFFECTED)
    assert told(audited(releases, "other==1")) == {"1": (True, None)}


def test_what_fails_costs_nothing_else(run: Invoke) -> None:
    done = run("audit", "kvdemo==2.0", "kvdemo==", "kvdemo==9", "unknown>1", "kvdemo>5", "--installed", "not-there")
    assert done.exit_code == 2
    assert "kvdemo 2.0: nothing found" in done.stdout
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert [line.removeprefix("error: ").partition(":")[0] for line in errors] == [
        "kvdemo==", "--installed not-there", "unknown", "kvdemo>5", "kvdemo==9",
    ]  # fmt: skip
    assert "the newest of 3 are 1.0, 1.1, 2.0" in errors[3]


def test_nothing_but_failures(run: Invoke) -> None:
    done = run("audit", "kvdemo=1")
    assert (done.exit_code, done.stdout) == (2, "")


def test_nothing_asked_for(run: Invoke) -> None:
    done = run("audit")
    assert done.exit_code == 2
    assert "kvlint audit sglang==0.5.14" in done.stderr


def test_a_release_is_judged_once(releases: FolderReleases) -> None:
    assert [release.version for release in audited(releases, "kvdemo==2.0", "KVDEMO==2", "kvdemo").releases] == ["2.0"]


def test_a_release_without_backend(run: Invoke, releases: FolderReleases) -> None:
    releases.add("plain", "1", {"plain/a.py": b"X = 1\n", "plain/data.txt": b""})
    done = run("audit", "plain")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[-1] == "plain 1: no backend with a status protocol found"
    markdown = run("audit", "plain", "--output-format", "markdown").stdout
    assert markdown.splitlines()[2].startswith("| plain 1 | - | - |")


def test_a_source_distribution(run: Invoke, releases: FolderReleases) -> None:
    files = {f"src-1/python/{name}": text for name, text in AFFECTED.items()}
    sdist(releases.folder / "src/1/src-1.tar.gz", files | {"src-1/setup.py": b"raise SystemExit('never run')\n"})
    done = run("audit", "src==1", "--no-look-ahead", "--output-format", "json")
    (release,) = json.loads(done.stdout)["releases"]
    assert release["archive"] == "src-1.tar.gz"
    assert [backend["path"] for backend in release["backends"]] == [
        "src-1/python/kvdemo/backend.py", "src-1/python/kvdemo/base.py",
    ]  # fmt: skip


def test_a_damaged_archive(run: Invoke, releases: FolderReleases) -> None:
    releases.add("kvdemo", "3.0", AFFECTED).write_bytes(b"PK\x03\x04 half a wheel")
    done = run("audit", "kvdemo==3.0", "kvdemo==2.0")
    assert done.exit_code == 2
    assert "kvdemo-3.0-py3-none-any.whl: is" in done.stderr
    assert "kvdemo 2.0: nothing found" in done.stdout


def test_a_file_that_cannot_be_parsed(run: Invoke, releases: FolderReleases, clean: dict[str, bytes]) -> None:
    releases.add("kvdemo", "2.1", clean | {"kvdemo/odd.py": b"Poll.Failed = (\n"})
    done = run("audit", "kvdemo==2.1")
    assert "(1 file not judged)" in done.stdout.splitlines()[-1]
    assert "warning: kvdemo/odd.py: " in done.stderr
    assert "warning" not in run("audit", "--quiet", "kvdemo==2.1").stderr


def test_json_fits_its_schema(run: Invoke) -> None:
    jsonschema.Draft202012Validator.check_schema(audit_json.schema())
    done = run("audit", "kvdemo>1", "kvdemo==9", "--output-format", "json")
    document = json.loads(done.stdout)
    jsonschema.validate(document, audit_json.schema())
    assert [release["version"] for release in document["releases"]] == ["1.1", "2.0"]
    first = document["releases"][0]
    assert (first["affected"], first["fixed_in"]) == (True, "2.0")
    assert first["findings"] == {"KVL001": 3, "KVL002": 1, "KVL003": 1, "KVL004": 1}
    (backend, base) = first["backends"]
    assert backend["writers"][0] == {
        "class": "CommonManager", "name": "update_status", "path": "kvdemo/base.py", "line": 65,
        "table": "-:-BWTS F:FBWTS B:FBWTS W:FWWTS T:FTTTS S:FSSSS", "kind": "M3",
    }  # fmt: skip
    assert (backend["loop_ends"], base["loop_ends"]) == ("ends", None)
    assert document["errors"][0]["requirement"] == "kvdemo==9"


def test_markdown(run: Invoke) -> None:
    done = run("audit", "kvdemo==2.0", "kvdemo==9|", "--output-format", "markdown", "--output", "table.md")
    assert done.stdout == ""
    lines = Path("table.md").read_text("utf-8").splitlines()
    assert lines[1].count("|") == lines[2].count("|") == 12
    assert lines[2].startswith("| kvdemo 2.0 | kvdemo/backend.py | CommonManager.update_status ")
    assert lines[2].endswith("| nothing found by these rules, but an exception can end a loop |")
    assert lines[3].startswith("| kvdemo 2.0 | kvdemo/base.py | ")
    assert lines[-1].startswith("- **not audited**: kvdemo==9\\|: ")


@pytest.mark.parametrize("output_format", ["text", "json", "markdown"])
def test_the_same_bytes_whatever_the_number_of_jobs(output_format: str, run: Invoke) -> None:
    one = run("audit", "kvdemo>=1", "--jobs", "1", "--output-format", output_format)
    assert run("audit", "kvdemo>=1", "--jobs", "3", "--output-format", output_format).stdout == one.stdout


def test_an_installed_distribution(run: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    for name, data in AFFECTED.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_bytes(data)
    (site / "kvdemo-1.0.dist-info").mkdir()
    (site / "kvdemo-1.0.dist-info/METADATA").write_text("Name: kvdemo\nVersion: 1.0\n", encoding="utf-8")
    (site / "kvdemo-1.0.dist-info/RECORD").write_text("".join(f"{name},,\n" for name in AFFECTED), encoding="utf-8")
    monkeypatch.syspath_prepend(str(site))
    done = run("audit", "--installed", "KVdemo", "--output-format", "json")
    assert done.exit_code == 1
    (release,) = json.loads(done.stdout)["releases"]
    assert release["package"] == "kvdemo"
    assert (release["version"], release["archive"], release["fixed_in"]) == ("1.0", None, "2.0")


def test_an_installed_version_that_is_none(releases: FolderReleases) -> None:
    path = releases.folder / "a.py"
    path.write_bytes(AFFECTED["kvdemo/base.py"])
    one = Run(releases)([], [Installed("kvdemo", "unknown", (Target("a.py", str(path)),))])
    assert [(release.affected, release.fixed_in) for release in one.releases] == [(True, None)]


def test_what_is_known_is_asked_once(releases: FolderReleases) -> None:
    asked: list[str] = []

    def known(package: str) -> Known:
        asked.append(package)
        return {version: version.major < 2 for version in releases.versions(package)}

    done = audited(releases, "kvdemo>=1,<2", jobs=1, known=known)
    assert [release.fixed_in for release in done.releases] == ["2.0", "2.0"]
    assert asked == ["kvdemo"]


def test_progress_is_told(releases: FolderReleases) -> None:
    seen: list[tuple[int, int]] = []
    audited(releases, "kvdemo>1", jobs=1, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (2, 2)
    assert seen == sorted(seen)
