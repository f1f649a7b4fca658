"""The measuring itself: what counts as a round, a ratio, growth and a breakdown."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from kvlint.explore.scenarios import SCENARIOS

BENCH = Path(__file__).parent.parent.parent / "bench"
MODULES = ("memory", "measure", "growth", "tools", "speed", "explorations", "explore_frontrun")


@pytest.fixture(autouse=True)
def bench_on_the_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As for a script in that folder; what was imported from there is forgotten afterwards."""
    monkeypatch.syspath_prepend(str(BENCH))
    yield
    for name in MODULES:
        sys.modules.pop(name, None)


def module(name: str) -> ModuleType:
    return importlib.import_module(name)


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def writing(name: str) -> list[str]:
    """A command that adds its name to a file."""
    return python(f"open('log', 'a').write('{name}')")


def test_rounds_alternate_and_the_first_does_not_count(tmp_path: Path) -> None:
    measure = module("measure")
    commands = {name: measure.Command(writing(name)) for name in "ab"}
    rows = measure.compare(commands, tmp_path, 2)
    assert (tmp_path / "log").read_text() == "abbaab"
    assert [row.name for row in rows] == ["a", "b"]
    assert rows[0].ratio == rows[0].lowest == rows[0].highest == 1
    assert 0 < rows[1].lowest <= rows[1].ratio <= rows[1].highest
    # A command may be over before anybody has looked at its memory.
    assert all(row.seconds > 0 and row.processor >= 0 and 0 <= row.megabytes < 1000 for row in rows)


def test_what_needs_an_earlier_run_gets_it_before_memory_is_watched(tmp_path: Path) -> None:
    measure = module("measure")
    measure.compare({"a": measure.Command(writing("a"), is_warm=True)}, tmp_path, 1)
    assert (tmp_path / "log").read_text() == "aaa"


def test_a_command_gets_its_variables_and_may_write_bytecode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    code = "import os, sys; open('log', 'w').write(f'{os.environ[\"X\"]} {sys.dont_write_bytecode}')"
    measure = module("measure")
    measure.run_once(measure.Command(python(code), {"X": "y"}), tmp_path)
    assert (tmp_path / "log").read_text() == "y False"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_is_that_of_all_processes_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure, memory = module("measure"), module("memory")
    # The child tells when it holds its memory, and both wait until they were looked at.
    child = "held = bytearray(80 << 20); print(len(held), flush=True); input()"
    code = (
        "import subprocess, sys; held = bytearray(80 << 20);"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}], stdin=-1, stdout=-1);"
        "child.stdout.readline(); open('ready', 'w').close();"
        "import os\nwhile not os.path.exists('seen'): pass\nchild.communicate(b'\\n')"
    )
    peak = memory.PeakMemory()
    looked_at = memory._family

    def noted(pid: int) -> list[int]:
        ready = (tmp_path / "ready").exists()
        family = list(looked_at(pid))
        peak.megabytes = max(peak.megabytes, sum(map(memory._megabytes, family)))
        if ready:
            (tmp_path / "seen").touch()
        return family

    monkeypatch.setattr(memory, "_family", noted)
    measure.run_once(measure.Command(python(code)), tmp_path, peak)
    # More than either of the two has for itself.
    assert 100 < peak.megabytes < 400


def test_a_table_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    measure = module("measure")
    measure.show(
        "Title", [measure.Row("ruff", 0.5, 0.4, 1.0, 1.0, 1.0, 30), measure.Row("x", 1.0, 1.9, 2.0, 1.9, 2.1, 60)]
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "Title"
    assert lines[-1].split() == ["x", "1.00", "1.90", "2.00", "(1.90-2.10)", "60", "MB"]


@pytest.mark.parametrize("status", [0, 1, 2])
def test_a_tool_that_breaks_down_is_not_timed(tmp_path: Path, status: int) -> None:
    measure = module("measure")
    command = measure.Command(python(f"import sys; sys.stderr.write('why'); sys.exit({status})"))
    if status < 2:
        assert measure.run_once(command, tmp_path).seconds > 0
    else:
        with pytest.raises(measure.CommandFailed, match="exit status 2\nwhy"):
            measure.run_once(command, tmp_path)


@pytest.mark.parametrize("how", ["ast", "libcst", "libcst-positions"])
def test_parsers_take_a_file(how: str) -> None:
    subprocess.run([sys.executable, str(BENCH / "parse.py"), how, str(BENCH / "parse.py")], check=True)


def test_flake8_alone_does_not_know_kvlint() -> None:
    command = [sys.executable, str(BENCH / "flake8_alone.py"), "--isolated", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "pycodestyle" in done.stdout
    assert "kvlint" not in done.stdout


@pytest.mark.parametrize("power", [0.5, 1, 2])
def test_the_exponent_of_a_power_is_that_power(power: float) -> None:
    assert module("growth").exponent([(n, 3 * n**power) for n in (1, 2, 5, 10)]) == pytest.approx(power)


def test_a_larger_tree_has_other_folders_and_the_same_files(tmp_path: Path) -> None:
    package = tmp_path / "package"
    (package / "sub").mkdir(parents=True)
    (package / "sub" / "a.py").write_text("x = 1\n")
    (package / "data.bin").touch()
    tree = module("growth").copies(package, 2, tmp_path / "large")
    found = sorted(path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file())
    assert found == ["copy_00/package/sub/a.py", "copy_01/package/sub/a.py"]


def test_a_longer_file_has_the_same_classes_under_other_names() -> None:
    speed, growth = module("speed"), module("growth")
    source = speed.BACKEND.read_text()
    text = growth.repeated(source, 3 * source.count("\n"))
    compile(text, "repeated", "exec")
    assert text.count("\nclass ") == 3 * source.count("\nclass ")
    assert growth.repeated(source, 1).count("\nclass ") == source.count("\nclass ")


def test_a_tool_is_found_where_it_was_said_to_be(tmp_path: Path) -> None:
    tools = module("tools")
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "semgrep"
    script.write_text("#!/bin/sh\necho semgrep, version 1.2.3\n")
    script.chmod(0o755)
    assert tools.find_command("semgrep", tmp_path) == tools.Tool("semgrep", (str(script),), "1.2.3")
    script.write_text("#!/bin/sh\nexit 1\n")
    assert isinstance(tools.find_command("semgrep", tmp_path), tools.Missing)


def test_a_tool_that_is_not_there_is_missing_with_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = module("tools")
    monkeypatch.setenv("PATH", str(tmp_path))
    missing = tools.find_command("fixit", None)
    assert missing.name == "fixit"
    assert "--tools .venv-bench" in missing.advice
    assert tools.REQUIREMENTS.is_file()
    assert "pip install no_such_tool" in tools.find_module("no_such_tool").advice
    assert isinstance(tools.find_module("ruff"), tools.Tool)


def test_a_library_is_asked_for_in_its_own_environment(tmp_path: Path) -> None:
    tools = module("tools")
    (tmp_path / "bin").mkdir()
    for name, text in (("frontrun", ""), ("python", "echo 0.7.0")):
        script = tmp_path / "bin" / name
        script.write_text(f"#!/bin/sh\n{text}\n")
        script.chmod(0o755)
    command = (str(tmp_path / "bin" / "frontrun"), str(tmp_path / "bin" / "python"))
    assert tools.find_library("frontrun", tmp_path) == tools.Tool("frontrun", command, "0.7.0")
    (tmp_path / "bin" / "frontrun").unlink()
    assert f"--tools {tmp_path}" in tools.find_library("frontrun", tmp_path).advice
    assert isinstance(tools.find_library("no_such_library", None), tools.Missing)


def run(search: float | None, **changed: object) -> Any:
    values = {"command": 1.0, "runs": 10, "states": 20, "schedules": 3000, "outcome": "all hold"} | changed
    return module("explorations").Run(search=search, **values)


def test_explorations_are_divided_by_the_first_of_their_round() -> None:
    explorations = module("explorations")
    order = []

    def line(name: str, *searches: float | None) -> Callable[[], Any]:
        left = iter(searches)

        def measured() -> Any:
            order.append(name)
            return run(next(left))

        return measured

    rows = explorations.compare({"a": line("a", 1, 2, 4), "b": line("b", 3, 2, 8), "c": line("c", None, None, None)}, 3)
    assert "".join(order) == "abccbaabc"
    assert (rows[1].ratio, rows[1].lowest, rows[1].highest, rows[1].run.search) == (2, 1, 3, 3)
    assert (rows[2].ratio, rows[2].run.search) == (None, None)


def test_without_a_base_there_is_no_ratio() -> None:
    explorations = module("explorations")
    rows = explorations.compare({"a": lambda: run(None), "b": lambda: run(2.0)}, 1)
    assert [row.ratio for row in rows] == [None, None]


def test_a_table_of_explorations_says_what_was_cut(capsys: pytest.CaptureFixture[str]) -> None:
    explorations = module("explorations")
    rows = [
        explorations.Row("whole", run(0.5), 1.0, 1.0, 1.0),
        explorations.Row("cut", run(2.0, schedules=None, states=None, is_cut=True), 4.0, 4.0, 4.0),
        explorations.Row("huge", run(None, schedules=10**30), None, 0.0, 0.0),
    ]
    explorations.show("Title", rows)
    whole, cut, huge = (line.split() for line in capsys.readouterr().out.splitlines()[-3:])
    assert whole == ["whole", "0.500", "1.00", "(1.00-1.00)", "1.00", "20", "10", "20", "3,000", "6,000", "all", "hold"]
    assert cut == ["cut", "2.000", ">4.00", "(4.00-4.00)", "1.00", "-", "10", "5", "-", "-", "all", "hold"]
    assert huge == ["huge", "-", "-", "1.00", "20", "10", "-", "1.00e+30", "-", "all", "hold"]


def scenario(verdict: str, reason: str = "", quick: float | None = None) -> dict[str, Any]:
    judged = [{"property": "pinned-room", "verdict": verdict}]
    counted = {"states": 0, "runs": 3, "schedules": None, "seconds": 0.5, "quick_seconds": quick}
    return {"properties": judged, "reason": reason, **counted}


@pytest.mark.parametrize(
    ("report", "is_quick", "outcome", "search", "is_cut"),
    [
        (scenario("HOLDS"), False, "all hold", 0.5, False),
        (scenario("VIOLATED"), False, "violated: pinned-room", 0.5, False),
        (scenario("VIOLATED", "1 s was over"), False, "violated: pinned-room; 1 s was over", 0.5, True),
        (scenario("INCONCLUSIVE", "1 s was over"), False, "1 s was over", 0.5, True),
        (scenario("VIOLATED", quick=0.04), True, "violated: pinned-room", 0.04, False),
        (scenario("INCONCLUSIVE"), True, "no witness with at most 2 preemptions", None, False),
    ],
)
def test_what_a_report_says(
    report: dict[str, Any], is_quick: bool, outcome: str, search: float | None, is_cut: bool
) -> None:
    seen = module("explorations").of_scenario(report, 2.0, is_quick=is_quick)
    assert (seen.outcome, seen.search, seen.is_cut) == (outcome, search, is_cut)
    assert (seen.command, seen.states, seen.runs) == (2.0, 0, 3)


@pytest.mark.parametrize(
    ("holds", "seconds", "outcome", "is_cut"),
    [
        (False, 2.0, "violated: pinned-room", False),
        (False, 60.5, "violated: pinned-room", False),
        (True, 59.0, "nothing found", False),
        # It says the same when its time was up.
        (True, 60.1, "nothing found; 60 s were over", True),
        (None, 5.0, "inconclusive", False),
    ],
)
def test_what_frontrun_says(holds: bool | None, seconds: float, outcome: str, is_cut: bool) -> None:
    said = {"holds": holds, "seconds": seconds, "building": 0.5, "runs": 7}
    seen = module("explorations").of_frontrun(said, 61.0, 60.0)
    assert (seen.outcome, seen.is_cut, seen.search) == (outcome, is_cut, seconds - 0.5)


def test_frontrun_sees_kvlint_as_if_it_were_installed(tmp_path: Path) -> None:
    explorations, tools = module("explorations"), module("tools")
    script = (
        "import json, os, pathlib, sys;"
        "kvlint = pathlib.Path(os.environ['PYTHONPATH'], 'kvlint', '__init__.py').exists();"
        "said = dict(holds=True, seconds=1, building=0, runs=int(kvlint), options=json.loads(sys.argv[-1]));"
        "assert said['options'] == {'preemption_bound': 1}, said;"
        "print('noise'); print(json.dumps(said))"
    )
    tool = tools.Tool("frontrun", (sys.executable, "-c", script), "0.7.0")
    assert explorations.Frontrun(tool, tmp_path, 60.0).explored(tmp_path, preemption_bound=1).runs == 1


@pytest.mark.parametrize(
    ("code", "limit", "said"),
    [
        ("import sys; sys.exit('why')", None, "exit status 1\nwhy"),
        (
            "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])",
            0.5,
            "no end after 0.5 s",
        ),
    ],
)
def test_an_exploration_that_breaks_down_is_not_timed(code: str, limit: float | None, said: str) -> None:
    explorations, measure = module("explorations"), module("measure")
    with pytest.raises(measure.CommandFailed, match=said):
        explorations._timed(python(code), (0,), None, limit)


class FakeBackend:
    """A manager that concludes a room when its second chunk is done, or an ABORT has come."""

    def __init__(self) -> None:
        self.queue: list[object] = []
        self.poll = SimpleNamespace(Failed=0, WaitingForInput=2, Transferring=3, Success=4)
        self.manager = SimpleNamespace(request_status={}, infos={}, seen=set(), log=deque(), name="x")
        given = SimpleNamespace(put=self.queue.append)
        self.loaded = SimpleNamespace(workers=[SimpleNamespace(args=(given,), kwargs={})])
        self.hooks = SimpleNamespace(receive=None)

    def bodies(self) -> list[tuple[str, Callable[[], None]]]:
        return [("worker", self._work), ("listener", self._listen)]

    def _work(self) -> None:
        while True:
            number = self.queue.pop(0)
            self.manager.request_status[7] = 4 if number.real else 3  # type: ignore[attr-defined]

    def _listen(self) -> None:
        while True:
            kind = self.hooks.receive()[0]
            self.manager.infos.setdefault(7, {})[kind] = 1
            self.manager.log.append(kind)
            self.manager.seen.add(kind)
            self.manager.request_status[7] = 0 if kind == b"abort" else 2

    def make_sender(self, room: int) -> Any:
        return SimpleNamespace(poll=lambda: self.manager.request_status[room])

    def begin(self, sender: Any) -> None: ...

    def send(self, sender: Any, number: int, last: bool) -> None:
        self.queue.append(Fraction(number))

    def registration_frames(self) -> list[list[bytes]]:
        return [[b"registration"]]

    def metadata_frames(self, room: int) -> list[list[bytes]]:
        return [[b"metadata"]]

    def abort_frames(self, room: int) -> list[list[bytes]]:
        return [[b"abort"]]


def test_every_run_of_frontruns_program_begins_alike() -> None:
    made = [FakeBackend(), FakeBackend()]
    left = iter(made)
    program = module("explore_frontrun").Program(lambda: next(left))
    backend = program.setup()
    manager = backend.manager
    begun = (dict(manager.request_status), dict(manager.infos[7]), list(manager.log), set(manager.seen))
    program.worker(backend)
    assert not program.is_terminal(SimpleNamespace(manager=SimpleNamespace(request_status={7: 3}), poll=backend.poll))
    program.listener(backend)
    assert program.is_terminal(backend)
    assert list(manager.log)[-1] == b"abort"
    assert program.setup() is backend
    assert (dict(manager.request_status), dict(manager.infos[7]), list(manager.log), set(manager.seen)) == begun
    # A thread that was left standing may hold a lock.
    program.worker(backend)
    assert program.setup() is made[1]
    assert program.building > 0


def test_frontrun_gets_the_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    exploring = module("explore_frontrun")
    monkeypatch.setattr(exploring, "NixlBackend", lambda root, chunks, replaced: FakeBackend())

    def explore(setup: Any, workers: Any, invariant: Any, **options: object) -> Any:
        assert options == {"total_timeout": 9, "detect_io": False, "reproduce_on_failure": 0, "seed": 1}
        ends = []
        for order in (workers, reversed(workers)):
            state = setup()
            for worker in order:
                worker(state)
            ends.append(invariant(state))
        return SimpleNamespace(num_explored=len(ends), property_holds=all(ends))

    monkeypatch.setitem(sys.modules, "frontrun", SimpleNamespace(explore=explore))
    said = exploring.main(str(tmp_path), 9, {"seed": 1})
    assert (said["holds"], said["runs"]) == (True, 2)
    assert 0 < said["building"] <= said["seconds"]


def options(explorations: ModuleType, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Any:
    monkeypatch.setattr(sys, "argv", ["explore.py", *arguments])
    return explorations._options()


def test_every_table_is_about_both_trees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    explorations = module("explorations")
    seen = set()

    def explored(root: Path, *arguments: str) -> Any:
        seen.add((root.name, *arguments))
        return run(1.0)

    monkeypatch.setattr(explorations, "explored", explored)
    monkeypatch.setattr(explorations.Frontrun, "explored", lambda _self, _root, **given: run(2.0, outcome=str(given)))
    tool = module("tools").Tool("frontrun", ("frontrun", "python"), "0.7.0")
    monkeypatch.setattr(explorations, "find_library", lambda *_: tool)
    chosen = options(explorations, monkeypatch, "--rounds", "2", "--time-limit", "9")
    bench = explorations.Bench(chosen, {name: tmp_path / name for name in explorations.TREES}, tmp_path)
    bench.describe()
    for table in explorations.TABLES:
        getattr(bench, table)()
    printed = capsys.readouterr().out
    assert all(f"{each}, {tree} tree" in printed for each in ("abort", "the scheduler") for tree in explorations.TREES)
    assert "{'strategy': 'random', 'seed': 2, 'max_attempts': 1000000}" in printed
    assert ("fixed", "--scenario", "abort", "--no-scheduler", "--quick") in seen
    limited = ("--no-scheduler", "--time-limit", "9", "--strategy", "partial-order")
    assert ("pinned", "--scenario", "abort", *limited) in seen


def test_without_frontrun_its_table_is_skipped_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    explorations = module("explorations")
    chosen = options(explorations, monkeypatch, "--tools", str(tmp_path))
    explorations.Bench(chosen, {}, tmp_path).frontrun()
    assert "frontrun: skipped, it is not installed; to have it: python3 -m venv" in capsys.readouterr().out


def test_the_scenarios_are_those_of_the_command() -> None:
    explorations = module("explorations")
    assert {"abort", *explorations._OTHERS} == {known.name for known in SCENARIOS}


def test_a_tree_that_cannot_be_explored_ends_the_measurements(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    explorations = module("explorations")
    monkeypatch.setenv("PYTHONPATH", str(BENCH.parent))
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "sglang").mkdir()
    (tmp_path / "sglang" / "a.py").write_text("x = 1\n")
    options(explorations, monkeypatch, "--tree", str(tmp_path), "--only", "abort", "--rounds", "1")
    assert explorations.main() == 1
    assert "kvlint explore" in capsys.readouterr().err
    options(explorations, monkeypatch, "--tree", str(tmp_path / "nowhere"))
    assert explorations.main() == 1
    assert "nowhere" in capsys.readouterr().err


def test_every_option_of_the_explorations_is_understood() -> None:
    environment = {**os.environ, "PYTHONPATH": str(BENCH.parent)}
    command = [sys.executable, str(BENCH / "explore.py"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert all(table in done.stdout for table in module("explorations").TABLES)


def test_every_option_is_understood() -> None:
    environment = {**os.environ, "PYTHONPATH": str(BENCH.parent)}
    command = [sys.executable, str(BENCH / "speed.py"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert all(table in done.stdout for table in module("speed").TABLES)
