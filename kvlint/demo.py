"""The story that ``kvlint demo`` tells on the backend in ``kvlint/demo_backend``: lint it, mend it, compare.

Everything shown is computed on the spot: the findings, the edits and the tables
are kvlint's, the statuses at the end come from running the backend before and
after the fix.  Works on copies in a temporary folder.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvlint import engine
from kvlint.config import Config
from kvlint.fix_run import FixRun, fix_targets
from kvlint.fixing.diff import unified
from kvlint.report import render
from kvlint.report.colour import BOLD, CYAN, DIM, RED, paint, wants_colour
from kvlint.source.display import Target

if TYPE_CHECKING:
    from rich.console import Console

    from kvlint.analysis.transition import TransitionTable
    from kvlint.explore.results import ScenarioResult

FOLDER = "demo_backend"
WIDTH = 100
_FILES = ("base.py", "backend.py")
_GREEN = "32"
_DIFF_STYLES = {"+": _GREEN, "-": RED, "@": CYAN}
_CELL = re.compile(r"(?:\{[^}]*\}|[^{}!])!?")

_INTRODUCTION = """\
A prefill server computes the KV cache of a prompt and writes it into a decode server's memory.
The backend here does the writing for one request ("room") at a time, chunk by chunk: a worker
thread moves the chunks, a listener thread takes messages from the decode side (an ABORT among
them), and both keep the room's status in a dict that the scheduler polls until it reads Success
or Failed.
"""


def run(console: Console) -> int:
    """Tell the story on ``console``'s stream; the exit status is 0.

    Colour is decided as everywhere in kvlint, not as rich does: the stream is all that is used of ``console``.
    """
    tell = _Teller(console)
    with tempfile.TemporaryDirectory(prefix="kvlint-demo-") as folder:
        targets = _copied(folder)
        config = Config(folder=folder)
        tell.heading("A KV-transfer backend in two files")
        tell(_INTRODUCTION)
        _lint(tell, targets, config)
        tables = _tables(targets, config)
        played = _play(folder)
        explored = _explored(folder)
        _fix(tell, targets, config)
        _compare(tell, tables, _tables(targets, config))
        _show_replay(tell, played, _play(folder))
        _show_schedules(tell, folder, explored)
        _fix_the_rest(tell, folder, targets, config)
    return 0


class _Teller:
    """Writes to a stream, in colour or not."""

    def __init__(self, console: Console) -> None:
        self._stream = console.file
        self.colour = wants_colour(self._stream, os.environ)

    def __call__(self, text: str = "", style: str | None = None) -> None:
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        shown = text if style is None else paint(text, style, self.colour)
        self._stream.write(shown.encode(encoding, "backslashreplace").decode(encoding) + "\n")

    def heading(self, text: str) -> None:
        self(text, BOLD)
        self()

    def command(self, text: str) -> None:
        self(f"$ {text}", BOLD)


def _copied(folder: str) -> tuple[Target, ...]:
    os.mkdir(os.path.join(folder, FOLDER))
    targets = []
    for name in _FILES:
        path = os.path.join(folder, FOLDER, name)
        with open(path, "wb") as copy:
            copy.write(files("kvlint").joinpath(FOLDER, name).read_bytes())
        targets.append(Target(f"{FOLDER}/{name}", path))
    return tuple(targets)


def _lint(tell: _Teller, targets: tuple[Target, ...], config: Config) -> None:
    report = engine.check_targets(targets, config, jobs=1)
    tell.command(f"kvlint check {FOLDER}")
    tell(render(report, "text", colour=tell.colour))


def _fix(tell: _Teller, targets: tuple[Target, ...], config: Config) -> None:
    run = fix_targets(targets, config, unsafe=False, write=True, jobs=1)
    tell.command(f"kvlint fix --diff {FOLDER}")
    _show_diff(tell, run)
    tell.command(f"kvlint fix {FOLDER} && kvlint check {FOLDER}")
    for fixed in run.changes:
        for title in fixed.change.titles:
            tell(f"fixed {fixed.display}: {title}")
    left = render(run.report, "text", colour=tell.colour)
    tell(left or "No findings.\n")


def _show_diff(tell: _Teller, run: FixRun) -> None:
    for fixed in run.changes:
        for line in unified(fixed.change, fixed.display).decode().splitlines():
            tell(line, BOLD if line.startswith(("---", "+++")) else _DIFF_STYLES.get(line[:1]))
    tell()


# -- the writer's transition table, before and after ------------------------------------------------------------------


def _tables(targets: tuple[Target, ...], config: Config) -> dict[str, TransitionTable]:
    """The tables of all status writers, by the writer's name and file."""
    return {
        f"{writer.cls.name}.{writer.name} in {file.display}": writer.table
        for file in engine.inspect(targets, config).files
        for writer in file.facts.writers
    }


def _compare(tell: _Teller, before: dict[str, TransitionTable], after: dict[str, TransitionTable]) -> None:
    for name, old in before.items():
        tell.heading(f"{name}: the status that is stored after a write")
        letters = old.subject.enum.letters()
        old_rows, new_rows = _rows(old), _rows(after[name])
        width = max(len("stored"), *map(len, letters))
        columns = "".join(f"{letter:^4}" for letter in letters.values())
        space = " " * 6
        wide = len(columns)
        tell(f"  {'':{width}}  {'before, written:':{wide}}{space}after, written:")
        tell(f"  {'stored':{width}}  {columns}{space}{columns.rstrip()}", DIM)
        for (stored, old_cells), new_cells in zip(old_rows.items(), new_rows.values(), strict=True):
            left = "".join(f"{cell:^4}" for cell in old_cells)
            right = "".join(_marked(tell, *pair) for pair in zip(old_cells, new_cells, strict=True))
            tell(f"  {stored:{width}}  {left}{space}{right.rstrip()}")
        legend = ", ".join(f"{letter} {member}" for member, letter in letters.items())
        tell(f"\n  {legend}, - nothing stored; [ ] changed by the fix\n")


def _marked(tell: _Teller, old: str, new: str) -> str:
    if old == new:
        return f"{new:^4}"
    cell = f"[{new}]"
    return paint(cell, _GREEN, tell.colour) + " " * (4 - len(cell))


def _rows(table: TransitionTable) -> dict[str, list[str]]:
    """The table's cells as the letters of its notation, by the stored member's name."""
    names = {letter: member for member, letter in table.subject.enum.letters().items()}
    rows = (row.split(":") for row in table.notation.split())
    return {names.get(stored, "nothing"): _CELL.findall(cells) for stored, cells in rows}


# -- the same unlucky schedule, before and after ----------------------------------------------------------------------

ROOM = 7


@dataclass(frozen=True, slots=True)
class Moment:
    """What had just happened, and the status stored for the room then."""

    event: str
    status: str


class _Over(BaseException):
    """There is nothing more to receive; no Exception, since the backend's loops catch those."""


class _Stage:
    """A backend's queue, socket and network card, which let an abort arrive while the first chunk is written.

    One thread plays all parts, so the schedule is the same every time: the
    listener runs when the worker asks whether its write is done.
    """

    def __init__(self, backend: Any) -> None:
        self.moments: list[Moment] = []
        self._statuses: dict[int | None, str] = {
            value: name for name, value in vars(backend.Poll).items() if isinstance(value, int)
        }
        self._frames = [[backend.ABORT, str(ROOM).encode()]]
        self._taken = 0
        self.manager = backend.RdmaManager(self, self)
        self.sender = backend.RdmaSender(self.manager, ROOM)
        self.manager.add_peer(ROOM, "decode", [b"1", b"0", b"4096"])
        self.sender.send([1, 2], is_last=False)
        self.sender.send([3], is_last=True)

    def play(self) -> None:
        """Run the worker until it would wait."""
        self._until_over(lambda: self.manager.transfer_worker(self))

    def get(self) -> Any:
        """Hand the worker its next chunk; what it made of the one before shows now."""
        if self._taken:
            self._note(("the first chunk is written", "the worker is through with the last chunk")[self._taken - 1])
        if self.manager.chunks.empty():
            raise _Over
        self._taken += 1
        return self.manager.chunks.get()

    def post_write(self, peer: str, pages: list[int], addresses: list[int]) -> int:
        """Start an RDMA write."""
        del peer, pages, addresses
        if self._taken == 1:
            self._note("the worker starts to write the first chunk")
        return self._taken

    def is_done(self, handle: int) -> bool:
        """Finish the RDMA write, but not before the listener has had its turn."""
        del handle
        if self._frames:
            self._until_over(self.manager.bootstrap_listener)
            self._note("meanwhile the listener handles an ABORT")
        return True

    def recv_multipart(self) -> list[bytes]:
        """Hand the listener its next message."""
        if not self._frames:
            raise _Over
        return self._frames.pop()

    def status(self) -> str:
        """The name of the room's status."""
        return self._statuses.get(self.manager.request_status.get(ROOM), "nothing")

    def _note(self, event: str) -> None:
        self.moments.append(Moment(event, self.status()))

    @staticmethod
    def _until_over(loop: Callable[[], None]) -> None:
        with suppress(_Over):
            loop()


@dataclass(frozen=True, slots=True)
class Played:
    """The moments of one room, and what its client gets in the end."""

    moments: tuple[Moment, ...]
    client: str


def _play(folder: str) -> Played:
    """Run the backend below ``folder`` through the schedule that pins a room."""
    with _imported(folder) as backend:
        stage = _Stage(backend)
        stage.play()
        return Played(tuple(stage.moments), _what_the_client_gets(backend, stage))


def _what_the_client_gets(backend: Any, stage: _Stage) -> str:
    status = stage.sender.poll()
    if status == backend.Poll.Success:
        return "its answer"
    if status != backend.Poll.Failed:
        return f"nothing, ever: the scheduler goes on polling {stage.status()}"
    try:
        stage.sender.failure_exception()
    except Exception as error:
        return f"an error: {error}"
    return "an error"


@contextmanager
def _imported(folder: str) -> Iterator[Any]:
    """The module that stands in ``folder`` now, gone again afterwards."""
    sys.path.insert(0, folder)
    writes_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        importlib.invalidate_caches()
        yield importlib.import_module(f"{FOLDER}.backend")
    finally:
        sys.dont_write_bytecode = writes_bytecode
        sys.path.remove(folder)
        for name in [name for name in sys.modules if name == FOLDER or name.startswith(f"{FOLDER}.")]:
            del sys.modules[name]


def _show_replay(tell: _Teller, before: Played, after: Played) -> None:
    tell.heading("One request whose ABORT arrives while its first chunk is on the wire: its status")
    width = max(len(moment.event) for moment in before.moments)
    tell(f"  {'':{width}}  {'before':16}after", DIM)
    for old, new in zip_longest(before.moments, after.moments):
        event = (old or new).event
        tell(f"  {event:{width}}  {old.status if old else '':16}{new.status if new else ''}")
    tell(f"\n  The client got   {before.client}")
    tell(f"  and now gets     {after.client}")


# -- every schedule, before and after ---------------------------------------------------------------------------------


def _explored(folder: str) -> ScenarioResult:
    """What `kvlint explore` finds out about the backend below ``folder``, with its own two threads alone."""
    from kvlint.explore.embedded import explore_embedded

    (result,) = explore_embedded(Path(folder, FOLDER)).scenarios
    return result


def _show_schedules(tell: _Teller, folder: str, result: ScenarioResult) -> None:
    from kvlint.explore.report.text import scenario_lines
    from kvlint.explore.report.text_witness import witness_lines
    from kvlint.properties import PINNED_ROOM

    tell()
    tell.heading("That was one schedule.  `kvlint explore` runs all of them; here, on the backend as it was:")
    for line in scenario_lines(result, WIDTH, tell.colour, timed=False):
        tell(line)
    for judged in result.properties:
        if judged.property == PINNED_ROOM and judged.witness is not None:
            tell()
            for line in witness_lines(judged.witness, folder, WIDTH, tell.colour):
                tell(line)


def _fix_the_rest(tell: _Teller, folder: str, targets: tuple[Target, ...], config: Config) -> None:
    from kvlint.explore.report.text import scenario_lines

    tell()
    tell.heading("With the safe fixes no room is pinned any more, and a preemption of microseconds is left:")
    for line in scenario_lines(_explored(folder), WIDTH, tell.colour, timed=False):
        tell(line)
    tell()
    tell.command(f"kvlint fix --unsafe-fixes {FOLDER}")
    for fixed in fix_targets(targets, config, unsafe=True, write=True, jobs=1).changes:
        for title in fixed.change.titles:
            tell(f"fixed {fixed.display}: {title}")
    tell()
    for line in scenario_lines(_explored(folder), WIDTH, tell.colour, timed=False):
        tell(line)
