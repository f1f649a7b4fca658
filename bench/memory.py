"""The peak memory of a process and all its descendants together, pages that they share counted once."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_INTERVAL = 0.02
_PSS = re.compile(rb"^Pss:\s+(\d+) kB", re.MULTILINE)
_PROC = Path("/proc")


class PeakMemory:
    """The most that was seen in use; elsewhere than on Linux the peak of the largest process stands in for it."""

    def __init__(self) -> None:
        self.megabytes = 0.0

    def watch(self, process: subprocess.Popen[bytes]) -> None:
        """Wait for ``process`` to end, and look at it meanwhile."""
        if not sys.platform.startswith("linux"):
            process.wait()
            self._note_children()
            return
        while True:
            self.megabytes = max(self.megabytes, sum(map(_megabytes, _family(process.pid))))
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_INTERVAL)
                return

    def _note_children(self) -> None:
        import resource

        # macOS counts in bytes.
        self.megabytes = max(self.megabytes, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / (1 << 20))


def _family(pid: int) -> Iterator[int]:
    pending = [pid]
    while pending:
        current = pending.pop()
        yield current
        with contextlib.suppress(OSError):
            for task in (_PROC / str(current) / "task").iterdir():
                pending += map(int, (task / "children").read_bytes().split())


def _megabytes(pid: int) -> float:
    """The process's proportional share, 0 where it has gone."""
    try:
        found = _PSS.search((_PROC / str(pid) / "smaps_rollup").read_bytes())
    except OSError:
        return 0.0
    return int(found[1]) / 1024 if found else 0.0
