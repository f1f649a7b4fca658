"""Starts of processes that run code of a tree: what they import from, and what they know of the user's environment."""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
import sys
from collections.abc import Mapping

_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
_PASSED = (
    *("HOME", "LANG", "LC_ALL", "LC_CTYPE", "PATH", "TZ"),
    # What an interpreter may need to start at all.
    *("DYLD_LIBRARY_PATH", "LD_LIBRARY_PATH", "PYTHONHOME"),
)


def import_path() -> list[str]:
    """What the process imports from: what this one does, but not from the current folder."""
    import kvlint

    here = os.getcwd()
    own = os.path.dirname(os.path.dirname(os.path.abspath(kvlint.__file__)))
    path = [entry for entry in sys.path if entry and os.path.abspath(entry) != here]
    return path if own in path else [*path, own]


def environment(variables: Mapping[str, str], folder: str, prefixes: tuple[str, ...] = ()) -> dict[str, str]:
    """The environment of the process: little of the user's, since variables change what a tree does.

    Args:
        variables: The user's environment.
        folder: Where temporary files go.
        prefixes: What is passed on besides: the variables that begin so.
    """
    passed = {name: value for name, value in variables.items() if name in _PASSED or name.startswith(prefixes)}
    return {
        **passed,
        "TMPDIR": folder,
        # A token means the same schedule in every process only if sets have the same order in each.
        "PYTHONHASHSEED": "0",
        "PYTHONIOENCODING": "utf-8:backslashreplace",
        # A pool of threads per core, which numpy would start on import, counts against the memory.
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }


def prepare_process(stacks: int) -> None:
    """Do in such a process what it needs before it runs code of a tree.

    Args:
        stacks: The descriptor that stacks go to, of crashes and on SIGUSR1.
    """
    os.set_inheritable(stacks, False)
    faulthandler.enable(stacks, all_threads=True)
    faulthandler.register(signal.SIGUSR1, stacks, all_threads=True)
    if sys.platform == "linux":
        import ctypes

        # When the parent is killed nobody else would end this process, should it stand in code that is not Python's.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
