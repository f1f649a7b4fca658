"""What the processes tell each other."""

from __future__ import annotations

import pytest

from kvlint.drill.messages import (
    Alive,
    Begin,
    Begun,
    Command,
    Done,
    Released,
    Settle,
    Start,
    Stop,
    Told,
    Unable,
    decode_command,
    decode_told,
    encode,
)
from kvlint.drill.storm import Storm

from . import made, sides

COMMANDS: list[Command] = [
    sides.setup(),
    Begin(Storm(seed=2**63 - 1, step=0.1)),
    Start(3, 1),
    Start(4, 2, False),
    Settle(0.1, 20.0),
    Stop(),
]
STORM_REPORTS: list[Told] = [
    made.prefill_report(zombies={3: "Success"}, dead_threads=(made.DEAD,)),
    made.decode_report(wrong={3: 8}),
]
TOLD: list[Told] = [made.READY, Begun(), Done(1, True, False), Released(2), Alive(), Unable("no", "d"), *STORM_REPORTS]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: type(command).__name__)
def test_a_command_arrives_as_it_was_sent(command: Command) -> None:
    line = encode(command)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode_command(line) == command


@pytest.mark.parametrize("message", TOLD, ids=lambda message: type(message).__name__)
def test_what_is_told_arrives_as_it_was(message: Told) -> None:
    assert decode_told(encode(message)) == message


@pytest.mark.parametrize("text", ["a\nb", "ü🎉", "a\udcffb", "\ud800", '\\ud800"', "\\udcff\udcff🎉"])
def test_any_text_arrives(text: str) -> None:
    message = made.prefill_report(log=(text,), zombies={1: text})
    assert encode(message).count(b"\n") == 1
    assert decode_told(encode(message)) == message


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"printed by a tree",
        b"\xff\xfe",
        b"[]",
        b"{}",
        b'{"type":"Unknown"}',
        b'{"type":"Done","room":"x","succeeded":true,"aborted":false}',
        b'{"type":"Done","room":1}',
        b'{"type":"Unable","message":"\xff"}',
        b'"\\ud',
        b'{"type":"\\udcff"}',
        b"[" * 100_000 + b'"\\udcff"',
    ],
)
def test_a_line_that_is_no_message_is_refused(line: bytes) -> None:
    for decoded in (decode_told, decode_command):
        with pytest.raises(ValueError, match=r"."):
            decoded(line)


def test_each_direction_has_its_own() -> None:
    with pytest.raises(ValueError, match="Invalid value"):
        decode_told(encode(Stop()))
    with pytest.raises(ValueError, match="Invalid value"):
        decode_command(encode(Alive()))
