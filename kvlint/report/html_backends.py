"""What the HTML page shows of the backends: the model of ``kvlint inspect``, arranged for its templates, no markup."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kvlint.report.inspect_model import (
    ABSENT,
    FOREIGN,
    Catalogue,
    CellModel,
    Dict,
    DropModel,
    Enum,
    FileModel,
    Keeper,
    Runner,
    Spot,
    WriteModel,
    WriterModel,
)
from kvlint.source.display import one_line

#: What a cell of a transition table may mean, and how the legend puts it.
MEANINGS = {
    "kept": "the stored status stays",
    "moves": "the status changes",
    "creates": "the write creates the room",
    "ends": "one terminal status replaces another",
    "bad": "a terminal status is lost",
    "lost": "a failure is not stored",
    "unknown": "not decided",
}
#: The sign of each, for those who do not see the colours.
MARKS = {"kept": "=", "moves": "→", "creates": "+", "ends": "↔", "bad": "✗", "lost": "!", "unknown": "?"}
_TOUCHES = {"read": "read", "written": "written", "removed": "removed from"}
_UNDECIDED = {"base": "base class", "cell": "transition table", "removal": "removal", "write": "write"}
_ORDER = ("scheduler", "listener", "worker")


@dataclass(frozen=True, slots=True)
class CellView:
    """A cell of a grid: what is stored afterwards, and a key of `MEANINGS`."""

    text: str
    meaning: str
    raises: bool


@dataclass(frozen=True, slots=True)
class GridView:
    """A transition table: ``rows`` are a stored status, its cells by written status, and notes."""

    writer: str
    place: str
    notation: str
    written: tuple[str, ...]
    rows: tuple[tuple[str, tuple[CellView, ...], str], ...]


@dataclass(frozen=True, slots=True)
class TableView:
    """A plain table; the first column heads each row.  ``verdicts`` says whether the second column holds verdicts."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    verdicts: bool = False


@dataclass(frozen=True, slots=True)
class BackendView:
    """A file; ``anchor`` is an identifier for the page."""

    anchor: str
    path: str
    keeps: tuple[str, ...]
    grids: tuple[GridView, ...]
    tables: tuple[TableView, ...]
    undecided: tuple[tuple[str, str, str], ...]


def backend_views(models: Iterable[FileModel]) -> list[BackendView]:
    """The files of ``models``, in their order."""
    return [_backend(number, model) for number, model in enumerate(models, 1)]


def _backend(number: int, model: FileModel) -> BackendView:
    return BackendView(
        f"backend-{number}",
        one_line(model.path),
        tuple(_keeps(keeper) for keeper in model.classes),
        tuple(_grid(writer, model.enums) for writer in model.writers if writer.judged and writer.rows),
        tuple(table for table in _tables(model) if table.rows),
        tuple((_UNDECIDED[item.kind], _at(item.spot), item.what) for item in model.undecided),
    )


def _at(spot: Spot) -> str:
    return f"{one_line(spot.brief)}:{spot.line}" if spot.brief else f"line {spot.line}"


def _keeps(keeper: Keeper) -> str:
    what = f"per room in {keeper.attribute}" if keeper.kind == "table" else f"of its own in {keeper.attribute}"
    return f"{keeper.name} ({_at(keeper.spot)}) keeps {keeper.enum} {what}."


# -- transition tables ------------------------------------------------------------


def _grid(writer: WriterModel, enums: Sequence[Enum]) -> GridView:
    roles = {member.name: member.role for enum in enums if enum.name == writer.enum for member in enum.members}
    written = tuple(row.stored for row in writer.rows if row.stored != ABSENT)
    rows = tuple(
        (
            "nothing" if row.stored == ABSENT else row.stored,
            tuple(_cell(row.stored, name, writer.cells[row.stored][name], roles) for name in written),
            "; ".join(_spelled(note, writer) for note in row.notes),
        )
        for row in writer.rows
    )
    return GridView(f"{writer.cls}.{writer.name}", f"line {writer.line}", writer.table, written, rows)


def _spelled(note: str, writer: WriterModel) -> str:
    """A note with the members' names for their letters, which the grid does not show."""
    names = {row.letter: row.stored for row in writer.rows if row.stored != ABSENT}
    words = note.split()
    told = [names.get(word, word) for word in words]
    listed = [name for word, name in zip(words, told, strict=True) if word in names]
    plain = [word for word in words if word not in names]
    return " ".join(plain) + (f" {', '.join(listed)}" if listed else "")


def _cell(stored: str, written: str, cell: CellModel, roles: Mapping[str, str]) -> CellView:
    if cell.outcomes is None:
        return CellView("?", "unknown", cell.raises)
    if not cell.outcomes:
        return CellView("never returns", "unknown", cell.raises)
    names = {ABSENT: "nothing", FOREIGN: "something else"}
    text = " or ".join(names.get(outcome, outcome) for outcome in cell.outcomes)
    return CellView(text, _meaning(stored, written, cell.outcomes, roles), cell.raises)


def _meaning(stored: str, written: str, outcomes: Sequence[str], roles: Mapping[str, str]) -> str:
    others = [outcome for outcome in outcomes if outcome != stored]
    kept, role = roles.get(stored, ""), roles.get
    if kept == "failure" or (kept == "success" and any(role(name) not in ("failure", "success") for name in others)):
        return "bad" if others else "kept"
    if kept == "success":
        return "ends" if others else "kept"
    if stored != ABSENT and role(written) == "failure" and any(role(name) != "failure" for name in outcomes):
        return "lost"
    if not others:
        return "kept"
    return "creates" if stored == ABSENT else "moves"


# -- the rest -----------------------------------------------------------------------


def _tables(model: FileModel) -> Iterable[TableView]:
    for enum in model.enums:
        yield TableView(
            f"Status enum {enum.name} ({_at(enum.spot)})",
            ("member", "value", "role"),
            tuple((member.name, member.value, member.role) for member in enum.members),
        )
    yield TableView(
        "Threads (what none of them reaches counts as the scheduler's)",
        ("function", "thread", "place", "role"),
        tuple(
            (runner.function, runner.thread, _at(runner.spot), runner.role + _started(runner))
            for runner in sorted(model.threads, key=lambda runner: _rank(runner.thread))
        ),
    )
    yield TableView(
        "Writes of a status",
        ("place", "function", "threads", "status", "kept in"),
        tuple(
            (f"line {write.line}", write.function, ", ".join(write.threads), _status(write), write.attribute)
            for write in model.writes
        ),
    )
    yield TableView(
        "Abort handlers, and the functions that they call",
        ("lines", "function", "why"),
        tuple(
            (f"{handler.line} to {handler.end_line}", handler.function, handler.reason)
            for handler in model.abort_handlers
        ),
    )
    for cls in dict.fromkeys(catalogue.cls for catalogue in model.removals):
        yield _removals(cls, [catalogue for catalogue in model.removals if catalogue.cls == cls])
    for cls in dict.fromkeys(entry.cls for entry in model.dicts):
        yield _dicts(cls, [entry for entry in model.dicts if entry.cls == cls])
    yield TableView(
        "Work items dropped while their room may be waiting",
        ("place", "verdict", "worker", "because of", "status may be", "why"),
        tuple(_drop(drop) for drop in model.drops),
        verdicts=True,
    )


def _removals(cls: str, catalogues: Sequence[Catalogue]) -> TableView:
    return TableView(
        f"Pop-site catalogue of {cls}: has the room ended when it is removed?",
        ("place", "verdict", "removed from", "function", "threads", "reason"),
        tuple(
            (
                _at(site.spot),
                site.verdict,
                catalogue.table,
                site.function + (" (abort handler)" if site.abort else ""),
                ", ".join(site.threads),
                site.reason,
            )
            for catalogue in catalogues
            for site in catalogue.sites
        ),
        verdicts=True,
    )


def _dicts(cls: str, dicts: Sequence[Dict]) -> TableView:
    threads = sorted({access.thread for entry in dicts for access in entry.accesses}, key=_rank)
    return TableView(
        f"Dicts of {cls} and what each thread does with them",
        ("dict", *threads),
        tuple((entry.name, *(_touched(entry, thread) for thread in threads)) for entry in dicts),
    )


def _touched(entry: Dict, thread: str) -> str:
    done = {access.touch for access in entry.accesses if access.thread == thread}
    return ", ".join(word for touch, word in _TOUCHES.items() if touch in done) or "nothing"


def _rank(thread: str) -> int:
    return _ORDER.index(thread) if thread in _ORDER else len(_ORDER)


def _started(runner: Runner) -> str:
    return f"; started at line {', '.join(map(str, runner.started))}" if runner.started else ""


def _status(write: WriteModel) -> str:
    return " or ".join(write.statuses) or ("what it is given" if write.passed_on else "not known")


def _drop(drop: DropModel) -> tuple[str, ...]:
    return (
        _at(drop.spot),
        "excused" if drop.excused else "not excused",
        drop.worker,
        " and ".join(drop.causes),
        " or ".join(drop.statuses),
        drop.why,
    )
