"""``kvlint drill`` with real NIXL: what an abort storm does to released backends and to the pinned tree.

Each test drills once. Real processes, sockets and memory are in it, and so is what must be left of them: nothing.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import kvlint
from kvlint.drill.drill import Request, drill
from kvlint.drill.parent import DrillError, Pair, Process, Processes
from kvlint.drill.report.json_report import made_schema
from kvlint.drill.run import Moment
from kvlint.drill.storm import Storm

from . import remains

Release = Callable[[str], Path]

NEEDED = ("torch", "nixl", "zmq", "aiohttp", "requests", "psutil", "numpy")
#: Large folders of a tree that are not loaded.
NOT_COPIED = shutil.ignore_patterns("models", "multimodal_gen", "test")
#: Twelve chunks of 64 KiB; a transfer lasts for most of a step, so that most aborts come in the middle of one.
SMALL = ("--chunks", "12", "--chunk-mib", "0.0625", "--settle", "0.4")
STORM = ("--rooms", "30", "--live", "4", "--transfer-ms", "6", "--rounds", "0", *SMALL)
FEW = ("--rooms", "6", "--transfer-ms", "6", "--rounds", "0", *SMALL)
#: Moments of a storm of LONG, counted in reports of progress: the first one comes before anything is loaded.
MOMENTS = 150
LONG = Storm(rooms=1000, chunks=2, chunk_bytes=1 << 16)
#: Seconds; long enough for a process to start on a busy machine.
SILENCE = 8.0

KVLINT = (
    "import runpy, signal; "
    # Who runs the tests in the background may have had it ignored.
    "signal.signal(signal.SIGINT, signal.default_int_handler); "
    "runpy.run_module('kvlint', run_name='__main__', alter_sys=True)"
)


@pytest.fixture(scope="module", autouse=True)
def _needed() -> None:
    if sys.platform != "linux":
        pytest.skip("NIXL is made for Linux only")
    missing = [module for module in NEEDED if find_spec(module) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}; pip install 'flake8-kvlint[drill]'")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where temporary files of a drill go."""
    made = tmp_path / "temporary"
    made.mkdir()
    return made


@pytest.fixture
def fixed(pinned: Path, tmp_path: Path) -> Callable[[bool], Path]:
    """The pinned tree with the safe fixes, or with all."""

    def fix(unsafe: bool) -> Path:
        root = tmp_path / "fixed"
        shutil.copytree(pinned / "sglang", root / "sglang", ignore=NOT_COPIED)
        backend = root / "sglang" / "srt" / "disaggregation"
        assert kvlint.fix([backend / "common", backend / "nixl"], unsafe=unsafe).changes
        return root

    return fix


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-c", KVLINT, "drill", *map(str, arguments)]


def variables(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TMPDIR": str(folder)}


def drilled(folder: Path, *arguments: object) -> dict[str, Any]:
    """The document that a drill prints; it exits as what it found says, and leaves nothing."""
    with remains.nothing(folder):
        done = subprocess.run(
            command(*arguments, "--output-format", "json"),
            cwd=folder.parent,
            env=variables(folder),
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.stderr == ""
    document: dict[str, Any] = json.loads(done.stdout)
    jsonschema.validate(document, made_schema())
    assert done.returncode == int(any(document["faults"]))
    return document


def storm_of(document: dict[str, Any]) -> dict[str, Any]:
    """What the storm did to the one tree, with all that no tree must do to bytes."""
    (tree,) = document["drill"]["trees"]
    storm: dict[str, Any] = tree["storm"]
    assert storm["settled"]
    assert storm["integrity"]["wrong"] == {}
    assert storm["integrity"]["compared"] > 0
    assert storm["errors"] == []
    return storm


def left(storm: dict[str, Any]) -> dict[str, int]:
    """How much of each kind was left."""
    kinds = ("pinned", "zombies", "orphan_records", "orphan_exceptions", "orphan_metadata", "dead_threads", "flips")
    return {kind: len(storm[kind]) for kind in kinds if storm[kind]}


# -- what a storm does -------------------------------------------------------------------


def test_aborts_pin_rooms(pinned: Path, folder: Path) -> None:
    document = drilled(folder, pinned, *STORM)
    storm = storm_of(document)
    count = len(storm["pinned"])
    assert count >= 3
    assert f"{count} rooms pinned" in document["faults"][0]
    for room in storm["pinned"]:
        assert (room["status"], room["has_metadata"], room["queue"]) == ("Transferring", False, "inflight")
    # All of them were given up, and had failed before.
    assert (storm["aborted"]["pinned"], storm["not_aborted"]["pinned"]) == (count, 0)
    assert {room["room"] for room in storm["pinned"]} <= {flip["room"] for flip in storm["flips"]}
    assert storm["not_aborted"]["failed"] == 0
    assert storm["dead_threads"] == []


def test_the_safe_fixes_unpin_them(fixed: Callable[[bool], Path], folder: Path) -> None:
    document = drilled(folder, fixed(False), *STORM)
    storm = storm_of(document)
    # A thread that is preempted between a look and a write can still bring back a room that the scheduler has cleared.
    assert left(storm).keys() <= {"zombies", "flips", "orphan_records"}
    assert storm["aborted"]["failed"] >= 3


def test_with_all_fixes_nothing_is_left(fixed: Callable[[bool], Path], folder: Path) -> None:
    document = drilled(folder, fixed(True), *STORM)
    storm = storm_of(document)
    assert document["faults"] == [[]]
    assert left(storm) == {}
    assert storm["aborted"]["failed"] >= 3


def test_the_first_abort_kills_the_listener_of_0_5_14(release: Release, folder: Path) -> None:
    document = drilled(folder, release("0.5.14"), *FEW)
    (tree,) = document["drill"]["trees"]
    (dead,) = tree["storm"]["dead_threads"]
    assert dead["kind"] == "listener"
    assert dead["reason"].startswith("AssertionError")
    assert "bootstrap_thread" in dead["traceback"]
    assert "1 dead thread" in document["faults"][0]


def test_the_newest_release_withstands_it(release: Release, folder: Path) -> None:
    document = drilled(folder, release("0.5.23"), *STORM)
    storm = storm_of(document)
    assert document["faults"] == [[]]
    assert left(storm) == {}
    assert storm["aborted"]["failed"] >= 3


def test_in_one_process(release: Release, folder: Path) -> None:
    document = drilled(folder, release("0.5.23"), *FEW, "--one-process", "--half-aborts")
    assert (document["faults"], document["drill"]["processes"]) == ([[]], 1)
    memory = storm_of(document)["peak_memory"]
    assert memory["prefill"] == memory["decode"]


def test_two_trees_are_compared(pinned: Path, release: Release, folder: Path) -> None:
    document = drilled(folder, pinned, "--compare", release("0.5.23"), "--no-storm", "--rounds", "1", *SMALL)
    found = document["drill"]
    assert document["faults"] == [[], []]
    assert [tree["ready"]["version"] for tree in found["trees"]] == ["0.5.14", "0.5.23"]
    assert [(tree["storm"], len(tree["throughput"]["seconds"])) for tree in found["trees"]] == [(None, 1)] * 2
    (first,), (second,) = (tree["throughput"]["seconds"] for tree in found["trees"])
    assert found["comparison"] == {"ratios": [first / second], "median": first / second, "interval": None}


# -- processes that are killed -----------------------------------------------------------


class Killed(Processes):
    """Processes of which one gets a signal at some moment.

    Args:
        side: Whose.
        moment: When: before as many reports of progress.
        number: The signal.
    """

    def __init__(self, side: str, moment: int, number: signal.Signals) -> None:
        super().__init__(silence=SILENCE)
        self.side = side
        self.moment = moment
        self.signal = number
        self.numbers: set[int] = set()
        self.sockets: set[str] = set()
        self._victim: Process | None = None

    def start(self, name: str, one_process: bool) -> Pair:
        pair = super().start(name, one_process)
        self._victim = next(link.process for link in pair.links() if link.side == self.side)
        self.numbers = {process.number for process in pair.processes()}
        return pair

    def __call__(self, moment: Moment) -> None:
        self.moment -= 1
        if self.moment == 0:
            assert self._victim is not None
            self.sockets = remains.sockets(self.numbers)
            assert bool(self.sockets) == (moment.rooms > 0)
            os.kill(self._victim.number, self.signal)


def moments(*seeds: int) -> list[Any]:
    """A moment of each seed; the first one comes before anything is loaded, too."""
    chosen = {f"seed {seed}": random.Random(seed).randrange(2, MOMENTS) for seed in seeds}
    return [pytest.param(moment, id=f"{seed}, moment {moment}") for seed, moment in chosen.items()]


def error_of(killed: Killed, root: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> DrillError:
    """How a drill fails in which a process gets a signal; it leaves nothing."""
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    request = Request(roots=(str(root),), storm=LONG, rounds=0)
    with remains.nothing(folder), pytest.raises(DrillError) as raised:
        drill(request, killed, killed)
    assert len(killed.numbers) == 2
    # They were waited for, too.
    assert [number for number in killed.numbers if Path(f"/proc/{number}").exists()] == []
    assert remains.listening().isdisjoint(killed.sockets)
    return raised.value


@pytest.mark.parametrize("moment", [*moments(1), pytest.param(1, id="unloaded")])
@pytest.mark.parametrize("side", ["prefill", "decode"])
def test_a_process_is_killed(
    side: str, moment: int, release: Release, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = error_of(Killed(side, moment, signal.SIGKILL), release("0.5.23"), folder, monkeypatch)
    assert str(error) == f"the {side} process was ended by SIGKILL, perhaps for want of memory"


@pytest.mark.parametrize("moment", moments(3))
def test_a_process_is_stopped(moment: int, release: Release, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = error_of(Killed("prefill", moment, signal.SIGSTOP), release("0.5.23"), folder, monkeypatch)
    assert str(error) == f"the prefill side gave no sign of life for {SILENCE:g} s; the prefill process was ended"
    # Where its threads stood.
    assert "Thread 0x" in error.details
    assert "transfer_worker" in error.details
    assert "bootstrap_thread" in error.details


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=lambda number: number.name)
def test_the_command_is_ended(number: signal.Signals, release: Release, folder: Path) -> None:
    with (
        remains.nothing(folder),
        subprocess.Popen(
            command(release("0.5.23"), "--rooms", "100000"),
            env=variables(folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        sockets = bound(process, folder)
        process.send_signal(number)
        printed, said = process.communicate()
        assert printed == ""
        assert (process.returncode, said) == (
            (130, "interrupted; no file is half-written\n") if number == signal.SIGINT else (-number, "")
        )
        remains.wait_for_end(folder, sockets)


def bound(process: subprocess.Popen[str], folder: Path) -> set[str]:
    """The listening sockets of a drill, when there are some of both of its sides."""
    end = time.monotonic() + 120
    while True:
        each = [remains.sockets({number}) for number in remains.processes(folder)]
        if len([sockets for sockets in each if sockets]) == 2:
            return set().union(*each)
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "the sides do not listen"
        time.sleep(0.05)
