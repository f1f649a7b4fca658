"""Everything a rule may see of one module: its protocol, writes, workers, drops and removals."""

from __future__ import annotations

import ast
import os
from functools import cached_property

from msgspec import Struct

from kvlint.analysis.aborts import abort_code
from kvlint.analysis.conclusions import Reach
from kvlint.analysis.evidence import enums_in
from kvlint.analysis.infer import Writer, carries_live_statuses, managers_in, own_writers, subject_of
from kvlint.analysis.places import Place, place_index
from kvlint.analysis.removals import (
    RemovalSite,
    Verdict,
    related_modules,
    removal_sites,
    removals_in,
    revival,
    room_tables,
)
from kvlint.analysis.roles import bases_in_doubt
from kvlint.analysis.subject import StatusEnum, Subject
from kvlint.analysis.threads import Thread, thread_of
from kvlint.analysis.values import EXCEPTION, STATUS
from kvlint.analysis.workers import Drop, Worker, drops_of, workers_in
from kvlint.analysis.writes import Write, writes_in
from kvlint.diagnostics import Location, Span
from kvlint.semantics.hierarchy import ClassInfo, classes_of
from kvlint.semantics.module import Module
from kvlint.semantics.world import World
from kvlint.source.display import one_line
from kvlint.source.text import UnreadableSource


class Facts(Struct, frozen=True, eq=False, dict=True):
    """What is known of one module; computed when first asked for."""

    world: World
    module: Module

    @property
    def path(self) -> str:
        """The module's absolute path."""
        return self.module.path

    @cached_property
    def enums(self) -> tuple[StatusEnum, ...]:
        """The status enums that the module defines or mentions."""
        return enums_in(self.world, self.module)

    @cached_property
    def managers(self) -> tuple[ClassInfo, ...]:
        """The classes that keep a status."""
        return managers_in(self.world, self.module)

    @cached_property
    def classes(self) -> tuple[ClassInfo, ...]:
        """All classes of the module."""
        return classes_of(self.world, self.module)

    @cached_property
    def writers(self) -> tuple[Writer, ...]:
        """The status writers that the module's classes define, in source order."""
        return tuple(writer for cls in self.managers for writer in own_writers(cls))

    @property
    def judged_writers(self) -> tuple[Writer, ...]:
        """The writers whose tables say something: of a status table, or of a record that is written live and failed.

        Where no member of the enum is known to be a failure, none is known to be live either.
        """
        return tuple(
            writer
            for writer in self.writers
            if writer.subject.enum.failures and (writer.subject.kind == "table" or carries_live_statuses(writer))
        )

    @property
    def bases_in_doubt(self) -> tuple[ClassInfo, ...]:
        """The classes that deal with a status and have a base that could not be found."""
        return bases_in_doubt(self.world, self.module)

    @cached_property
    def writes(self) -> tuple[Write, ...]:
        """Every place that writes a status."""
        return writes_in(self.world, self.module)

    @cached_property
    def related(self) -> tuple[Module, ...]:
        """This module and those of its classes' bases."""
        return related_modules(self.world, self.module)

    @cached_property
    def tables(self) -> frozenset[str]:
        """Attributes keyed by rooms, the status table left out."""
        found = room_tables(self.world, self.related)
        return found - {subject.attribute for cls in self.managers if (subject := subject_of(cls)) is not None}

    @cached_property
    def reach(self) -> Reach:
        """What functions of this module may do."""
        return Reach(self.world, self.tables)

    @cached_property
    def workers(self) -> tuple[Worker, ...]:
        """The functions that take and conclude work items."""
        return workers_in(self.world, self.module, self.reach)

    @cached_property
    def drops(self) -> tuple[Drop, ...]:
        """The ways in which workers give an item up while its room is live."""
        judged = (worker for worker in self.workers if worker.subject.enum.failures)
        return tuple(drop for worker in judged for drop in drops_of(worker, self.reach))

    def removals(self, table: str, cls: ClassInfo) -> tuple[RemovalSite, ...]:
        """The pop-site catalogue of a room table of ``cls``'s hierarchy."""
        return removal_sites(self.world, self.module, table, cls, self.reach)

    def unsafe_removals(self, drop: Drop) -> tuple[RemovalSite, ...]:
        """The removals that let a drop decided by a room table alone meet a live room.

        Empty where every removal implies the end of the room.
        """
        cls = drop.worker.holder
        if cls is None:
            return ()
        return tuple(
            site
            for table in sorted(drop.causes - {STATUS, EXCEPTION})
            for site in self.removals(table, cls)
            if site.verdict is Verdict.UNSAFE
        )

    def revival(self, drop: Drop) -> str | None:
        """Why a drop may meet a live room although its removal was safe: a late write revives cleared rooms.

        None where nothing removes rooms from the tables that decided, or the writer refuses to make absent rooms live.
        """
        cls = drop.worker.holder
        tables = drop.causes - {STATUS, EXCEPTION}
        if cls is None or not any(self.removals(table, cls) for table in tables):
            return None
        return revival(cls)

    @cached_property
    def dependents(self) -> tuple[Facts, ...]:
        """Modules nearby whose classes build on this one's: their workers may miss what an abort handler here removes.

        Looked for on disk only where such a handler removes something.
        """
        if not self._removes_in_abort():
            return ()
        names = frozenset(cls.name for cls in self.classes)
        found = []
        for path in self.world.neighbours(self.module, names):
            try:
                other = facts_of(path, self.world)
            except UnreadableSource:
                continue
            if any(base in self.classes for cls in other.classes for base in cls.family()):
                found.append(other)
        return tuple(found)

    def _removes_in_abort(self) -> bool:
        aborts = abort_code(self.world, self.module)
        for table, node, place in removals_in(self.world, self.module):
            if node in aborts and table in self.tables and place.holder is not None:
                for site in self.removals(table, place.holder):
                    if site.node is node and site.verdict is Verdict.UNSAFE:
                        return True
        return False

    def failing_threads(self, subject: Subject) -> dict[Thread, Write]:
        """The threads that store a failure of the enum, here or in the bases' modules, each with its first write.

        Constructors are left out: a room that is failed while it is opened is no race.
        """
        enum = subject.enum
        if enum not in self._failing:
            found: dict[Thread, Write] = {}
            for module in self.related:
                for write in writes_in(self.world, module):
                    failing = write.subject.enum is enum and set(write.members) & set(enum.failures)
                    if failing and not write.place.is_constructor:
                        found.setdefault(thread_of(write.place), write)
            self._failing[enum] = found
        return self._failing[enum]

    @cached_property
    def _failing(self) -> dict[StatusEnum, dict[Thread, Write]]:
        return {}

    def abort_reason(self, node: ast.AST) -> str | None:
        """Why a syntax node belongs to an abort handler, None where it does not."""
        return abort_code(self.world, self.module).get(node)

    def place_of(self, function: ast.AST) -> Place | None:
        """The place of a function's node, in this module or a related one."""
        for module in self.related:
            found = place_index(self.world, module).get(function)
            if found is not None:
                return found
        return None

    def location(self, node: ast.AST, module: Module | None = None) -> Location:
        """Where a node stands; of a compound statement, its header."""
        where = (module or self.module).location(node)
        end = _header_end(node)
        if end is None:
            return where
        tail = (module or self.module).location(end).span
        span = Span(where.span.line, where.span.column, tail.end_line, tail.end_column)
        return Location(where.path, span)

    def cited(self, node: ast.AST, module: Module | None = None) -> str:
        """``folder/file.py:line``, for messages."""
        path = (module or self.module).path
        shown = f"{os.path.basename(os.path.dirname(path))}/{os.path.basename(path)}"
        return f"{one_line(shown)}:{node.lineno}"  # type: ignore[attr-defined]


def _header_end(node: ast.AST) -> ast.AST | None:
    match node:
        case ast.If(test=test) | ast.While(test=test):
            return test
        case ast.For(iter=iterable) | ast.AsyncFor(iter=iterable):
            return iterable
        case ast.ExceptHandler(type=kind):
            return kind if kind is not None else _Point(node)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return _Point(
                node, len("async def " if isinstance(node, ast.AsyncFunctionDef) else "def ") + len(node.name)
            )
        case ast.Try() | ast.With() | ast.Match() | ast.ClassDef():
            return _Point(node)
        case _:
            return None


class _Point(ast.AST):
    """A spot at the start of a node, ``width`` bytes wide."""

    def __init__(self, node: ast.AST, width: int = 1) -> None:
        super().__init__()
        self.lineno = self.end_lineno = node.lineno  # type: ignore[attr-defined]
        self.col_offset = node.col_offset  # type: ignore[attr-defined]
        self.end_col_offset = node.col_offset + width  # type: ignore[attr-defined]


def facts_of(path: str, world: World) -> Facts:
    """The facts of the module at absolute ``path``.

    Raises UnreadableSource where it cannot be read, decoded or parsed.
    """
    key = ("facts", path)
    known = world.memo.get(key)
    if not isinstance(known, Facts):
        known = world.memo[key] = Facts(world, world.module(path))
    return known
