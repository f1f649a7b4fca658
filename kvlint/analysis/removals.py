"""The pop-site catalogue: every removal from a room table, and whether the room has ended when it happens."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct

from kvlint.analysis.aborts import abort_code
from kvlint.analysis.conclusions import Reach
from kvlint.analysis.infer import Writer, subject_of, writer_for
from kvlint.analysis.places import Place, callees, places_of
from kvlint.analysis.runs import run_once
from kvlint.analysis.states import State
from kvlint.analysis.subject import Subject
from kvlint.analysis.threads import Thread, thread_of
from kvlint.analysis.values import ABSENT, UNDECIDED, Stored
from kvlint.analysis.writes import writes_in
from kvlint.protocol import SHUTDOWN_WORDS, words_of
from kvlint.semantics.hierarchy import ClassInfo
from kvlint.semantics.module import Module
from kvlint.semantics.world import World

_REMOVERS = frozenset({"pop", "popitem", "clear", "discard", "remove", "__delitem__"})
_MAX_CALLERS = 4  # how far up the call graph a removal in a helper is followed


class Verdict(StrEnum):
    """Whether a removal implies that the room has ended."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    UNKNOWN = "unknown"


class RemovalSite(Struct, frozen=True, eq=False, dict=True):
    """One removal in the source and its verdict; ``abort`` says why it is an abort handler's, None where it is not."""

    table: str
    node: ast.AST
    place: Place
    verdict: Verdict
    reason: str
    abort: str | None


def room_tables(world: World, modules: tuple[Module, ...]) -> frozenset[str]:
    """Attributes keyed by rooms: some function uses one key both for them and for the status."""
    configured = {name for override in world.config.protocol for name in override.room_tables}
    words = {word for module in modules if module.is_candidate for word in _status_words(world, module)}
    return frozenset(
        configured.union(
            *(
                _keyed_like_status(world, module)
                for module in modules
                # Code that uses a status by its key names the table or a writer.
                if module.is_candidate or any(word in module.source.text for word in words)
            )
        )
    )


def _status_words(world: World, module: Module) -> frozenset[str]:
    subjects = {subject for place in places_of(world, module) if (subject := place.subject) is not None}
    return frozenset(word for subject in subjects for word in (subject.attribute, *subject.writers))


def _keyed_like_status(world: World, module: Module) -> frozenset[str]:
    key = ("room tables", module)
    known = world.memo.get(key)
    if not isinstance(known, frozenset):
        found: set[str] = set()
        for place in places_of(world, module):
            subject = place.subject
            if subject is None:
                continue
            keyed: dict[str, set[str]] = {}
            status_keys: set[str] = set()
            for node in place.nodes(ast.Subscript, ast.Compare, ast.Call):
                for attribute, text in _keyed_access(place, node, subject):
                    if attribute == subject.attribute or attribute in subject.writers:
                        status_keys.add(text)
                    else:
                        keyed.setdefault(attribute, set()).add(text)
            found |= {attribute for attribute, keys in keyed.items() if keys & status_keys}
        known = world.memo[key] = frozenset(found)
    return known


def _keyed_access(place: Place, node: ast.AST, subject: Subject) -> Iterator[tuple[str, str]]:
    """(attribute, key text) of every access by key; a call of a writer counts as one of the status."""
    match node:
        case ast.Subscript(value=owner, slice=index):
            pass
        case ast.Compare(left=index, ops=[ast.In() | ast.NotIn()], comparators=[owner]):
            pass
        case ast.Call(func=ast.Attribute(attr=name), args=[index, *_]) if name in subject.writers:
            yield name, ast.unparse(index)
            return
        case ast.Call(func=ast.Attribute(value=owner, attr=name), args=[index, *_]):
            if name not in {"get", "pop", "setdefault", "discard", "remove", "__contains__"}:
                return
        case _:
            return
    table = _table_name(place, owner) if isinstance(index, ast.Name | ast.Attribute) else None
    if table is not None:
        yield table, ast.unparse(index)


def removals_in(world: World, module: Module) -> tuple[tuple[str, ast.AST, Place], ...]:
    """(attribute, removing node, function) of every removal from an attribute in ``module``."""
    key = ("removals", module)
    known = world.memo.get(key)
    if not isinstance(known, tuple):
        known = world.memo[key] = tuple(
            (table, node, place)
            for place in places_of(world, module)
            for node in place.nodes(ast.Call, ast.Delete)
            for table in _removed_tables(place, node)
        )
    return known


def _removed_tables(place: Place, node: ast.AST) -> Iterator[str]:  # noqa: C901 - one arm a kind
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in _REMOVERS:
            table = _table_name(place, owner)
            if table is not None:
                yield table
        case ast.Call(func=ast.Name(id=name)):  # remove = self.infos.pop; remove(room)
            for value in place.assigned(name):
                if isinstance(value, ast.Attribute) and value.attr in _REMOVERS:
                    table = _table_name(place, value.value)
                    if table is not None:
                        yield table
        case ast.Delete(targets=targets):
            for target in targets:
                if isinstance(target, ast.Subscript):
                    table = _table_name(place, target.value)
                    if table is not None:
                        yield table
        case _:
            pass


def _table_name(place: Place, owner: ast.expr) -> str | None:
    if isinstance(owner, ast.Attribute):
        return owner.attr
    if isinstance(owner, ast.Name):
        values = place.assigned(owner.id)
        if len(values) == 1 and isinstance(values[0], ast.Attribute):
            return values[0].attr
    return None


def related_modules(world: World, module: Module) -> tuple[Module, ...]:
    """``module`` and the modules of the known bases of its classes, nearest first."""
    found: dict[Module, None] = {module: None}
    for place in places_of(world, module):
        if place.cls is not None:
            for entry in place.cls.family():
                found.setdefault(entry.module)
    return tuple(found)


def removal_sites(world: World, module: Module, table: str, cls: ClassInfo, reach: Reach) -> tuple[RemovalSite, ...]:
    """The catalogue of removals from ``table`` on objects of ``cls``'s hierarchy, seen from ``module``."""
    key = ("catalogue", module, table, cls)
    known = world.memo.get(key)
    if not isinstance(known, tuple):
        known = world.memo[key] = tuple(_sites(world, module, table, cls, reach))
    return known


def _sites(world: World, module: Module, table: str, cls: ClassInfo, reach: Reach) -> Iterator[RemovalSite]:
    for other in related_modules(world, module):
        aborts = abort_code(world, other)
        for name, node, place in removals_in(world, other):
            if name != table or not _concerns(place, node, cls):
                continue
            verdict, reason = _judge(place, node, table, cls, reach)
            yield RemovalSite(table, node, place, verdict, reason, aborts.get(node))


def _concerns(place: Place, node: ast.AST, cls: ClassInfo) -> bool:
    """Whether the removal is from a table of ``cls``'s hierarchy (an owner of unknown class may be)."""
    owner: ast.expr | None = None
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Attribute(value=inner))):
            owner = inner
        case ast.Delete(targets=[ast.Subscript(value=ast.Attribute(value=inner))]):
            owner = inner
        case _:
            pass
    holder = place.class_of(owner) if owner is not None else place.cls
    return holder is None or holder.is_related(cls)


def _judge(place: Place, node: ast.AST, table: str, cls: ClassInfo, reach: Reach) -> tuple[Verdict, str]:
    if SHUTDOWN_WORDS & set(words_of(place.method.name)):
        return Verdict.SAFE, "it ends the whole backend"
    subject = subject_of(cls)
    if subject is None:
        return Verdict.UNKNOWN, "no status table is known here"
    ends = [end for root in _roots(place) for end in _ends(root, node, table, subject, reach)]
    ends.sort(key=lambda end: end[0].stored is ABSENT)  # what happens to a live room is the better evidence
    verdicts = [_judge_end(state, root, subject, cls) for state, root in ends]
    if not verdicts:
        return Verdict.UNKNOWN, "no path to it was found"
    for wanted in (Verdict.UNSAFE, Verdict.UNKNOWN):
        for verdict, reason in verdicts:
            if verdict is wanted:
                return verdict, reason
    reasons = list(dict.fromkeys(reason for _, reason in verdicts))
    return Verdict.SAFE, "; ".join(sorted(reasons))


def _ends(root: Place, node: ast.AST, table: str, subject: Subject, reach: Reach) -> Iterator[tuple[State, Place]]:
    """The ways in which a run of ``root`` ends after the removal ``node``."""
    outcome = run_once(root, subject, reach)
    for state in (*outcome.ends, *outcome.raised, *outcome.rounds):
        for removal in state.trace.removals:
            if removal.at is node and removal.table == table:
                yield state, root


def _roots(place: Place) -> list[Place]:
    """Where a run must start to see the removal in context: the function itself, or a private one's callers."""
    roots: dict[ast.AST, Place] = {}
    pending = [(place, 0)]
    seen = {place.node}
    while pending:
        current, height = pending.pop()
        above = _callers(current)
        if not above or not current.name.startswith("_") or height == _MAX_CALLERS:
            roots.setdefault(current.node, current)
        if height < _MAX_CALLERS:
            for caller in above:
                if caller.node not in seen:
                    seen.add(caller.node)
                    pending.append((caller, height + 1))
    return list(roots.values())


def _callers(place: Place) -> list[Place]:
    key = ("callers", place.module)
    known = place.world.memo.get(key)
    if not isinstance(known, dict):
        index: dict[ast.AST, list[Place]] = {}
        for caller in places_of(place.world, place.module):
            for _, callee in callees(caller):
                index.setdefault(callee.node, []).append(caller)
        known = place.world.memo[key] = index
    return list(dict.fromkeys(known.get(place.node, ())))


def _judge_end(state: State, root: Place, subject: Subject, cls: ClassInfo) -> tuple[Verdict, str]:
    """Whether the room has ended for good when the function that removed it is through with it."""
    enum = subject.enum
    if state.trace.cleared:
        return Verdict.SAFE, "the room's status is removed together with it"
    if state.stored is UNDECIDED:
        return Verdict.UNKNOWN, "the stored status could not be followed"
    if state.stored is ABSENT:
        if thread_of(root) is Thread.WORKER:
            return Verdict.SAFE, "the room was cleared before its work item was taken"
        return Verdict.UNSAFE, "the room may not exist yet: its sender opens it later, without metadata"
    name = enum.name_of(state.stored)
    if name is None:
        return Verdict.UNKNOWN, "what is stored is no member of the status enum"
    if not enum.is_terminal(state.stored):
        return Verdict.UNSAFE, f"the status may be {name}"
    undone = _undone(state.stored, cls)
    if undone is not None:
        written, outcome, writer = undone
        return Verdict.UNSAFE, (
            f"{name} is stored, but the worker's next write of {written} turns it into {outcome} "
            f"({writer.method.owner.name}.{writer.name})"
        )
    return Verdict.SAFE, f"{name} is stored by then and stays"


def revival(cls: ClassInfo) -> str | None:
    """How a worker's late write brings a cleared room back without metadata, None where the writer refuses that.

    SGLang 0.5.20's writer refuses it (common/conn.py line 395); before, a room whose removal was safe came back live.
    """
    revived = _undone(ABSENT, cls)
    if revived is None:
        return None
    written, outcome, writer = revived
    return (
        f"a late write of {written} by the worker brings a cleared room back as {outcome}, without metadata "
        f"({writer.method.owner.name}.{writer.name})"
    )


def _undone(stored: Stored, cls: ClassInfo) -> tuple[str, str, Writer] | None:
    """A live status that the class's workers write and its writer lets replace the terminal ``stored``."""
    for written, writer in live_writes_of_workers(cls):
        for outcome in writer.table.changes(stored, written):
            if writer.subject.is_live(outcome):
                return written, writer.subject.enum.name_of(outcome) or "?", writer
    return None


def live_writes_of_workers(cls: ClassInfo) -> tuple[tuple[str, Writer], ...]:
    """The live members that worker threads of ``cls``'s hierarchy write, each with the writer that it reaches."""
    key = ("worker writes", cls)
    memo = cls.world.memo
    known = memo.get(key)
    if not isinstance(known, tuple):
        known = memo[key] = tuple(dict.fromkeys(_worker_writes(cls)))
    return known


def _worker_writes(cls: ClassInfo) -> Iterator[tuple[str, Writer]]:
    for module in dict.fromkeys(entry.module for entry in cls.family()):
        for write in writes_in(cls.world, module):
            place = write.place
            if place.holder is None or not place.holder.is_related(cls) or thread_of(place) is not Thread.WORKER:
                continue
            writer = writer_for(cls, write.writer.name) if write.writer is not None else None
            if writer is not None:
                for member in write.members:
                    if not writer.subject.enum.is_terminal(writer.subject.enum.value(member)):
                        yield member, writer
