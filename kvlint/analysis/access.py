"""Who touches the dicts that are keyed by rooms: every read, write and removal, with the threads it may happen on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct

from kvlint.analysis.handlers import threads_by_function
from kvlint.analysis.infer import subject_of
from kvlint.analysis.places import Place, places_of
from kvlint.analysis.roles import readers_of
from kvlint.analysis.threads import Thread
from kvlint.analysis.writes import writes_in
from kvlint.semantics.hierarchy import ClassInfo
from kvlint.semantics.module import Module
from kvlint.semantics.world import World

_REMOVERS = frozenset({"pop", "popitem", "clear", "discard", "remove", "__delitem__"})
_MUTATORS = frozenset({"setdefault", "update", "add", "append", "extend", "insert", "__setitem__"})


class Touch(StrEnum):
    """What is done with a dict."""

    READ = "read"
    WRITTEN = "written"
    REMOVED = "removed"


class Access(Struct, frozen=True, eq=False, dict=True):
    """One touch of a room table or the status table; through a writer or reader it counts where that is called."""

    table: str
    touch: Touch
    node: ast.AST
    place: Place
    threads: frozenset[Thread]


def accesses(world: World, modules: tuple[Module, ...], cls: ClassInfo, tables: frozenset[str]) -> tuple[Access, ...]:
    """Every access in ``modules`` to ``tables`` and the status table of ``cls``'s hierarchy."""
    threads = threads_by_function(world, modules)
    found = []
    for module in modules:
        for place in places_of(world, module):
            touches = dict.fromkeys((*_touches(place, cls, tables), *_status_touches(place, cls)))
            for table, touch, node in touches:
                found.append(Access(table, touch, node, place, threads[place.node]))
    return tuple(found)


def _status_touches(place: Place, cls: ClassInfo) -> Iterator[tuple[str, Touch, ast.AST]]:
    """Touches of the status table: by calls of its writers and readers, or directly outside of those."""
    subject = subject_of(cls)
    if subject is None or subject.kind != "table":
        return
    for write in writes_in(place.world, place.module):
        if write.place is place and write.subject.attribute == subject.attribute and not _is_super(write.node):
            yield subject.attribute, Touch.WRITTEN, write.node
    readers = {method.node.name for method in readers_of(cls)}
    for node in place.body:
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in readers and not _is_super(node):
                if _is_of(place, owner, cls):
                    yield subject.attribute, Touch.READ, node
            case _:
                pass
    if place.method.name in subject.writers | readers and place.cls is not None and place.cls.is_related(cls):
        return
    for table, touch, node in _touches(place, cls, frozenset({subject.attribute})):
        if touch is not Touch.WRITTEN:  # `writes_in` has those
            yield table, touch, node


def _is_super(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call)


def _touches(place: Place, cls: ClassInfo, tables: frozenset[str]) -> Iterator[tuple[str, Touch, ast.AST]]:
    settled: set[ast.expr] = set()
    for node in place.body:
        for mention, touch in _changes(place, node, tables):
            if _holds(place, mention, cls):
                settled.add(mention)
                yield _table(place, mention) or "", touch, node
    for node in place.body:
        if not isinstance(node, ast.Attribute) or node.attr not in tables or node in settled:
            continue
        if isinstance(node.ctx, ast.Load) and _holds(place, node, cls):
            yield node.attr, Touch.READ, node


def _changes(place: Place, node: ast.AST, tables: frozenset[str]) -> Iterator[tuple[ast.expr, Touch]]:
    """The mentions of tables that ``node`` stores into or removes from, values held in them included."""
    targets: list[ast.expr] = []
    touch = Touch.WRITTEN
    match node:
        case ast.Assign(targets=stored):
            targets = stored
        case ast.AugAssign(target=changed) | ast.AnnAssign(target=changed):
            targets = [changed]
        case ast.Delete(targets=deleted):
            targets, touch = deleted, Touch.REMOVED
        case ast.Call(func=ast.Attribute(value=owner, attr=name)) if (
            name in _REMOVERS and _table(place, owner) in tables
        ):
            yield owner, Touch.REMOVED
        case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in _REMOVERS | _MUTATORS:
            if _table(place, _within(owner)) in tables:
                yield _within(owner), Touch.WRITTEN
        case _:
            pass
    for target in targets:
        if isinstance(target, ast.Subscript):
            mention = _within(target.value)
            if _table(place, mention) in tables:
                yield mention, touch if mention is target.value else Touch.WRITTEN


def _within(expression: ast.expr) -> ast.expr:
    """The table in ``table[key][other]``, ``table.get(key)`` and ``table.setdefault(key, …)``."""
    while True:
        match expression:
            case ast.Subscript(value=inner):
                expression = inner
            case ast.Call(func=ast.Attribute(value=inner, attr="get" | "setdefault")):
                expression = inner
            case _:
                return expression


def _table(place: Place, expression: ast.expr) -> str | None:
    """The attribute that ``expression`` is, or that the local variable it is was assigned from."""
    match expression:
        case ast.Attribute(attr=attr):
            return attr
        case ast.Name(id=name):
            values = place.assigned(name)
            return values[0].attr if len(values) == 1 and isinstance(values[0], ast.Attribute) else None
        case _:
            return None


def _holds(place: Place, mention: ast.expr, cls: ClassInfo) -> bool:
    """Whether a mention of a table is of one of ``cls``'s hierarchy."""
    return not isinstance(mention, ast.Attribute) or _is_of(place, mention.value, cls)


def _is_of(place: Place, owner: ast.expr, cls: ClassInfo) -> bool:
    """Whether an object is of ``cls``'s hierarchy; one of unknown class may be."""
    holder = place.class_of(owner)
    return holder is None or holder.is_related(cls)
