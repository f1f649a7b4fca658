"""Unsafe fixes of rules that are off by default: they come with ``--unsafe-fixes``, without a report of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import kvlint
from kvlint.cli import cli
from kvlint.config import Config
from kvlint.registry import selected_for_fixing

FIXTURES = Path(__file__).parent.parent.parent / "fixtures" / "rules"
LATE = FIXTURES / "kvl006_room_recreated_by_late_write" / "bad.py"
UNLOCKED = FIXTURES / "kvl008_unlocked_status_update"
GUARD = "Only an opening status may create a room"
LOCK = "threading.RLock()"


@pytest.fixture
def backend(tmp_path: Path) -> Path:
    path = tmp_path / "conn.py"
    path.write_bytes(LATE.read_bytes())
    return path


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["fix", "--jobs", "1", *map(str, arguments)], catch_exceptions=False)


def test_they_are_applied_and_leave_no_findings(backend: Path) -> None:
    result = run("--isolated", "--unsafe-fixes", backend)
    text = backend.read_text()
    assert (result.exit_code, result.stdout) == (0, "No findings (1 file checked, 1 with a status protocol).\n") or (
        result.exit_code == 0 and "KVL" not in result.stdout
    )
    assert GUARD in text
    assert LOCK in text
    assert kvlint.check([backend], Config(select=("KVL006", "KVL008"))) == []
    assert run("--isolated", "--unsafe-fixes", backend).exit_code == 0
    assert backend.read_text() == text


def test_safe_fixes_come_without_them(backend: Path) -> None:
    run("--isolated", backend)
    assert backend.read_bytes() == LATE.read_bytes()


@pytest.mark.parametrize(
    ("options", "guarded", "locked"),
    [
        (["--ignore", "KVL006"], False, True),
        (["--ignore", "KVL00"], False, False),
        (["--select", "KVL004"], False, False),
        (["--select", "KVL004", "--extend-select", "KVL008"], False, True),
        (["--extend-select", "KVL006"], True, True),
    ],
)
def test_what_is_asked_for_by_hand_counts(backend: Path, options: list[str], guarded: bool, locked: bool) -> None:
    run("--isolated", "--unsafe-fixes", *options, backend)
    text = backend.read_text()
    assert (GUARD in text, LOCK in text) == (guarded, locked)


def test_noqa_counts_and_is_not_called_unused(backend: Path) -> None:
    text = backend.read_text().replace("# expect: KVL006", "# noqa: KVL006,KVL008 #")
    backend.write_text(text)
    result = run("--isolated", "--unsafe-fixes", backend)
    assert (result.exit_code, backend.read_text()) == (0, text)


def test_what_they_cannot_mend_is_reported_only_if_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "conn.py"
    path.write_bytes((UNLOCKED / "writer_sends" / "bad.py").read_bytes())
    assert run("--isolated", "--unsafe-fixes", path).exit_code == 0
    result = run("--isolated", "--unsafe-fixes", "--extend-select", "KVL008", path)
    assert result.exit_code == 1
    assert result.stdout.count(" KVL008 ") == 3


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["fix", "--isolated", "--unsafe-fixes", "--extend-select", "KVL006", "--stdin-filename", "conn.py"]
    result = CliRunner().invoke(cli, arguments, input=LATE.read_bytes())
    assert GUARD in result.stdout
    assert LOCK in result.stdout
    unmended = (UNLOCKED / "writer_sends" / "bad.py").read_bytes()
    result = CliRunner().invoke(
        cli, ["fix", "--isolated", "--unsafe-fixes", "--stdin-filename", "conn.py"], input=unmended
    )
    assert (result.exit_code, result.stdout.encode()) == (0, unmended)


def test_only_what_is_wanted_is_added() -> None:
    config = Config()
    assert selected_for_fixing(config, unsafe=False) is config
    both = Config(extend_select=("KVL006", "KVL008"))
    assert selected_for_fixing(both, unsafe=True) is both
    assert selected_for_fixing(config, unsafe=True).extend_select == ("KVL006", "KVL008")


def test_all_four_fixes_compose(tmp_path: Path) -> None:
    """Sticky, skip-guard, opening and lock in one run: each is there once, and a second run changes nothing."""
    path = tmp_path / "conn.py"
    path.write_text(PIN)
    run("--isolated", "--unsafe-fixes", path)
    text = path.read_text()
    for once in ("A stored terminal status is final", GUARD, LOCK, "The transfer was dropped"):
        assert text.count(once) == 1, once
    assert text.count("._status_lock:\n") == 2
    assert kvlint.check([path], Config(select=("KVL",))) == []
    assert run("--isolated", "--unsafe-fixes", path).stderr.count("fixed ") == 0


PIN = """\
import queue
import threading


class KVPoll:
    Failed = 0
    Bootstrapping = 1
    WaitingForInput = 2
    Transferring = 3
    Success = 4


class Manager:
    def __init__(self, socket):
        self.socket = socket
        self.request_status = {}
        self.transfer_infos = {}
        self.failures = {}
        self.queue = queue.Queue()
        threading.Thread(target=self.worker).start()
        threading.Thread(target=self.listener).start()

    def record_failure(self, room, reason):
        self.failures[room] = reason

    def update_status(self, room, status: KVPoll):
        if room not in self.request_status:
            if status == KVPoll.Failed:
                return
            self.request_status[room] = status
        elif status == KVPoll.Failed:
            self.request_status[room] = KVPoll.Failed
        else:
            self.request_status[room] = max(self.request_status[room], status)

    def worker(self):
        while True:
            chunk = self.queue.get()
            room = chunk.room
            if room not in self.transfer_infos:
                continue
            self.update_status(room, KVPoll.Transferring)
            self.send(chunk)
            if chunk.is_last:
                self.update_status(room, KVPoll.Success)
                self.transfer_infos.pop(room, None)
            else:
                self.update_status(room, KVPoll.Transferring)

    def listener(self):
        while True:
            frames = self.socket.recv_multipart()
            room = int(frames[1])
            if frames[0] == b"ABORT":
                self.update_status(room, KVPoll.Failed)
                self.transfer_infos.pop(room, None)
                continue
            self.transfer_infos.setdefault(room, {})[frames[2]] = frames[3]
            self.update_status(room, KVPoll.WaitingForInput)


class Sender:
    def __init__(self, manager: Manager, room):
        self.manager = manager
        self.room = room
        manager.update_status(room, KVPoll.Bootstrapping)

    def clear(self):
        self.manager.request_status.pop(self.room, None)
        self.manager.transfer_infos.pop(self.room, None)
"""
