"""The measuring of two status writers: what is written, in which order, and what is made of the times."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from loading import minitree

from kvlint.loading import LoadError, load_backend

BENCH = Path(__file__).parent.parent.parent / "bench"
WRITER = "        self.request_status[room] = status\n"
STICKY = f"        if self.request_status.get(room) not in (KVPoll.Failed, KVPoll.Success):\n    {WRITER}"


@pytest.fixture(autouse=True)
def bench_on_the_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As for a script in that folder; what was imported from there is forgotten afterwards."""
    monkeypatch.syspath_prepend(str(BENCH))
    monkeypatch.setenv("PYTHONPATH", str(BENCH.parent))
    yield
    for name in ("memory", "measure", "status_writes", "update_status"):
        sys.modules.pop(name, None)


@pytest.fixture
def status_writes(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    found = importlib.import_module("status_writes")
    for name, value in {"ROOMS": 3, "SWEEPS": 2, "WARM_UP": 1}.items():
        monkeypatch.setattr(found, name, value)
    return found


@pytest.fixture
def update_status() -> ModuleType:
    return importlib.import_module("update_status")


def trees(folder: Path, new: str = STICKY) -> tuple[Path, Path]:
    changed = minitree.edited(minitree.COMMON, WRITER, new)
    return minitree.write(folder / "before"), minitree.write(folder / "after", changed)


def run(*transitions: tuple[str, list[str], list[list[float]]], version: str = "1") -> dict[str, Any]:
    """What a process says."""
    return {
        "loop": 5.0,
        "trees": [{"version": version, "sha256": "0" * 64}] * 2,
        "transitions": {name: {"results": results, "pairs": pairs} for name, results, pairs in transitions},
    }


def test_every_transition_is_timed_in_both_trees(status_writes: ModuleType, tmp_path: Path) -> None:
    found = status_writes.main(*trees(tmp_path), 2, 0)
    assert list(found["transitions"]) == [str(each) for each in status_writes.TRANSITIONS]
    assert all(len(entry["pairs"]) == 2 for entry in found["transitions"].values())
    assert all(len(pair) == 2 for entry in found["transitions"].values() for pair in entry["pairs"])
    results = {name: entry["results"] for name, entry in found["transitions"].items()}
    assert results["absent -> Bootstrapping"] == ["Bootstrapping", "Bootstrapping"]
    assert results["WaitingForInput -> Transferring"] == ["Transferring", "Transferring"]
    assert results["Failed -> Transferring"] == ["Transferring", "Failed"]
    assert results["Success -> Failed"] == ["Failed", "Success"]
    before, after = found["trees"]
    assert before["sha256"] != after["sha256"]
    json.dumps(found)


def test_a_room_may_stay_absent(status_writes: ModuleType, tmp_path: Path) -> None:
    opening = f"        if status == KVPoll.Bootstrapping or room in self.request_status:\n    {WRITER}"
    found = status_writes.main(*trees(tmp_path, opening), 2, 0)
    assert found["transitions"]["absent -> Transferring"]["results"] == ["Transferring", "absent"]


@pytest.mark.parametrize(("number", "loaded", "order"), [(0, "after before", "1001"), (1, "before after", "0110")])
def test_trees_take_turns(
    status_writes: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, loaded: str, order: str
) -> None:
    roots, seen, blocks = trees(tmp_path), [], []

    def load(root: Path) -> object:
        seen.append(root.name)
        return load_backend(root)

    def block(writes: Any) -> float:
        blocks.append(writes._manager)
        return 100.0

    monkeypatch.setattr(status_writes, "load_backend", load)
    monkeypatch.setattr(status_writes.Writes, "block", block)
    monkeypatch.setattr(status_writes, "TRANSITIONS", status_writes.TRANSITIONS[:1])
    status_writes.main(*roots, 1, number)
    assert " ".join(seen) == loaded
    places = [type(manager).update_status.__code__.co_filename for manager in blocks]
    assert ["before" not in Path(place).parts for place in places] == [which == "1" for which in order]


def test_every_call_finds_the_status_that_the_transition_begins_with(status_writes: ModuleType, tmp_path: Path) -> None:
    noting = f"        vars(self).setdefault('seen', []).append((self.request_status.get(room), status))\n{WRITER}"
    backend = load_backend(trees(tmp_path, noting)[1])
    for transition in status_writes.TRANSITIONS:
        backend.manager.seen = []
        status_writes.Writes(backend, transition, [5, 6, 7]).block()
        stored = None if transition.stored is None else getattr(backend.poll, transition.stored)
        assert backend.manager.seen == [(stored, getattr(backend.poll, transition.status))] * 6


def test_each_tree_has_its_own_bytecode(status_writes: ModuleType, tmp_path: Path) -> None:
    backend = load_backend(trees(tmp_path)[0])
    sweeps = [status_writes.Writes(backend, status_writes.TRANSITIONS[0], [5])._sweep for _ in range(2)]
    assert len({id(sweep.__code__) for sweep in [*sweeps, status_writes._sweep]}) == 3


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        (minitree.COMMON, "request_status = {}", "request_status = TABLE()", r"after.sglang: .* is UserDict; it has"),
        (minitree.COMMON, "def update_status", "def write_status", r"update_status\(\) failed: AttributeError"),
        (minitree.COMMON, WRITER, "        requests.get('http://no')\n", r"update_status\(\) failed: UnforeseenUse"),
        (
            minitree.COMMON,
            WRITER,
            "        try:\n            requests.get('http://no')\n        except BaseException:\n            pass\n",
            r"did not do what it does in a server: .*requests\.get",
        ),
        ("srt/disaggregation/base/conn.py", "    Success = 4\n", "", r"after.sglang: KVPoll has no Success\.$"),
    ],
)
def test_a_writer_that_cannot_be_timed(
    status_writes: ModuleType, tmp_path: Path, name: str, old: str, new: str, message: str
) -> None:
    before = minitree.write(tmp_path / "before")
    text = minitree.edited(name, old, new)[name]
    if "write_status" in new:
        text = text.replace("update_status(bootstrap_room", "write_status(bootstrap_room")
    text = text.replace("import threading\n", "import threading\nfrom collections import UserDict as TABLE\n")
    if "requests.get" in new:
        # Building the decode side must not meet it.
        text = text.replace("        mgr.update_status(bootstrap_room, KVPoll.Bootstrapping)\n", "")
    after = minitree.write(tmp_path / "after", {name: text})
    with pytest.raises(status_writes.BadWriter, match=message):
        status_writes.main(before, after, 2, 0)


def test_a_tree_that_is_none(status_writes: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="nowhere: there is no such file or folder"):
        status_writes.main(minitree.write(tmp_path), tmp_path / "nowhere", 2, 0)


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        # 2 · (1/2)^6 = 3.1 %: the whole range.
        ([6, 1, 2, 5, 4, 3], 1, 6),
        # 2 · (1 + 9)/2^9 = 3.9 %: without the outermost two.
        ([9, 1, 2, 8, 3, 7, 4, 6, 5], 2, 8),
        # 2 · (1 + 12 + 66)/2^12 = 3.9 %: the third from either end.
        (list(range(1, 13)), 3, 10),
    ],
)
def test_an_interval_is_made_of_order_statistics(
    update_status: ModuleType, values: list[float], low: float, high: float
) -> None:
    found = update_status.interval(values)
    assert (found.median, found.low, found.high) == ((len(values) + 1) / 2, low, high)


def test_too_few_values_have_no_interval(update_status: ModuleType) -> None:
    with pytest.raises(ValueError, match="5 values have no interval; 6 or more are needed"):
        update_status.interval([1, 2, 3, 4, 5])


def test_pairs_are_divided_before_anything_else(update_status: ModuleType) -> None:
    # The machine became ten times slower between pairs; the ratio is 2 all the same.
    runs = [run(("a -> b", ["b", "c"], [[100, 200], [1000, 2000], [100, 200]]))] * 6
    (row,) = update_status.rows(runs)
    assert (row.ratio.low, row.ratio.median, row.ratio.high) == (2, 2, 2)
    assert (row.difference.median, row.before.median, row.after.upper_quartile) == (100, 100, 2000)
    assert (row.before.stored, row.after.stored) == ("b", "c")


def test_processes_that_measured_something_else_are_not_compared(update_status: ModuleType) -> None:
    failed = importlib.import_module("measure").CommandFailed
    pairs = [[100.0, 200.0]] * 2
    one = run(("a -> b", ["b", "c"], pairs))
    with pytest.raises(failed, match=r"different modules: a tree was changed meanwhile"):
        update_status.rows([one] * 6 + [run(("a -> b", ["b", "c"], pairs), version="2")])
    with pytest.raises(failed, match=r"a -> b: not every process stored the same"):
        update_status.rows([one] * 6 + [run(("a -> b", ["b", "b"], pairs))])


def test_the_table(update_status: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [run(("a -> b", ["b", "c"], [[100, 150]] * 2), ("c -> d", ["d", "d"], [[200, 100]] * 2))] * 6
    update_status.show("Title", update_status.rows(runs))
    first, second = (line.split() for line in capsys.readouterr().out.splitlines()[-2:])
    assert first[3:9] == ["100", "(100-100)", "150", "(150-150)", "1.50", "(1.50-1.50)"]
    assert first[9:] == ["+50", "(+50", "to", "+50)", "b;", "after:", "c"]
    assert second[9:] == ["-100", "(-100", "to", "-100)", "d"]


def test_the_command_says_and_writes_what_it_measured(
    update_status: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = []

    def run_process(root: Path, other: Path, pairs: int, number: int) -> Mapping[str, Any]:
        numbers.append((root.name, other.name, pairs, number))
        return run(("a -> b", ["b", "b"], [[100.0, 110.0 + number]] * pairs))

    monkeypatch.setattr(update_status, "run_process", run_process)
    file = tmp_path / "figures.json"
    arguments = ["old", "new", "--pairs", "3", "--processes", "6"]
    assert update_status.main([*arguments, "--json", str(file)]) == 0
    assert numbers == [("old", "new", 3, number) for number in range(6)]
    printed = capsys.readouterr().out
    assert printed.startswith("before: old, 1, modules 000000000000\nafter: new, 1, ")
    report = json.loads(file.read_text())
    assert (report["before"]["root"], report["after"]["root"], report["pairs"]) == ("old", "new", 3)
    ratio = report["transitions"][0]["ratio"]
    assert (round(ratio["low"], 6), round(ratio["high"], 6)) == (1.1, 1.15)
    assert len(report["processes"]) == 6
    assert update_status.main(arguments) == 0
    assert update_status.main([*arguments, "--json", str(tmp_path)]) == 1
    assert f"{tmp_path}: the figures cannot be written there: " in capsys.readouterr().err


def test_a_process_is_told_what_to_measure(update_status: ModuleType, tmp_path: Path) -> None:
    found = update_status.run_process(*trees(tmp_path), 2, 1)
    assert found["transitions"]["Failed -> Transferring"]["results"] == ["Transferring", "Failed"]
    assert found["loop"] > 0


def test_a_process_that_fails_ends_the_command(
    update_status: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, _ = trees(tmp_path)
    assert update_status.main([str(before), str(tmp_path / "nowhere")]) == 1
    assert capsys.readouterr().err == f"{tmp_path / 'nowhere'}: there is no such file or folder.\n"


def test_a_call_that_does_not_return_ends_the_command(
    update_status: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def expired(command: list[str], timeout: float, **_: object) -> None:
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(subprocess, "run", expired)
    assert update_status.main(["old", "new", "--pairs", "40"]) == 1
    assert "old and new were not measured within 200 s; a call may not return." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--pairs", "1"], "argument --pairs: '1' is not a whole number of 2 or more"),
        (["--pairs", "many"], "argument --pairs: 'many' is not a whole number of 2 or more"),
        (["--processes", "5"], "argument --processes: '5' is not a whole number of 6 or more"),
        (["--json", "nowhere/figures.json"], "argument --json: nowhere is no folder; make it first"),
    ],
)
def test_bad_options(
    update_status: ModuleType, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        update_status.main(["old", "new", *arguments])
    assert said in capsys.readouterr().err


def test_the_help_says_that_code_is_executed() -> None:
    command = [sys.executable, str(BENCH / "update_status.py"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ))
    assert "EXECUTES CODE OF BOTH TREES" in " ".join(done.stdout.split())
