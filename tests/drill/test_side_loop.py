"""What both sides have in common: messages, the loop, and when a storm has settled."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from kvlint.drill import child, side
from kvlint.drill.messages import (
    Alive,
    Begin,
    Begun,
    Command,
    PrefillReport,
    Ready,
    Settle,
    Setup,
    Start,
    Stop,
    Unable,
    decode_told,
    encode,
)
from kvlint.drill.side import Channel, Side
from kvlint.drill.storm import Storm
from kvlint.loading.errors import LoadError, UnforeseenUse

from . import sides
from .sides import Poll

pytestmark = pytest.mark.usefixtures("no_tree")


class Exited(BaseException):
    """In place of os._exit()."""


class Pipes:
    """A channel, and its other end."""

    def __init__(self) -> None:
        reading, self.to_side = os.pipe()
        self.from_side, writing = os.pipe()
        self.ends = {reading, writing, self.to_side, self.from_side}
        self.channel = Channel(reading, writing)

    def send(self, data: bytes) -> None:
        os.write(self.to_side, data)

    def told(self) -> Any:
        return [decode_told(line) for line in os.read(self.from_side, 1 << 16).splitlines()]

    def close(self, *ends: int) -> None:
        for end in ends or list(self.ends):
            self.ends.discard(end)
            os.close(end)


@pytest.fixture
def pipes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pipes]:
    def leave(status: int) -> NoReturn:
        raise Exited(status)

    monkeypatch.setattr(os, "_exit", leave)
    made = Pipes()
    yield made
    made.close()


# -- messages -------------------------------------------------------------------------


def test_commands_come_whole(pipes: Pipes) -> None:
    assert pipes.channel.commands(0.0) == []
    line = encode(Start(1, 0))
    pipes.send(line + line[:9])
    assert pipes.channel.commands(0.0) == [Start(1, 0)]
    pipes.send(line[9:] + encode(Stop()))
    assert pipes.channel.commands(0.0) == [Start(1, 0), Stop()]


def test_the_first_command_is_awaited(pipes: Pipes) -> None:
    line = encode(sides.setup())
    pipes.send(line)
    assert pipes.channel.setup() == sides.setup()


def test_without_the_other_process_a_side_ends(pipes: Pipes) -> None:
    pipes.channel.tell(Alive())
    assert pipes.told() == [Alive()]
    pipes.close(pipes.to_side, pipes.from_side)
    with pytest.raises(Exited):
        pipes.channel.commands(0.0)
    with pytest.raises(Exited):
        pipes.channel.tell(Alive())


def failing(error: BaseException) -> Any:
    def side(setup: Setup, channel: Channel) -> NoReturn:
        raise error

    side.mode = "DECODE"  # type: ignore[attr-defined]
    return side


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (LoadError("tree: there is no conn.py"), "tree: there is no conn.py"),
        (LoadError("tree\udcff: no"), "tree\udcff: no"),
        (UnforeseenUse("a", "it was called", "conn.py:1"), "it was called"),
        (MemoryError(), "there is not enough memory for the pages"),
        (ZeroDivisionError("defect"), "ZeroDivisionError: defect"),
        (SystemExit(3), "SystemExit: 3"),
    ],
)
def test_what_cannot_be_served_is_told(pipes: Pipes, error: BaseException, message: str) -> None:
    pipes.send(encode(sides.setup()))
    child.serve(failing(error), pipes.channel)
    (told,) = pipes.told()
    assert isinstance(told, Unable)
    assert message in told.message
    assert ("Traceback" in told.details) is isinstance(error, (ZeroDivisionError, SystemExit))


def test_a_process_serves_its_sides(pipes: Pipes, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Pipes()
    prepared: list[int] = []
    served: list[str] = []

    def side(name: str) -> Any:
        class Served:
            def __init__(self, setup: Setup, channel: Channel) -> None:
                self.channel = channel

            def run(self) -> None:
                served.append(name)
                self.channel.tell(Alive())

        return Served

    monkeypatch.setattr(child, "_prepare", prepared.append)
    monkeypatch.setattr(child, "SIDES", {name: side(name) for name in ("prefill", "decode")})
    arguments = []
    for name, ends in (("prefill", pipes), ("decode", other)):
        ends.send(encode(sides.setup()))
        arguments.append(f"--side={name}:{ends.channel._reading}:{ends.channel._writing}")
    with pytest.raises(Exited) as left:
        child.main([*arguments, "--stacks=7"])
    assert left.value.args == (0,)
    assert prepared == [7]
    assert sorted(served) == ["decode", "prefill"]
    assert pipes.told() == other.told() == [Alive()]
    other.close()


# -- the loop --------------------------------------------------------------------------


def running(side: Any, *batches: list[Command]) -> None:
    side.channel.batches.extend([*batches, [Stop()]])
    side.run()


def test_a_side_tells_of_itself(prefill: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sides.torch(monkeypatch)
    running(prefill)
    ready = prefill.channel.told[0]
    assert isinstance(ready, Ready)
    assert (ready.took, ready.torch, ready.workers, ready.address) == ("cpu", "2.13.0", 0, "here:1")


def test_without_a_storm_it_waits_and_lives(prefill: Any, clock: sides.Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    sides.torch(monkeypatch)
    running(prefill, [], [])
    assert prefill.channel.waited == [0.5, 0.5, 0.5]
    assert len(prefill.channel.of(Alive)) == 1
    assert clock.slept == []


def test_a_storm_goes_step_by_step(prefill: Any, clock: sides.Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    sides.torch(monkeypatch)
    storm = Storm(step=0.01, rooms=2, transfer=0.25, abort_probability=0)
    running(prefill, [Begin(storm)], [Start(1, 0)], [sides.setup()], [])
    assert prefill.channel.of(Begun) == [Begun()]
    assert prefill.backend.transfers.least == 0.25
    assert prefill.storm == storm
    assert list(prefill.plan) == [1, 2]
    assert list(prefill.backend.endpoints.of) == [1]
    # It waits for a command no longer, and sleeps after each step: the first began with the pause before.
    assert prefill.channel.waited == [0.5, 0.0, 0.0, 0.0, 0.0]
    assert clock.slept == pytest.approx([0.5, 0.01, 0.01, 0.01])


# -- what has settled --------------------------------------------------------------------


@pytest.fixture
def settling(prefill: Any, clock: sides.Clock) -> Any:
    """A side with one room that moves no more."""
    prefill._take(Begin(Storm(rooms=1, abort_probability=0)))
    prefill._take(Start(1, 0))
    prefill.step()
    clock.now += 5
    prefill._take(Settle(1.0, 20.0))
    return prefill


def looks(side: Side[Any], clock: Any, seconds: float) -> list[PrefillReport]:
    clock.now += seconds
    side.step()
    side._look()
    found: list[PrefillReport] = side.channel.of(PrefillReport)  # type: ignore[attr-defined]
    return found


def test_nothing_settles_unasked(prefill: Any, clock: sides.Clock) -> None:
    prefill._take(Begin(Storm(rooms=1)))
    assert looks(prefill, clock, 1000) == []


def test_what_is_left_has_two_chances(settling: Any, clock: sides.Clock) -> None:
    assert looks(settling, clock, 0.9) == []
    assert looks(settling, clock, 0.2) == []
    assert looks(settling, clock, 0.9) == []
    (report,) = looks(settling, clock, 0.2)
    assert report.settled
    assert [room.room for room in report.stuck] == [1]
    assert settling._is_over


def test_what_moves_meanwhile_begins_anew(settling: Any, clock: sides.Clock) -> None:
    assert looks(settling, clock, 1.1) == []
    settling.backend.endpoints.of[1].status = Poll.Transferring
    assert looks(settling, clock, 0.9) == []
    assert looks(settling, clock, 0.9) == []
    assert looks(settling, clock, 0.2) == []
    assert looks(settling, clock, 0.9) == []
    assert len(looks(settling, clock, 0.2)) == 1


def test_nobody_waits_twice_for_nothing(settling: Any, clock: sides.Clock) -> None:
    settling.backend.endpoints.of[1].status = Poll.Failed
    assert looks(settling, clock, 0.1) == []
    (report,) = looks(settling, clock, 1.0)
    assert (report.settled, report.failed, report.stuck) == (True, (1,), ())


def test_a_worker_that_works_keeps_it_from_settling(settling: Any, clock: sides.Clock) -> None:
    settling.backend.threads.all = ["worker"]
    for _ in range(20):
        assert looks(settling, clock, 1.0) == []
    (report,) = looks(settling, clock, 0.1)
    assert not report.settled
    assert [room.room for room in report.stuck] == [1]


def test_a_transfer_under_way_keeps_it_from_settling(settling: Any, clock: sides.Clock) -> None:
    handle = object()
    settling.backend.transfers.post(handle)
    assert looks(settling, clock, 5) == []
    settling.backend.transfers.state(handle, "DONE")
    assert looks(settling, clock, 0.9) == []
    assert looks(settling, clock, 0.2) == []
    assert len(looks(settling, clock, 1.0)) == 1


def test_the_next_storm_forgets_this_one(settling: Any, clock: sides.Clock) -> None:
    settling.guarded(lambda: 1 / 0)
    settling._take(Begin(Storm(rooms=1, first=100)))
    assert settling.is_empty()
    assert (settling.errors, settling.settle) == ([], None)
    assert looks(settling, clock, 1000) == []


# -- helpers ---------------------------------------------------------------------------------


def test_errors_are_kept_up_to_a_number(prefill: Any) -> None:
    assert prefill.guarded(lambda: 5) == (True, 5)
    for _ in range(12):
        assert prefill.guarded(lambda: 1 / 0) == (False, None)
    assert len(prefill.errors) == 10
    assert prefill.errors[0].endswith("ZeroDivisionError: division by zero\n")


def test_a_stand_in_that_is_misused_is_no_error_of_the_tree(prefill: Any) -> None:
    def misuse() -> None:
        raise UnforeseenUse("a", "it was called", None)

    with pytest.raises(UnforeseenUse):
        prefill.guarded(misuse)


@pytest.mark.parametrize(("platform", "factor"), [("linux", 1024), ("darwin", 1)])
def test_memory_is_told_in_bytes(monkeypatch: pytest.MonkeyPatch, platform: str, factor: int) -> None:
    monkeypatch.setattr(side, "sys", SimpleNamespace(platform=platform))
    monkeypatch.setattr("resource.getrusage", lambda who: SimpleNamespace(ru_maxrss=5))
    assert Side.peak_bytes() == 5 * factor
