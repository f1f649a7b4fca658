"""The demo tells what kvlint computes, leaves nothing behind, and ends with a mended backend."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

import pytest
from rich.console import Console

import kvlint
from kvlint import demo
from kvlint.report.colour import paint

PACKAGED = Path(str(files("kvlint").joinpath(demo.FOLDER)))
ESCAPE = re.compile(r"\x1b\[[\d;]*m")


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)


def told() -> str:
    stream = io.StringIO()
    assert demo.run(Console(file=stream)) == 0
    return stream.getvalue()


def test_every_finding_is_shown() -> None:
    story = told()
    findings = kvlint.check([PACKAGED])
    assert {finding.code for finding in findings} == {"KVL001", "KVL002", "KVL003", "KVL004"}
    for finding in findings:
        span = finding.location.span
        name = os.path.basename(finding.location.path)
        assert f"\n{demo.FOLDER}/{name}:{span.line}:{span.column}: {finding.code} " in story


def test_the_shown_patch_is_the_fix(tmp_path: Path) -> None:
    story = told()
    patch = story[story.index("--- a/") : story.index("\n\n$ kvlint fix demo_backend &&")] + "\n"
    backend = tmp_path / demo.FOLDER
    backend.mkdir()
    for name in ("base.py", "backend.py"):
        (backend / name).write_bytes((PACKAGED / name).read_bytes())
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=patch, text=True, check=True)
    assert kvlint.check([backend]) == []
    assert "\nNo findings.\n" in story


def test_the_tables_stand_side_by_side_with_the_changes_marked() -> None:
    story = told()
    rows = {line.split()[0]: line.split()[1:] for line in story.splitlines() if re.match(r"  \w+ +[FS-]  ", line)}
    assert rows["Failed"] == [*"FBWTS", "F", "[F]", "[F]", "[F]", "[F]"]
    assert rows["Success"][:5] == [*"FSSSS"]
    assert rows["Success"][-4:] == [*"SSSS"]
    for stored in ("nothing", "Bootstrapping", "WaitingForInput", "Transferring"):
        assert rows[stored][:5] == rows[stored][5:]


def test_the_same_schedule_hangs_before_and_fails_after() -> None:
    story = told()
    assert re.search(r"\n  the first chunk is written +Transferring +Failed\n", story)
    assert "The client got   nothing, ever: the scheduler goes on polling Transferring\n" in story
    assert "and now gets     an error: room 7: aborted by the decode side\n" in story


def test_every_schedule_is_run_before_and_after() -> None:
    before, safe, all_fixes = re.findall(r"^(VIOLATED|HOLDS) +abort: .*\n((?:  .*\n)+)", told(), re.MULTILINE)
    assert before[0] == safe[0] == "VIOLATED"
    assert "  pinned-room in 51,021 schedules, first with 1 preemption" in before[1]
    assert re.search(r"holds: pinned-room", safe[1])
    assert "overwritten-terminal in" in safe[1]
    assert all_fixes[0] == "HOLDS"
    assert "inconclusive" not in all_fixes[1]


def test_the_witness_is_the_textbook_one() -> None:
    steps = re.findall(r"^ +\d+ [»✗ ] (.*)$", told(), re.MULTILINE)
    assert len(steps) == 19
    assert "waits for more in chunks" in told()
    assert re.search(r"^ +12 +· +request_status\[7\] = Failed$", told(), re.MULTILINE)
    assert re.search(r"^ +18 ✗ request_status\[7\] = Transferring$", told(), re.MULTILINE)


def test_a_request_that_nobody_aborts_gets_its_answer() -> None:
    with demo._imported(str(PACKAGED.parent)) as backend:
        stage = demo._Stage(backend)
        stage._frames.clear()
        stage.play()
        assert demo._what_the_client_gets(backend, stage) == "its answer"


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    scratch = tmp_path / "scratch"
    here.mkdir()
    scratch.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    before = {path: path.read_bytes() for path in PACKAGED.iterdir() if path.is_file()}
    search_path = list(sys.path)
    told()
    assert list(here.iterdir()) == list(scratch.iterdir()) == []
    assert {path: path.read_bytes() for path in PACKAGED.iterdir() if path.is_file()} == before
    assert sys.path == search_path
    assert not [name for name in sys.modules if name.split(".")[0] == demo.FOLDER]


def test_colour_is_for_terminals_and_those_who_insist(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = told()
    assert "\x1b[" not in plain
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = told()
    assert paint("[F]", "32", True) in coloured
    assert ESCAPE.sub("", coloured) == plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert told() == plain


def test_a_stream_that_knows_ascii_only() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    assert demo.run(Console(file=stream)) == 0
    stream.flush()
    assert b"KVL001" in raw.getvalue()


def test_as_a_command(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(PACKAGED.parent.parent), "PYTHONWARNINGS": "error"}
    command = [sys.executable, "-m", "kvlint", "demo"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == told()
