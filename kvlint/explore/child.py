"""The process that runs code of a tree: takes one request, tells events, and gets out of whatever the tree does.

Standard input holds the `Request` as JSON. Events go to a descriptor of their own, since the tree may print; so do the
stacks that faulthandler writes. `parent` starts it; ``python -m kvlint.explore.child`` does the same by hand.
"""

from __future__ import annotations

import argparse
import importlib
import os
import resource
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from kvlint.explore.events import Alive, Ended, Event, Failed, FailureKind, Found, Loaded, encode
from kvlint.explore.request import Request
from kvlint.explore.results import ScenarioResult, Verdict
from kvlint.explore.watchdog import Stalled, Watchdog
from kvlint.loading.processes import prepare_process

SESSION = "kvlint.explore.session"
_TICKS = 4  # from one sign of life to the next


class Channel:
    """Tells events to the parent; what it calls when a session has a counter to be watched is set from outside."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._process = os.getpid()
        self._is_writing = False
        self._ticks = 0
        self.has_loaded = False
        self.watchdog: Watchdog | None = None

    def __call__(self, event: Event) -> None:
        """Tell an event.

        A scenario in which the tree stood still, and of which the session knows nothing, has no result: the exception
        that got it out may have been taken for its own, or have been swallowed.
        """
        if isinstance(event, Loaded):
            self.has_loaded = True
        if self.watchdog is not None:
            self.watchdog.moved()
            stalled, self.watchdog.stalled = self.watchdog.stalled, ""
            if isinstance(event, Found):
                event = Found(_unknown(event.result, stalled)) if stalled not in event.result.reason else event
            else:
                self.watchdog.stalled = stalled
        self._write(encode(event))

    def watch(self, counter: Callable[[], object]) -> None:
        """Have ``counter`` looked at: see `Emit`."""
        if self.watchdog is not None:
            self.watchdog.watch(counter)

    def alive(self) -> None:
        """Tell that the process lives, now and then, and never in the middle of an event."""
        self._ticks += 1
        if self._ticks % _TICKS == 0 and not self._is_writing:
            self._write(encode(Alive()))

    def _write(self, line: bytes) -> None:
        if os.getpid() != self._process:
            os._exit(0)  # a copy of the process that the tree has made by means of its own
        self._is_writing = True
        try:
            while line:
                line = line[os.write(self._descriptor, line) :]
        except OSError:
            # Nobody listens any more, or the tree has closed the descriptor: there is nothing left to do.
            os._exit(1)
        finally:
            self._is_writing = False


def _unknown(result: ScenarioResult, reason: str) -> ScenarioResult:
    """The result without anything that rests on the run."""
    replace = msgspec.structs.replace
    return replace(
        result,
        verdict=Verdict.INCONCLUSIVE,
        schedules=None,
        reason=reason,
        properties=tuple(
            replace(entry, verdict=Verdict.INCONCLUSIVE, schedules=None, details=(), witness=None)
            for entry in result.properties
        ),
    )


def serve(request: bytes, channel: Channel, session: str, stall: float) -> None:
    """Do what the request asks for, and tell how it went; no exception gets out.

    Args:
        request: A `Request` as JSON.
        channel: Where events go.
        session: The module whose ``run(request, emit)`` does the work.
        stall: Seconds without a step after which the tree's code stands still.
    """
    wanted = msgspec.json.decode(request, type=Request)

    def give_up(message: str) -> None:
        channel(Failed(FailureKind.LIMIT, message))
        os._exit(1)

    root = wanted.root
    channel(Alive())
    try:
        root = _package(root)
        channel.watchdog = watchdog = Watchdog(stall, root, give_up, channel.alive)
        with watchdog:
            importlib.import_module(session).run(wanted, channel)
    except BaseException as error:
        channel(_failure(error, root, channel.has_loaded))
    channel(Ended())


def _package(root: str) -> str:
    """The folder of the tree's code; a path that leads to none is the session's to complain about."""
    from kvlint.loading import LoadError, find_tree

    try:
        return str(find_tree(Path(root)).package)
    except LoadError:
        return root


def _failure(error: BaseException, root: str, has_loaded: bool) -> Failed:
    from kvlint.loading import LoadError, UnforeseenUse
    from kvlint.loading.errors import place_of

    limit = FailureKind.LIMIT if has_loaded else FailureKind.LOAD
    place = place_of(error, Path(root))
    match error:
        case LoadError():
            return Failed(FailureKind.LOAD, str(error))
        case UnforeseenUse():
            return Failed(limit, str(error))
        case Stalled():
            return Failed(FailureKind.LIMIT, str(error))
        case MemoryError():
            at = f", the last time at {place}" if place else ""
            return Failed(FailureKind.LIMIT, f"no more memory is allowed{at}; --memory-limit sets how much is")
        case _ if _is_ours(error, "BadToken"):
            return Failed(FailureKind.TOKEN, f"--replay: {error}")
        case _ if _is_ours(error, "Unsupported", "Stubborn"):
            return Failed(limit, str(error))
        case _ if place is not None or not isinstance(error, Exception):
            raised = f"{type(error).__name__}: {error}".rstrip(": ")
            return Failed(limit, f"{place or root}: the tree's code raised {raised}")
        case _:
            last = "".join(traceback.format_exception_only(error)).strip()
            return Failed(FailureKind.CRASH, last, "".join(traceback.format_exception(error)))


def _is_ours(error: BaseException, *names: str) -> bool:
    """Whether an error is one of the engine's, which is loaded if it has raised one."""
    return type(error).__module__.startswith("kvlint.explore.") and type(error).__name__ in names


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the process; it ends here, whatever threads and exit handlers the tree has left."""
    parser = argparse.ArgumentParser(description="Explore a tree: a request on standard input, events out.")
    parser.add_argument("--events", type=int, default=2, metavar="FD", help="where events go")
    parser.add_argument(
        "--stacks", type=int, default=2, metavar="FD", help="where stacks go, of crashes and on SIGUSR1"
    )
    parser.add_argument("--memory", type=int, default=0, metavar="BYTES", help="how much may be allocated; 0: anything")
    parser.add_argument("--stall", type=float, default=10.0, metavar="SECONDS", help="how long nothing may move")
    parser.add_argument("--session", default=SESSION, metavar="MODULE", help="what does the work")
    options = parser.parse_args(arguments)
    _prepare(options.events, options.stacks, options.memory)
    request = sys.stdin.buffer.read()
    serve(request, Channel(options.events), options.session, options.stall)
    os._exit(0)


def _prepare(events: int, stacks: int, memory: int) -> None:
    os.set_inheritable(events, False)
    prepare_process(stacks)
    # A copy that the tree makes of the process would explore as well, and outlive it.
    os.register_at_fork(after_in_child=lambda: os._exit(0))
    if memory:
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        allowed = memory if most == resource.RLIM_INFINITY else min(memory, most)
        resource.setrlimit(resource.RLIMIT_AS, (allowed, allowed))


if __name__ == "__main__":
    main()
