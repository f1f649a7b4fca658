"""The process that runs code of a tree, its parts called in this process."""

from __future__ import annotations

import io
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import msgspec
import pytest

from kvlint.explore import child
from kvlint.explore.child import Channel, serve
from kvlint.explore.events import (
    Alive,
    Emit,
    Ended,
    Event,
    Failed,
    FailureKind,
    Found,
    Loaded,
    Progress,
    Replayed,
    decode,
    encode,
)
from kvlint.explore.request import Request
from kvlint.explore.results import Verdict
from kvlint.explore.watchdog import Stalled
from kvlint.loading import LoadError, UnforeseenUse

from . import results

LOADED = Loaded("0.5.14", "ab" * 32, ("sglang",), ("ZMQ",))
Body = Callable[[Request, Emit], None]


class Left(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    yield reading, writing
    for descriptor in (reading, writing):
        try:
            os.close(descriptor)
        except OSError:
            continue


@pytest.fixture
def leaves(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The statuses with which the process would have ended."""
    statuses: list[int] = []

    def leave(status: int) -> None:
        statuses.append(status)
        raise Left

    monkeypatch.setattr(os, "_exit", leave)
    return statuses


@pytest.fixture
def served(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., list[Event]]:
    """The events of a session, but for the signs of life."""

    def run(body: Body, stall: float = 60.0) -> list[Event]:
        session = ModuleType("a_session")
        session.run = body  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "a_session", session)
        request = msgspec.json.encode(Request(root=str(tmp_path), scenarios=("abort",)))
        serve(request, Channel(pipe[1]), "a_session", stall)
        return told(pipe[0])

    return run


def told(reading: int) -> list[Event]:
    events = [decode(line) for line in os.read(reading, 1 << 20).splitlines()]
    return [event for event in events if not isinstance(event, Alive)]


def raising(error: BaseException, *, loaded: bool = False) -> Body:
    def body(request: Request, emit: Emit) -> None:
        if loaded:
            emit(LOADED)
        raise error

    return body


EVENTS = [
    LOADED,
    Progress("abort", 3, 2, 0.5),
    Found(results.violated()),
    Replayed(results.WITNESS, True, False),
    Failed(FailureKind.LIMIT, "why", "a traceback"),
    Alive(),
    Ended(),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_events_come_back_from_their_lines(event: Event) -> None:
    line = encode(event)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode(line) == event


@pytest.mark.parametrize("number", [2**63, 2**64, 3**200])
def test_numbers_of_schedules_may_be_large(number: int) -> None:
    found = Found(msgspec.structs.replace(results.violated(), schedules=number))
    assert decode(encode(found)) == found


@pytest.mark.parametrize("line", [b"", b"x", b"{}", b'{"type":"Nothing"}', b'{"type":"Progress"}'])
def test_what_is_no_event_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(line)


def test_a_session_gets_the_request_and_tells_events(served: Callable[..., list[Event]], tmp_path: Path) -> None:
    def body(request: Request, emit: Emit) -> None:
        assert request == Request(root=str(tmp_path), scenarios=("abort",))
        emit.watch(lambda: 0)
        emit(LOADED)
        emit(Found(results.scenario("abort")))

    assert served(body) == [LOADED, Found(results.scenario("abort")), Ended()]
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_a_root_that_leads_to_a_tree_is_served(served: Callable[..., list[Event]], tmp_path: Path) -> None:
    from loading import minitree

    minitree.write(tmp_path)
    assert served(lambda request, emit: emit(LOADED)) == [LOADED, Ended()]


Unsupported = type("Unsupported", (Exception,), {"__module__": "kvlint.explore.opening"})
BadToken = type("BadToken", (ValueError,), {"__module__": "kvlint.explore.replay"})
Stubborn = type("Stubborn", (Exception,), {"__module__": "kvlint.explore.control"})


@pytest.mark.parametrize(
    ("error", "kind", "kind_when_loaded", "words"),
    [
        (LoadError("no backend here"), FailureKind.LOAD, FailureKind.LOAD, "^no backend here$"),
        (
            UnforeseenUse("zmq.X", "it was called", "a.py:3"),
            FailureKind.LOAD,
            FailureKind.LIMIT,
            r"^a\.py:3: zmq\.X is",
        ),
        (Stalled("no step for 9 s"), FailureKind.LIMIT, FailureKind.LIMIT, "^no step for 9 s$"),
        (MemoryError(), FailureKind.LIMIT, FailureKind.LIMIT, "^no more memory is allowed; --memory-limit"),
        (Unsupported("two frames"), FailureKind.LOAD, FailureKind.LIMIT, "^two frames$"),
        (BadToken("it is damaged"), FailureKind.TOKEN, FailureKind.TOKEN, "^--replay: it is damaged$"),
        (Stubborn("worker"), FailureKind.LOAD, FailureKind.LIMIT, "^worker$"),
        (SystemExit(3), FailureKind.LOAD, FailureKind.LIMIT, ": the tree's code raised SystemExit: 3$"),
        (KeyboardInterrupt(), FailureKind.LOAD, FailureKind.LIMIT, ": the tree's code raised KeyboardInterrupt$"),
        (ZeroDivisionError("x"), FailureKind.CRASH, FailureKind.CRASH, "^ZeroDivisionError: x$"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_what_a_session_raises_is_told(
    served: Callable[..., list[Event]],
    error: BaseException,
    kind: FailureKind,
    kind_when_loaded: FailureKind,
    words: str,
) -> None:
    import re

    failed, ended = served(raising(error))
    assert isinstance(failed, Failed)
    assert failed.kind is kind
    assert re.search(words, failed.message)
    assert ("Traceback" in failed.details) == (kind is FailureKind.CRASH)
    assert ended == Ended()
    _, again, _ = served(raising(error, loaded=True))
    assert isinstance(again, Failed)
    assert again.kind is kind_when_loaded


def test_an_error_in_the_tree_is_told_with_its_place(served: Callable[..., list[Event]], tmp_path: Path) -> None:
    path = tmp_path / "conn.py"
    code = compile("\ndef work():\n    raise ValueError('odd')\n\ndef eat():\n    raise MemoryError\n", path, "exec")
    names: dict[str, Callable[[], None]] = {}
    exec(code, names)
    failed, _ = served(lambda request, emit: names["work"]())
    assert failed == Failed(FailureKind.LOAD, f"{path}:3: the tree's code raised ValueError: odd")
    failed, _ = served(lambda request, emit: names["eat"]())
    assert isinstance(failed, Failed)
    assert f"no more memory is allowed, the last time at {path}:6;" in failed.message


def test_a_session_that_is_not_there_is_a_defect(pipe: tuple[int, int]) -> None:
    serve(msgspec.json.encode(Request(root="x", scenarios=())), Channel(pipe[1]), "no_such_session", 60.0)
    failed, _ = told(pipe[0])
    assert isinstance(failed, Failed)
    assert failed.kind is FailureKind.CRASH


def test_what_is_found_after_a_stall_rests_on_nothing(pipe: tuple[int, int]) -> None:
    channel = Channel(pipe[1])
    channel.watchdog = SimpleNamespace(stalled="it stood", moved=lambda: None)  # type: ignore[assignment]
    channel(Progress("abort"))
    channel(Found(results.violated()))
    channel(Found(results.violated()))
    _, tainted, clean = told(pipe[0])
    assert isinstance(tainted, Found)
    assert tainted.result.verdict is Verdict.INCONCLUSIVE
    assert tainted.result.reason == "it stood"
    assert [entry.witness for entry in tainted.result.properties] == [None] * 7
    assert clean == Found(results.violated())


def test_a_session_that_knows_of_a_stall_keeps_what_it_found(pipe: tuple[int, int]) -> None:
    channel = Channel(pipe[1])
    channel.watchdog = SimpleNamespace(stalled="it stood", moved=lambda: None)  # type: ignore[assignment]
    known = Found(msgspec.structs.replace(results.violated(), reason="in a schedule it stood"))
    channel(known)
    assert told(pipe[0]) == [known]


def test_a_counter_without_a_watchdog_is_not_looked_at(pipe: tuple[int, int]) -> None:
    Channel(pipe[1]).watch(lambda: pytest.fail("nobody asks"))


def test_signs_of_life_do_not_break_events(pipe: tuple[int, int]) -> None:
    channel = Channel(pipe[1])
    channel._is_writing = True
    for _ in range(4):
        channel.alive()
    channel._is_writing = False
    with pytest.raises(BlockingIOError):
        os.read(pipe[0], 1)
    for _ in range(4):
        channel.alive()
    assert decode(os.read(pipe[0], 100)) == Alive()


def test_nobody_listening_ends_the_process(pipe: tuple[int, int], leaves: list[int]) -> None:
    os.close(pipe[0])
    with pytest.raises(Left):
        Channel(pipe[1])(Ended())
    assert leaves == [1]


def test_a_copy_of_the_process_tells_nothing(
    pipe: tuple[int, int], leaves: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = Channel(pipe[1])
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(Left):
        channel(Ended())
    assert leaves == [0]


def test_giving_up_is_told_before_the_process_ends(
    served: Callable[..., list[Event]], leaves: list[int], pipe: tuple[int, int]
) -> None:
    def body(request: Request, emit: Emit) -> None:
        watchdog = emit.watchdog  # type: ignore[attr-defined]
        with pytest.raises(Left):
            watchdog._give_up("it goes on and on")

    assert served(body) == [Failed(FailureKind.LIMIT, "it goes on and on"), Ended()]
    assert leaves == [1]


@pytest.mark.parametrize(("most", "allowed"), [(resource.RLIM_INFINITY, 1000), (4000, 1000), (500, 500)])
def test_the_process_prepares_itself(
    pipe: tuple[int, int],
    leaves: list[int],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    most: int,
    allowed: int,
) -> None:
    import faulthandler

    limits: dict[int, tuple[int, int]] = {}
    monkeypatch.setattr(resource, "getrlimit", lambda number: (0, most))
    copies: list[Callable[[], None]] = []
    stacks: list[int] = []
    monkeypatch.setattr(resource, "setrlimit", limits.__setitem__)
    monkeypatch.setattr(os, "register_at_fork", lambda *, after_in_child: copies.append(after_in_child))
    monkeypatch.setattr(faulthandler, "enable", lambda file, all_threads: stacks.append(file))
    monkeypatch.setattr(faulthandler, "register", lambda number, file, all_threads: stacks.append(file))
    monkeypatch.setattr(sys, "platform", "other")
    session = ModuleType("a_session")
    session.run = lambda request, emit: emit(LOADED)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "a_session", session)
    request = msgspec.json.encode(Request(root=str(tmp_path), scenarios=()))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(request)))
    with pytest.raises(Left):
        child.main([f"--events={pipe[1]}", f"--stacks={pipe[1]}", "--memory=1000", "--session=a_session"])
    assert leaves == [0]
    assert told(pipe[0]) == [LOADED, Ended()]
    assert limits == {resource.RLIMIT_CORE: (0, 0), resource.RLIMIT_AS: (allowed, allowed)}
    assert stacks == [pipe[1]] * 2
    with pytest.raises(Left):
        copies[0]()
