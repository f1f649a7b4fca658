"""Dicts that several threads share without a lock: who takes a key away between another's test and use of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from kvlint.analysis.aborts import abort_code
from kvlint.analysis.facts import Facts, facts_of
from kvlint.analysis.handlers import thread_roots, threads_by_function
from kvlint.analysis.infer import subject_of
from kvlint.analysis.places import Place, callees, places_of
from kvlint.analysis.presence import Act, Presence, Use, presence_in
from kvlint.analysis.removals import removals_in
from kvlint.analysis.roles import readers_of
from kvlint.analysis.threads import Thread, starts_in
from kvlint.protocol import SHUTDOWN_WORDS, words_of
from kvlint.semantics.hierarchy import ClassInfo
from kvlint.semantics.module import Module
from kvlint.source.text import UnreadableSource

_MAX_CALLERS = 4  # how far up the call graph a handler of the exception is looked for
_HANDS_OVER = frozenset({"put", "put_nowait", "submit", "enqueue"})
#: Who is hurt first by an exception: a thread that nobody restarts comes before the scheduler, whose end is seen.
_ORDER = (Thread.LISTENER, Thread.WORKER, Thread.BACKGROUND, Thread.SCHEDULER)


@dataclass(frozen=True, slots=True)
class Removal:
    """A removal of a key from ``table`` of an object of ``cls``, on ``threads``."""

    table: str
    cls: ClassInfo
    node: ast.AST
    owner: ast.expr
    place: Place
    threads: frozenset[Thread]

    @property
    def presence(self) -> Presence:
        """The locks around it."""
        return presence_in(self.place)


@dataclass(frozen=True, slots=True)
class Race:
    """A use of a key on ``thread`` that raises where ``removal`` on ``other`` came first.

    The two are the same where the use relies on no test and the removal is an
    abort handler's.
    """

    use: Use
    place: Place
    table: str
    cls: ClassInfo
    thread: Thread
    removal: Removal
    other: Thread


def shared_modules(facts: Facts) -> tuple[Module, ...]:
    """The module, those of its classes' bases, and those nearby whose classes build on its managers."""
    key = ("shared modules", facts.module)
    known = facts.world.memo.get(key)
    if not isinstance(known, tuple):
        known = facts.world.memo[key] = tuple(dict.fromkeys((*facts.related, *_built_on(facts))))
    return known


def _built_on(facts: Facts) -> Iterator[Module]:
    names = frozenset(cls.name for cls in facts.managers)
    for path in facts.world.neighbours(facts.module, names) if names else ():
        try:
            other = facts_of(path, facts.world)
        except UnreadableSource:
            continue
        if any(base in facts.managers for cls in other.classes for base in cls.family()):
            yield from other.related


def threads_at(facts: Facts, place: Place) -> frozenset[Thread]:
    """The threads on which a function of `shared_modules` may run."""
    return threads_by_function(facts.world, shared_modules(facts)).get(place.node, frozenset({Thread.SCHEDULER}))


def share_a_loop(facts: Facts, one: Place, other: Place) -> bool:
    """Whether two functions take turns on an event loop: neither comes in between where the other awaits nothing.

    Coroutines do; and so does everything where tasks are all that is started.
    """
    return not _has_threads(facts) or all(isinstance(place.method.node, ast.AsyncFunctionDef) for place in (one, other))


def _has_threads(facts: Facts) -> bool:
    key = ("has threads", facts.module)
    known = facts.world.memo.get(key)
    if not isinstance(known, bool):
        modules = shared_modules(facts)
        roots = [root.place for module in modules for root in thread_roots(facts.world, module)]
        known = facts.world.memo[key] = any(not isinstance(place.node, ast.AsyncFunctionDef) for place in roots)
    return known


def awaits_between(place: Place, first: ast.AST, last: ast.AST) -> bool:
    """Whether a function gives way to other tasks between two of its nodes."""
    start, end = first.lineno, last.lineno  # type: ignore[attr-defined]
    waits = place.nodes(ast.Await, ast.AsyncWith, ast.AsyncFor)
    return any(start <= node.lineno <= end for node in waits)  # type: ignore[attr-defined]


def removals_of(facts: Facts, table: str, cls: ClassInfo) -> tuple[Removal, ...]:
    """Every removal from ``table`` on objects known to be of ``cls``'s hierarchy; shutting down is none."""
    key = ("shared removals", facts.module, table, cls)
    known = facts.world.memo.get(key)
    if not isinstance(known, tuple):
        found = sorted(_removals(facts, table, cls), key=lambda one: (not _is_abort(facts, one), not _may_clear(one)))
        known = facts.world.memo[key] = tuple(found)
    return known


def _removals(facts: Facts, table: str, cls: ClassInfo) -> Iterator[Removal]:
    for module in shared_modules(facts):
        for name, node, place in removals_in(facts.world, module):
            owner = _owner_of(node) if name == table else None
            holder = None if owner is None else place.class_of(owner)
            if owner is None or holder is None or not holder.is_related(cls):
                continue
            if not SHUTDOWN_WORDS & set(words_of(place.method.name)):
                yield Removal(table, holder, node, owner, place, threads_at(facts, place))


def _owner_of(node: ast.AST) -> ast.expr | None:
    """The object in ``object.table.pop(key)`` and ``del object.table[key]``."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Attribute(value=owner))):
            return owner
        case ast.Delete(targets=[ast.Subscript(value=ast.Attribute(value=owner))]):
            return owner
        case _:
            return None


def races(facts: Facts) -> Iterator[Race]:
    """Every use of a key in the module that another thread's removal makes raise, in containers beside a status."""
    writers = {writer.method.node for writer in facts.writers}
    for place in places_of(facts.world, facts.module):
        if place.node in writers:
            continue  # what a writer reads and stores is judged as a whole
        seen: set[tuple[str, str]] = set()
        for use in presence_in(place).uses:
            race = None if use.caught or use.is_guarded else _race(facts, place, use)
            if race is None:
                continue
            # One finding per test and table: the uses that follow the first fall with it.
            spot = (race.table, ast.dump(use.seen.test, include_attributes=True) if use.seen else ast.unparse(use.node))
            if spot not in seen and _escapes(facts, place, _MAX_CALLERS):
                seen.add(spot)
                yield race


def _race(facts: Facts, place: Place, use: Use) -> Race | None:
    found = _table_of(place, use)
    if found is None:
        return None
    table, cls = found
    mine = threads_at(facts, place)
    for removal in removals_of(facts, table, cls):
        if mine == {Thread.SCHEDULER} and removal.threads == {Thread.WORKER} and _hands_over(place):
            continue  # the worker removes what it is through with, and it is only now being given more
        if use.seen is not None and use.seen.made and not _forgets(facts, removal):
            continue  # who is done with a room does not meet those who only just make it known
        if use.seen is None:
            if use.node is not removal.node and _is_abort(facts, removal) and not _is_abort_use(facts, use):
                return Race(use, place, table, cls, _first(mine), removal, _first(removal.threads))
            continue
        pair = two_threads(mine, removal.threads)
        held = {name.rpartition(".")[2] for name, _ in use.seen.locks & use.locks}
        if pair is None or held & removal.presence.names_held(removal.node):
            continue
        if not share_a_loop(facts, place, removal.place) or awaits_between(place, use.seen.test, use.node):
            return Race(use, place, table, cls, pair[0], removal, pair[1])
    return None


def _table_of(place: Place, use: Use) -> tuple[str, ClassInfo] | None:
    """The container's attribute and the class that keeps it, where that class has a status as well."""
    owner = use.owner
    assert isinstance(owner, ast.Attribute)
    cls = place.class_of(owner.value)
    subject = None if cls is None else subject_of(cls)
    if cls is None or subject is None:
        return None
    if use.act is Act.CALL:
        assert use.seen is not None
        of_same = use.seen.table == f"{ast.unparse(owner.value)}.{subject.attribute}"
        return (subject.attribute, cls) if of_same and _reader_raises(cls, owner.attr) else None
    if owner.attr == subject.attribute or cls.is_container(owner.attr):
        return owner.attr, cls
    return None


def _reader_raises(cls: ClassInfo, name: str) -> bool:
    """Whether ``name`` reaches a reader of the status that subscripts the table for a room that it did not look for."""
    subject = subject_of(cls)
    method = cls.lookup(name)
    if subject is None or method is None or all(reader.node is not method.node for reader in readers_of(cls)):
        return False
    return any(
        isinstance(node, ast.Return)
        and isinstance(node.value, ast.Subscript)
        and isinstance(node.value.value, ast.Attribute)
        and node.value.value.attr == subject.attribute
        for node in method.node.body
    )


def _may_clear(removal: Removal) -> bool:
    """Whether the scheduler does it, at any time that suits it: the better evidence, a worker has its rounds."""
    return Thread.SCHEDULER in removal.threads


def _forgets(facts: Facts, removal: Removal) -> bool:
    """Whether a removal comes whenever the room is given up: an abort handler's, or one together with the status."""
    subject = subject_of(removal.cls)
    return _is_abort(facts, removal) or any(
        subject is not None and name == subject.attribute and place is removal.place
        for name, _, place in removals_in(facts.world, removal.place.module)
    )


def _hands_over(place: Place) -> bool:
    """Whether a function puts items on a queue."""
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _HANDS_OVER
        for node in place.body
    )


def _is_abort(facts: Facts, removal: Removal) -> bool:
    return removal.node in abort_code(facts.world, removal.place.module)


def _is_abort_use(facts: Facts, use: Use) -> bool:
    return use.node in abort_code(facts.world, facts.module)


def _first(threads: frozenset[Thread]) -> Thread:
    return next(thread for thread in _ORDER if thread in threads)


def two_threads(mine: frozenset[Thread], others: frozenset[Thread]) -> tuple[Thread, Thread] | None:
    """A thread of each, not the same; None where everything runs on one."""
    return next(((one, two) for one in _ORDER for two in _ORDER if one in mine and two in others and one != two), None)


def _escapes(facts: Facts, place: Place, depth: int) -> bool:
    """Whether an exception that leaves ``place`` is caught by none of the functions that call it."""
    calls = _calls_of(facts, place)
    if depth == 0 or not calls or place.node in _started(facts):
        return True
    return any(
        call not in presence_in(caller).caught and _escapes(facts, caller, depth - 1)
        for call, caller in calls
        if caller.node is not place.node
    )


def _started(facts: Facts) -> frozenset[ast.AST]:
    key = ("started", facts.module)
    known = facts.world.memo.get(key)
    if not isinstance(known, frozenset):
        modules = shared_modules(facts)
        known = facts.world.memo[key] = frozenset(
            start.place.node for module in modules for start in starts_in(facts.world, module)
        )
    return known


def _calls_of(facts: Facts, place: Place) -> list[tuple[ast.Call, Place]]:
    key = ("calls of", facts.module)
    known = facts.world.memo.get(key)
    if not isinstance(known, dict):
        index: dict[ast.AST, list[tuple[ast.Call, Place]]] = {}
        for module in shared_modules(facts):
            for caller in places_of(facts.world, module):
                for call, callee in callees(caller):
                    index.setdefault(callee.node, []).append((call, caller))
        known = facts.world.memo[key] = index
    return list(known.get(place.node, ()))
