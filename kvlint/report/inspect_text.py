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
_UNDECIDED = {"base": "base", "cell": "table", "removal": "removal", "write": "write"}
_EDGE = "  "
_Table = Sequence[Sequence[str]]


def render(models: Sequence[FileModel], without: Sequence[str], colour: bool) -> str:
    """The files that take part in a protocol, those that only mention one, those that do not speak of any."""
    blocks = ["\n".join(_file(model, colour)) + "\n" for model in models if model.takes_part]
    mentions = [model for model in models if not model.takes_part]
    tail = [f"{one_line(path)}: no status protocol\n" for path in without]
    tail += (
        f"{one_line(model.path)}: mentions {', '.join(enum.name for enum in model.enums)}, keeps and writes no status\n"
        for model in mentions
    )
    return "\n".join([*blocks, *(["".join(tail)] if tail else [])])


def _file(model: FileModel, colour: bool) -> Iterator[str]:
    yield paint(one_line(model.path), BOLD, colour)
    sections = (
        *(_enum(enum) for enum in model.enums),
        *(_keeper(keeper) for keeper in model.classes),
        *(_writer(writer, colour) for writer in model.writers if writer.judged),
        _section("Status writes, by thread", _writes(model)),
        _section("Threads", _threads(model)),
        _section("Abort handlers", _aborts(model)),
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
    widths = [max(len(row[index]) for row in rows if index < len(row)) for index in range(max(map(len, rows), default=0))]
    return ["  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=False)).rstrip() for row in rows]


def _at(spot: Spot) -> str:
    return f"{one_line(spot.brief)}:{spot.line}"


# -- statuses, classes, writers -------------------------------------------------


def _enum(enum: Enum) -> Iterator[str]:
    where = "" if enum.is_defined_here else "  mentioned here"
    yield f"Status enum {enum.name}  {_at(enum.spot)}{where}"
    yield from _aligned([(member.letter, member.name, member.value, member.role) for member in enum.members])
    if not enum.has_failure:
        yield "no member is a failure: nothing can be said of failures that get lost"


def _keeper(keeper: Keeper) -> Iterator[str]:
    what = f"keeps {keeper.enum} per room in {keeper.attribute}"
    if keeper.kind == "attribute":
        what = f"keeps its own {keeper.enum} in {keeper.attribute}"
    yield f"{keeper.name}  {_at(keeper.spot)}  {what}"
    rows = [("bases", ", ".join(keeper.bases))] if keeper.bases else []
    rows += [("not found", f"{base}: methods behind it are unknown, nothing is guessed") for base in keeper.missing_bases]
    rows += [("writer", f"{_method(keeper, method)}  {method.detail}") for method in keeper.writers]
    if not keeper.writers:
        rows.append(("writer", "none found"))
    rows += _rows(keeper, "passes on", keeper.passing_on)
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


def _writes(model: FileModel) -> list[str]:
    """Per attribute and thread, each status with the lines that write it."""
    grouped: dict[tuple[str, str], dict[str, list[str]]] = {}
    for write in model.writes:
        for thread in write.threads:
            grouped.setdefault((write.attribute, thread), {}).setdefault(_status(write), []).append(f":{write.line}")
    several = len({attribute for attribute, _ in grouped}) > 1
    rows = []
    for (attribute, thread), statuses in grouped.items():
        listed = "; ".join(f"{status} {' '.join(lines)}" for status, lines in statuses.items())
        rows.append((*((attribute,) if several else ()), thread, listed))
    return _aligned(sorted(rows)) if rows else []


def _status(write: WriteModel) -> str:
    if write.statuses:
        return " or ".join(write.statuses)
    return "what it is given" if write.passed_on else "not known"


# -- threads --------------------------------------------------------------------


def _threads(model: FileModel) -> list[str]:
    rows = []
    for runner in model.threads:
        started = "".join(f", started :{line}" for line in runner.started)
        rows.append((runner.thread, f"{runner.function}  {_at(runner.spot)}", runner.role + started))
    return _aligned(rows)


def _aborts(model: FileModel) -> list[str]:
    rows = []
    for handler in model.abort_handlers:
        lines = f":{handler.line}" if handler.line == handler.end_line else f":{handler.line}-{handler.end_line}"
        rows.append((lines, handler.function, "by its name" if handler.is_whole else handler.reason))
    return _aligned(rows)


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
            f"{site.function}{' (abort handler)' if site.abort else ''}: {site.reason}",
        )
        for _, site in sites
    ]
    table = ""
    for (catalogue, site), line in zip(sites, _aligned(rows), strict=True):
        if catalogue.table != table:
            table = catalogue.table
            yield table
        style = _VERDICTS[site.verdict]
        painted = paint(site.verdict, style, colour and bool(style))
        yield f"  {painted}{line[len(site.verdict) :]}"


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
            " ".join(letter if (thread, touch) in done else "." for touch, letter in _TOUCHES.items())
            for thread in threads
        )
        rows.append((entry.name, *cells))
    return _aligned(rows)


def _rank(thread: str) -> int:
    order = ("scheduler", "listener", "worker")
    return order.index(thread) if thread in order else len(order)


def _drops(model: FileModel, colour: bool) -> Iterator[str]:
    lines = [line for drop in model.drops for line in _drop(drop, colour)]
    takers = [runner for runner in model.threads if "concludes" in runner.role]
    if not lines and takers:
        lines = ["none"]
    return _section("Work items dropped while their room may be waiting", lines)


def _drop(drop: DropModel, colour: bool) -> Iterator[str]:
    verdict = "excused" if drop.excused else paint("not excused", RED, colour)
    decided = "" if drop.decided == drop.spot else f", decided at {_at(drop.decided)}"
    yield f"{_at(drop.spot)}  {drop.worker}, because of {' and '.join(drop.causes)}{decided}"
    yield f"  the status may be {' or '.join(drop.statuses)}; {verdict}: {drop.why}"


def _undecided(model: FileModel, colour: bool) -> Iterator[str]:
    rows = [(_UNDECIDED[item.kind], _at(item.spot), item.what) for item in model.undecided]
    lines = [paint(line, YELLOW, colour) for line in _aligned(rows)] or ["nothing"]
    return _section("Not decided", lines)
