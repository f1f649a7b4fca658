"""The released backends, loaded for real: their objects are built, their threads run one after the other."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kvlint.loading import Backend, Frame, load_backend

Release = Callable[[str], Path]

#: Releases whose chunks are sent by workers, and what their listener does with the real receiver's ABORT frame.
WORKERS = {
    "0.5.12": "no frame",
    "0.5.13": "dies",
    "0.5.14": "dies",
    "0.5.15": "dies",
    "0.5.16": "fails the room",
    "0.5.18": "fails the room",
    "0.5.20": "fails the room",
    "0.5.22": "fails the room",
    "0.5.23": "fails the room",
    "pin": "fails the room",
}
#: Releases whose chunks are sent by the scheduler, and whose receivers send no ABORT frame.
NO_WORKERS = ("0.5.2", "0.5.5", "0.5.8", "0.5.10")
ROOM = 7


class Idle(BaseException):
    """A thread would wait from here on."""


class IdleCondition(threading.Condition):
    """A condition that says so where it would wait: the releases' queue is made of one."""

    def wait(self, timeout: float | None = None) -> bool:
        raise Idle


THREADING = SimpleNamespace(**(vars(threading) | {"Condition": IdleCondition}))


@pytest.fixture
def load(release: Release, request: pytest.FixtureRequest) -> Callable[..., Backend]:
    def build(version: str, **environment: str) -> Backend:
        root = request.getfixturevalue("pinned") if version == "pin" else release(version)
        return load_backend(root, substitutes={"threading": THREADING}, environment=environment)

    return build


def listen(backend: Backend, frames: list[Frame]) -> None:
    """Let the listener take frames."""
    waiting = deque(frames)

    def receive() -> Frame:
        if not waiting:
            raise Idle
        return waiting.popleft()

    backend.hooks.receive = receive
    with suppress(Idle):
        backend.listener.run()


def work(backend: Backend) -> None:
    """Let the workers take what was queued."""
    for worker in backend.workers:
        with suppress(Idle):
            worker.run()


def status(backend: Backend, sender: Any) -> str:
    names = {value: name for name, value in vars(backend.poll).items() if isinstance(value, int)}
    found = names[sender.poll()]
    assert isinstance(found, str)
    return found


def begun(backend: Backend, room: int = ROOM) -> Any:
    """A sender whose room is ready for two chunks."""
    sender = backend.make_sender(room)
    assert status(backend, sender) == "Bootstrapping"
    listen(backend, backend.registration_frames() + backend.metadata_frames(room, 2))
    assert status(backend, sender) == "WaitingForInput"
    backend.begin(sender, 2)
    return sender


@pytest.fixture(autouse=True)
def _quiet(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    yield
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("version", [*NO_WORKERS, *WORKERS])
def test_two_chunks_succeed(load: Callable[..., Backend], version: str) -> None:
    backend = load(version)
    assert len(backend.workers) == (version in WORKERS)
    assert backend.version == ("0.5.14" if version == "pin" else version)
    before = dict(backend.manager.request_status)
    posted: list[object] = []
    backend.hooks.posted = posted.append
    sender = begun(backend)
    backend.send(sender, 0, last=False)
    work(backend)
    # Without workers the sender itself asks for the state of its transfers.
    assert status(backend, sender) == ("Transferring" if backend.workers else "WaitingForInput")
    backend.send(sender, 1, last=True)
    work(backend)
    assert status(backend, sender) == "Success"
    # 0.5.12 sends the metadata buffer only together with a model's state.
    assert len(posted) == (2 if version == "0.5.12" else 3)
    backend.clear(sender)
    if backend.workers:
        assert backend.manager.request_status == before
        assert backend.manager.transfer_infos == {}
    assert backend.faults == []


@pytest.mark.parametrize("version", WORKERS)
def test_a_transfer_that_fails_fails_its_room(load: Callable[..., Backend], version: str) -> None:
    backend = load(version)
    answers = iter(["PROC", "ERR"])
    backend.hooks.transfer_state = lambda _: next(answers, "ERR")
    sender = begun(backend)
    backend.send(sender, 0, last=False)
    work(backend)
    assert status(backend, sender) == "Failed"
    with pytest.raises(Exception, match="NIXL transfer encountered ERR room=7"):
        sender.failure_exception()
    assert backend.faults == []


@pytest.mark.parametrize("version", WORKERS)
def test_a_sender_aborts(load: Callable[..., Backend], version: str) -> None:
    backend = load(version)
    sender = begun(backend)
    assert backend.abort(sender)
    assert status(backend, sender) == "Failed"
    with pytest.raises(Exception, match=r"NIXL KVSender Exception" if version == "0.5.12" else "Aborted by AbortReq"):
        sender.failure_exception()


@pytest.mark.parametrize("version", [*NO_WORKERS, *WORKERS])
def test_an_abort_frame_does_what_the_release_does(load: Callable[..., Backend], version: str) -> None:
    backend = load(version)
    sender = begun(backend)
    expected = WORKERS.get(version, "no frame")
    frames = backend.abort_frames(ROOM, 2)
    if expected == "no frame":
        assert frames is None
        assert str(backend.no_abort_frames).startswith(str(backend.tree.package))
        return
    assert frames is not None
    assert frames[0][:2] == [b"ABORT", b"7"]
    if expected == "dies":
        with pytest.raises(AssertionError, match="Foreign traffic"):
            listen(backend, frames)
        assert status(backend, sender) == "WaitingForInput"
        return
    listen(backend, frames)
    assert status(backend, sender) == "Failed"
    with pytest.raises(Exception, match=r"(?i)aborted by"):
        sender.failure_exception()
    assert backend.manager.request_status == {}


@pytest.mark.parametrize(("version", "default"), [("0.5.20", False), ("0.5.22", True), ("0.5.23", True)])
@pytest.mark.parametrize("deferred", [False, True])
def test_aborts_are_acknowledged_where_pages_are_held_back(
    load: Callable[..., Backend], version: str, default: bool, deferred: bool
) -> None:
    name = "SGLANG_DISAGGREGATION_DEFERRED_DECODE_KV_RELEASE"
    for environment, on in (({}, default), ({name: str(deferred)}, deferred)):
        backend, sent = load(version, **environment), list[tuple[str, Frame]]()
        backend.hooks.sent = lambda endpoint, frame, sent=sent: sent.append((endpoint, frame))  # type: ignore[misc]
        begun(backend)
        listen(backend, backend.abort_frames(ROOM, 2) or [])
        assert [frame[:2] for _, frame in sent] == ([[b"ABORT_ACK", b"7"]] if on else [])


def test_no_release_leaves_a_trace(release: Release) -> None:
    """What is imported, in a process of its own: neither torch, nor anything of sglang, nor a library of sockets."""
    root = release("0.5.23")
    code = (
        "import sys, pathlib\n"
        "from kvlint.loading import load_backend\n"
        "before = list(sys.path), list(sys.meta_path)\n"
        "load_backend(pathlib.Path(sys.argv[1]))\n"
        "assert (list(sys.path), list(sys.meta_path)) == before\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)))\n"
    )
    run = subprocess.run([sys.executable, "-c", code, str(root)], capture_output=True, text=True, check=True)
    others = set(run.stdout.split()) - {"__main__", "__mp_main__", "kvlint", "numpy", "msgspec", "typing_extensions"}
    assert not others & {"sglang", "torch", "zmq", "requests", "aiohttp", "nixl", "psutil", "transformers"}
    assert not [*root.rglob("__pycache__")]
