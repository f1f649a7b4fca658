"""What the methods of a class are to its status besides writing it: readers, helpers that conclude, opening writes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from kvlint.analysis.evidence import member_named, methods_of
from kvlint.analysis.infer import own_writers, subject_of
from kvlint.analysis.places import Place, place_index, places_of
from kvlint.analysis.subject import StatusEnum, Subject
from kvlint.analysis.writes import Write, opens_rooms, writes_in
from kvlint.protocol import is_failure_name
from kvlint.semantics.class_body import parameters
from kvlint.semantics.hierarchy import ClassInfo, Method, classes_of
from kvlint.semantics.module import Module
from kvlint.semantics.world import External, World, dotted_name

_MAX_HELPERS = 4  # how long a chain of helpers that hand their room on is followed


class TerminalHelper(Struct, frozen=True, eq=False, dict=True):
    """A method that may conclude the room it is given, by writing the terminal ``members``.

    Without members it is one that the configuration names.
    """

    method: Method
    members: tuple[str, ...]


def effective_methods(cls: ClassInfo) -> Iterator[Method]:
    """The methods that calls on an instance of ``cls`` reach, overridden ones left out, most derived class first."""
    seen: set[str] = set()
    for method in methods_of(cls):
        if method.node.name not in seen:
            seen.add(method.node.name)
            yield method


def readers_of(cls: ClassInfo) -> tuple[Method, ...]:
    """The methods that return the stored status of a room (of the object, where it keeps its own)."""
    subject = subject_of(cls)
    if subject is None:
        return ()
    configured = {override.reader for override in cls.world.config.protocol}
    return tuple(
        method
        for method in effective_methods(cls)
        if method.node.name in configured or _returns_status(method, subject)
    )


def _returns_status(method: Method, subject: Subject) -> bool:
    place = place_index(method.owner.world, method.owner.module).get(method.node)
    if place is None or method.node.name in subject.writers:
        return False
    own = {argument.arg for argument in parameters(method.node)[1:]}
    return any(
        isinstance(node, ast.Return) and node.value is not None and _is_status(place, node.value, subject, own)
        for node in place.body
    )


def _is_status(place: Place, value: ast.expr, subject: Subject, keys: set[str], depth: int = 3) -> bool:
    """Whether ``value`` is what is stored under a parameter, or in the object's own attribute."""
    match value:
        case ast.Attribute(value=ast.Name(id=owner), attr=attr) if subject.kind == "attribute":
            return attr == subject.attribute and owner == place.receiver
        case (
            ast.Subscript(value=ast.Attribute(attr=attr), slice=ast.Name(id=key))
            | ast.Call(func=ast.Attribute(value=ast.Attribute(attr=attr), attr="get"), args=[ast.Name(id=key), *_])
        ) if subject.kind == "table":
            return attr == subject.attribute and key in keys
        case ast.IfExp(body=body, orelse=orelse):
            return any(_is_status(place, side, subject, keys, depth - 1) for side in (body, orelse)) and depth > 0
        case ast.Name(id=name) if depth > 0:
            return any(_is_status(place, side, subject, keys, depth - 1) for side in place.assigned(name))
        case _:
            return False


def terminal_helpers_of(cls: ClassInfo) -> tuple[TerminalHelper, ...]:
    """The methods that only ever write ends for the room they are given, writers left out."""
    subject = subject_of(cls)
    if subject is None or subject.kind != "table":
        return ()
    configured = {name for override in cls.world.config.protocol for name in override.terminal_helpers}
    found = []
    for method in effective_methods(cls):
        name = method.node.name
        if name in subject.writers or name == "__init__":
            continue
        members = _concluded(cls, method, subject, _MAX_HELPERS)
        if members or name in configured:
            found.append(TerminalHelper(method, members))
    return tuple(found)


def _concluded(cls: ClassInfo, method: Method, subject: Subject, depth: int) -> tuple[str, ...]:
    """The terminal members that ``method`` writes for a room it is given; none if it also writes live ones."""
    place = place_index(cls.world, method.owner.module).get(method.node)
    if place is None or depth == 0:
        return ()
    rooms = {argument.arg for argument in parameters(method.node)} - {place.receiver}
    own = [write for write in _writes_of(place) if _names(write.key, rooms)]
    members = {name for write in own for name in write.members}
    if members - set(subject.enum.terminals):
        return ()
    for node in place.body:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=name)) if owner == place.receiver:
                target = cls.lookup(name)
                given = [*node.args, *(keyword.value for keyword in node.keywords)]
                handed = any(_names(argument, rooms) for argument in given)
                if target is not None and handed and name not in subject.writers and target.node is not method.node:
                    members.update(_concluded(cls, target, subject, depth - 1))
            case _:
                pass
    return tuple(name for name in subject.enum.members if name in members)


def _writes_of(place: Place) -> list[Write]:
    return [write for write in writes_in(place.world, place.module) if write.place is place]


def _names(expression: ast.expr | None, names: set[str]) -> bool:
    return isinstance(expression, ast.Name) and expression.id in names


def opening_members(world: World, modules: tuple[Module, ...], enum: StatusEnum) -> tuple[str, ...]:
    """The live members with which constructors open rooms, in the enum's order."""
    configured = {name for override in world.config.protocol for name in override.opening}
    opened = configured | {
        name
        for module in modules
        for write in writes_in(world, module)
        if write.subject.enum is enum and opens_rooms(write.place)
        for name in write.members
    }
    return tuple(name for name in enum.members if name in opened and name not in enum.terminals)


def is_passed_on(write: Write) -> bool:
    """Whether a write of an unknown status only hands on the one that its function was given."""
    method = write.place.method
    if method.cls is None or write.members:
        return False
    subject = subject_of(method.cls)
    if subject is None or (method.name not in subject.writers and not _is_own_writer(method)):
        return False
    given = {argument.arg for argument in parameters(method.node)}
    return any(_names(node, given) for node in ast.walk(write.node) if isinstance(node, ast.expr))


def _is_own_writer(place: Place) -> bool:
    return place.cls is not None and any(writer.method.node is place.node for writer in own_writers(place.cls))


def bases_in_doubt(world: World, module: Module) -> tuple[ClassInfo, ...]:
    """The classes of ``module`` that deal with a status and have a base that could not be found."""
    return tuple(
        cls
        for cls in classes_of(world, module)
        if cls.missing_bases and (subject_of(cls) is not None or _deals_with_status(world, cls))
    )


def _deals_with_status(world: World, cls: ClassInfo) -> bool:
    return any(
        place.cls is cls
        and (place.subject is not None or any(_is_member(world, cls.module, node) for node in place.body))
        for place in places_of(world, cls.module)
    )


def _is_member(world: World, module: Module, node: ast.AST) -> bool:
    """Whether ``node`` is a member of a status enum, or is named like a failure of a class that was not found."""
    if not isinstance(node, ast.Attribute):
        return False
    if member_named(world, module, node) is not None:
        return True
    owner = dotted_name(node.value) if is_failure_name(node.attr) else None
    return owner is not None and owner[:1].isupper() and isinstance(world.resolve(module, owner), External)


__all__ = [
    "TerminalHelper",
    "bases_in_doubt",
    "effective_methods",
    "is_passed_on",
    "opening_members",
    "readers_of",
    "terminal_helpers_of",
]
