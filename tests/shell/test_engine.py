from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import kvlint
from kvlint import engine, file_check, processes
from kvlint.config import Config, default_config
from kvlint.diagnostics import Finding, Location, Severity, Span
from kvlint.engine import AnalysisCrashed
from kvlint.file_check import FileCheck, Outcome
from kvlint.registry import Rule, rule_of
from kvlint.report.model import Report
from kvlint.source.discovery import discover

pytestmark = pytest.mark.usefixtures("stub")

CANDIDATE = "status = KVPoll.Failed\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(path: str, text: str | bytes) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(text.encode() if isinstance(text, str) else text)


def check(*paths: str, jobs: int = 1, **settings: Any) -> Report:
    return engine.check(paths or (".",), Config(**settings, folder=os.getcwd()), jobs=jobs)


def brief(report: Report) -> list[tuple[str, int, int, str]]:
    return [
        (item.location.path, item.location.span.line, item.location.span.column, item.code) for item in report.findings
    ]


def test_only_candidates_are_analysed() -> None:
    write("a.py", CANDIDATE + "x  # LOST\n")
    write("b.py", "x  # LOST\n")
    report = check()
    assert brief(report) == [("a.py", 2, 6, "KVL001")]
    assert (report.files.checked, report.files.parsed, report.files.failed) == (2, 1, 0)


def test_findings_are_sorted_and_every_path_is_shown_as_given() -> None:
    for name in ("b/x.py", "a/y.py", "a/x.py"):
        write(name, CANDIDATE + "LOST\n\nLOST\n")
    report = check("./b", "a")
    assert brief(report) == [(path, line, 1, "KVL001") for path in ("./b/x.py", "a/x.py", "a/y.py") for line in (2, 4)]
    assert [finding.related[0].location.path for finding in report.findings[::2]] == [
        "b/base.py",
        "a/base.py",
        "a/base.py",
    ]
    plan = report.findings[0].plan
    assert plan is not None
    assert plan.path == os.path.abspath("b/x.py")


@pytest.mark.parametrize(
    ("data", "line", "message"),
    [
        (CANDIDATE + "def f(:\n", 2, "cannot be parsed: "),
        (CANDIDATE + "print 'x'\n", 2, "cannot be parsed: "),
        (b"# coding: klingon\n" + CANDIDATE.encode(), 1, "declares an unknown encoding, klingon"),
        (CANDIDATE.encode() + b"'\xff'\n", 2, "is not valid utf-8"),
        (CANDIDATE + "\0", 2, "holds a null byte"),
        (CANDIDATE + "(" * 5_000, 2, "cannot be parsed: "),
    ],
)
def test_a_candidate_that_cannot_be_parsed_is_a_finding_and_the_run_goes_on(
    data: str | bytes, line: int, message: str
) -> None:
    write("bad.py", data)
    write("good.py", CANDIDATE + "LOST\n")
    report = check()
    assert brief(report) == [("bad.py", line, 1, "KVL900"), ("good.py", 2, 1, "KVL001")]
    assert report.findings[0].message.startswith(message)
    assert report.findings[0].message.endswith("; nothing in this file was checked")
    assert (report.files.parsed, report.files.failed) == (1, 1)


def test_another_file_that_cannot_be_parsed_is_nobodys_business() -> None:
    write("bad.py", "def f(:\n")
    write("worse.py", b"# noqa: KVL001 \xff\n")
    report = check()
    assert report.findings == ()
    assert report.files.failed == 0


def test_where_the_rule_does_not_run_a_warning_says_what_was_not_checked() -> None:
    write("bad.py", CANDIDATE + "def f(:\n")
    report = check(ignore=("KVL900",))
    assert report.findings == ()
    assert report.files.failed == 1
    (warning,) = report.warnings
    assert warning.startswith("bad.py: not checked: cannot be parsed: ")


def test_a_file_that_cannot_be_read_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    write("a.py", CANDIDATE)

    def refuse(path: str) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(engine, "read_bytes", refuse)
    report = check()
    assert brief(report) == [("a.py", 1, 1, "KVL900")]
    assert report.findings[0].message == "cannot be read: Permission denied; nothing in this file was checked"


@pytest.mark.parametrize("where", ["facts", "rule"])
def test_nesting_that_only_the_analysis_cannot_take(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def overflow(*_: object) -> Iterator[Finding]:
        raise RecursionError

    if where == "facts":
        monkeypatch.setattr(sys.modules["kvlint.analysis.facts"], "facts_of", overflow)
    else:
        rules = (replace(rule_of("KVL901"), check=overflow), rule_of("KVL900"))
        monkeypatch.setattr(file_check, "selected", lambda config: rules)
    write("a.py", CANDIDATE)
    (finding,) = check().findings
    assert finding.message == "cannot be analysed: nested too deeply; nothing in this file was checked"


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_crash_costs_neither_the_other_files_nor_the_truth(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_SMALLEST_SHARE", 1)
    write("a.py", CANDIDATE + "CRASH\n")
    write("b.py", CANDIDATE + "LOST\n")
    report = check(jobs=jobs)
    assert brief(report) == [("b.py", 2, 1, "KVL001")]
    (crash,) = report.crashes
    assert (crash.path, crash.reason) == ("a.py", "ZeroDivisionError: the stub crashed")
    assert "report_lost" in crash.traceback
    assert report.files.failed == 1
    with pytest.raises(AnalysisCrashed, match=r"a\.py: ZeroDivisionError: the stub crashed; this is a defect"):
        engine.findings_or_raise(report)


def test_a_rule_that_reports_in_another_file_is_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = Finding("KVL001", "lost-word", Severity.ERROR, "no", Location("/other.py", Span(1, 1, 1, 1)))
    rule = Rule("KVL001", "lost-word", Severity.ERROR, "0.1.0", True, None, "", lambda facts: iter([elsewhere]))
    monkeypatch.setattr(file_check, "selected", lambda config: (rule,))
    write("a.py", CANDIDATE)
    (crash,) = check().crashes
    assert crash.reason == "RuntimeError: KVL001 reports in another file, /other.py"


def test_the_number_of_processes_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_SMALLEST_SHARE", 1)
    for number in range(6):
        write(f"{number}.py", CANDIDATE + "LOST\n" * number)
    write("bad.py", CANDIDATE + "(")
    seen: list[tuple[int, int]] = []
    alone = check(jobs=1)
    together = engine.check(["."], Config(folder=os.getcwd()), jobs=3, progress=lambda *done: seen.append(done))
    assert together == alone
    assert seen == [(done, 7) for done in range(1, 8)]


def test_a_worker_that_dies_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_SMALLEST_SHARE", 1)
    monkeypatch.setattr(FileCheck, "check", lambda self, path: os._exit(3))
    write("a.py", CANDIDATE)
    write("b.py", CANDIDATE)
    report = check(jobs=2)
    assert [crash.reason for crash in report.crashes] == ["its worker process died"] * 2


def test_a_worker_leaves_ctrl_c_to_its_parent() -> None:
    write("a.py", CANDIDATE)
    path = os.path.abspath("a.py")
    handler = signal.getsignal(signal.SIGINT)
    try:
        processes._start(default_config(), {path: (CANDIDATE + "LOST").encode()})
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, handler)
    assert [finding.code for finding in processes._check(path).findings] == ["KVL001"]


# Each worker holds the pipe that it was given; its end is read when the last of them is gone.
KILLED_PARENT = """
import os, sys, threading
from kvlint import processes
from kvlint.config import Config
from kvlint.file_check import FileCheck

def check(self, path):
    os.write(int(sys.argv[1]), b"x")
    if path == "idle":
        return None
    while path == "busy":
        pass
    threading.Event().wait()

FileCheck.check = check
processes._SMALLEST_SHARE = 1
with processes.Crew(FileCheck(Config()), 3) as crew:
    for path in sys.argv[2:]:
        crew.add(path, 1)
    list(crew.outcomes())
"""


def test_workers_end_with_a_parent_that_is_killed() -> None:
    reading, writing = os.pipe()
    paths = ("busy", "waiting", "idle")
    environment = {**os.environ, "PYTHONPATH": str(Path(kvlint.__file__).parent.parent)}
    command = [sys.executable, "-c", KILLED_PARENT, str(writing), *paths]
    parent = subprocess.Popen(command, pass_fds=[writing], env=environment)
    os.close(writing)
    started = b""
    while len(started) < len(paths):
        started += os.read(reading, 1) or pytest.fail("the workers ended before their parent")
    parent.kill()
    parent.wait()
    ready, _, _ = select.select([reading], [], [], 60)
    assert ready, "a worker outlives its parent"
    assert os.read(reading, 1) == b""
    os.close(reading)


def test_an_interrupt_ends_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_SMALLEST_SHARE", 1)
    closed = []
    shutdown = ProcessPoolExecutor.shutdown

    def noted(self: ProcessPoolExecutor, wait: bool = True, *, cancel_futures: bool = False) -> None:
        closed.append(cancel_futures)
        shutdown(self, wait, cancel_futures=cancel_futures)

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ProcessPoolExecutor, "shutdown", noted)
    for name in ("a.py", "b.py", "c.py"):
        write(name, CANDIDATE)
    with pytest.raises(KeyboardInterrupt):
        engine.check(["."], default_config(), jobs=2, progress=interrupt)
    assert closed == [True]


def test_processes_get_more_to_do_while_the_search_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_SMALLEST_SHARE", 1)
    handed_out: dict[str, Future[Outcome]] = {}
    monkeypatch.setattr(processes, "_submitted", lambda _, path: handed_out.setdefault(path, Future()))
    with processes.Crew(FileCheck(default_config()), 2) as crew:
        for size, path in enumerate("abcdef", start=1):
            crew.add(path, size)
        # Two for each process, the largest of those that are known then first.
        assert list(handed_out) == ["b", "a", "c", "d"]
        handed_out["a"].set_result(Outcome("a"))
        crew.add("g", 1)
        assert list(handed_out) == ["b", "a", "c", "d", "f"]
        for path in "bcdf":
            handed_out[path].set_result(Outcome(path))
        outcomes = crew.outcomes()
        assert [next(outcomes).path for _ in "abcdf"] == ["a", "b", "c", "d", "f"]
        for path in "eg":
            handed_out[path].set_result(Outcome(path))
        assert [outcome.path for outcome in outcomes] == ["e", "g"]


@pytest.mark.parametrize(
    ("sizes", "jobs", "workers"),
    [
        ([], None, 1),
        ([100] * 20, 8, 1),
        ([1_000_000] * 3, 1, 1),
        ([1_000_000] * 3, 8, 3),
        ([1_000_000_000], 8, 1),
    ],
)
def test_processes_are_started_where_they_pay(sizes: list[int], jobs: int | None, workers: int) -> None:
    assert processes.worth_starting(len(sizes), sum(sizes), jobs) == workers


def test_a_large_tree_is_not_kept_in_memory_whole() -> None:
    paths = [os.path.abspath(f"{number}.py") for number in range(4)]
    for path in paths:
        write(path, CANDIDATE + "LOST\n")
    check_file = FileCheck(default_config(), max_loaded=2 * len(CANDIDATE + "LOST\n"))
    worlds, codes = [], []
    for path in paths:
        codes += [finding.code for finding in check_file.check(path).findings]
        worlds.append(check_file.world)
    assert codes == ["KVL001"] * 4
    assert worlds[0] is worlds[1] is worlds[2] is not worlds[3]


def test_comments_silence_findings_of_unreadable_files() -> None:
    write("a.py", CANDIDATE + "def f(:  # noqa: KVL900\n")
    write("b.py", CANDIDATE + "# flake8: noqa\ndef f(:\n")
    write("c.py", CANDIDATE + "def f(:  # noqa: KVL001\n")
    report = check()
    assert brief(report) == [("c.py", 2, 1, "KVL900")]
    assert report.files.failed == 3


def test_comments_silence_findings() -> None:
    write("a.py", CANDIDATE + "LOST  # noqa: KVL001\nLOST  # noqa\nLOST  # noqa: E501\n")
    write("b.py", CANDIDATE + "# flake8: noqa\nLOST\n")
    assert brief(check()) == [("a.py", 4, 1, "KVL001")]


def test_comments_that_silence_nothing() -> None:
    write(
        "a.py",
        CANDIDATE + "x  # noqa: KVL001\nx  # noqa: KVL555, E501\nx  # noqa: kvl001\nLOST  # noqa: KVL001, KVL0\n",
    )
    write("b.py", "x  # noqa: KVL001\nx  # noqa: KVL002\nx  # noqa: KVL901\n")
    report = check()
    places = [("a.py", 2), ("a.py", 3), ("a.py", 4), ("b.py", 1)]
    assert brief(report) == [(path, line, 12, "KVL901") for path, line in places]
    assert [finding.message for finding in report.findings[:3]] == [
        "noqa names KVL001, but nothing of that code is reported here",
        "noqa names KVL555, which is no code of kvlint's and suppresses nothing",
        "noqa names kvl001, which suppresses nothing: codes are written in upper case",
    ]


def test_a_rule_that_does_not_run_makes_no_comment_unused() -> None:
    write("a.py", CANDIDATE + "LOST  # noqa: KVL001\n")
    assert check(ignore=("KVL001",)).findings == ()
    assert check(per_file_ignores={"a.*": ("KVL001",)}).findings == ()
    assert check(ignore=("KVL901",)).findings == ()


def test_an_unused_comment_can_be_kept() -> None:
    write("a.py", CANDIDATE + "x  # noqa: KVL001, KVL901\n")
    assert check().findings == ()


def test_per_file_ignores() -> None:
    for name in ("a/x.py", "b/x.py"):
        write(name, CANDIDATE + "LOST\n")
    assert brief(check(per_file_ignores={"a/": ("KVL001",), "*.pyi": ("KVL0",)})) == [("b/x.py", 2, 1, "KVL001")]
    assert brief(check(per_file_ignores={"x.py": ("KVL",)})) == []


def test_source_that_is_no_file() -> None:
    report = engine.check_source("sub/new.py", (CANDIDATE + "LOST\n").encode(), default_config())
    assert brief(report) == [("sub/new.py", 2, 1, "KVL001")]
    assert engine.check_source("new.py", b"LOST", default_config()).findings == ()
    assert brief(engine.check_source("new.py", b"x  # noqa: KVL001", default_config())) == [("new.py", 1, 12, "KVL901")]


def test_diagnosing_over_replaced_contents() -> None:
    write("a.py", CANDIDATE + "LOST\n")
    write("b.py", CANDIDATE + "LOST  # noqa\n")
    targets = discover(["."], default_config()).targets
    diagnose = engine.diagnoser(targets, default_config())
    assert brief(diagnose({})) == [("a.py", 2, 1, "KVL001")]
    assert brief(diagnose({os.path.abspath("a.py"): CANDIDATE.encode()})) == []
    based = engine.diagnoser(targets, default_config(), base={os.path.abspath("a.py"): b"x"})
    assert brief(based({})) == []


def test_inspecting() -> None:
    write("b.py", CANDIDATE)
    write("a.py", CANDIDATE)
    write("c.py", CANDIDATE + "(")
    write("d.py", "")
    write("e.py", CANDIDATE + "UNSHOWABLE\n")
    inspection = engine.inspect(discover(["."], default_config()).targets, default_config())
    assert [file.display for file in inspection.files] == ["a.py", "b.py"]
    assert [file.model.path for file in inspection.files] == ["a.py", "b.py"]
    (warning,) = inspection.warnings
    assert warning.startswith("c.py: cannot be parsed: ")
    (crash,) = inspection.crashes
    assert (crash.path, crash.reason) == ("e.py", "ZeroDivisionError: the stub cannot show it")
