"""Whether a status is decided and stored in one step: the lock of a status table, and who does without it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from kvlint.analysis.aborts import abort_code
from kvlint.analysis.facts import Facts
from kvlint.analysis.infer import Writer, own_writers, subject_of, writer_of
from kvlint.analysis.places import Place, place_of, places_of
from kvlint.analysis.presence import Hold, presence_in
from kvlint.analysis.roles import readers_of
from kvlint.analysis.sharing import (
    Removal,
    awaits_between,
    removals_of,
    share_a_loop,
    shared_modules,
    threads_at,
    two_threads,
)
from kvlint.analysis.subject import Subject
from kvlint.analysis.threads import Thread
from kvlint.analysis.writes import Write, opens_rooms, writes_in
from kvlint.semantics.hierarchy import ClassInfo

#: Pairs of threads that are told of first: a worker's status against an abort, a peer's against a lost node.  Whatever
#: nothing is seen to start counts as the scheduler's and is the weaker evidence.
_TELLING = (
    (Thread.WORKER, Thread.LISTENER),
    (Thread.LISTENER, Thread.BACKGROUND),
    (Thread.LISTENER, Thread.WORKER),
    (Thread.BACKGROUND, Thread.LISTENER),
    (Thread.WORKER, Thread.BACKGROUND),
)
_STORING = frozenset({"setdefault", "pop", "__setitem__", "update"})


@dataclass(frozen=True, slots=True)
class OpenStep:
    """A writer that reads the table at ``read`` and stores at ``store``, with no lock held over both.

    ``thread`` runs it while ``other`` does what stands at ``rival``.
    """

    writer: Writer
    read: ast.AST
    store: ast.AST
    thread: Thread
    other: Thread
    rival: Write | Removal


@dataclass(frozen=True, slots=True)
class Outside:
    """A removal from a status table, or a store past its writer, without the ``lock`` that ``writer`` takes."""

    node: ast.AST
    owner: ast.expr | None
    place: Place
    writer: Writer
    lock: str
    removes: bool
    thread: Thread
    other: Thread


def open_steps(facts: Facts) -> Iterator[OpenStep]:
    """The writers defined in the module whose decision and store another thread can come between."""
    for writer in facts.judged_writers:
        if writer.subject.kind != "table" or not writer.primary or writer.method.kind == "wrapped":
            continue
        step = _read_and_store(writer)
        if step is None or _callers_lock(facts, writer):
            continue
        rivals = _rivals(facts, writer, awaits_between(writer_place(writer), *step))
        if rivals is not None:
            (read, store), (thread, other, rival) = step, rivals
            yield OpenStep(writer, read, store, thread, other, rival)


def writer_place(writer: Writer) -> Place:
    """The place of a writer's definition."""
    place = place_of(writer.cls.world, writer.method.owner.module, writer.method.node)
    assert place is not None
    return place


def _read_and_store(writer: Writer) -> tuple[ast.AST, ast.AST] | None:
    """The first read and the first store behind it that no lock spans."""
    place = writer_place(writer)
    held = presence_in(place).held
    reads = [node for node in place.body if _reads(node, writer)]
    stores = [node for node in place.body if _stores(node, writer)]
    if not reads or not stores or frozenset[Hold].intersection(*(held.get(n, frozenset()) for n in (*reads, *stores))):
        return None
    return reads[0], stores[0]


def _reads(node: ast.AST, writer: Writer) -> bool:
    attribute = writer.subject.attribute
    match node:
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[ast.Attribute(attr=attr)]):
            return attr == attribute
        case ast.Subscript(value=ast.Attribute(attr=attr), ctx=ast.Load()):
            return attr == attribute
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr=attr), attr="get")):
            return attr == attribute
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in {reader.node.name for reader in readers_of(writer.cls)}
        case _:
            return False


def _stores(node: ast.AST, writer: Writer) -> bool:
    match node:
        case ast.Subscript(value=ast.Attribute(attr=attr), ctx=ast.Store()):
            return attr == writer.subject.attribute
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr=attr), attr=name)) if name in _STORING:
            return attr == writer.subject.attribute
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in writer.subject.writers  # super's, or a helper's
        case _:
            return False


def _callers_lock(facts: Facts, writer: Writer) -> bool:
    """Whether every call of the writer stands under a lock, the same one by name."""
    held = [
        frozenset(lock.rpartition(".")[2] for lock in write.locks)
        for write in _writes(facts)
        if write.writer is not None and write.writer.method.node is writer.method.node
    ]
    return bool(held) and bool(frozenset.intersection(*held))


def _writes(facts: Facts) -> tuple[Write, ...]:
    """The writes of every module that shares the table."""
    return tuple(write for module in shared_modules(facts) for write in writes_in(facts.world, module))


def _concerning(facts: Facts, writer: Writer) -> list[Write]:
    """The writes that reach the table of ``writer``'s hierarchy, those of the writers themselves left out."""
    found = []
    for write in _writes(facts):
        cls = write.writer.cls if write.writer is not None else write.place.holder
        inside = write.place.method.name in writer.subject.writers
        if cls is not None and cls.is_related(writer.cls) and write.subject.kind == "table" and not inside:
            found.append(write)
    return found


def _rivals(facts: Facts, writer: Writer, gives_way: bool) -> tuple[Thread, Thread, Write | Removal] | None:
    """A thread that writes through the writer, another one, and what that one does to the table meanwhile.

    Tasks of one event loop are no rivals, unless the writer ``gives_way`` to them.
    """
    writes = _concerning(facts, writer)
    failures = set(writer.subject.enum.failures)
    # A failure that replaces a failure harms nobody.
    harmful = [write for write in writes if not write.members or set(write.members) - failures]
    mine = frozenset(thread for write in harmful for thread in threads_at(facts, write.place))

    def is_rival(one: Write | Removal) -> bool:
        return gives_way or not all(share_a_loop(facts, write.place, one.place) for write in harmful)

    failing = [write for write in writes if failures & set(write.members)]
    failing.sort(key=lambda write: write.node not in abort_code(facts.world, write.place.module))
    others: list[Write | Removal] = [*writes, *removals_of(facts, writer.subject.attribute, writer.cls)]
    for rivals in (failing, others):
        for thread, other in (*_TELLING, *product(Thread, Thread)):
            for rival in rivals if thread in mine and thread != other else ():
                if other in threads_at(facts, rival.place) and is_rival(rival):
                    return thread, other, rival
    return None


# -- the lock ------------------------------------------------------------------


def table_lock(cls: ClassInfo) -> str | None:
    """The attribute of the lock that the writers of ``cls``'s hierarchy hold over the status table, if there is one."""
    for entry in cls.family():
        for writer in own_writers(entry):
            names = _locks_of(writer)
            if names:
                return min(names)
    return None


def _locks_of(writer: Writer) -> frozenset[str]:
    """The attributes of the object's locks that span all that the writer does to the table."""
    place = writer_place(writer)
    held = presence_in(place).held
    touches = [node for node in place.body if _reads(node, writer) or _stores(node, writer)]
    if not touches:
        return frozenset()
    spans = frozenset[Hold].intersection(*(held.get(node, frozenset()) for node in touches))
    prefix = f"{writer.signature.receiver}."
    return frozenset(text.removeprefix(prefix) for text, _ in spans if text.startswith(prefix))


def outside_accesses(facts: Facts) -> Iterator[Outside]:
    """The removals and direct stores in the module that do without the lock which the table's writer takes."""
    for cls in _kept_in(facts):
        lock = table_lock(cls)
        subject = subject_of(cls)
        assert subject is not None
        writer = _effective_writer(cls, subject)
        if lock is None or writer is None:
            continue
        mine = frozenset(thread for write in _concerning(facts, writer) for thread in threads_at(facts, write.place))
        for node, owner, place, removes in _touches(facts, cls, subject):
            pair = two_threads(mine, threads_at(facts, place))
            if pair is None or share_a_loop(facts, place, place):
                continue
            if lock.rpartition(".")[2] not in presence_in(place).names_held(node):
                yield Outside(node, owner, place, writer, lock, removes, *pair)


def _kept_in(facts: Facts) -> list[ClassInfo]:
    """The classes whose status tables functions of the module touch directly."""
    found: dict[ClassInfo, None] = {}
    for place in places_of(facts.world, facts.module):
        for node in place.nodes(ast.Attribute):
            cls = place.class_of(node.value)
            subject = None if cls is None else subject_of(cls)
            if cls is not None and subject is not None and (subject.kind, subject.attribute) == ("table", node.attr):
                found.setdefault(cls)
    return list(found)


def _effective_writer(cls: ClassInfo, subject: Subject) -> Writer | None:
    for name in sorted(subject.writers):
        method = cls.lookup(name)
        writer = None if method is None else writer_of(cls, method, subject)
        if writer is not None and writer.primary:
            return writer
    return None


def _touches(facts: Facts, cls: ClassInfo, subject: Subject) -> Iterator[tuple[ast.AST, ast.expr | None, Place, bool]]:
    for removal in removals_of(facts, subject.attribute, cls):
        inside = removal.place.method.name in subject.writers
        if removal.cls is cls and removal.place.module is facts.module and not inside:
            yield removal.node, removal.owner, removal.place, True
    for write in facts.writes:
        match write.node:
            case ast.Assign(targets=[ast.Subscript(value=ast.Attribute(value=owner))]):
                if write.writer is None and write.subject is subject and not opens_rooms(write.place):
                    yield write.node, owner, write.place, False
            case _:
                pass


def open_stores(facts: Facts) -> Iterator[tuple[Write, ast.expr, Thread, Thread]]:
    """Direct stores after a test of the stored status, while another thread writes or removes, under no common lock."""
    for write in facts.writes:
        cls = write.place.holder
        if write.writer is not None or write.subject.kind != "table" or cls is None or opens_rooms(write.place):
            continue
        test = next((guard for guard in write.guards if _mentions(guard.test, write.subject, cls)), None)
        if test is None or test.locks & write.locks:
            continue
        others = [other.place for other in _writes(facts) if other.subject is write.subject]
        others += [removal.place for removal in removals_of(facts, write.subject.attribute, cls)]
        if not awaits_between(write.place, test.test, write.node):
            others = [place for place in others if not share_a_loop(facts, write.place, place)]
        pairs = (two_threads(threads_at(facts, write.place), threads_at(facts, place)) for place in others)
        pair = next((pair for pair in pairs if pair is not None), None)
        if pair is not None:
            yield write, test.test, *pair


def _mentions(test: ast.expr, subject: Subject, cls: ClassInfo) -> bool:
    names = {subject.attribute, *(reader.node.name for reader in readers_of(cls))}
    return any(isinstance(node, ast.Attribute) and node.attr in names for node in ast.walk(test))
