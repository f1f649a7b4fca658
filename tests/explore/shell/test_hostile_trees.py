"""Whatever a tree does, the command comes to an end, says what happened, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import select
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvlint.explore.events import FailureKind
from kvlint.explore.parent import Limits
from kvlint.explore.results import Verdict

from .trees import LIMITS, Explore, at_import, in_worker

FOREVER = "while True:\n    pass\n"
STUBBORN = "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass\n"
DEADLOCK = "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()\n"
SEGFAULT = "import ctypes\nctypes.string_at(0)\n"
EXIT = "import os\nos._exit(0)\n"
CLOSE = "import os\nos.closerange(3, 100)\n"
MEMORY = "held = []\nwhile True:\n    held.append(bytearray(1 << 26))\n"
RECURSION = "def deeper():\n    deeper()\ndeeper()\n"
DEAF = "import _signal\n_signal.setitimer(_signal.ITIMER_REAL, 0)\n"
CONN = r"sglang/srt/disaggregation/nixl/conn\.py"

#: What the tree does, and what is said about it.
ALIKE = {
    "loops": (FOREVER, rf"no step for 1\.5 s: it runs in .*{CONN}:\d+ \(.+\)$"),
    "deadlocks": (DEADLOCK, rf"no step for 1\.5 s: it runs in .*{CONN}:\d+ \(.+\)$"),
    "swallows": (STUBBORN, rf"no step for 1\.5 s: it runs in .*{CONN}:\d+ \(.+\), and goes on after BaseException$"),
    "ends the process": (EXIT, r"^the tree's code ended the process, with exit status 0$"),
    "closes descriptors": (CLOSE, r"^the tree's code (closed the descriptor|ended the process, with exit status 1)"),
    "crashes": (SEGFAULT, rf"^the process was ended by SIGSEGV in .+, called from .*{CONN}:\d+ \(.+\)"),
    "switches the timer off": (
        DEAF + FOREVER,
        rf"^the process gave no sign of life for 6 s and was ended in .*{CONN}:\d+ \(.+\)",
    ),
    "raises KeyboardInterrupt": (
        "raise KeyboardInterrupt\n",
        rf"{CONN}:\d+: the tree's code raised KeyboardInterrupt$",
    ),
}
each = pytest.mark.parametrize(("code", "words"), ALIKE.values(), ids=ALIKE)


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Temporary files are the test's own, and no process, descriptor or file stays."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    before = set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else set()
    yield
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    assert list(folder.iterdir()) == []
    if before:
        assert set(os.listdir("/proc/self/fd")) == before


@each
def test_in_the_worker_it_leaves_one_scenario_open(explored: Explore, code: str, words: str) -> None:
    outcome = explored(in_worker(code, "abort"), "abort", "two-rooms")
    abort, two_rooms = outcome.exploration.scenarios
    assert (abort.scenario, abort.verdict) == ("abort", Verdict.INCONCLUSIVE)
    assert re.search(words, abort.reason), abort.reason
    assert (two_rooms.scenario, two_rooms.verdict) == ("two-rooms", Verdict.HOLDS)
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert outcome.failure is None
    assert outcome.exploration.digest


@each
def test_on_import_it_leaves_all_open(explored: Explore, code: str, words: str) -> None:
    if "raise" in code:
        pytest.skip("what an import raises is no limit")
    outcome = explored(at_import(code), "abort", "two-rooms")
    for scenario in outcome.exploration.scenarios:
        assert scenario.verdict is Verdict.INCONCLUSIVE
        assert re.search(words, scenario.reason), scenario.reason
    assert len(outcome.exploration.scenarios) == 2
    assert outcome.failure is None
    assert outcome.exploration.digest == ""


@pytest.mark.parametrize("code", [FOREVER, EXIT], ids=["loops", "ends"])
def test_a_violation_that_was_found_before_stays(explored: Explore, code: str) -> None:
    outcome = explored(in_worker(code, "abort"), "transfer-error", "abort")
    assert [result.verdict for result in outcome.exploration.scenarios] == [Verdict.VIOLATED, Verdict.INCONCLUSIVE]
    assert outcome.verdict is Verdict.VIOLATED


def test_a_swallowed_exception_taints_what_is_found(explored: Explore) -> None:
    code = "try:\n    while True:\n        pass\nexcept BaseException:\n    pass\n"
    (result,) = explored(in_worker(code)).exploration.scenarios
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "no step for 1.5 s: it runs in" in result.reason
    assert {entry.verdict for entry in result.properties} == {Verdict.INCONCLUSIVE}


def test_a_loop_that_makes_steps_moves(explored: Explore) -> None:
    code = "import time\nend = time.monotonic() + 2.5\nwhile time.monotonic() < end:\n    self.steps += 1\n"
    (result,) = explored(in_worker(code)).exploration.scenarios
    assert result.verdict is Verdict.HOLDS


def test_a_loop_that_makes_steps_meets_the_time_limit(explored: Explore) -> None:
    limits = Limits(stall=1.5, silence=6.0, grace=2.0)
    (result,) = explored(
        in_worker("while True:\n    self.steps += 1\n"), limits=limits, seconds=1.0
    ).exploration.scenarios
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.reason.startswith("the process was not done 5 s after the scenario began and was ended in ")


@pytest.mark.parametrize("code", ["raise SystemExit(3)\n", "import sys\nsys.exit(3)\n"], ids=["raise", "sys.exit"])
def test_an_exit_on_import_is_an_error_of_loading(explored: Explore, code: str) -> None:
    outcome = explored(at_import(code))
    assert outcome.failure is not None
    assert outcome.failure.kind is FailureKind.LOAD
    assert "cannot be loaded: SystemExit: 3" in outcome.failure.message
    assert outcome.exploration.scenarios == ()


def test_an_interrupt_on_import_is_an_error_of_loading(explored: Explore) -> None:
    outcome = explored(at_import("raise KeyboardInterrupt\n"))
    assert outcome.failure is not None
    assert outcome.failure.kind is FailureKind.LOAD
    assert outcome.failure.message.endswith("the tree's code raised KeyboardInterrupt")


@pytest.mark.parametrize(
    ("code", "words"),
    [(RECURSION, "RecursionError"), ("import sys\nsys.exit(3)\n", "SystemExit: 3")],
    ids=["recursion", "exit"],
)
def test_what_a_session_lets_through_is_told_with_its_place(explored: Explore, code: str, words: str) -> None:
    (result,) = explored(in_worker(code)).exploration.scenarios
    assert result.verdict is Verdict.INCONCLUSIVE
    assert f"the tree's code raised {words}" in result.reason


def test_memory_is_bounded(explored: Explore) -> None:
    limits = Limits(memory=512 << 20, stall=10.0)
    (result,) = explored(in_worker(MEMORY), limits=limits).exploration.scenarios
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.reason.startswith("no more memory is allowed")


def test_what_it_prints_is_counted_and_not_kept(explored: Explore) -> None:
    code = "import sys, os\nfor _ in range(400):\n    sys.stdout.write('x' * 9999 + '\\n')\nsys.stdout.flush()\n"
    code += "os.write(2, b'told\\n')\n"
    outcome = explored(in_worker(code))
    assert outcome.verdict is Verdict.HOLDS
    assert (outcome.printed.size, outcome.printed.lines) == (400 * 10_000 + 5, 401)
    assert len(outcome.printed.head) == 4096


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_copies_of_the_process_end_at_once(explored: Explore) -> None:
    outcome = explored(in_worker("import os\nif os.fork() == 0:\n    while True:\n        pass\n"))
    assert outcome.verdict is Verdict.HOLDS
    assert len(outcome.exploration.scenarios) == 1


def test_programs_that_it_starts_end_with_it(explored: Explore, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    # posix_spawn() knows nothing of what is to happen in copies of the process.
    code = f"""\
import os
with open({str(fifo)!r}, "w") as stream:
    stream.write("x")
end = (os.POSIX_SPAWN_OPEN, 9, {str(fifo)!r}, os.O_WRONLY, 0)
os.posix_spawn("/bin/sleep", ["sleep", "600"], {{}}, file_actions=[end])
"""
    try:
        assert explored(in_worker(code)).verdict is Verdict.HOLDS
        os.set_blocking(reading, True)
        assert os.read(reading, 1) == b"x"
        assert select.select([reading], [], [], 10)[0]
        assert os.read(reading, 1) == b"", "what holds the other end has ended"
    finally:
        os.close(reading)


def test_its_temporary_files_go(explored: Explore) -> None:
    outcome = explored(
        in_worker("import tempfile\nself.kept = tempfile.mkdtemp()\nopen(self.kept + '/file', 'w').close()\n")
    )
    assert outcome.verdict is Verdict.HOLDS


def test_what_it_writes_among_the_results_is_noticed(explored: Explore) -> None:
    code = """\
import contextlib, os
for number in range(3, 20):
    with contextlib.suppress(OSError):
        os.write(number, b"nonsense\\n")
"""
    (result,) = explored(in_worker(code)).exploration.scenarios
    assert result.reason == "the tree's code wrote to the descriptor that results come by"


def test_standard_input_is_empty(explored: Explore) -> None:
    assert explored(in_worker("import sys\nassert sys.stdin.read() == ''\n")).verdict is Verdict.HOLDS


def test_an_interrupt_here_ends_it(explored: Explore, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kvlint.explore.run._ignore", interrupted)
    with pytest.raises(KeyboardInterrupt):
        explored(in_worker(FOREVER), limits=LIMITS)


def test_a_kill_from_outside_is_told(explored: Explore) -> None:
    (result,) = explored(in_worker(f"import os\nos.kill(os.getpid(), {int(signal.SIGKILL)})\n")).exploration.scenarios
    assert result.reason == "the process was ended by SIGKILL, perhaps for want of memory"
