"""Which statuses may create a room, and the writers that let others do it too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from kvlint.analysis.aborts import abort_code
from kvlint.analysis.evidence import member_named
from kvlint.analysis.facts import Facts
from kvlint.analysis.infer import Writer
from kvlint.analysis.places import Place, place_of, places_of
from kvlint.analysis.plans import spelled, stored_text, wrong_definition
from kvlint.analysis.presence import presence_in
from kvlint.analysis.roles import opening_members
from kvlint.analysis.sharing import Removal, removals_of, shared_modules, threads_at
from kvlint.analysis.subject import Subject
from kvlint.analysis.threads import Thread, thread_of
from kvlint.analysis.values import ABSENT
from kvlint.analysis.writes import Write, writes_in
from kvlint.diagnostics import OpeningStatus
from kvlint.semantics.module import Module


@dataclass(frozen=True, slots=True)
class Revival:
    """A ``writer`` that creates an absent room from each of ``written``, though only ``opening`` should.

    ``removal`` makes rooms absent, ``late`` is a write on ``thread`` that may come
    after it (None where none is in sight).
    """

    writer: Writer
    written: tuple[str, ...]
    opening: tuple[str, ...]
    removal: Removal
    late: Write | None
    thread: Thread | None


def revivals(facts: Facts) -> Iterator[Revival]:
    """The writers defined in the module that bring a cleared room back."""
    for writer in facts.judged_writers:
        opening = opening_of(facts, writer.subject) if writer.subject.kind == "table" else ()
        written = tuple(created_from(writer, opening)) if opening else ()
        removals = removals_of(facts, writer.subject.attribute, writer.cls) if written else ()
        if removals:
            late, thread = _late_write(facts, writer, written) or (None, None)
            yield Revival(writer, written, opening, removals[0], late, thread)


def created_from(writer: Writer, opening: tuple[str, ...]) -> Iterator[str]:
    """The members outside ``opening`` by which the writer may create an absent room."""
    for name in writer.subject.enum.members:
        if name not in opening and writer.table.changes(ABSENT, name):
            yield name


def opening_status(revival: Revival) -> OpeningStatus | None:
    """The edit that lets only opening statuses create a room, in the definition that is wrong.

    None where the guard at its head would read the status without the lock that the writer takes further down.
    """
    wrong = wrong_definition(revival.writer, lambda writer: any(created_from(writer, revival.opening)))
    module = wrong.method.owner.module
    prefix = spelled(wrong.cls.world, module, wrong.subject.enum)
    node = wrong.method.node
    place = place_of(wrong.cls.world, module, node)
    if prefix is None or place is None or not _head_is_locked(place, wrong.subject):
        return None
    opening = tuple(f"{prefix}.{name}" for name in revival.opening)
    return OpeningStatus(module.path, node.lineno, node.name, wrong.signature.status, stored_text(wrong), opening)


def _head_is_locked(place: Place, subject: Subject) -> bool:
    """Whether no lock is held over the table that is not held where the writer's head is (see `fixing.writers`)."""
    if any(_takes_a_lock(node) for node in place.nodes(ast.Call)):
        return False
    around = set(_around_everything(place))
    held = presence_in(place).held
    touches = [node for node in place.body if _touches(node, place, subject)]
    return all(node in held and around.issuperset(taken for _, taken in held[node]) for node in touches)


def _around_everything(place: Place) -> Iterator[ast.AST]:
    """The ``with`` statements that are all of the writer's body, from the outermost on."""
    body = place.node.body[ast.get_docstring(place.node, clean=False) is not None :]
    while True:
        rest = [statement for statement in body if not isinstance(statement, ast.Global | ast.Nonlocal)]
        if len(rest) != 1 or not isinstance(rest[0], ast.With | ast.AsyncWith):
            return
        yield rest[0]
        body = rest[0].body


def _takes_a_lock(call: ast.AST) -> bool:
    match call:
        case ast.Call(func=ast.Attribute(attr=name)):
            return name.startswith("acquire") or name in {"__enter__", "enter_context", "enter_async_context"}
        case _:
            return False


def _touches(node: ast.AST, place: Place, subject: Subject) -> bool:
    """Whether a node is the table, or a call of one of the object's own methods, which may use it."""
    match node:
        case ast.Attribute(attr=name) if name == subject.attribute:
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner))):
            return owner == place.receiver
        case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")))):
            return True
        case _:
            return False


def opening_of(facts: Facts, subject: Subject) -> tuple[str, ...]:
    """The live members that open rooms: those of constructors, and those of listeners that keep a room's metadata.

    A peer's metadata may come before the room's own sender is made (SGLang 0.5.20,
    nixl/conn.py line 3004), so what such a listener writes has to create the room.
    """
    modules = shared_modules(facts)
    found = set(opening_members(facts.world, modules, subject.enum))
    for module in modules:
        found |= set(_opened_by_name(facts, module, subject))
    if not any(override.opening for override in facts.world.config.protocol):
        found |= {
            name
            for module in modules
            for write in writes_in(facts.world, module)
            if write.subject.enum is subject.enum and _keeps_metadata(write)
            for name in write.members
        }
    return tuple(name for name in subject.enum.members if name in found and name not in subject.enum.terminals)


def _opened_by_name(facts: Facts, module: Module, subject: Subject) -> Iterator[str]:
    """The members that constructors pass to something called like a writer, on an object of whatever class."""
    for place in places_of(facts.world, module):
        for node in place.nodes(ast.Call) if place.is_constructor else ():
            match node:
                case ast.Call(func=ast.Attribute(attr=name), args=arguments) if name in subject.writers:
                    named = (member_named(facts.world, module, argument) for argument in arguments)
                    yield from (
                        member
                        for found in named
                        if found is not None
                        for enum, member in [found]
                        if enum is subject.enum
                    )
                case _:
                    pass


def _keeps_metadata(write: Write) -> bool:
    """Whether a listener writes the status of a room for which it stores something else under the same key."""
    place = write.place
    if thread_of(place) is not Thread.LISTENER or write.key is None:
        return False
    if write.node in abort_code(place.world, place.module):
        return False
    return any(_stores_under(node, ast.unparse(write.key), write.subject) for node in place.body)


def _stores_under(node: ast.AST, key: str, subject: Subject) -> bool:
    match node:
        case ast.Subscript(value=ast.Attribute(attr=attr), slice=index, ctx=ast.Store()):
            return attr != subject.attribute and ast.unparse(index) == key
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr=attr), attr="setdefault"), args=[index, *_]):
            return attr != subject.attribute and ast.unparse(index) == key
        case ast.Call(func=ast.Attribute(attr=name), args=[index, *_]):
            return name in {"append", "add"} and ast.unparse(index) == key
        case _:
            return False


def _late_write(facts: Facts, writer: Writer, written: tuple[str, ...]) -> tuple[Write, Thread] | None:
    """A write of one of ``written`` on a thread that does not clear rooms."""
    for module in shared_modules(facts):
        for write in writes_in(facts.world, module):
            cls = None if write.writer is None else write.writer.cls
            if cls is None or not cls.is_related(writer.cls) or not set(write.members) & set(written):
                continue
            for thread in (Thread.WORKER, Thread.LISTENER, Thread.BACKGROUND):
                if thread in threads_at(facts, write.place):
                    return write, thread
    return None
