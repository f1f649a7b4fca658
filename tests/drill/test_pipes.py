"""The pipes between the process that drills and a side: one that is full, one that is closed, one that is silent."""

from __future__ import annotations

import contextlib
import os
import selectors
from collections.abc import Iterator

import pytest

from kvlint.drill.messages import Alive, Command, Start, Stop, decode_command, decode_told
from kvlint.drill.parent import Link, Process
from kvlint.drill.side import Channel

MANY = 5000  # messages, more than a pipe has room for


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        with contextlib.suppress(OSError):
            os.close(end)


@pytest.fixture
def link(pipe: tuple[int, int]) -> Link:
    os.set_blocking(pipe[1], False)
    return Link(Process.__new__(Process), "prefill", -1, pipe[1])


def commands(lines: bytes) -> list[Command]:
    return [decode_command(line) for line in lines.splitlines()]


def read(end: int) -> bytes:
    """All that is in a pipe."""
    os.set_blocking(end, False)
    found = b""
    with contextlib.suppress(BlockingIOError):
        while data := os.read(end, 1 << 16):
            found += data
    return found


def test_commands_for_a_side_that_does_not_read_wait_for_it(link: Link, pipe: tuple[int, int]) -> None:
    told: list[Command] = [Start(number, 0) for number in range(MANY)]
    for command in told:
        link.send(command)
    arrived = read(pipe[0])
    assert arrived.count(b"\n") < MANY
    while arrived.count(b"\n") < MANY:
        link.flush()
        more = read(pipe[0])
        assert more
        arrived += more
    assert commands(arrived) == told


def test_a_command_for_a_side_that_has_ended_is_dropped(link: Link, pipe: tuple[int, int]) -> None:
    for number in range(MANY):
        link.send(Start(number, 0))
    os.close(pipe[0])
    link.send(Stop())
    link.flush()


def test_a_side_that_is_busy_gives_signs_of_life(pipe: tuple[int, int]) -> None:
    commands_end, _ = other = os.pipe()
    try:
        channel = Channel(commands_end, pipe[1])
        with selectors.DefaultSelector() as selector:
            selector.register(pipe[0], selectors.EVENT_READ)
            with channel.signs_of_life():
                assert selector.select(60)
            lines = read(pipe[0]).splitlines()
            assert [decode_told(line) for line in lines] == [Alive()] * len(lines)
            # Its thread has ended with the block.
            channel.tell(Alive())
            assert len(read(pipe[0]).splitlines()) == 1
    finally:
        for end in other:
            os.close(end)
