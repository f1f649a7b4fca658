"""What a drill has left on the machine: processes, listening sockets, shared memory, temporary files.

Whatever else runs on the machine is told apart. A drill's processes know their folder for temporary files, and memory
is left when no living process has it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection, Iterator
from pathlib import Path

_PROC = Path("/proc")
_SHARED = Path("/dev/shm")
_LISTEN = "0A"  # TCP_LISTEN of <net/tcp_states.h>
_SECONDS = 20.0


def processes(folder: Path) -> set[int]:
    """The living processes whose temporary files go to a folder: the process that drills, and its children."""
    wanted = f"TMPDIR={folder}".encode()
    return {number for number in _numbers() if wanted in _text(_PROC / str(number) / "environ").split(b"\0")}


def sockets(numbers: set[int]) -> set[str]:
    """The listening TCP sockets of processes, by what identifies each as long as it exists."""
    held = {f"socket:[{socket}]": socket for socket in listening()}
    return {held[target] for number in numbers for target in _open(number) if target in held}


def listening() -> set[str]:
    """All TCP sockets that listen."""
    lines = [line.split() for name in ("tcp", "tcp6") for line in _text(_PROC / "net" / name).decode().splitlines()[1:]]
    return {fields[9] for fields in lines if fields[3] == _LISTEN}


def memory() -> set[str]:
    """Shared memory that no living process has: files of /dev/shm, and segments of System V."""
    alive = set(_numbers())
    segments = [line.split() for line in _text(_PROC / "sysvipc" / "shm").decode().splitlines()[1:]]
    left = {f"segment {fields[1]}" for fields in segments if fields[6] == "0" and int(fields[4]) not in alive}
    files = {str(path) for path in _SHARED.iterdir()} if _SHARED.is_dir() else set()
    if files:
        for number in alive:
            files -= {*_open(number), *_mapped(number)}
    return left | files


def ended(folder: Path, sockets: Collection[str] = ()) -> bool:
    """Whether the processes of a folder end, and these sockets with them; the system takes a moment over it."""
    end = time.monotonic() + _SECONDS
    while processes(folder) or not listening().isdisjoint(sockets):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@contextlib.contextmanager
def nothing(folder: Path) -> Iterator[None]:
    """Nothing is left of what is drilled in the block, with an empty folder for its temporary files."""
    before = memory()
    yield
    assert ended(folder), f"processes are left: {processes(folder)}"
    assert memory() <= before
    assert list(folder.iterdir()) == []


def _numbers() -> list[int]:
    return [int(entry) for entry in os.listdir(_PROC) if entry.isdecimal()]


def _text(path: Path) -> bytes:
    # A process may end while it is looked at, and others' cannot be read.
    with contextlib.suppress(OSError):
        return path.read_bytes()
    return b""


def _open(number: int) -> set[str]:
    found = set()
    with contextlib.suppress(OSError):
        for entry in os.scandir(_PROC / str(number) / "fd"):
            with contextlib.suppress(OSError):
                found.add(os.readlink(entry.path))
    return found


def _mapped(number: int) -> set[str]:
    lines = _text(_PROC / str(number) / "maps").decode("utf-8", "replace").splitlines()
    return {line.split(maxsplit=5)[5] for line in lines if str(_SHARED) in line}
