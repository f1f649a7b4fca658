from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

import kvlint as package
from kvlint.config import Config, KvlintError
from kvlint.diagnostics import Finding
from kvlint.fixing import fixpoint
from kvlint.fixing.fixpoint import Change, FixOutcome, Verify
from kvlint.fixing.refusals import Refusal, WriteRefused

Run = Callable[..., Result]

CANDIDATE = "status = KVPoll.Failed\n"


def write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


@pytest.fixture
def finder(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fixer that turns every LOST into KEPT, as far as its findings reach."""

    def fix_files(
        targets: list[str],
        diagnose: Callable[[dict[str, bytes]], list[Finding]],
        *,
        unsafe: bool,
        verify: Verify,
        read: Callable[[str], bytes],
    ) -> FixOutcome:
        paths = sorted({finding.plan.path for finding in diagnose({}) if finding.plan is not None})
        assert set(paths) <= set(targets)
        word = b"KEPT!" if unsafe else b"KEPT"
        changes = tuple(
            Change(
                path,
                read(path),
                read(path).replace(b"LOST\n", word + b"\n"),
                ("keep it",) * read(path).count(b"LOST\n"),
            )
            for path in paths
        )
        remaining = diagnose({change.path: change.after for change in changes})
        return FixOutcome(
            changes, tuple(remaining), tuple(Refusal(finding.plan.path, "no") for finding in remaining if finding.plan)
        )

    monkeypatch.setattr("kvlint.fix_run.fix_files", fix_files)
    assert fixpoint.fix_files is not fix_files


def test_check(kvlint: Run) -> None:
    write("a.py", CANDIDATE + "LOST\n")
    write("sub/b.py", CANDIDATE + "LOST  # noqa\n")
    (finding,) = package.check(["."])
    assert (finding.code, finding.location.path) == ("KVL001", "a.py")
    assert package.check([Path("a.py"), "sub"]) == [finding]
    assert package.check(["a.py"], Config(ignore=("KVL001",))) == []
    with pytest.raises(KvlintError, match="no such file or folder: absent"):
        package.check(["absent"])
    write("c.py", CANDIDATE + "CRASH\n")
    with pytest.raises(KvlintError, match=r"c\.py: ZeroDivisionError"):
        package.check(["."])


def test_check_reads_the_nearest_configuration(kvlint: Run) -> None:
    write("sub/a.py", CANDIDATE + "LOST\n")
    write("sub/kvlint.toml", "ignore = ['KVL001']\n")
    assert package.check(["sub/a.py"]) == []
    assert len(package.check([])) == 0


@pytest.mark.usefixtures("finder")
def test_fix(kvlint: Run) -> None:
    write("a.py", CANDIDATE + "LOST\nLOST \n")
    run = package.fix(["."], diff_only=True)
    (fixed,) = run.changes
    assert fixed.display == "a.py"
    assert fixed.change.after == (CANDIDATE + "KEPT\nLOST \n").encode()
    assert Path("a.py").read_text() == CANDIDATE + "LOST\nLOST \n"
    assert package.fix(["a.py"], unsafe=True).changes[0].display == "a.py"
    assert Path("a.py").read_text() == CANDIDATE + "KEPT!\nLOST \n"


@pytest.mark.usefixtures("finder")
def test_the_fix_command(kvlint: Run) -> None:
    write("a.py", CANDIDATE + "LOST\nLOST\n")
    write("b.py", CANDIDATE + "LOST  # noqa: KVL001\n")
    result = kvlint("fix")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "fixed a.py: keep it (2 times)\n1 file changed, 0 findings left.\n"
    assert Path("a.py").read_text() == CANDIDATE + "KEPT\nKEPT\n"
    assert Path("b.py").read_text() == CANDIDATE + "LOST  # noqa: KVL001\n"
    again = kvlint("fix", "--verbose")
    assert again.exit_code == 0
    assert again.stderr.endswith("0 files changed, 0 findings left.\n")


@pytest.mark.usefixtures("finder")
def test_what_cannot_be_fixed_remains(kvlint: Run) -> None:
    write("a.py", CANDIDATE + "LOST \n")
    result = kvlint("fix", "--statistics")
    assert result.exit_code == 1
    assert result.stdout.startswith("a.py:2:1: KVL001")
    assert "not fixed: a.py: no\n" in result.stderr
    assert "     1  KVL001  lost-word\n" in result.stderr
    assert kvlint("fix", "--exit-zero", "--quiet").exit_code == 0
    assert kvlint("fix", "--output-format", "json").stdout.startswith("{")


@pytest.mark.usefixtures("finder")
def test_a_diff_writes_nothing(kvlint: Run) -> None:
    text = CANDIDATE + "LOST\nLOST \n"
    write("a.py", text)
    result = kvlint("fix", "--diff")
    assert result.exit_code == 1
    assert result.stdout == ("--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n status = KVPoll.Failed\n-LOST\n+KEPT\n LOST \n")
    assert "a.py:3:1: KVL001" in result.stderr
    assert "would fix a.py: keep it\n1 file would be changed, 1 finding left.\n" in result.stderr
    assert Path("a.py").read_text() == text
    assert kvlint("fix", "--diff", "--output", "p.diff").stdout == ""
    assert Path("p.diff").read_text() == result.stdout
    refused = kvlint("fix", "--diff", "--output-format", "json")
    assert (refused.exit_code, refused.stdout) == (2, "")


@pytest.mark.usefixtures("finder")
def test_fixing_standard_input(kvlint: Run) -> None:
    source = (CANDIDATE + "LOST\n").encode()
    result = kvlint("fix", "--stdin-filename", "sub/a.py", stdin=source)
    assert (result.exit_code, result.stdout) == (0, CANDIDATE + "KEPT\n")
    assert "+KEPT" in kvlint("fix", "--diff", "-", stdin=source).stdout
    assert kvlint("fix", "-", stdin=b"x = 1\n").stdout == "x = 1\n"
    assert os.listdir() == []


@pytest.mark.usefixtures("finder")
def test_a_write_that_is_refused_leaves_its_findings(kvlint: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write("a.py", CANDIDATE + "LOST\n")
    write("b.py", CANDIDATE + "LOST\n")

    def refuse(path: str, before: bytes, after: bytes) -> None:
        if path.endswith("a.py"):
            raise WriteRefused(path, "is read-only; make it writable and run again")
        Path(path).write_bytes(after)

    monkeypatch.setattr("kvlint.fix_run.write_atomically", refuse)
    result = kvlint("fix")
    assert result.exit_code == 1
    assert result.stdout.startswith("a.py:2:1: KVL001")
    assert "not fixed: a.py: is read-only; make it writable and run again\nfixed b.py: keep it\n" in result.stderr
    assert Path("b.py").read_text() == CANDIDATE + "KEPT\n"
