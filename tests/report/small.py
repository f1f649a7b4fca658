"""One small report with everything that a report can hold, made by hand: the formats are tested, not the analysis."""

from __future__ import annotations

from pathlib import Path

from kvlint.diagnostics import (
    DeferAbortCleanup,
    Finding,
    FixPlan,
    Flow,
    Location,
    Related,
    Replacement,
    Severity,
    SkipGuard,
    Span,
    Step,
)
from kvlint.report.inspect_model import (
    ABSENT,
    AbortModel,
    Catalogue,
    CellModel,
    Dict,
    DropModel,
    Enum,
    FileModel,
    Keeper,
    Member,
    Row,
    Runner,
    Site,
    Spot,
    Toucher,
    Undecided,
    WriteModel,
    WriterModel,
)
from kvlint.report.model import Crash, Details, FileCounts, Report
from kvlint.source.text import SourceText, decode

BACKEND = "nixl/conn.py"
BASE = "common/base class.py"
ODD = "x\n:y,\udcff<script>.py"

#: What an attacker would like a browser to run, or a parser to read as markup.
EVIL = "</code><script>alert(1)</script> & \u202e \x0b"

BACKEND_TEXT = f"""\
class Manager(Base):
    def worker(self, queue):
        while True:
            chunk = queue.get()
            if chunk.room not in self.transfer_infos:
                continue  # {EVIL}
            self.update_status(chunk.room, Poll.Transferring)

    def listener(self):
        while True:
            frames = self.socket.recv_multipart()
            if frames[0] == ABORT:
                self.update_status(room, Poll.Failed)
                self.transfer_infos.pop(room, None)
            self.update_status(room, Poll.Transferring); self.update_status(room, Poll.Transferring)
"""
BASE_TEXT = """\
class Base:
    def update_status(self, room, status):
        self.request_status[room] = max(self.request_status.get(room, 0), status)
"""

SKIP = SkipGuard(
    "/src/nixl/conn.py", 6, 17, False, "self.request_status.get(room)", ("None",), None, "self.update_status(room, F)"
)
DROP = DeferAbortCleanup("/src/nixl/conn.py", 14, 17)


def at(line: int, column: int, end_column: int, path: str = BACKEND) -> Location:
    """A stretch of one line."""
    return Location(path, Span(line, column, line, end_column))


OVERWRITE = Finding(
    "KVL001",
    "non-terminal-write-after-failed",
    Severity.ERROR,
    "Poll.Transferring written by the worker can replace a stored Failed: Base.update_status (common/base class.py:2) "
    "turns Failed into Transferring; the listener writes Failed at nixl/conn.py:13; see self.x[0](1)",
    at(7, 13, 62),
    (
        Related(at(2, 5, 22, BASE), "the writer"),
        Related(at(13, 17, 54), "the listener writes Failed here"),
    ),
    None,
    (
        Flow("listener", (Step(1, at(13, 17, 54), "Manager.listener stores Failed"),)),
        Flow(
            "worker",
            (
                Step(2, at(7, 13, 62), "Manager.worker writes Transferring"),
                Step(3, at(2, 5, 22, BASE), "Base.update_status lets Transferring replace Failed"),
            ),
        ),
    ),
)
SKIPPED = Finding(
    "KVL002",
    "skip-without-terminal-write",
    Severity.ERROR,
    f"Manager.worker drops a work item {EVIL}",
    at(6, 17, 25),
    (Related(Location(BACKEND, Span(5, 13, 5, 53)), "the decision to drop it"),),
    SKIP,
)
POPPED = Finding(
    "KVL003", "pop-in-abort-handler", Severity.WARNING, "Manager.listener removes a room", at(14, 17, 52), (), DROP
)
TWINS = tuple(
    Finding("KVL001", "non-terminal-write-after-failed", Severity.INFO, "one of two", at(15, column, column + 45))
    for column in (13, 58)
)
UNREADABLE = Finding(
    "KVL900", "unreadable-source", Severity.WARNING, "cannot be parsed: caf\udce9", Location(ODD, Span(3, 1, 3, 1))
)
SILENCED = Finding("KVL004", "overwritable-terminal-status", Severity.ERROR, "Failed is replaced", at(2, 5, 22, BASE))

_SPOT = Spot(BACKEND, 9, "")
_MEMBERS = (
    Member("Failed", "0", "F", "failure"),
    Member("Transferring", "1", "T", "live"),
    Member("Success", "2", "S", "success"),
)


def _cell(*outcomes: str, raises: bool = False) -> CellModel:
    return CellModel(outcomes, raises)


WRITER = WriterModel(
    BACKEND,
    2,
    "Base",
    "update_status",
    "Poll",
    "request_status",
    True,
    "-:FTS F:FTS T:TT? S:FTS",
    (
        Row(ABSENT, ABSENT, ("F", "T", "S"), ("created by F T S",)),
        Row("Failed", "F", ("F", "T", "S"), ("replaced by T S", "may raise on S")),
        Row("Transferring", "T", ("T", "T", "?"), ("loses F",)),
        Row("Success", "S", ("F", "T", "S"), ()),
    ),
    {
        ABSENT: {"Failed": _cell("Failed"), "Transferring": _cell("Transferring"), "Success": _cell("Success")},
        "Failed": {"Failed": _cell("Failed"), "Transferring": _cell("Transferring"), "Success": _cell(raises=True)},
        "Transferring": {
            "Failed": _cell("Transferring"),
            "Transferring": _cell("Transferring"),
            "Success": CellModel(None, False),
        },
        "Success": {"Failed": _cell("Failed"), "Transferring": _cell("Transferring"), "Success": _cell("Success")},
    },
    1,
)
MODEL = FileModel(
    BACKEND,
    (Enum("Poll", _SPOT, True, _MEMBERS),),
    (
        Keeper("Manager", _SPOT, "Poll", "table", "request_status", (), (), (), (), (), None, ()),
        Keeper(
            "Record", Spot(BASE, 1, "common/base class.py"), "Poll", "attribute", "status", (), (), (), (), (), None, ()
        ),
    ),
    (WRITER,),
    (
        WriteModel(7, "Manager.worker", ("worker",), ("Transferring",), "request_status", "table", False, False),
        WriteModel(8, "Manager.other", ("scheduler",), (), "request_status", "table", False, True),
        WriteModel(9, "Manager.odd", ("scheduler",), (), "request_status", "table", True, False),
    ),
    (
        Runner("Manager.worker", _SPOT, "worker", "takes items", True, (3,)),
        Runner("Manager.other", _SPOT, "other", "runs", False, ()),
    ),
    (AbortModel("Manager.listener", 12, 14, "it runs on the message tag ABORT"),),
    (
        Catalogue(
            "Manager",
            "transfer_infos",
            (
                Site(Spot(BACKEND, 14, ""), "Manager.listener", ("listener",), "unsafe", f"it is {EVIL}", "a tag"),
                Site(Spot(BASE, 3, "common/base class.py"), "Base.clear", ("scheduler",), "safe", "it ends", None),
                Site(Spot(BACKEND, 15, ""), "Manager.x", ("scheduler",), "unknown", "no path was found", None),
            ),
        ),
    ),
    (Dict("Manager", "transfer_infos", (Toucher("read", "worker", "Manager.worker", _SPOT),)),),
    (
        DropModel("Manager.worker", _SPOT, _SPOT, ("transfer_infos",), ("Transferring",), False, "a removal is unsafe"),
        DropModel("Manager.worker", _SPOT, _SPOT, ("transfer_infos",), ("Transferring",), True, "all end it"),
    ),
    (
        Undecided("base", _SPOT, "Foreign, base of Manager, was not found"),
        Undecided("cell", _SPOT, "1 of 12 cells of Base.update_status"),
        Undecided("write", _SPOT, "which status Manager.odd writes"),
        Undecided("removal", _SPOT, "the removal from transfer_infos in Manager.x"),
    ),
)


def sources() -> dict[str, SourceText]:
    """The texts behind the report."""
    texts = {BACKEND: BACKEND_TEXT, BASE: BASE_TEXT}
    return {path: decode(path, text.encode()) for path, text in texts.items()}


def small(root: Path, *, models: tuple[FileModel, ...] = (MODEL,)) -> Report:
    """The report of a run in the folder ``root``, the current one."""
    indent = " " * 16
    edits: dict[FixPlan, tuple[str, tuple[Replacement, ...]]] = {
        SKIP: (BACKEND, (Replacement(Span(6, 1, 6, 1), f"{indent}self.update_status(room, F)\n"),)),
        DROP: (BACKEND, (Replacement(Span(14, 1, 15, 1), ""),)),
    }
    findings = (SKIPPED, OVERWRITE, POPPED, *TWINS, UNREADABLE)
    return Report(
        findings,
        FileCounts(7, 2, 1),
        ("nixl/gone.py: cannot be read: no such file",),
        (Crash("nixl/crash.py", "ZeroDivisionError: it <divides>", "Traceback\n  ZeroDivisionError\x00\n"),),
        (SILENCED,),
        Details(str(root), sources(), edits, models),
    )
