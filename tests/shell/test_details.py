"""What formats show beyond the findings: looked up for those that ask, of the files as they are then."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import kvlint
from kvlint.cli import cli
from kvlint.config import default_config
from kvlint.details import project_root, with_details
from kvlint.diagnostics import Finding, Location, Severity, Span
from kvlint.engine import check_targets
from kvlint.report import FORMATS, details_of
from kvlint.report.model import Crash, Detail, FileCounts, Report
from kvlint.source.discovery import discover

DEMO = Path(kvlint.__file__).with_name("demo_backend")


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The demo's backend in the current folder, one of its findings suppressed."""
    monkeypatch.chdir(tmp_path)
    for name in ("base.py", "backend.py"):
        (tmp_path / name).write_bytes((DEMO / name).read_bytes())
    text = (tmp_path / "base.py").read_text()
    (tmp_path / "base.py").write_text(
        "\n".join(f"{line}  # noqa: KVL004" if "def update_status(" in line else line for line in text.split("\n"))
    )
    return tmp_path


def run(*arguments: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(cli, list(arguments), input=stdin, catch_exceptions=False)


def checked(wanted: Detail, *paths: str) -> Report:
    config = default_config()
    targets = discover(list(paths) or ["."], config).targets
    return with_details(check_targets(targets, config), wanted, targets, config)


def sarif(result: Result) -> Any:
    return json.loads(result.stdout)["runs"][0]


# -- with_details ---------------------------------------------------------------------


def test_nothing_is_looked_up_for_formats_that_show_findings_alone(backend: Path) -> None:
    for output_format in ("text", "json", "github", "junit"):
        assert not details_of(output_format)
    report = checked(Detail(0))
    assert report.details is None
    assert report.suppressed == ()


def test_each_detail_by_itself(backend: Path) -> None:
    sources = checked(Detail.SOURCES).details
    assert sources is not None
    assert sorted(sources.sources) == ["backend.py", "base.py"]
    assert sources.edits == {}
    edits = checked(Detail.EDITS).details
    assert edits is not None
    assert edits.sources == {}
    assert {path for path, _ in edits.edits.values()} == {"backend.py", "base.py"}
    models = checked(Detail.MODELS).details
    assert models is not None
    assert [model.path for model in models.models] == ["backend.py", "base.py"]
    assert [finding.code for finding in checked(Detail.SUPPRESSED).suppressed] == ["KVL004"]


def test_a_plan_that_two_findings_share_is_worked_out_once(backend: Path) -> None:
    report = checked(Detail.EDITS)
    plans = [finding.plan for finding in report.findings if finding.plan is not None]
    assert report.details is not None
    assert len(report.details.edits) == len(set(plans)) < len(plans)


def test_a_file_that_went_away_is_left_out(backend: Path) -> None:
    config = default_config()
    targets = discover(["."], config).targets
    report = check_targets(targets, config)
    (backend / "backend.py").unlink()
    details = with_details(report, Detail.SOURCES | Detail.EDITS, targets, config).details
    assert details is not None
    assert list(details.sources) == ["base.py"]
    assert {path for path, _ in details.edits.values()} == {"base.py"}


def test_an_edit_that_no_longer_fits_is_left_out(backend: Path) -> None:
    config = default_config()
    targets = discover(["."], config).targets
    report = check_targets(targets, config)
    (backend / "base.py").write_text("x = 1\n")
    details = with_details(report, Detail.EDITS, targets, config).details
    assert details is not None
    assert {path for path, _ in details.edits.values()} == {"backend.py"}


def test_an_edit_with_an_unintended_table_is_left_out(backend: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvlint.analysis.verification.unintended", lambda *arguments: "not what was meant")
    details = checked(Detail.EDITS).details
    assert details is not None
    assert details.edits == {}


def test_a_crash_of_the_inspection_alone_is_told(backend: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object, **keywords: object) -> Any:
        from kvlint.report.model import Inspection

        return Inspection((), (), (Crash("backend.py", "ZeroDivisionError: x", ""), Crash("base.py", "x: y", "")))

    monkeypatch.setattr("kvlint.engine.inspect", broken)
    config = default_config()
    targets = discover(["."], config).targets
    report = check_targets(targets, config)
    known = Report(report.findings, report.files, crashes=(Crash("base.py", "KeyError: x", ""),))
    found = with_details(known, Detail.MODELS, targets, config)
    assert [(crash.path, crash.reason) for crash in found.crashes] == [
        ("base.py", "KeyError: x"),
        ("backend.py", "ZeroDivisionError: x"),
    ]


# -- the root -------------------------------------------------------------------------


def test_the_checkout_around_the_current_folder_is_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one" / ".git").mkdir(parents=True)
    (tmp_path / "one" / "deep" / "er").mkdir(parents=True)
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / ".git").write_text("gitdir: elsewhere\n")
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    monkeypatch.chdir(tmp_path / "one" / "deep" / "er")
    assert project_root([]) == one
    assert project_root([f"{two}/a.py", f"{one}/a.py"]) == one
    assert project_root([f"{two}/x/a.py"]) == two
    monkeypatch.chdir(tmp_path)
    assert project_root([f"{two}/x/a.py"]) == two
    assert project_root([f"{tmp_path}/plain/a.py"]) == str(tmp_path)
    assert project_root([]) == str(tmp_path)


def test_the_root_is_the_same_whatever_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        (tmp_path / name / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "one")

    def found(path: Path) -> Finding:
        return Finding("KVL001", "a-name", Severity.ERROR, "lost", Location(str(path), Span(1, 1, 1, 2)))

    here, there = found(tmp_path / "one" / "a.py"), found(tmp_path / "two" / "b.py")
    for report in (
        Report((here, there), FileCounts()),
        Report((there,), FileCounts(), left_out=(here,)),
        Report((there,), FileCounts(), suppressed=(here,)),
    ):
        for wanted in (Detail.SOURCES, Detail.SOURCES | Detail.SUPPRESSED):
            details = with_details(report, wanted, (), default_config()).details
            assert details is not None
            assert details.root == str(tmp_path / "one")


# -- the commands -----------------------------------------------------------------------


@pytest.mark.parametrize("output_format", FORMATS)
@pytest.mark.parametrize("command", ["check", "fix"])
def test_every_format_of_both_commands(command: str, output_format: str, backend: Path) -> None:
    result = run(command, "--isolated", "-q", "--select", "KVL002,KVL003,KVL9", "--output-format", output_format, ".")
    assert result.exit_code == (1 if command == "check" else 0)
    assert result.stderr == ""
    if output_format != "text" and output_format != "github":
        assert result.stdout.strip()


def test_help_lists_every_format() -> None:
    for command in ("check", "fix"):
        assert f"[{'|'.join(FORMATS)}]" in run(command, "--help").stdout


def test_suppressed_findings_are_listed_only_if_asked_for(backend: Path) -> None:
    arguments = ("check", "--isolated", "-q", "--output-format", "sarif", ".")
    assert not any("suppressions" in result for result in sarif(run(*arguments))["results"])
    marked = [
        result for result in sarif(run(*arguments, "--include-suppressed"))["results"] if "suppressions" in result
    ]
    assert [result["ruleId"] for result in marked] == ["KVL004"]
    page = run("check", "--isolated", "-q", "--output-format", "html", "--include-suppressed", ".").stdout
    assert 'id="suppressed"' in page


@pytest.mark.parametrize("output_format", ["text", "json", "github", "junit"])
@pytest.mark.parametrize("command", ["check", "fix"])
def test_a_format_that_cannot_mark_them_refuses_suppressed_findings(
    command: str, output_format: str, backend: Path
) -> None:
    result = run(command, "--include-suppressed", "--output-format", output_format, ".")
    assert result.exit_code == 2
    assert f"--include-suppressed has no effect on the format {output_format}" in result.stderr


def test_json_is_what_it_was(backend: Path) -> None:
    document = json.loads(run("check", "--isolated", "-q", "--output-format", "json", ".").stdout)
    assert set(document) == {"version", "tool", "files", "findings"}
    assert set(document["findings"][0]) == {
        "code", "name", "severity", "message", "path", "line", "column", "end_line", "end_column", "related", "fix",
    }  # fmt: skip


def test_standard_input_has_details_too(backend: Path) -> None:
    data = (backend / "backend.py").read_bytes()
    (backend / "backend.py").write_text("x = 1\n")
    result = run("check", "--isolated", "-q", "--stdin-filename", "backend.py", "--output-format", "sarif", stdin=data)
    results = sarif(result)["results"]
    assert {item["ruleId"] for item in results} >= {"KVL002", "KVL003"}
    assert all("snippet" in item["locations"][0]["physicalLocation"]["region"] for item in results)
    assert any("fixes" in item for item in results)
    page = run("check", "--isolated", "-q", "--stdin-filename", "backend.py", "--output-format", "html", stdin=data)
    assert "Pop-site catalogue" in page.stdout


def test_the_fixed_text_of_standard_input_has_no_other_format(backend: Path) -> None:
    result = run("fix", "-", "--output-format", "sarif", stdin=b"x = 1\n")
    assert result.exit_code == 2
    assert "does not apply to standard input" in result.stderr


def test_fix_tells_of_the_files_as_they_are_now(backend: Path) -> None:
    result = run("fix", "--isolated", "-q", "--select", "KVL001,KVL002", "--output-format", "html", ".")
    assert "Nothing was found." in result.stdout
    assert "Transition table of CommonManager.update_status" in result.stdout
    assert "has no effect" not in result.stderr


def test_inspect_as_a_page(backend: Path) -> None:
    result = run("inspect", "--isolated", "--output-format", "html", "--output", "page.html", ".")
    assert result.exit_code == 0
    page = (backend / "page.html").read_text("utf-8")
    assert page.startswith("<!doctype html>")
    assert "Transition table of CommonManager.update_status" in page


def test_the_root_in_a_log_is_the_checkout(backend: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (backend / ".git").mkdir()
    (backend / "sub").mkdir()
    monkeypatch.chdir(backend / "sub")
    log = sarif(run("check", "--isolated", "-q", "--output-format", "sarif", ".."))
    assert log["originalUriBaseIds"]["%SRCROOT%"]["uri"] == f"{backend.as_uri()}/"
    uris = {item["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for item in log["results"]}
    assert uris == {"backend.py"}


@pytest.mark.parametrize("output_format", FORMATS)
def test_a_run_without_candidates_loads_nothing_heavy(output_format: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    heavy = ["libcst", "rich", "kvlint.fixing"]
    heavy += [] if output_format == "html" else ["jinja2", "kvlint.report.html"]
    heavy += [] if output_format == "junit" else ["xml.etree"]
    arguments = ["check", "--isolated", "-q", "--output-format", output_format, str(tmp_path)]
    code = (
        "import sys; from kvlint.cli import cli; "
        f"cli({arguments!r}, standalone_mode=False); "
        f"sys.exit([name for name in {heavy!r} if name in sys.modules] or 0)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(kvlint.__file__).parent.parent)}
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert process.returncode == 0, process.stderr


def test_findings_in_a_plain_format_load_neither_jinja_nor_libcst(backend: Path) -> None:
    heavy = ["libcst", "jinja2", "kvlint.fixing", "kvlint.report.inspect_build"]
    arguments = ["check", "--isolated", "-q", "--jobs", "1", "--output-format", "junit", "."]
    code = (
        "import sys; from kvlint.cli import cli; "
        f"cli({arguments!r}, standalone_mode=False); "
        f"sys.exit([name for name in {heavy!r} if name in sys.modules] or 0)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(kvlint.__file__).parent.parent)}
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert process.returncode == 0, process.stderr
