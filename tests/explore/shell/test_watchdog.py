"""What the watchdog makes of ticks, which come here by hand."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from kvlint.explore.watchdog import TICK, Stalled, Watchdog


class GivenUp(BaseException):
    """Stands for the end of the process."""


def give_up(message: str) -> None:
    raise GivenUp(message)


def watchdog(root: Path, seconds: float = 3 * TICK, alive: Callable[[], None] = lambda: None) -> Watchdog:
    return Watchdog(seconds, str(root), give_up, alive)


def tick(watched: Watchdog, frame: FrameType | None = None) -> None:
    watched._tick(signal.SIGALRM, frame)


def names(root: Path, source: str) -> dict[str, Any]:
    """What a file of the tree defines."""
    found: dict[str, Any] = {}
    exec(compile(source, root / "conn.py", "exec"), found)
    return found


@pytest.fixture
def frame(tmp_path: Path) -> FrameType:
    """A frame of the tree's, at line 3."""
    made: FrameType = names(tmp_path, "import sys\ndef work():\n    return sys._getframe()\n")["work"]()
    return made


def stall(watched: Watchdog, frame: FrameType | None, most: int = 20) -> int:
    """Ticks until an exception is raised; it goes on to the caller with `pytest.raises`."""
    for number in range(most):
        try:
            tick(watched, frame)
        except Stalled:
            return number
    return -1


def test_the_first_tick_only_looks(tmp_path: Path, frame: FrameType) -> None:
    watched = watchdog(tmp_path)
    tick(watched, frame)
    assert stall(watched, frame) == 2


def test_the_exception_says_where(tmp_path: Path, frame: FrameType) -> None:
    watched = watchdog(tmp_path, seconds=TICK)
    tick(watched, frame)
    with pytest.raises(Stalled, match=r"^no step for 0\.25 s: it runs in .*/conn\.py:3 \(work\)$") as caught:
        tick(watched, frame)
    assert watched.stalled == str(caught.value)


def test_what_moves_does_not_stall(tmp_path: Path, frame: FrameType) -> None:
    watched = watchdog(tmp_path)
    steps = iter(range(100))
    watched.watch(lambda: next(steps))
    assert stall(watched, frame) == -1
    watched.watch(lambda: 0)
    for _ in range(20):
        watched.moved()
        tick(watched, frame)


def test_our_own_work_does_not_stall(tmp_path: Path) -> None:
    assert stall(watchdog(tmp_path), sys._getframe()) == -1
    assert stall(watchdog(tmp_path), None) == -1


def test_an_exception_that_is_swallowed_comes_again_and_then_it_gives_up(tmp_path: Path, frame: FrameType) -> None:
    watched = watchdog(tmp_path)
    tick(watched, frame)
    assert [stall(watched, frame) for _ in range(3)] == [2, 2, 2]
    with pytest.raises(GivenUp, match=r"conn\.py:3 \(work\), and goes on after BaseException$"):
        stall(watched, frame)


def test_after_a_step_the_patience_is_new(tmp_path: Path, frame: FrameType) -> None:
    watched = watchdog(tmp_path)
    tick(watched, frame)
    for _ in range(10):
        assert stall(watched, frame) == 2
        watched.moved()
        tick(watched, frame)


def test_every_tick_is_a_sign_of_life(tmp_path: Path) -> None:
    ticks: list[int] = []
    watched = watchdog(tmp_path, alive=lambda: ticks.append(1))
    for _ in range(5):
        tick(watched)
    assert len(ticks) == 5


def test_it_is_the_timer_that_ticks(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGALRM)
    loop = names(tmp_path, "def work():\n    while True:\n        pass\n")["work"]
    with watchdog(tmp_path), pytest.raises(Stalled, match=r"conn\.py:[23] \(work\)$"):
        loop()
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is before


@pytest.mark.parametrize("waits", [False, True], ids=["runs", "waits for its turn"])
def test_another_thread_that_runs_in_the_tree_is_given_up(tmp_path: Path, waits: bool) -> None:
    going, ready = threading.Event(), threading.Event()
    names_of_kvlint: dict[str, Any] = {"__name__": "kvlint.explore.switching", "going": going, "ready": ready}
    exec("def switch():\n    ready.set()\n    going.wait()\n", names_of_kvlint)
    work = names(tmp_path, "def work(switch, ready, going):\n    if switch:\n        switch()\n    ready.set()\n    going.wait()\n")
    switch = names_of_kvlint["switch"] if waits else None
    thread = threading.Thread(target=work["work"], args=(switch, ready, going))
    thread.start()
    try:
        assert ready.wait(60)
        watched = watchdog(tmp_path)
        if waits:
            assert stall(watched, sys._getframe()) == -1
        else:
            with pytest.raises(GivenUp, match=r"a thread runs in .*conn\.py:[45] \(work\)$"):
                stall(watched, sys._getframe())
    finally:
        going.set()
        thread.join()
