"""The processes of a drill: what they are told, what they tell, how they end, and that nothing is left of them."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kvlint.drill import drill as drill_module
from kvlint.drill import parent, results
from kvlint.drill.drill import Request, drill
from kvlint.drill.messages import Alive, Begin, Begun, Done, Ready, Start, Stop, encode
from kvlint.drill.parent import DrillError, Pair, Processes
from kvlint.drill.storm import Storm

from . import sides

FAKE = "import sys; sys.path[:] = {path!r}; sys.path.append(%r); from drill.fake_child import main; main()"
STORM = Storm(rooms=6, live=2, chunks=1, chunk_bytes=1024)


REAL = parent._CODE

pytestmark = pytest.mark.usefixtures("no_tree")


@pytest.fixture(autouse=True)
def _played(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parent, "_CODE", FAKE % str(Path(__file__).parent.parent))


@pytest.fixture
def started() -> Iterator[Processes]:
    """Processes of which nothing is left, however the test ends."""
    descriptors = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    groups: list[int] = []
    with Processes() as processes:
        yield processes
        groups += [process.number for process in processes._all]
    for group in groups:
        with pytest.raises(ProcessLookupError):
            os.killpg(group, 0)
    if descriptors:
        assert len(os.listdir("/proc/self/fd")) <= descriptors


def set_up(processes: Processes, root: str, one_process: bool = False) -> tuple[Pair, Ready]:
    pair = processes.start("", one_process)
    request = sides.setup(STORM)
    return pair, processes.set_up(pair, type(request)(**{**asdict(request), "root": root}))


def asdict(setup: Any) -> dict[str, Any]:
    return {name: getattr(setup, name) for name in setup.__struct_fields__}


@pytest.mark.parametrize("one_process", [False, True])
def test_the_decode_side_is_told_of_the_prefill_side(
    started: Processes, monkeypatch: pytest.MonkeyPatch, one_process: bool
) -> None:
    pair = started.start("", one_process)
    assert len(pair.processes()) == 2 - one_process
    assert pair.prefill.process.label == ("prefill and decode" if one_process else "prefill")
    heard: list[Ready] = []
    real = started.next

    def next_message(*given: Any) -> Any:
        heard.append(real(*given))
        return heard[-1]

    monkeypatch.setattr(started, "next", next_message)
    ready = started.set_up(pair, sides.setup(STORM, "auto"))
    assert [entry.device for entry in heard] == ["prefill auto ", "decode cpu 127.0.0.1:1"]
    assert pair.ready == ready == heard[0]


def test_messages_that_nobody_waits_for_are_passed_over(started: Processes) -> None:
    pair, _ = set_up(started, "tree")
    pair.decode.send(Begin(STORM))
    pair.decode.send(Start(1, 0))
    assert started.next(pair, pair.decode, Done, 20) == Done(1, True, False)
    assert not pair.decode.told


@pytest.mark.parametrize(
    ("root", "message"),
    [
        ("unable", "unable/conn.py:1: no"),
        ("exits", "the decode process has ended with exit status 3"),
        ("killed", "the prefill process was ended by SIGKILL, perhaps for want of memory"),
        ("segfault", "the prefill process was ended by SIGSEGV"),
        ("garbage", "the prefill side: the tree's code wrote to the descriptor that messages come by"),
    ],
)
def test_what_ends_a_drill(started: Processes, root: str, message: str) -> None:
    with pytest.raises(DrillError) as refused:
        set_up(started, root)
    assert str(refused.value) == message
    details = {"unable": "a traceback", "exits": "printed by the tree"}
    assert refused.value.details == details.get(root, "")


@pytest.mark.parametrize("root", ["silent", "closed"])
def test_a_silent_side_says_where_it_stands_and_is_ended(root: str) -> None:
    with Processes(silence=0.5) as processes:
        pair = processes.start("second tree's", False)
        request = asdict(sides.setup(STORM))
        with pytest.raises(DrillError) as refused:
            processes.set_up(pair, type(sides.setup())(**{**request, "root": root}))
        number = pair.prefill.process.number
        assert [process.label for process in processes._all] == ["second tree's decode"]
        with pytest.raises(ProcessLookupError):
            os.killpg(number, 0)
    assert str(refused.value) == (
        "the prefill side gave no sign of life for 0.5 s; the second tree's prefill process was ended"
    )
    assert refused.value.details == "it stands here\nthe last words"


def test_a_side_that_lives_and_tells_nothing_is_ended(started: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parent, "_STARTING", 0.3)
    monkeypatch.setattr(parent, "_STACK_SECONDS", 0.5)
    with pytest.raises(DrillError, match=r"the prefill side did not tell Ready within 0\.3 s; the prefill process"):
        set_up(started, "chatty")


def test_what_a_tree_has_started_ends_with_it(started: Processes, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    pair, _ = set_up(started, f"family {fifo}")
    with open(reading, "rb", buffering=0) as stream:
        assert select.select([stream], [], [], 20)[0]
        assert stream.read(5) == b"alive"
        for process in pair.processes():
            process.end()
        # Its group lasts until the system has buried what the tree has started.
        started._all.clear()
        # Nobody holds the other end any more.
        assert select.select([stream], [], [], 20)[0]
        assert stream.read(5) == b""


def test_a_side_that_reads_nothing_blocks_nobody(started: Processes) -> None:
    pair, _ = set_up(started, "tree")
    pair.prefill.process._popen.send_signal(signal.SIGSTOP)
    commands = [Start(room, 0) for room in range(5_000)]
    assert len(b"".join(map(encode, commands))) > 1 << 17
    for command in commands:
        pair.prefill.send(command)
    assert pair.prefill._unsent
    pair.prefill.process._popen.send_signal(signal.SIGCONT)
    # All arrives, in order, once it reads again.
    pair.prefill.send(Begin(STORM))
    started.next(pair, pair.prefill, Begun, 60)
    assert not pair.prefill._unsent


def test_a_side_that_has_ended_can_be_told(started: Processes) -> None:
    pair, _ = set_up(started, "tree")
    process = pair.decode.process
    process._popen.kill()
    process._popen.wait()
    pair.decode.send(Stop())
    process.ask_for_stacks()
    assert process.ended() == "the decode process was ended by SIGKILL, perhaps for want of memory"


def test_only_the_end_of_what_is_printed_is_kept(started: Processes) -> None:
    process = started.start("", True).prefill.process
    for _ in range(3):
        process._add_printed(b"a" * 10_000)
    process._add_printed(b"end")
    assert len(process.printed) == 1 << 14
    assert process.printed.endswith(b"aend")


def test_a_message_may_come_in_pieces(started: Processes) -> None:
    link = started.start("", True).prefill
    line = encode(Done(1, True, False))
    link.read(line[:5])
    assert not link.told
    link.read(line[5:] + encode(Alive()) + line)
    assert list(link.told) == [Done(1, True, False)] * 2


def test_an_interpreter_that_is_not_there_leaves_nothing(
    started: Processes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(DrillError, match="the prefill process cannot be started: No such file or directory"):
        started.start("", False)
    assert started._all == []


def test_the_real_process_says_what_it_cannot_do(
    started: Processes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(parent, "_CODE", REAL)
    # There is no tree; where the extra is not installed, that is found out first. Either is told, not died of.
    with pytest.raises(DrillError) as refused:
        set_up(started, str(tmp_path / "nowhere"), one_process=True)
    assert "has ended" not in str(refused.value)
    assert any(word in str(refused.value) for word in ("nowhere", "torch", "NIXL"))


# -- a whole drill ---------------------------------------------------------------------------


def request(*roots: str, **changes: Any) -> Request:
    return Request(**{"roots": roots, "storm": STORM, "rounds": 0, "measures": STORM, **changes})


def drilled(wanted: Request) -> tuple[results.DrillResult, list[Any]]:
    moments: list[Any] = []
    return drill(wanted, moments.append), moments


def test_a_storm_is_run(started: Processes) -> None:
    moments: list[Any] = []
    result = drill(request("tree"), moments.append, started)
    (tree,) = result.trees
    assert tree.storm is not None
    assert (tree.storm.aborted, tree.storm.not_aborted) == (results.Ends(0, 0, 0), results.Ends(6, 0, 0))
    assert tree.throughput is None
    assert (result.comparison, result.has_faults, result.processes) == (None, False, 2)
    assert moments[0].what == "loading tree"
    assert (moments[-1].started, moments[-1].rooms, moments[-1].done, moments[-1].what) == (6, 6, 6, "settling")


def test_rounds_are_compared() -> None:
    result, moments = drilled(request("slow", "fast", storm=None, rounds=6, one_process=True))
    slow, fast = result.trees
    assert slow.storm is fast.storm is None
    assert slow.throughput is not None
    assert fast.throughput is not None
    assert (slow.throughput.seconds, fast.throughput.seconds) == ((2.0,) * 6, (1.0,) * 6)
    assert slow.throughput.storm.rooms == drill_module.ROUND_ROOMS
    assert result.comparison is not None
    assert (result.comparison.ratios, result.comparison.median) == ((2.0,) * 6, 2.0)
    assert result.comparison.interval is not None
    assert (result.processes, result.has_faults) == (1, False)
    assert {moment.what for moment in moments} >= {"warming up", "round 6 of 6", "loading fast"}


def test_a_round_that_fails_has_no_time_and_no_pair() -> None:
    result, _ = drilled(request("tree", "fails", storm=None, rounds=2, one_process=True))
    whole, broken = (tree.throughput for tree in result.trees)
    assert whole is not None
    assert broken is not None
    assert (whole.seconds, broken.seconds, broken.failed) == ((2.0, 2.0), (2.0,), 1)
    assert result.comparison is not None
    assert result.comparison.ratios == (1.0,)
    assert result.trees[1].faults() == ["1 room without an abort did not succeed"]


def test_a_process_that_dies_in_a_storm_is_named() -> None:
    with pytest.raises(DrillError, match="the second tree's prefill process has ended with exit status 9"):
        drilled(request("tree", "dies"))


def test_a_path_that_is_no_text_is_passed_on_as_it_is() -> None:
    result, _ = drilled(request("tree\udcff", one_process=True))
    assert result.trees[0].root == "tree\udcff"


@pytest.mark.parametrize(
    ("seconds", "ratios"),
    [
        ([[2.0, None, 4.0], [1.0, 1.0, 8.0]], (2.0, 0.5)),
        ([[2.0, 3.0], [None, 1.0]], (3.0,)),
        ([[None], [1.0]], None),
        ([[1.0]], None),
        ([], None),
    ],
)
def test_only_rounds_of_one_pair_are_compared(seconds: list[list[float | None]], ratios: Any) -> None:
    found = drill_module._comparison(seconds)
    assert (None if found is None else found.ratios) == ratios
