"""``--baseline``: adopt what is there, fail for what comes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

import kvlint as package
from kvlint import baseline as baselines
from kvlint.baseline import BaselineError, read_baseline
from kvlint.fixing.fixpoint import FixOutcome

Run = Callable[..., Result]

CANDIDATE = "status = KVPoll.Failed\n"
WRITE = ("--baseline", "known.json", "--write-baseline")


def write(path: str, text: str | bytes) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text)


def entries(file: str = "known.json") -> list[dict[str, object]]:
    findings: list[dict[str, object]] = json.loads(Path(file).read_text())["findings"]
    return findings


def new(result: Result) -> list[str]:
    """Where findings are reported."""
    assert result.exit_code in (0, 1)
    return re.findall(r"^(\S+:\d+):\d+: KVL", result.stdout, flags=re.MULTILINE)


def test_what_is_known_is_not_reported_and_what_is_new_is(kvlint: Run) -> None:
    write("a.py", CANDIDATE + "LOST\nx = LOST\n")
    written = kvlint("check", *WRITE)
    assert (written.exit_code, written.stdout) == (0, "")
    assert written.stderr == (
        "Wrote known.json: 2 findings (2 added, 0 removed).\n"
        "No new findings, 2 known (1 file checked, 1 with a status protocol).\n"
    )
    known = kvlint("check", "--baseline", "known.json")
    assert (known.exit_code, known.stdout) == (0, "")
    write("a.py", CANDIDATE + "# moved\n\nLOST\ny = LOST\nif x:\n    x = LOST  # now in a branch\n")
    result = kvlint("check", "--baseline", "known.json")
    assert result.exit_code == 1
    assert result.stdout == "a.py:5:5: KVL001 the failure is lost\n    base.py:1:1: by this writer\n"
    assert result.stderr.startswith("1 new finding, 2 known (1 file checked, 1 with a status protocol); `kvlint fix`")
    assert kvlint("check", "--baseline", "known.json", "--exit-zero").exit_code == 0


def test_the_file(kvlint: Run) -> None:
    write("sub/b.py", CANDIDATE + "class A:\n    def f(self):\n        LOST\n        LOST\n")
    write("a.py", CANDIDATE + "x = {'é': LOST}\n")
    write("c.py", CANDIDATE + "(")
    kvlint("check", "sub", "a.py", "c.py", "--jobs", "1", *WRITE)
    text = Path("known.json").read_text()
    assert text == (
        "{\n"
        '  "kind": "kvlint-baseline",\n'
        '  "version": 1,\n'
        '  "findings": [\n'
        '    {"path": "a.py", "code": "KVL001", "function": "", "text": "x={\\"é\\":LOST}"},\n'
        '    {"path": "c.py", "code": "KVL900", "function": "", "text": ""},\n'
        '    {"path": "sub/b.py", "code": "KVL001", "function": "A.f", "text": "LOST", "count": 2}\n'
        "  ]\n"
        "}\n"
    )
    kvlint("check", *WRITE)
    assert Path("known.json").read_text() == text
    os.remove("a.py")
    os.remove("c.py")
    os.remove("sub/b.py")
    assert kvlint("check", *WRITE).stderr.startswith("Wrote known.json: 0 findings (0 added, 4 removed).\n")
    assert entries() == []
    assert kvlint("check", "--baseline", "known.json").exit_code == 0


def test_equal_findings_are_counted(kvlint: Run) -> None:
    write("a.py", CANDIDATE + "LOST\nLOST\n")
    kvlint("check", *WRITE)
    write("a.py", CANDIDATE + "LOST\nLOST\nLOST\n")
    assert new(kvlint("check", "--baseline", "known.json")) == ["a.py:4"]
    write("a.py", CANDIDATE + "LOST\n")
    result = kvlint("check", "--baseline", "known.json")
    assert new(result) == []
    assert result.stderr.startswith(
        "1 finding of the baseline is gone; update known.json with --write-baseline.\nNo new findings, 1 known ("
    )
    assert kvlint("check", "--baseline", "known.json", "--quiet").stderr == ""


def test_paths_are_relative_to_the_baseline_however_they_were_given(kvlint: Run, tmp_path: Path) -> None:
    write("pkg/deep/a.py", CANDIDATE + "LOST\n")
    os.mkdir("ci")
    os.symlink(tmp_path / "pkg", "link")
    assert kvlint("check", "pkg", "--baseline", "ci/known.json", "--write-baseline").exit_code == 0
    assert [entry["path"] for entry in entries("ci/known.json")] == ["../pkg/deep/a.py"]
    for path in ("pkg", "./pkg/", "pkg/deep/a.py", str(tmp_path / "pkg"), ".", "link", "link/deep/../deep/a.py"):
        assert kvlint("check", path, "--baseline", "ci/known.json").exit_code == 0, path
    os.chdir("pkg/deep")
    assert kvlint("check", "--baseline", "../../ci/known.json").exit_code == 0
    assert kvlint("check", "a.py", "--baseline", str(tmp_path / "ci" / "known.json")).exit_code == 0


def test_a_moved_checkout(kvlint: Run) -> None:
    write("one/a.py", CANDIDATE + "LOST\n")
    kvlint("check", "one", "--baseline", "one/known.json", "--write-baseline")
    os.rename("one", "two")
    assert kvlint("check", "two", "--baseline", "two/known.json").exit_code == 0


def test_a_renamed_file_takes_its_findings_along(kvlint: Run) -> None:
    write("a.py", CANDIDATE + "LOST\nx = LOST\n")
    kvlint("check", *WRITE)
    os.rename("a.py", "b.py")
    result = kvlint("check", "--baseline", "known.json")
    assert (new(result), "gone" in result.stderr) == ([], False)
    write("a.py", CANDIDATE)
    # The old file is there, so this is a copy.
    assert new(kvlint("check", "--baseline", "known.json")) == ["b.py:2", "b.py:3"]
    os.remove("a.py")
    write("c.py", CANDIDATE + "LOST\n")
    assert new(kvlint("check", "--baseline", "known.json")) == ["c.py:2"]


def test_comments_come_first(kvlint: Run) -> None:
    write("a.py", CANDIDATE + "LOST  # noqa: KVL001\ny = LOST\n")
    kvlint("check", *WRITE)
    assert [entry["text"] for entry in entries()] == ["y=LOST"]
    write("a.py", CANDIDATE + "LOST\ny = LOST  # noqa: KVL001\n")
    result = kvlint("check", "--baseline", "known.json")
    assert new(result) == ["a.py:2"]
    assert "1 finding of the baseline is gone" in result.stderr


def test_complaints_about_comments_and_files_can_be_known(kvlint: Run) -> None:
    write("a.py", CANDIDATE + "x = 1  # noqa: KVL777, KVL888\n")
    write("b.py", CANDIDATE + "(")
    write("caf\udce9.py", CANDIDATE + "LOST\n")
    kvlint("check", *WRITE)
    assert [(entry["code"], entry["text"]) for entry in entries()] == [
        ("KVL901", "KVL777"),
        ("KVL901", "KVL888"),
        ("KVL900", ""),
        ("KVL001", "LOST"),
    ]
    write("a.py", CANDIDATE + "\n\nz = 2  # noqa: KVL777\ny = 1  # noqa: KVL999\n")
    write("b.py", CANDIDATE + "\n\n\n'")
    result = kvlint("check", "--baseline", "known.json")
    assert new(result) == ["a.py:5"]
    assert "1 finding of the baseline is gone" in result.stderr


def test_what_was_not_looked_at_is_not_gone_and_is_kept(kvlint: Run) -> None:
    write("a.py", CANDIDATE + "LOST\n")
    write("b.py", CANDIDATE + "LOST\nx  # noqa: KVL777\n")
    kvlint("check", *WRITE)
    before = Path("known.json").read_text()
    for arguments in (["a.py"], ["--select", "KVL9"], ["--exclude", "b.py"], ["--ignore", "KVL001"]):
        result = kvlint("check", *arguments, "--baseline", "known.json")
        assert (result.exit_code, "gone" in result.stderr) == (0, False), arguments
        kvlint("check", *arguments, *WRITE)
        assert Path("known.json").read_text() == before, arguments
    write("b.py", CANDIDATE + "(")
    result = kvlint("check", "--baseline", "known.json")
    assert (new(result), "gone" in result.stderr) == (["b.py:2"], False)
    kvlint("check", *WRITE)
    assert [entry["code"] for entry in entries()] == ["KVL001", "KVL001", "KVL900", "KVL901"]
    write("b.py", CANDIDATE + "LOST\n")
    assert "2 findings of the baseline are gone" in kvlint("check", "--baseline", "known.json").stderr
    os.remove("b.py")
    assert "3 findings of the baseline are gone" in kvlint("check", "a.py", "--baseline", "known.json").stderr


@pytest.mark.parametrize("output_format", ["text", "json", "github", "gitlab"])
def test_every_format_and_the_statistics_have_only_new_ones(kvlint: Run, output_format: str) -> None:
    write("a.py", CANDIDATE + "LOST\n")
    kvlint("check", *WRITE)
    write("a.py", CANDIDATE + "LOST\nnews = LOST\n")
    arguments = ("check", "--baseline", "known.json", "--output-format", output_format, "--statistics")
    result = kvlint(*arguments)
    assert result.exit_code == 1
    assert result.stdout.count("KVL001") == 1
    assert "     1  KVL001  lost-word\n" in result.stderr
    everything = kvlint("check", "--no-baseline", "--output-format", output_format)
    assert everything.stdout.count("KVL001") == 2


def test_the_configured_baseline(kvlint: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write("sub/a.py", CANDIDATE + "LOST\n")
    write("pyproject.toml", "[tool.kvlint]\nbaseline = 'ci/known.json'\n")
    os.mkdir("ci")
    missing = kvlint("check")
    assert missing.exit_code == 2
    assert missing.stderr == (
        "error: ci/known.json: there is no such baseline; to create it, run `kvlint check --baseline ci/known.json "
        f"--write-baseline` (`baseline` in {os.path.abspath('pyproject.toml')} names it)\n"
    )
    assert kvlint("check", "--write-baseline", "--verbose").stderr.startswith("configuration: ")
    os.chdir("sub")
    verbose = kvlint("check", "--verbose")
    assert verbose.exit_code == 0
    assert f"baseline: {os.path.abspath('../ci/known.json')}\n" in verbose.stderr
    assert package.check(["a.py"]) == []
    assert kvlint("check", "--no-baseline").exit_code == 1
    assert kvlint("check", "--isolated").exit_code == 1
    write("other.json", '{"kind": "kvlint-baseline", "version": 1, "findings": []}')
    assert kvlint("check", "--baseline", "other.json").exit_code == 1
    write("a.py", CANDIDATE)
    assert package.check(["a.py"]) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--write-baseline",), "--write-baseline needs to know where"),
        (("--baseline", "known.json", "--no-baseline"), "give one of them"),
        (("--baseline", ""), "--baseline: an empty path was given"),
        ((*WRITE, "--diff-base", "HEAD"), "leave --diff-base out"),
        ((*WRITE, "--stdin-filename", "a.py"), "it cannot read standard input"),
        (("--baseline", "x.json", "--output", "./x.json"), "--output would overwrite the baseline x.json"),
        (("--baseline", "a.json"), "error: a.json: there is no such baseline; to create it, run `kvlint check"),
        (("--baseline", "a\n.json"), "error: a\\n.json: there is no such"),
        (("--baseline", "a.py/x.json"), "error: a.py/x.json: the baseline cannot be read: Not a directory"),
        (("--baseline", "."), "error: .: is not a file, so it cannot hold a baseline"),
        (("--baseline", "/dev/null"), "error: /dev/null: is not a file"),
        (("--baseline", "no/such/folder.json", "--write-baseline"), "the baseline cannot be written: No such file"),
        ((".", "--baseline", "./", "--write-baseline"), "error: ./: is not a file"),
    ],
)
def test_wrong_usage(kvlint: Run, arguments: tuple[str, ...], message: str) -> None:
    write("a.py", CANDIDATE + "LOST\n")
    result = kvlint("check", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


ENTRY = '{"path": "a.py", "code": "KVL001", "function": "", "text": "LOST"}'
HEAD = '{"kind": "kvlint-baseline", "version": 1, "findings": '


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("\n", "known.json: is no baseline, nor any other JSON: Input data was truncated"),
        ('"""A docstring."""\n', "known.json: is no baseline, nor any other JSON: line 1: JSON is malformed"),
        ("{\n  'kind'", "is no baseline, nor any other JSON: line 2: JSON is malformed"),
        (b"\xff\xfe", "is no baseline, nor any other JSON"),
        ("[" * 100_000, "nor any other JSON: maximum recursion depth exceeded"),
        ('{"kind": "kvlint-baseline", "version": ' + "[" * 100_000, "nor any other JSON"),
        ("[]", "is JSON, but no baseline of kvlint ('kvlint-baseline' does not stand under 'kind')"),
        ('{"version": 1, "findings": []}', "is JSON, but no baseline of kvlint"),
        ('{"kind": "kvlint-baseline", "version": 2}', "has version 2 of the format, and this kvlint reads version 1"),
        ('{"kind": "kvlint-baseline", "version": "1"}', "has version '1' of the format"),
        ('{"kind": "kvlint-baseline"}', "has version None of the format"),
        ('{"kind": "kvlint-baseline", "version": 1}', "missing required field `findings`"),
        (HEAD + "{}}", "Expected `array`, got `object` - at `$.findings`; delete it and run `kvlint check"),
        (HEAD + "[3]}", "Expected `object`, got `int` - at `$.findings[0]`"),
        (HEAD + f"[{ENTRY.replace('KVL001', 'E501')}]}}", "at `$.findings[0].code`"),
        (HEAD + f"[{ENTRY.replace('a.py', '')}]}}", "at `$.findings[0].path`"),
        (HEAD + f"[{ENTRY.replace('text', 'line')}]}}", "`line`"),
        (HEAD + f"[{ENTRY[:-1]}, " + '"count": 0}]}', "at `$.findings[0].count`"),
        (HEAD + f'[{ENTRY}], "x": 1}}', "`x`"),
        (
            HEAD + f"[\n<<<<<<< ours\n{ENTRY}\n=======\n>>>>>>> theirs\n]}}",
            "known.json:2: holds an unresolved merge conf",
        ),
    ],
)
def test_files_that_are_no_baseline(kvlint: Run, content: str | bytes, message: str) -> None:
    write("a.py", CANDIDATE + "LOST\n")
    write("known.json", content)
    before = Path("known.json").read_bytes()
    for arguments in (("--baseline", "known.json"), WRITE):
        result = kvlint("check", *arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith("error: known.json:")
        assert message in result.stderr
        assert len(result.stderr) < 600
    assert Path("known.json").read_bytes() == before


def test_writing_where_there_is_nothing_to_lose(kvlint: Run) -> None:
    write("a.py", CANDIDATE + "LOST\n")
    write("empty.json", "")
    os.symlink("target.json", "link.json")
    os.symlink("loop.json", "loop.json")
    assert "empty.json: is empty; to fill it, run `kvlint check" in kvlint("check", "--baseline", "empty.json").stderr
    assert "there is no such baseline" in kvlint("check", "--baseline", "link.json").stderr
    for name in ("empty.json", "link.json"):
        assert kvlint("check", "--baseline", name, "--write-baseline").exit_code == 0
        assert kvlint("check", "--baseline", name).exit_code == 0
    assert os.path.islink("link.json")
    assert len(entries("target.json")) == 1
    loop = kvlint("check", "--baseline", "loop.json", "--write-baseline")
    assert (loop.exit_code, "Too many levels" in loop.stderr) == (2, True)


def test_a_rule_that_is_no_more_is_gone(kvlint: Run) -> None:
    write("a.py", CANDIDATE)
    write("known.json", HEAD + f"[{ENTRY.replace('KVL001', 'KVL777')}]}}")
    result = kvlint("check", "--baseline", "known.json", "--select", "KVL9")
    assert "1 finding of the baseline is gone" in result.stderr
    kvlint("check", *WRITE)
    assert entries() == []


def test_a_huge_file(kvlint: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write("a.py", CANDIDATE + "LOST\n")
    write("known.json", HEAD + f"[{ENTRY}]}}")
    monkeypatch.setattr(baselines, "MAX_BYTES", 20)
    assert "is no baseline: it has" in kvlint("check", "--baseline", "known.json").stderr


def test_absurd_entries_do_no_harm(kvlint: Run) -> None:
    write("a.py", CANDIDATE + "LOST\n")
    odd = ENTRY.replace("a.py", "nul\\u0000.py"), ENTRY[:-1] + ', "count": 9000000000000000000}'
    elsewhere = ENTRY.replace("a.py", "/etc/../x.py"), ENTRY.replace("a.py", "caf\\\\xe9.py")
    write("known.json", HEAD + "[" + ", ".join((*odd, *elsewhere)) + "]}")
    result = kvlint("check", "--baseline", "known.json")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "9000000000000000001 findings of the baseline are gone" in result.stderr


def test_entries_that_a_merge_has_doubled_count_once(kvlint: Run) -> None:
    write("a.py", CANDIDATE + "LOST\nLOST\n")
    write("known.json", HEAD + f"[{ENTRY}, {ENTRY}]}}")
    assert new(kvlint("check", "--baseline", "known.json")) == ["a.py:3"]
    assert read_baseline("known.json").known.total() == 1


def test_a_byte_order_mark_is_told(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_bytes(b"\xef\xbb\xbf{}")
    with pytest.raises(BaselineError, match="nor any other JSON"):
        read_baseline(str(tmp_path / "b.json"))


def test_a_crash_leaves_the_baseline_alone(kvlint: Run) -> None:
    write("a.py", CANDIDATE + "LOST\n")
    kvlint("check", *WRITE)
    before = Path("known.json").read_text()
    write("a.py", CANDIDATE + "CRASH\n")
    write("b.py", CANDIDATE + "LOST\n")
    result = kvlint("check", *WRITE)
    assert result.exit_code == 2
    assert "Wrote" not in result.stderr
    assert "gone" not in result.stderr
    assert Path("known.json").read_text() == before


def test_an_interrupted_write_leaves_the_old_baseline(kvlint: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write("a.py", CANDIDATE + "LOST\n")
    write("known.json", HEAD + "[]}")

    def interrupt(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    assert kvlint("check", *WRITE).exit_code == 130
    assert Path("known.json").read_text() == HEAD + "[]}"
    assert sorted(os.listdir()) == ["a.py", "known.json"]


def test_standard_input(kvlint: Run) -> None:
    write("a.py", CANDIDATE + "LOST\n")
    kvlint("check", *WRITE)
    arguments = ("check", "--stdin-filename", "a.py", "--baseline", "known.json")
    assert new(kvlint(*arguments, stdin=(CANDIDATE + "x = 1\nLOST\ny = LOST\n").encode())) == ["a.py:4"]
    assert new(kvlint("check", "-", "--baseline", "known.json", stdin=(CANDIDATE + "LOST\n").encode())) == ["-:2"]


def test_fix_mends_what_is_known_and_fails_for_what_is_new(kvlint: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here nothing can be mended, so everything remains."""
    write("a.py", CANDIDATE + "LOST\n")
    kvlint("check", *WRITE)
    monkeypatch.setattr(
        "kvlint.fix_run.fix_files", lambda targets, diagnose, **_: FixOutcome((), tuple(diagnose({})), ())
    )
    result = kvlint("fix", "--baseline", "known.json")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "0 files changed, 0 findings left, 1 known.\n"
    assert kvlint("fix").exit_code == 1
    write("a.py", CANDIDATE + "LOST\nx = LOST\n")
    assert new(kvlint("fix", "--baseline", "known.json")) == ["a.py:3"]
    source = (CANDIDATE + "LOST\nx = LOST\n").encode()
    remaining = kvlint("fix", "--baseline", "known.json", "--stdin-filename", "a.py", stdin=source)
    assert remaining.exit_code == 1
    assert remaining.stderr.startswith("a.py:3:5: KVL001")
    write("known.json", "")
    assert kvlint("fix", "--baseline", "known.json").exit_code == 2
