"""Captured threads, and telling them apart."""

from __future__ import annotations

import functools
import queue
import threading
import types
from collections.abc import Callable
from typing import Any

import pytest

from kvlint.loading import CapturedThread, UnforeseenUse
from kvlint.loading.captured import captured_thread
from kvlint.loading.system import system_modules
from kvlint.loading.threads import is_listener, is_worker


class Manager:
    """Has all kinds of threads."""

    def __init__(self) -> None:
        self.server_socket: Any = None
        self.transfer_queue: Any = queue.SimpleQueue()
        self.table: dict[int, int] = {}

    def work(self, source: Any, buffer: object = None) -> None:
        self.connect(source.get())

    def work_on_own(self) -> None:
        self.transfer_queue.get()

    def connect(self, item: object) -> None:
        self.server_socket.recv_multipart(item)

    def look_up(self) -> None:
        self.table.get(1)

    def listen(self) -> None:
        self.receive()

    def receive(self) -> None:
        self.server_socket.recv_multipart()

    def listen_inside(self) -> None:
        def inner() -> None:
            self.server_socket.recv_multipart()

        inner()

    def endless(self) -> None:
        self.endless()


class Listener(CapturedThread):
    """A thread by derivation."""

    def __init__(self, manager: Manager) -> None:
        super().__init__(name="mine")
        self.manager = manager

    def run(self) -> None:
        self.manager.server_socket.recv_multipart()


def _nested(manager: Manager) -> Callable[[], None]:
    def inner() -> None:
        manager.server_socket.recv_multipart()

    def guarded() -> None:
        inner()

    return guarded


def _unset() -> Callable[[], None]:
    manager = Manager()

    def inner() -> None:
        manager.server_socket.recv_multipart()

    return types.FunctionType(inner.__code__, globals(), closure=(types.CellType(),))


def _kinds(manager: Manager) -> dict[str, CapturedThread]:
    source = manager.transfer_queue
    return {
        "worker: a queue in args": CapturedThread(target=manager.work, args=(source, None)),
        "worker: a queue in kwargs": CapturedThread(target=manager.work, kwargs={"source": source}),
        "worker: a queue in partial": CapturedThread(target=functools.partial(functools.partial(manager.work, source))),
        "worker: a queue closed over": CapturedThread(target=lambda: manager.work(source)),
        "worker: a queue by name": CapturedThread(target=manager.work_on_own),
        "listener: nested": CapturedThread(target=_nested(manager)),
        "listener: a method's method": CapturedThread(target=manager.listen),
        "listener: a function inside": CapturedThread(target=manager.listen_inside),
        "listener: a lambda": CapturedThread(target=lambda: manager.listen()),
        "listener: derived": Listener(manager),
        "listener: closes over nothing yet": CapturedThread(target=_unset()),
        "neither: a look-up": CapturedThread(target=manager.look_up),
        "neither: calls itself": CapturedThread(target=manager.endless),
        "neither: not Python": CapturedThread(target=len),
        "neither: nothing": CapturedThread(),
    }


@pytest.mark.parametrize("kind", _kinds(Manager()))
def test_threads_are_told_apart_by_what_they_do(kind: str) -> None:
    thread = _kinds(Manager())[kind]
    found = "worker" if is_worker(thread) else "listener" if is_listener(thread) else "neither"
    assert found == kind.partition(":")[0]


def test_a_started_thread_is_handed_over_and_not_run() -> None:
    started: list[CapturedThread] = []
    ran: list[object] = []
    thread = captured_thread(started.append)(
        None, lambda *args, **kwargs: ran.append((args, kwargs)), "name", (1,), {"two": 2}, daemon=True
    )
    assert (thread.is_alive(), thread.name, thread.daemon) == (False, "name", True)
    thread.start()
    assert (thread.is_alive(), started, ran) == (True, [thread], [])
    thread.run()
    assert ran == [((1,), {"two": 2})]
    assert repr(thread) == "<captured thread name>"
    with pytest.raises(RuntimeError, match="threads can only be started once"):
        thread.start()


def test_a_thread_without_a_target_does_nothing() -> None:
    thread = CapturedThread()
    thread.run()
    assert (thread.name, thread.args, thread.kwargs, thread.daemon) == ("CapturedThread", (), {}, False)


def test_a_thread_refuses_what_nobody_foresaw() -> None:
    thread = CapturedThread(target=len)
    with pytest.raises(UnforeseenUse, match=r"threading\.Thread\.join\(1\).* a thread's end was waited for"):
        thread.join(1)
    with pytest.raises(UnforeseenUse, match=r"threading\.Thread\.ident"):
        thread.ident  # noqa: B018
    assert not hasattr(thread, "__fspath__")


def test_whatever_threading_is_substituted_threads_are_captured() -> None:
    started: list[CapturedThread] = []
    mine = Listener(Manager())
    modules: dict[str, Any] = system_modules({"threading": mine}, {}, started.append)
    modules["threading"].Thread(target=len).start()
    assert [thread.target for thread in started] == [len]
    plain: dict[str, Any] = system_modules({}, {"MINE": "1"}, started.append)
    assert plain["threading"].Lock is threading.Lock
    assert plain["time"].sleep(1000) is None
    assert plain["os"].getenv("MINE") == "1"
    with pytest.raises(UnforeseenUse, match=r"threading\.Timer is a stand-in"):
        plain["threading"].Timer(1, len)
