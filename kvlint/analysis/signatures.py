"""Which methods write a status, and which of their parameters are the room and the status."""

from __future__ import annotations

import ast

from kvlint.analysis.conclusions import receiver_name
from kvlint.analysis.evidence import (
    assigned_in,
    compared_with,
    enum_named,
    methods_of,
    override_of,
    own_stores,
    passed_at,
    position_of,
    table_stores,
)
from kvlint.analysis.subject import Subject
from kvlint.analysis.transition import Signature
from kvlint.semantics.class_body import annotation_class, parameters
from kvlint.semantics.hierarchy import ClassInfo, Method
from kvlint.semantics.module import Function, Module


def writer_names(cls: ClassInfo, subject: Subject) -> set[str]:
    """Names of the methods through which a status parameter reaches the table, directly or passed on."""
    names: set[str] = set()
    override = override_of(cls.world)
    if override is not None and override.writer is not None:
        names.add(override.writer)
    methods = [method for method in methods_of(cls) if len(parameters(method.node)) >= 3]
    names |= {method.node.name for method in methods if _stores_parameter(method, subject)}
    while True:
        more = {
            method.node.name
            for method in methods
            if method.node.name not in names and _passes_on(method, names, subject)
        }
        if not more:
            return names
        names |= more


def _stores_parameter(method: Method, subject: Subject) -> bool:
    module, node = method.owner.module, method.node
    own = {argument.arg for argument in parameters(node)[1:]}
    for part in module.nodes_of(node, ast.Assign, ast.Call):
        aliased = _aliased_store(module, node, part, subject)
        stores = [(key, value) for attribute, key, value in table_stores(part) if attribute == subject.attribute]
        for key, value in stores if aliased is None else [aliased]:
            if isinstance(key, ast.Name) and key.id in own and _depends_on(module, node, value, own - {key.id}):
                return True
    return False


def _aliased_store(module: Module, node: Function, part: ast.AST, subject: Subject) -> tuple[ast.expr, ast.expr] | None:
    """``table = self.statuses; table[key] = value``."""
    match part:
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name), slice=key)], value=value):
            for assigned in assigned_in(module, node, name):
                if isinstance(assigned, ast.Attribute) and assigned.attr == subject.attribute:
                    return key, value
        case _:
            pass
    return None


def _depends_on(module: Module, node: Function, value: ast.expr, names: set[str]) -> bool:
    """Whether ``value`` is computed from, or chosen by a test of, one of the parameters ``names``."""
    mentioned = {part.id for part in ast.walk(value) if isinstance(part, ast.Name)}
    if mentioned & names:
        return True
    for name in mentioned:
        for assigned in assigned_in(module, node, name):
            if {part.id for part in ast.walk(assigned) if isinstance(part, ast.Name)} & names:
                return True
    return False


def _passes_on(method: Method, names: set[str], subject: Subject) -> bool:
    cls, node = method.owner, method.node
    own = {argument.arg for argument in parameters(node)[1:]}
    receiver = receiver_name(node)
    for part in cls.module.nodes_of(node, ast.Call):
        match part:
            case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in names:
                on_self = isinstance(owner, ast.Name) and owner.id == receiver
                on_super = isinstance(owner, ast.Call) and isinstance(owner.func, ast.Name) and owner.func.id == "super"
                arguments = [*part.args, *(keyword.value for keyword in part.keywords)]
                passed = {argument.id for argument in arguments if isinstance(argument, ast.Name)} & own
                if (on_self or on_super) and len(passed) >= 2 and _status_parameter(cls, node, passed, subject):
                    return True
            case _:
                pass
    return False


def _status_parameter(cls: ClassInfo, node: Function, among: set[str], subject: Subject) -> str | None:
    named = [argument for argument in parameters(node)[1:] if argument.arg in among]
    for argument in named:
        if enum_named(cls, annotation_class(argument.annotation)) is subject.enum:
            return argument.arg
    for argument in named:
        if compared_with(cls, node, argument.arg) is subject.enum:
            return argument.arg
    for argument in named:
        if passed_at(cls, node.name, position_of(node, argument.arg), argument.arg) is subject.enum:
            return argument.arg
    return None


def is_primary(cls: ClassInfo, method: Method, subject: Subject) -> bool:
    """Whether a method stores the status itself or overrides one that does."""
    if subject.kind == "attribute":
        return method.node.name in subject.writers
    if _stores_parameter(method, subject):
        return True
    above = method.owner.lookup(method.node.name, after=method.owner)
    return above is not None and is_primary(cls, above, subject)


def signature_of(method: Method, subject: Subject) -> Signature | None:
    """The room and status parameters of a writer, None where they cannot be told."""
    node, owner = method.node, method.owner
    named = [argument.arg for argument in parameters(node)]
    if subject.kind == "attribute":
        stored = [
            value.id
            for attribute, value in own_stores(method)
            if attribute == subject.attribute and isinstance(value, ast.Name) and value.id in named[1:]
        ]
        return Signature(named[0], None, stored[0]) if stored and method.kind == "instance" else None
    if method.kind == "static" or len(named) < 3:
        return None
    candidates = set(named[1:])
    status = _status_parameter(owner, node, candidates, subject)
    room = _key_parameter(method, subject, candidates)
    if status is None:
        status = _stored_parameter(method, subject, candidates - {room} if room else candidates)
    if status is None:
        # An override that only passes its parameters on takes them in the order of what it overrides.
        above = owner.lookup(node.name, after=owner)
        inherited = None if above is None else signature_of(above, subject)
        if above is None or inherited is None or inherited.room is None:
            return None
        names = [argument.arg for argument in parameters(above.node)]
        status = _same_place(named, names, inherited.status)
        room = room or _same_place(named, names, inherited.room)
    if room is None or room == status:
        others = [name for name in named[1:] if name != status]
        room = others[0] if others else None
    return None if status is None or room is None else Signature(named[0], room, status)


def _same_place(named: list[str], names: list[str], wanted: str) -> str | None:
    if wanted in named:
        return wanted
    index = names.index(wanted)
    return named[index] if index < len(named) else None


def _key_parameter(method: Method, subject: Subject, candidates: set[str]) -> str | None:
    """The parameter used as a key of the status table."""
    for part in method.owner.module.nodes_of(method.node, ast.Assign, ast.Call, ast.Subscript, ast.Compare):
        for attribute, key, _ in table_stores(part):
            if attribute == subject.attribute and isinstance(key, ast.Name) and key.id in candidates:
                return key.id
        match part:
            case ast.Subscript(value=ast.Attribute(attr=attr), slice=ast.Name(id=name)):
                pass
            case ast.Call(func=ast.Attribute(value=ast.Attribute(attr=attr)), args=[ast.Name(id=name), *_]):
                pass
            case ast.Compare(
                left=ast.Name(id=name), ops=[ast.In() | ast.NotIn()], comparators=[ast.Attribute(attr=attr)]
            ):
                pass
            case _:
                continue
        if attr == subject.attribute and name in candidates:
            return name
    return None


def _stored_parameter(method: Method, subject: Subject, candidates: set[str]) -> str | None:
    for part in method.owner.module.nodes_of(method.node, ast.Assign, ast.Call):
        for attribute, _, value in table_stores(part):
            if attribute == subject.attribute:
                for inner in ast.walk(value):
                    if isinstance(inner, ast.Name) and inner.id in candidates:
                        return inner.id
    return None
