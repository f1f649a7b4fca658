"""From a module's facts to the model that ``kvlint inspect`` renders: it asks the analysis and adds none of its own."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from kvlint.analysis.access import accesses
from kvlint.analysis.facts import Facts
from kvlint.analysis.handlers import Root, abort_handlers, thread_roots, threads_by_function
from kvlint.analysis.infer import Writer, carries_live_statuses, subject_of, writer_of
from kvlint.analysis.places import Place
from kvlint.analysis.plans import failure_recorder
from kvlint.analysis.removals import RemovalSite, Verdict
from kvlint.analysis.roles import (
    bases_in_doubt,
    effective_methods,
    is_passed_on,
    opening_members,
    readers_of,
    terminal_helpers_of,
)
from kvlint.analysis.subject import StatusEnum, Subject
from kvlint.analysis.threads import Thread
from kvlint.analysis.values import ABSENT as NOTHING
from kvlint.analysis.values import EXCEPTION, STATUS, Stored
from kvlint.analysis.workers import Drop
from kvlint.report.inspect_model import (
    ABSENT,
    FOREIGN,
    AbortModel,
    Catalogue,
    CellModel,
    Dict,
    DropModel,
    Enum,
    FileModel,
    Keeper,
    Member,
    Named,
    Row,
    Runner,
    Site,
    Spot,
    Toucher,
    Undecided,
    WriteModel,
    WriterModel,
)
from kvlint.semantics.constants import Member as EnumMember
from kvlint.semantics.hierarchy import ClassInfo, Method
from kvlint.semantics.module import Module
from kvlint.source.display import DisplayPaths, printable

_ROLES = {
    Thread.WORKER: "takes items; concludes none as far as is known",
    Thread.LISTENER: "receives messages",
    Thread.BACKGROUND: "runs beside the others",
    Thread.SCHEDULER: "is called by the scheduler",
}


def file_model(facts: Facts, display: str, names: DisplayPaths) -> FileModel:
    """The model of one file, shown as ``display``; ``names`` gives the paths of the files that it draws on."""
    return _Builder(facts, display, names).file()


class _Builder:
    """Asks the facts of one file, in the order of the model."""

    def __init__(self, facts: Facts, display: str, names: DisplayPaths) -> None:
        self._names = names
        self._display = printable(display)
        self._facts = facts
        self._threads = threads_by_function(facts.world, facts.related)

    def file(self) -> FileModel:
        facts = self._facts
        catalogues = tuple(self._catalogues())
        writers = tuple(self._writer(writer) for writer in facts.writers)
        writes = tuple(self._writes())
        return FileModel(
            path=self._display,
            enums=tuple(self._enum(enum) for enum in facts.enums),
            classes=tuple(self._keeper(cls, subject) for cls, subject in self._subjects()),
            writers=writers,
            writes=writes,
            threads=tuple(self._runner(root) for root in thread_roots(facts.world, facts.module)),
            abort_handlers=tuple(
                AbortModel(handler.place.qualified, handler.first_line, handler.last_line, handler.reason)
                for handler in abort_handlers(facts.world, facts.module)
            ),
            removals=catalogues,
            dicts=tuple(self._dicts()),
            drops=tuple(self._drop(drop) for drop in facts.drops),
            undecided=tuple(self._undecided(catalogues, writers, writes)),
        )

    def _subjects(self) -> Iterator[tuple[ClassInfo, Subject]]:
        for cls in self._facts.managers:
            subject = subject_of(cls)
            if subject is not None:
                yield cls, subject

    # -- places ---------------------------------------------------------------

    def _spot(self, line: int, module: Module) -> Spot:
        if module is self._facts.module:
            return Spot(self._display, line, "")
        folder, name = os.path.split(module.path)
        brief = f"{os.path.basename(folder)}/{name}"
        return Spot(printable(self._names.of(module.path, self._facts.path)), line, printable(brief))

    def _named(self, method: Method, detail: str = "") -> Named:
        return Named(method.owner.name, method.node.name, self._spot(method.node.lineno, method.owner.module), detail)

    def _threads_of(self, place: Place) -> tuple[str, ...]:
        kinds = self._threads.get(place.node, frozenset())
        return tuple(kind.value for kind in Thread if kind in kinds)

    # -- statuses and classes ---------------------------------------------------

    def _enum(self, enum: StatusEnum) -> Enum:
        owner = enum.info.owner
        opening = opening_members(self._facts.world, self._facts.related, enum)
        letters = enum.letters()

        def member(name: str) -> Member:
            held = enum.value(name)
            value = repr(held.value if isinstance(held, EnumMember) else held)
            if name in enum.failures:
                return Member(name, value, letters[name], "failure")
            if name in enum.successes:
                return Member(name, value, letters[name], "success")
            return Member(name, value, letters[name], "opening" if name in opening else "live")

        spot = self._spot(owner.node.lineno, owner.module)
        return Enum(owner.name, spot, not spot.brief, tuple(member(name) for name in enum.members))

    def _keeper(self, cls: ClassInfo, subject: Subject) -> Keeper:
        named = [method for method in effective_methods(cls) if method.node.name in subject.writers]
        reached = [writer for method in named if (writer := writer_of(cls, method, subject)) is not None]
        recorder = failure_recorder(cls, subject)
        recording = None if recorder is None else cls.lookup(recorder)
        return Keeper(
            name=cls.name,
            spot=self._spot(cls.node.lineno, cls.module),
            enum=subject.enum.info.owner.name,
            kind=subject.kind,
            attribute=subject.attribute,
            bases=tuple(entry.name for entry in cls.family()[1:]),
            missing_bases=cls.missing_bases,
            writers=tuple(self._named(writer.method, _what_it_does(writer)) for writer in reached if writer.primary),
            passing_on=tuple(self._named(writer.method) for writer in reached if not writer.primary),
            readers=tuple(self._named(method) for method in readers_of(cls)),
            recorder=None if recording is None else self._named(recording),
            helpers=tuple(self._named(helper.method, ", ".join(helper.members)) for helper in terminal_helpers_of(cls)),
        )

    def _writer(self, writer: Writer) -> WriterModel:
        table, enum = writer.table, writer.subject.enum

        def name_of(stored: Stored) -> str:
            return ABSENT if stored is NOTHING else enum.name_of(stored) or FOREIGN

        cells: dict[str, dict[str, CellModel]] = {}
        for (stored, written), cell in table.cells.items():
            outcomes = tuple(sorted(name_of(outcome) for outcome in cell.outcomes)) if cell.decided else None
            cells.setdefault(name_of(stored), {})[written] = CellModel(outcomes, cell.decided and cell.raises)
        return WriterModel(
            path=self._display,
            line=writer.method.node.lineno,
            cls=writer.cls.name,
            name=writer.name,
            enum=enum.info.owner.name,
            attribute=writer.subject.attribute,
            judged=writer in self._facts.judged_writers,
            table=table.notation,
            rows=tuple(
                Row(name_of(stored), ABSENT if stored is NOTHING else enum.letters()[name_of(stored)], symbols, notes)
                for stored, symbols in table.rows
                for notes in (tuple(_notes(writer, name_of(stored), cells[name_of(stored)])),)
            ),
            cells=cells,
            undecided=sum(not cell.decided for cell in table.cells.values()),
        )

    def _writes(self) -> Iterator[WriteModel]:
        for write in self._facts.writes:
            yield WriteModel(
                line=self._facts.location(write.node).span.line,
                function=write.place.qualified,
                threads=self._threads_of(write.place),
                statuses=write.members,
                attribute=write.subject.attribute,
                kind=write.subject.kind,
                direct=write.writer is None,
                passed_on=is_passed_on(write),
            )

    # -- threads ------------------------------------------------------------------

    def _runner(self, root: Root) -> Runner:
        facts = self._facts
        worker = next((worker for worker in facts.workers if worker.place is root.place), None)
        if worker is None:
            role = _ROLES[root.thread]
            if root.takes_items and root.takes_messages:
                role = "receives messages and takes items"
        elif worker.items is None:
            role = "takes items in a loop and concludes them"
        else:
            role = f"is started for one item ({', '.join(sorted(worker.items))}) and concludes it"
        spot = self._spot(root.place.node.lineno, root.place.module)
        thread = Thread.WORKER.value if worker is not None else root.thread.value
        started = tuple(sorted({facts.location(call).span.line for call in root.starts}))
        return Runner(root.place.qualified, spot, thread, role, worker is not None, started)

    # -- dicts ----------------------------------------------------------------------

    def _tables(self) -> Iterator[tuple[ClassInfo, Subject]]:
        """The classes whose dicts are shown: those with a status table, one of a hierarchy (the most derived)."""
        keepers = [(cls, subject) for cls, subject in self._subjects() if subject.kind == "table"]
        for cls, subject in keepers:
            if not any(other is not cls and cls in other.family() for other, _ in keepers):
                yield cls, subject

    def _catalogues(self) -> Iterator[Catalogue]:
        for cls, _ in self._tables():
            for table in sorted(self._facts.tables):
                sites = self._facts.removals(table, cls)
                if sites:
                    yield Catalogue(cls.name, table, tuple(self._site(site) for site in sites))

    def _site(self, site: RemovalSite) -> Site:
        module = site.place.module
        return Site(
            spot=self._spot(self._facts.location(site.node, module).span.line, module),
            function=site.place.qualified,
            threads=self._threads_of(site.place),
            verdict=site.verdict.value,
            reason=site.reason,
            abort=site.abort,
        )

    def _dicts(self) -> Iterator[Dict]:
        facts = self._facts
        for cls, subject in self._tables():
            found: dict[str, dict[Toucher, None]] = {}
            for access in accesses(facts.world, facts.related, cls, facts.tables):
                module = access.place.module
                spot = self._spot(facts.location(access.node, module).span.line, module)
                for thread in (kind for kind in Thread if kind in access.threads):
                    toucher = Toucher(access.touch.value, thread.value, access.place.qualified, spot)
                    found.setdefault(access.table, {})[toucher] = None
            for name in sorted(found, key=lambda name: (name != subject.attribute, name)):
                yield Dict(cls.name, name, tuple(found[name]))

    # -- drops ----------------------------------------------------------------------

    def _drop(self, drop: Drop) -> DropModel:
        excused, why = self._excuse(drop)
        place = self._facts.place_of(drop.frame)
        module = self._facts.module if place is None else place.module
        enum = drop.worker.subject.enum
        return DropModel(
            worker=drop.worker.place.qualified,
            spot=self._spot(self._facts.location(drop.leave or drop.at, module).span.line, module),
            decided=self._spot(self._facts.location(drop.at, module).span.line, module),
            causes=tuple(_cause(cause) for cause in sorted(drop.causes)),
            statuses=tuple(name for name in enum.members if enum.value(name) in drop.stored),
            excused=excused,
            why=why,
        )

    def _excuse(self, drop: Drop) -> tuple[bool, str]:
        """Whether the catalogue excuses a drop, as KVL002 judges it, and why."""
        if EXCEPTION in drop.causes:
            return False, "an exception was caught, which says nothing about the room"
        unsafe = self._facts.unsafe_removals(drop)
        if unsafe:
            where = " and ".join(dict.fromkeys(self._facts.cited(site.node, site.place.module) for site in unsafe))
            return False, f"a removal does not imply that the room has ended: {where}"
        if STATUS in drop.causes:
            return False, "the status that it reads need not be terminal"
        revived = self._facts.revival(drop)
        if revived is not None:
            return False, revived
        cls = drop.worker.holder
        tables = " or ".join(sorted(drop.causes))
        sites = [site for table in drop.causes for site in self._facts.removals(table, cls)] if cls is not None else []
        unknown = sum(site.verdict is Verdict.UNKNOWN for site in sites)
        if not sites:
            return True, f"no removal from {tables} is known"
        if unknown:
            return (
                True,
                f"no removal from {tables} is known to be unsafe, {unknown} of {len(sites)} could not be decided",
            )
        return True, f"every removal from {tables} implies that the room has ended"

    # -- what is not known ------------------------------------------------------------

    def _undecided(
        self, catalogues: Iterable[Catalogue], writers: Iterable[WriterModel], writes: Iterable[WriteModel]
    ) -> Iterator[Undecided]:
        facts = self._facts
        for cls in bases_in_doubt(facts.world, facts.module):
            for base in cls.missing_bases:
                what = f"{base}, base of {cls.name}, was not found: its methods are unknown, nothing is guessed"
                yield Undecided("base", self._spot(cls.node.lineno, cls.module), what)
        for writer in writers:
            if writer.undecided:
                total = sum(len(row) for row in writer.cells.values())
                what = f"{writer.undecided} of {total} cells of {writer.cls}.{writer.name}"
                yield Undecided("cell", Spot(writer.path, writer.line, ""), what)
        for write in writes:
            if not write.statuses and not write.passed_on:
                yield Undecided("write", Spot(self._display, write.line, ""), f"which status {write.function} writes")
        for catalogue in catalogues:
            for site in catalogue.sites:
                if site.verdict == Verdict.UNKNOWN.value:
                    what = f"the removal from {catalogue.table} in {site.function}: {site.reason}"
                    yield Undecided("removal", site.spot, what)


def _cause(cause: str) -> str:
    return {STATUS: "the status", EXCEPTION: "an exception"}.get(cause, cause)


def _notes(writer: Writer, stored: str, row: dict[str, CellModel]) -> Iterator[str]:
    """What a reviewer would remark on a row of a transition table."""
    letters = writer.subject.enum.letters()

    def letters_of(names: Iterable[str]) -> str:
        return " ".join(letters[name] for name in dict.fromkeys(names))

    changed = [written for written, cell in row.items() if cell.outcomes is not None and cell.outcomes != (stored,)]
    over = [written for name, written, _ in writer.table.overwritten() if name == stored]
    lost = [written for name, written in writer.table.lost_failures() if name == stored]
    raising = [written for written, cell in row.items() if cell.raises]
    if stored == ABSENT and changed:
        yield f"created by {letters_of(changed)}"
    if over:
        yield f"replaced by {letters_of(over)}"
    if lost:
        yield f"loses {letters_of(lost)}"
    if stored in writer.subject.enum.terminals and not changed and all(cell.outcomes for cell in row.values()):
        yield "final"
    if raising:
        yield f"may raise on {letters_of(raising)}"


def _what_it_does(writer: Writer) -> str:
    if writer.subject.kind == "attribute" and not carries_live_statuses(writer):
        return "not judged: nothing here gives it live statuses and failures"
    return writer.table.notation
