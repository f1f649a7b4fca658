"""The model for people at a terminal: per file a few short, aligned tables.

Lines of the file itself are ``:12``, those of others ``folder/file.py:12``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kvlint.report.colour import BOLD, CYAN, DIM, RED, YELLOW, paint
from kvlint.report.inspect_model import (
    ABSENT,
    Catalogue,
    Dict,
    DropModel,
    Enum,
    FileModel,
    Keeper,
    Named,
    Spot,
    WriteModel,
    WriterModel,
)
from kvlint.source.display import one_line

_VERDICTS = {"unsafe": RED, "unknown": YELLOW, "safe": ""}
_TOUCHES = {"read": "r", "written": "w", "removed": "d"}
_UNDECIDED = {"base": "base", "cell": "table", "write": "write"}
_EDGE = "  "
_WIDTH = 110  # beyond which a removal's reason gets a line of its own
_Table = Sequence[Sequence[str]]


def render(models: Sequence[FileModel], without: Sequence[str], colour: bool) -> str:
    """The files that take part in a protocol, those that only mention one, those that do not speak of any."""
    blocks = ["\n".join(_file(model, colour)) + "\n" for model in models if model.takes_part]
    mentions = [model for model in models if not model.takes_part]
    tail = [f"{one_line(path)}: no status protocol\n" for path in without]
    for model in mentions:
        enums = " and ".join(enum.name for enum in model.enums)
        tail.append(f"{one_line(model.path)}: mentions {enums}, keeps and writes no status\n")
    return "\n".join([*blocks, *(["".join(tail)] if tail else [])])


def _file(model: FileModel, colour: bool) -> Iterator[str]:
    yield paint(one_line(model.path), BOLD, colour)
    judged = [writer for writer in model.writers if writer.judged]
    sections = (
        *(_enum(enum) for enum in model.enums),
        *(_keeper(keeper, judged) for keeper in model.classes),
        *(_writer(writer, colour) for writer in judged),
        *_writes(model),
        _section("Threads (what none of them reaches counts as the scheduler's)", _threads(model)),
        _section("Abort handlers, and the functions that they call", _aborts(model)),
        *(_catalogues(model, colour)),
        *_dicts(model),
        _drops(model, colour),
        _undecided(model, colour),
    )
    for section in sections:
        lines = list(section)
        if lines:
            yield ""
            title, *rest = lines
            yield _EDGE + paint(title, CYAN, colour)
            yield from (f"{_EDGE * 2}{line}".rstrip() for line in rest)


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    for index, line in enumerate(lines):
        if index == 0:
            yield title
        yield line


def _aligned(rows: _Table) -> list[str]:
    """Rows as lines; every column but the last is as wide as its widest cell."""
    columns = range(max(map(len, rows), default=0))
    widths = [max(len(row[column]) for row in rows if column < len(row)) for column in columns]
    return ["  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=False)).rstrip() for row in rows]


def _at(spot: Spot) -> str:
    return f"{one_line(spot.brief)}:{spot.line}"


# -- statuses, classes, writers -------------------------------------------------


def _enum(enum: Enum) -> Iterator[str]:
    yield f"Status enum {enum.name}  {_at(enum.spot)}"
    yield from _aligned([(member.letter, member.name, member.value, member.role) for member in enum.members])
    if not enum.has_failure:
        yield "no member is a failure: nothing can be said of failures that get lost"


def _keeper(keeper: Keeper, writers: Sequence[WriterModel]) -> Iterator[str]:
    what = f"keeps {keeper.enum} per room in {keeper.attribute}"
    if keeper.kind == "attribute":
        what = f"keeps its own {keeper.enum} in {keeper.attribute}"
    yield f"{keeper.name}  {_at(keeper.spot)}  {what}"
    rows = [("bases", ", ".join(keeper.bases))] if keeper.bases else []
    rows += [("not found", f"{base}: its methods are unknown, nothing is guessed") for base in keeper.missing_bases]
    for method in keeper.writers:
        is_below = any((writer.cls, writer.line) == (method.cls, method.spot.line) for writer in writers)
        rows.append(("writer", f"{_method(keeper, method)}  {'table below' if is_below else method.detail}"))
    if not keeper.writers:
        rows.append(("writer", "none found"))
    rows += _rows(keeper, "hands on", keeper.passing_on)
    rows += _rows(keeper, "reader", keeper.readers)
    rows += _rows(keeper, "recorder", (keeper.recorder,) if keeper.recorder is not None else ())
    rows += _rows(keeper, "concludes", keeper.helpers)
    yield from _aligned(rows)


def _rows(keeper: Keeper, label: str, methods: Iterable[Named]) -> list[tuple[str, str]]:
    return [
        (label, _method(keeper, method) + (f"  writes {method.detail}" if method.detail else "")) for method in methods
    ]


def _method(keeper: Keeper, method: Named) -> str:
    owner = "" if method.cls == keeper.name else f"{method.cls}."
    return f"{owner}{method.name}  {_at(method.spot)}"


def _writer(writer: WriterModel, colour: bool) -> Iterator[str]:
    yield f"Writer {writer.cls}.{writer.name}  :{writer.line}"
    yield writer.table
    if not writer.rows:
        return
    wide = max(len(row.stored) for row in writer.rows)
    cell = max(len(symbol) for row in writer.rows for symbol in row.symbols) + 2
    header = "".join(f"{row.letter:^{cell}}" for row in writer.rows if row.stored != ABSENT)
    yield paint(f"{'stored':{wide + 4}}{header.rstrip()}   (written)", DIM, colour)
    for row in writer.rows:
        name = "nothing" if row.stored == ABSENT else row.stored
        symbols = "".join(f"{symbol:^{cell}}" for symbol in row.symbols)
        notes = "; ".join(row.notes)
        yield f"{row.letter} {name:{wide}}  {symbols}   {notes}".rstrip()


def _writes(model: FileModel) -> Iterator[Iterator[str]]:
    """Per place that keeps a status and per thread, each status with the lines that write it."""
    for attribute, kind in dict.fromkeys((write.attribute, write.kind) for write in model.writes):
        grouped: dict[str, dict[str, list[str]]] = {}
        for write in model.writes:
            if (write.attribute, write.kind) == (attribute, kind):
                for thread in write.threads:
                    grouped.setdefault(thread, {}).setdefault(_status(write), []).append(f":{write.line}")
        rows = [
            (thread if index == 0 else "", status, " ".join(lines))
            for thread in sorted(grouped, key=_rank)
            for index, (status, lines) in enumerate(grouped[thread].items())
        ]
        what = attribute if kind == "table" else f"the attribute {attribute} of records"
        yield _section(f"Writes to {what}, by thread", _aligned(rows))


def _status(write: WriteModel) -> str:
    if write.statuses:
        return " or ".join(write.statuses)
    return "what it is given" if write.passed_on else "not known"


# -- threads --------------------------------------------------------------------


def _threads(model: FileModel) -> list[str]:
    rows = []
    for runner in model.threads:
        started = f", started {' '.join(f':{line}' for line in runner.started)}" if runner.started else ""
        rows.append((runner.thread, f"{runner.function}  {_at(runner.spot)}", runner.role + started))
    rows.sort(key=lambda row: _rank(row[0]))
    return _aligned(rows)


def _aborts(model: FileModel) -> list[str]:
    rows = []
    for handler in model.abort_handlers:
        lines = f":{handler.line}" if handler.line == handler.end_line else f":{handler.line}-{handler.end_line}"
        rows.append((lines, handler.function, handler.reason))
    return _aligned(rows) if rows or not model.classes else ["none"]


# -- dicts ----------------------------------------------------------------------


def _catalogues(model: FileModel, colour: bool) -> Iterator[Iterator[str]]:
    for cls in dict.fromkeys(catalogue.cls for catalogue in model.removals):
        shown = [catalogue for catalogue in model.removals if catalogue.cls == cls]
        yield _section(f"Removals from the room tables of {cls}: has the room ended?", _sites(shown, colour))


def _sites(catalogues: Sequence[Catalogue], colour: bool) -> Iterator[str]:
    sites = [(catalogue, site) for catalogue in catalogues for site in catalogue.sites]
    rows = [
        (
            site.verdict,
            _at(site.spot),
            ", ".join(site.threads),
            f"{site.function}{' (abort handler)' if site.abort else ''}",
        )
        for _, site in sites
    ]
    table = ""
    for (catalogue, site), line in zip(sites, _aligned(rows), strict=True):
        if catalogue.table != table:
            table = catalogue.table
            yield table
        style = _VERDICTS[site.verdict]
        painted = paint(site.verdict, style, colour and bool(style)) + line[len(site.verdict) :]
        if len(line) + len(site.reason) > _WIDTH:
            yield f"  {painted}"
            yield f"           {site.reason}"
        else:
            yield f"  {painted}: {site.reason}"


def _dicts(model: FileModel) -> Iterator[Iterator[str]]:
    for cls in dict.fromkeys(entry.cls for entry in model.dicts):
        shown = [entry for entry in model.dicts if entry.cls == cls]
        title = f"Dicts of {cls} and the threads that touch them: r read, w written, d removed from"
        yield _section(title, _matrix(shown))


def _matrix(dicts: Sequence[Dict]) -> list[str]:
    threads = sorted({access.thread for entry in dicts for access in entry.accesses}, key=_rank)
    rows = [("", *threads)]
    for entry in dicts:
        done = {(access.thread, access.touch) for access in entry.accesses}
        cells = (
            "".join(letter if (thread, touch) in done else "-" for touch, letter in _TOUCHES.items())
            for thread in threads
        )
        rows.append((entry.name, *cells))
    return _aligned(rows)


def _rank(thread: str) -> int:
    order = ("scheduler", "listener", "worker")
    return order.index(thread) if thread in order else len(order)


def _drops(model: FileModel, colour: bool) -> Iterator[str]:
    lines = [line for drop in model.drops for line in _drop(drop, colour)]
    if not lines and any(runner.concludes for runner in model.threads):
        lines = ["none"]
    return _section("Work items dropped while their room may be waiting", lines)


def _drop(drop: DropModel, colour: bool) -> Iterator[str]:
    verdict = "excused" if drop.excused else paint("not excused", RED, colour)
    decided = "" if drop.decided == drop.spot else f", decided at {_at(drop.decided)}"
    yield f"{_at(drop.spot)}  {drop.worker}, because of {' and '.join(drop.causes)}{decided}"
    yield f"  the status may be {' or '.join(drop.statuses)}"
    yield f"  {verdict}: {drop.why}"


def _undecided(model: FileModel, colour: bool) -> Iterator[str]:
    rows = [(_UNDECIDED[item.kind], _at(item.spot), item.what) for item in model.undecided if item.kind != "removal"]
    removals = [_at(item.spot) for item in model.undecided if item.kind == "removal"]
    if removals:
        rows.append(("removals", f"{len(removals)}", f"marked unknown above: {' '.join(removals)}"))
    lines = [paint(line, YELLOW, colour) for line in _aligned(rows)] or ["nothing"]
    return _section("Not decided", lines)
