"""A process that plays the sides of a tree, as the root that it is given says. It imports nothing of kvlint."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from typing import Any

READY = {
    "type": "Ready",
    "address": "127.0.0.1:1",
    "version": "0.5.14",
    "digest": "d",
    "nixl": None,
    "torch": "2",
    "took": "cpu",
    "device": "host memory",
    "workers": 1,
}
PREFILL = {
    "type": "PrefillReport",
    "failed": [],
    "stuck": [],
    "settled": True,
    "flips": [],
    "zombies": {},
    "orphan_records": [],
    "orphan_exceptions": [],
    "orphan_metadata": [],
    "errors": [],
    "dead_threads": [],
    "transfers": 1,
    "log": [],
    "peak_bytes": 1,
}
DECODE = {
    "type": "DecodeReport",
    "failed": [],
    "aborted": [],
    "early": [],
    "waiting": [],
    "wrong": {},
    "errors": [],
    "dead_threads": [],
    "log": [],
    "peak_bytes": 1,
}


def main() -> None:
    """Play each side until the other process has gone."""
    sides = [argument.removeprefix("--side=").split(":") for argument in sys.argv if argument.startswith("--side=")]
    (stacks,) = (int(argument.partition("=")[2]) for argument in sys.argv if argument.startswith("--stacks="))
    signal.signal(signal.SIGUSR1, lambda *_: os.write(stacks, b"it stands here\n") and None)
    threads = [threading.Thread(target=_play, args=side, daemon=True) for side in sides[1:]]
    for thread in threads:
        thread.start()
    _play(*sides[0])


def _play(name: str, reading: str, writing: str) -> None:
    tell = _Tell(int(writing))
    rooms: list[int] = []
    root = ""
    for line in os.fdopen(int(reading), "rb", buffering=0):
        command: dict[str, Any] = json.loads(line)
        match command["type"]:
            case "Setup":
                root = str(command["root"])
                _load(root, name, command, tell)
            case "Begin":
                rooms = []
                tell(type="Alive")
                tell(type="Begun")
            case "Start":
                _room(root, name, command["room"], rooms, tell)
            case "Settle":
                _report(root, name, rooms, tell)
            case _:
                os._exit(0)


class _Tell:
    def __init__(self, writing: int) -> None:
        self.writing = writing

    def __call__(self, **message: Any) -> None:
        os.write(self.writing, json.dumps(message).encode() + b"\n")


def _load(root: str, name: str, command: dict[str, Any], tell: _Tell) -> None:
    kind, _, rest = root.partition(" ")
    if kind == "family" and name == "prefill" and not os.fork():
        # A process of its own, which would outlive it.
        os.write(os.open(rest, os.O_WRONLY), b"alive")
        while True:
            signal.pause()
    _break(root, name, tell)
    if (root, name) == ("chatty", "prefill"):
        while True:
            tell(type="Alive")
    tell(**{**READY, "device": f"{name} {command['device']} {command['address']}"})


def _break(root: str, name: str, tell: _Tell) -> None:
    """Do what no side should."""
    match root, name:
        case "unable", _:
            tell(type="Unable", message="unable/conn.py:1: no", details="a traceback")
        case "exits", "decode":
            os.write(1, b"printed by the tree\n")
            os._exit(3)
        case "killed", "prefill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "segfault", "prefill":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "garbage", "prefill":
            os.write(tell.writing, b"hello\n")
        case (("silent" | "closed"), "prefill"):
            if root == "closed":
                os.close(tell.writing)
            os.write(1, b"the last words\n")
            while True:
                signal.pause()
        case _:
            pass


def _room(root: str, name: str, room: int, rooms: list[int], tell: _Tell) -> None:
    rooms.append(room)
    if root == "dies" and name == "prefill" and len(rooms) == 2:
        os._exit(9)
    if name == "prefill":
        tell(type="Released", room=room)
    else:
        tell(type="Done", room=room, succeeded=True, aborted=False)


def _report(root: str, name: str, rooms: list[int], tell: _Tell) -> None:
    fails = root == "fails" and rooms[0] in range(1_002_000, 1_003_000)
    if name == "prefill":
        tell(**{**PREFILL, "succeeded": rooms})
    else:
        seconds = 1.0 if root == "fast" else 2.0
        tell(**{**DECODE, "succeeded": rooms[fails:], "compared": len(rooms), "seconds": seconds})
