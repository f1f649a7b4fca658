"""Writes of a live status that may replace a stored failure, and what exempts one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from kvlint.analysis.facts import Facts
from kvlint.analysis.frames import Frame
from kvlint.analysis.infer import Writer
from kvlint.analysis.interpreter import Interpreter
from kvlint.analysis.lower import lower_expression
from kvlint.analysis.places import Place
from kvlint.analysis.removals import related_modules
from kvlint.analysis.states import Env, State
from kvlint.analysis.subject import Subject
from kvlint.analysis.threads import Thread, thread_of
from kvlint.analysis.values import ABSENT, Object, Stored, Value
from kvlint.analysis.writes import Guard, Write, opens_rooms, surroundings, writes_in
from kvlint.semantics.class_body import parameters


class Exposed(Struct, frozen=True):
    """A write of the live ``member`` by which a stored ``failure`` becomes ``outcome``."""

    write: Write
    member: str
    failure: str
    outcome: str


def exposed_writes(facts: Facts) -> Iterator[Exposed]:
    """Every write of a live status, outside the constructor that opens the room, that may replace a failure."""
    for write in facts.writes:
        if not write.members or opens_rooms(write.place) or _opens_directly(facts, write):
            continue
        if write.subject.kind == "attribute" and not _is_shared(facts, write):
            continue
        exposed = _through_writer(write, write.writer) if write.writer is not None else _by_store(facts, write)
        if exposed is not None and not _is_locked(facts, write):
            yield exposed


def _through_writer(write: Write, writer: Writer) -> Exposed | None:
    enum = write.subject.enum
    for member in write.members:
        if enum.is_terminal(enum.value(member)):
            continue
        for failure in enum.failures:
            for outcome in writer.table.changes(enum.value(failure), member):
                name = enum.name_of(outcome)
                if name is not None and not enum.is_failure(outcome):
                    return Exposed(write, member, failure, name)
    return None


def _by_store(facts: Facts, write: Write) -> Exposed | None:
    enum = write.subject.enum
    if not any(_may_fail(other, write.subject) for module in facts.related for other in writes_in(facts.world, module)):
        return None  # nobody ever stores a failure that could be replaced
    for member in write.members:
        if not enum.is_terminal(enum.value(member)) and enum.failures:
            return Exposed(write, member, enum.failures[0], member)
    return None


def _is_shared(facts: Facts, write: Write) -> bool:
    """Whether a status kept in an attribute is written by one thread and failed by another."""
    return bool(set(facts.failing_threads(write.subject)) - {thread_of(write.place)})


def _may_fail(write: Write, subject: Subject) -> bool:
    """Whether a write may store a failure: one of unknown members may."""
    same = write.subject.enum is subject.enum and write.subject.attribute == subject.attribute
    return same and (not write.members or bool(set(write.members) & set(subject.enum.failures)))


def _opens_directly(facts: Facts, write: Write) -> bool:
    """Whether a direct store opens the room: it meets only absent ones, or the scheduler stores the first status."""
    if write.writer is not None:
        return False
    possible = stored_at(write)
    if possible <= {ABSENT}:
        return True
    if write.place.cls is None or thread_of(write.place) is not Thread.SCHEDULER:
        return False
    if facts.abort_reason(write.node) is not None:
        return False
    return set(write.members) <= set(_opening(write.subject))


def _opening(subject: Subject) -> tuple[str, ...]:
    """The first status of a room's life: the first live member in order of definition."""
    enum = subject.enum
    live = [name for name in enum.members if not enum.is_terminal(enum.value(name))]
    return tuple(live[:1])


def stored_at(write: Write) -> frozenset[Stored]:
    """The statuses that the tests around a write leave possible there, were nobody to write in between."""
    return _narrowed(write.place, write.subject, write.guards)


def _narrowed(place: Place, subject: Subject, guards: tuple[Guard, ...]) -> frozenset[Stored]:
    return frozenset(
        stored for stored in subject.stored_values if all(_may_hold(place, subject, guard, stored) for guard in guards)
    )


def _may_hold(place: Place, subject: Subject, guard: Guard, stored: Stored) -> bool:
    from kvlint.analysis.conclusions import Reach

    interpreter = Interpreter(place.world, subject, in_worker=True, reach=Reach(place.world))
    bound: dict[str, Value] = {}
    if place.receiver is not None and place.cls is not None:
        bound[place.receiver] = Object(place.cls)
    frame = Frame(place.module, place.cls, place.node, 0, receiver=place.receiver)
    state = State(stored, Env(bound))
    frame.locals = frozenset(argument.arg for argument in parameters(place.node))
    for name in {node.id for node in ast.walk(guard.test) if isinstance(node, ast.Name)} - set(bound):
        values = place.assigned(name)
        if values:
            frame.locals |= {name}
        if len(values) == 1:
            for value, after in interpreter.evaluate(lower_expression(values[0]), state, frame)[:1]:
                state = after.bind(name, value)
    for value, after in interpreter.evaluate(lower_expression(guard.test), state, frame):
        if any(answer is guard.holds for answer, _ in interpreter.decide(value, after)):
            return True
    return False


def _is_locked(facts: Facts, write: Write) -> bool:
    """Whether test and write stand under one lock that every write of a failure takes too."""
    enum = write.subject.enum
    failures = {enum.value(name) for name in enum.failures}
    for lock in write.locks:
        guards = tuple(guard for guard in write.guards if lock in guard.locks)
        if not guards or _narrowed(write.place, write.subject, guards) & failures:
            continue
        if all(_takes(other, lock) for other in _failure_writes(facts, write.subject)):
            return True
    return False


def _failure_writes(facts: Facts, subject: Subject) -> Iterator[Write]:
    for module in related_modules(facts.world, facts.module):
        for write in writes_in(facts.world, module):
            same = write.subject.enum is subject.enum and write.subject.attribute == subject.attribute
            if same and set(write.members) & set(subject.enum.failures) and not write.place.is_constructor:
                yield write


def _takes(write: Write, lock: str) -> bool:
    name = lock.rpartition(".")[2]
    if any(held.rpartition(".")[2] == name for held in write.locks):
        return True
    return write.writer is not None and _writer_takes(write.writer, name)


def _writer_takes(writer: Writer, lock: str) -> bool:
    """Whether every store of a writer stands under a lock of that name."""
    owner = writer.method.owner
    place = Place(owner.world, owner.module, writer.method.node, owner, None)
    around = surroundings(place)
    stores = [
        node
        for node in place.body
        if isinstance(node, ast.Subscript | ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and _attribute_of(node) == writer.subject.attribute
    ]
    return bool(stores) and all(
        any(held.rpartition(".")[2] == lock for held in around[node].locks) for node in stores if node in around
    )


def _attribute_of(node: ast.Subscript | ast.Attribute) -> str | None:
    holder = node.value if isinstance(node, ast.Subscript) else node
    return holder.attr if isinstance(holder, ast.Attribute) else None
