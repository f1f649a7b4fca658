from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import jsonschema
import pytest
from click.testing import Result

from kvlint import __version__, engine
from kvlint.commands import streams
from kvlint.commands.options import _from_here
from kvlint.report.json_report import schema

Run = Callable[..., Result]

CANDIDATE = "status = KVPoll.Failed\n"
ROOT = Path(__file__).parent.parent.parent


def write(path: str, text: str | bytes) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text)


def test_check(kvlint: Run) -> None:
    write("a.py", CANDIDATE + "LOST\n")
    result = kvlint("check")
    assert result.exit_code == 1
    assert result.stdout == "a.py:2:1: KVL001 the failure is lost\n    base.py:1:1: by this writer\n"
    assert result.stderr == "1 finding (1 file checked, 1 with a status protocol); `kvlint fix` can mend 1.\n"
    assert kvlint("check", "--exit-zero").exit_code == 0


def test_nothing_found(kvlint: Run) -> None:
    write("a.py", CANDIDATE)
    write("b.py", "")
    result = kvlint("check", ".")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "No findings (2 files checked, 1 with a status protocol).\n"
    assert kvlint("check", "--quiet").stderr == ""


def test_an_empty_folder(kvlint: Run) -> None:
    result = kvlint("check")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "No Python files found.\n")


@pytest.mark.parametrize("command", ["check", "fix", "inspect"])
def test_a_missing_path_is_a_usage_error(kvlint: Run, command: str) -> None:
    result = kvlint(command, "no such\n.py")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "error: no such file or folder: no such\\n.py\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--select", "KVL77"), "error: --select: no rule has the code 'KVL77'"),
        (("--extend-select", "KVL001,X"), "error: --extend-select: no rule has the code 'X'"),
        (("--ignore", "E501"), "error: --ignore: no rule has the code 'E501'"),
        (("--config", "absent.toml"), "error: absent.toml: cannot be read: No such file or directory"),
        (("--config", "x", "--isolated"), "--config names a configuration file and --isolated reads none"),
        (("--installed", "no-such-distribution"), "error: --installed no-such-distribution: no distribution"),
        (("-", "a.py"), "`-` stands for standard input"),
        (("--output-format", "xml"), "'xml' is not one of"),
        (("--jobs", "0"), "0 is not in the range"),
        (("--output", "absent/report.txt"), "--output absent/report.txt: cannot be written: No such file"),
        (("--no-such-option",), "No such option"),
    ],
)
def test_usage_errors(kvlint: Run, arguments: tuple[str, ...], message: str) -> None:
    write("a.py", "")
    result = kvlint("check", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_mistakes_in_the_configuration(kvlint: Run) -> None:
    write("kvlint.toml", "selct = []")
    result = kvlint("check")
    assert result.exit_code == 2
    assert "kvlint.toml: unknown key 'selct'; did you mean 'select'?" in result.stderr
    assert kvlint("check", "--isolated").exit_code == 0
    write("kvlint.toml", "ignore = ['KVL77']")
    assert "kvlint.toml: ignore: no rule has the code 'KVL77'" in kvlint("check").stderr
    write("kvlint.toml", "per-file-ignores = {'a' = ['KVL77']}")
    assert "kvlint.toml: per-file-ignores of 'a': no rule has the code" in kvlint("check").stderr


def test_rules_are_chosen_by_file_and_command_line(kvlint: Run) -> None:
    write("a.py", CANDIDATE + "LOST\nx  # noqa: KVL777\n")
    write("pyproject.toml", "[tool.kvlint]\nignore = ['KVL901']\n")

    def codes(*arguments: str) -> list[str]:
        return re.findall(r"(?m)^a\.py\S+ (KVL\d+)", kvlint("check", *arguments).stdout)

    assert codes() == ["KVL001"]
    assert codes("--isolated") == ["KVL001", "KVL901"]
    assert codes("--select", "kvl9") == ["KVL901"]
    assert codes("--ignore", "KVL001") == []
    assert codes("--select", "KVL", "--ignore", "KVL001,KVL900") == ["KVL901"]
    assert codes("--extend-select", "KVL901") == ["KVL001"]
    write("other.toml", "select = ['KVL901']\n")
    assert codes("--config", "other.toml") == ["KVL901"]


def test_exclude(kvlint: Run) -> None:
    write("sub/a.py", CANDIDATE + "LOST\n")
    write("sub/b.py", CANDIDATE + "LOST\n")
    write("kvlint.toml", "exclude = ['b.py']\n")
    assert kvlint("check").stdout.startswith("sub/a.py:2:1:")
    assert kvlint("check", "--exclude", "sub/a.py").stdout == ""
    os.chdir("sub")
    assert kvlint("check").stdout.startswith("a.py:2:1:")
    assert kvlint("check", "--exclude", "./a.py").stdout == ""
    result = kvlint("check", "b.py")
    assert result.stderr.startswith("warning: skipped b.py: it matches `exclude`\n")


def test_globs_on_the_command_line_are_relative_to_the_current_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "relpath", lambda path, start: "sub/deeper")
    assert _from_here("a/b.py", "/x") == "/sub/deeper/a/b.py"
    assert _from_here("/a.py", "/x") == "/sub/deeper/a.py"
    assert _from_here("./a.py", "/x") == "/sub/deeper/a.py"
    assert _from_here("*.py", "/x") == "*.py"
    assert _from_here("gen/", "/x") == "gen/"


def test_json(kvlint: Run) -> None:
    write("a.py", CANDIDATE + "LOST\n")
    write("b.py", CANDIDATE + "(")
    result = kvlint("check", "--output-format", "json")
    document = json.loads(result.stdout)
    jsonschema.validate(document, schema(), cls=jsonschema.Draft202012Validator)
    assert document["files"] == {"checked": 2, "parsed": 1, "failed": 1}
    assert [finding["code"] for finding in document["findings"]] == ["KVL001", "KVL900"]


@pytest.mark.parametrize("output_format", ["text", "json", "github"])
@pytest.mark.parametrize("name", ["with space.py", "line\nfeed.py", "caf\udce9.py", "é.py"])
def test_odd_names_in_every_format(kvlint: Run, name: str, output_format: str) -> None:
    write(name, CANDIDATE + "LOST\n")
    result = kvlint("check", name, "--output-format", output_format)
    assert result.exit_code == 1
    text = result.stdout_bytes.decode("utf-8")
    assert "KVL001" in text
    if output_format != "json":
        assert text.count("\n") == {"text": 2, "github": 1}[output_format]


def test_output_goes_to_a_file_whole_or_not_at_all(kvlint: Run) -> None:
    write("a.py", CANDIDATE + "LOST\n")
    result = kvlint("check", "--output", "report.txt")
    assert (result.exit_code, result.stdout) == (1, "")
    assert Path("report.txt").read_text().startswith("a.py:2:1: KVL001")
    os.chmod("report.txt", 0o640)
    os.symlink("report.txt", "link.txt")
    assert kvlint("check", "--output", "link.txt", "--output-format", "json").exit_code == 1
    assert Path("report.txt").read_text().startswith("{")
    assert os.path.islink("link.txt")
    assert os.stat("report.txt").st_mode & 0o777 == 0o640
    assert kvlint("check", "--output", "/dev/null").exit_code == 1
    assert sorted(os.listdir()) == ["a.py", "link.txt", "report.txt"]


def test_an_interrupted_write_leaves_the_old_report(kvlint: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write("a.py", CANDIDATE)
    write("report.txt", "old")

    def interrupt(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    result = kvlint("check", "--output", "report.txt")
    assert result.exit_code == 130
    assert "interrupted; no file is half-written" in result.stderr
    assert Path("report.txt").read_text() == "old"
    assert sorted(os.listdir()) == ["a.py", "report.txt"]


def test_statistics(kvlint: Run) -> None:
    write("a.py", CANDIDATE + "LOST\nLOST\nx  # noqa: KVL777\n")
    result = kvlint("check", "--statistics", "--quiet")
    assert result.stderr == "     2  KVL001  lost-word\n     1  KVL901  unused-noqa\n"


def test_verbose(kvlint: Run) -> None:
    write("a.py", CANDIDATE + "CRASH\n")
    write("kvlint.toml", "")
    result = kvlint("check", "--verbose", "--select", "KVL9")
    assert f"configuration: {os.path.abspath('kvlint.toml')}\nrules: KVL900, KVL901\n" in result.stderr
    assert "configuration: none" in kvlint("check", "--verbose", "--isolated").stderr


def test_a_crash_is_told_and_never_exits_with_success(kvlint: Run) -> None:
    write("a.py", CANDIDATE + "CRASH\n")
    write("b.py", CANDIDATE + "LOST\n")
    result = kvlint("check", "--exit-zero")
    assert result.exit_code == 2
    assert result.stdout.startswith("b.py:2:1: KVL001")
    assert "error: a.py: kvlint failed on this file: ZeroDivisionError: the stub crashed\n" in result.stderr
    assert "please report it with what --verbose prints" in result.stderr
    assert "Traceback" in kvlint("check", "--verbose").stderr
    fixed = kvlint("fix")
    assert (fixed.exit_code, fixed.stdout) == (2, "")
    assert fixed.stderr.startswith("error: a.py: ZeroDivisionError: the stub crashed; this is a defect in kvlint")


def test_standard_input(kvlint: Run) -> None:
    source = (CANDIDATE + "LOST\n").encode()
    assert kvlint("check", "-", stdin=source).stdout.startswith("-:2:1: KVL001")
    result = kvlint("check", "--stdin-filename", "sub/a.py", stdin=source)
    assert result.exit_code == 1
    assert result.stdout == "sub/a.py:2:1: KVL001 the failure is lost\n    sub/base.py:1:1: by this writer\n"
    assert kvlint("check", "--stdin-filename", "a.py", "-", stdin=b"x = 1").exit_code == 0
    refused = kvlint("check", "--stdin-filename", "a.py", ".", stdin=b"x = 1")
    assert (refused.exit_code, "leave the PATHs out" in refused.stderr) == (2, True)
    assert "KVL900" in kvlint("check", "-", stdin=CANDIDATE.encode() + b"(").stdout


def test_colour(kvlint: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write("a.py", CANDIDATE + "LOST\n")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in kvlint("check").stdout
    assert kvlint("check", "--output", "report.txt").exit_code == 1
    assert "\x1b[" not in Path("report.txt").read_text()
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in kvlint("check").stdout


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_for_terminals_and_long_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    times: Iterator[float] = iter([0.0, 0.9, 1.0])
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    progress = streams.Progress(lambda: next(times))
    progress(1, 3)
    assert terminal.getvalue() == ""
    progress(2, 3)
    progress.close()
    progress.close()
    assert terminal.getvalue() == "\r2 of 3 files analysed\r\x1b[K"
    elsewhere = io.StringIO()
    monkeypatch.setattr(sys, "stderr", elsewhere)
    silent = streams.Progress(lambda: 1e9)
    silent(1, 1)
    silent.close()
    assert elsewhere.getvalue() == ""


def test_installed(kvlint: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tmp_path / "library"
    write(f"{library}/pkg/a.py", CANDIDATE + "LOST\n")
    write(f"{library}/pkg/data.txt", "LOST")
    write(f"{library}/pkg-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: pkg\nVersion: 1.0\n")
    write(f"{library}/pkg-1.0.dist-info/RECORD", "pkg/a.py,,\npkg/data.txt,,\npkg/gone.py,,\n")
    write(f"{library}/bare-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: bare\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(library)
    result = kvlint("check", "--installed", "pkg")
    assert result.stdout.startswith("library/pkg/a.py:2:1: KVL001")
    assert "1 file checked" in result.stderr
    assert "pkg" not in sys.modules
    assert kvlint("check", "--installed", "pkg", "--exclude", "pkg/*.py").stderr == "No Python files found.\n"
    write("b.py", "")
    assert "2 files checked" in kvlint("check", "--installed", "pkg", "b.py").stderr
    os.mkdir("sub")
    os.chdir("sub")
    assert kvlint("check", "--installed", "pkg").stdout.startswith(f"{library}/pkg/a.py:2:1")
    assert "its metadata lists no Python file" in kvlint("check", "--installed", "bare").stderr


def test_rule(kvlint: Run) -> None:
    listing = kvlint("rule")
    assert listing.exit_code == 0
    assert "KVL900  unreadable-source" in listing.stdout
    page = kvlint("rule", "kvl900")
    assert page.stdout.startswith("# unreadable-source (KVL900)\n\n## What it does\n")
    assert kvlint("rule", "KVL900", "--output-format", "markdown").stdout == page.stdout
    (described,) = json.loads(kvlint("rule", "KVL900", "--output-format", "json").stdout)
    assert described["page"] == page.stdout
    assert described["fix"] is None
    assert len(json.loads(kvlint("rule", "--output-format", "json").stdout)) > 1
    assert kvlint("rule", "--output-format", "markdown").stdout.startswith("<!-- Generated")


def test_rule_on_a_terminal(kvlint: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvlint.commands.rule._is_terminal", lambda: True)
    assert "unreadable-source (KVL900)" in kvlint("rule", "KVL900").stdout
    assert "## What" not in kvlint("rule", "KVL900").stdout


@pytest.mark.parametrize("code", ["KVL77", "KVL9", "x"])
def test_rules_that_are_not_there(kvlint: Run, code: str) -> None:
    result = kvlint("rule", code)
    assert (result.exit_code, result.stdout) == (2, "")
    assert code.upper() in result.stderr


def test_inspect(kvlint: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "kvlint.report.inspect.render",
        lambda items, name, colour: f"{name}: {[item.display for item in items]}\n" if items else "",
    )
    monkeypatch.setattr("kvlint.report.inspect_build.file_model", lambda facts, display, names: None)
    write("a.py", CANDIDATE)
    write("b.py", CANDIDATE + "(")
    result = kvlint("inspect", "--verbose")
    assert (result.exit_code, result.stdout) == (0, "text: ['a.py']\n")
    assert "warning: b.py: cannot be parsed: " in result.stderr
    assert kvlint("inspect", "a.py", "--output-format", "json", "--output", "m.json").stdout == ""
    assert Path("m.json").read_text() == "json: ['a.py']\n"
    os.remove("a.py")
    os.remove("b.py")
    assert kvlint("inspect").stderr == "No file speaks of a status protocol.\n"
    assert kvlint("inspect", "--quiet").stderr == ""


def test_inspecting_what_kvlint_fails_on(kvlint: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["kvlint.analysis.facts"], "facts_of", None)
    write("a.py", CANDIDATE)
    result = kvlint("inspect")
    assert result.exit_code == 2
    assert "error: a.py: kvlint failed on this file: TypeError" in result.stderr


def test_ctrl_c(kvlint: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "check_targets", interrupt)
    result = kvlint("check")
    assert (result.exit_code, result.stdout) == (130, "")


def test_other_errors_are_not_hidden(kvlint: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "check_targets", None)
    with pytest.raises(TypeError):
        kvlint("check")


def test_version(kvlint: Run) -> None:
    assert kvlint("--version").stdout == f"kvlint {__version__}\n"


def run_python(*arguments: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}
    return subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )


def test_as_a_module() -> None:
    output, _ = run_python("-m", "kvlint", "--version").communicate()
    assert output.decode() == f"kvlint {__version__}\n"


def test_a_reader_that_leaves_early_is_no_failure_to_shout_about() -> None:
    process = run_python("-m", "kvlint", "rule", "KVL900")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 1
    assert errors == b""


@pytest.mark.parametrize("arguments", [["--help"], ["check", "--help"], ["check", "EMPTY"], ["rule", "KVL900"]])
def test_nothing_heavy_is_imported_for_nothing(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    arguments = [str(tmp_path) if argument == "EMPTY" else argument for argument in arguments]
    heavy = ["libcst", "kvlint.analysis", "kvlint.semantics", "kvlint.fixing", "rich", "concurrent.futures.process"]
    heavy += ["kvlint.baseline", "kvlint.touched", "kvlint.source.git", "kvlint.source.anchor", "subprocess"]
    code = (
        "import sys; from kvlint.cli import cli; "
        f"cli({arguments!r}, standalone_mode=False); "
        f"sys.exit([name for name in {heavy!r} if name in sys.modules] or 0)"
    )
    process = run_python("-c", code)
    _, errors = process.communicate()
    assert process.returncode == 0, errors.decode()


def test_demo(kvlint: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    consoles: list[object] = []
    module = ModuleType("kvlint.demo")
    module.run = consoles.append  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "kvlint.demo", module)
    assert kvlint("demo").exit_code == 0
    assert len(consoles) == 1
