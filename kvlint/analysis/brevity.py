"""Whether code may run under a lock: it must not wait for anything, nor take another lock."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kvlint.analysis.contents import keeps_containers
from kvlint.analysis.places import Place, place_of
from kvlint.analysis.subject import Subject
from kvlint.semantics.class_body import is_new_container
from kvlint.semantics.constants import enum_info
from kvlint.semantics.hierarchy import ClassInfo, Method, classes_of, resolve_class
from kvlint.semantics.module import Module
from kvlint.semantics.world import dotted_name

_MAX_DEPTH = 4  # how far calls are followed
_BUILTINS = frozenset(
    {"max", "min", "len", "int", "str", "bool", "repr", "isinstance", "list", "tuple", "set", "dict", "frozenset"}
    | {"sorted", "any", "all", "sum", "range", "enumerate", "zip", "getattr", "hasattr", "type", "super"}
    | {"ValueError", "KeyError", "RuntimeError", "TypeError", "AssertionError", "Exception"}
)
_CONTAINER_METHODS = frozenset(
    {"get", "pop", "setdefault", "discard", "add", "items", "keys", "values", "update", "append", "remove", "copy"}
    | {"__setitem__", "__getitem__", "__contains__", "popitem", "clear"}
)
_GIVING = frozenset({"get", "pop", "setdefault", "__getitem__"})
_LOGGERS = frozenset({"logger", "logging", "log", "_logger", "LOGGER", "LOG"})
_CLOCKS = frozenset({"time.time", "time.monotonic", "time.perf_counter"})
_WAITS = (ast.AsyncWith, ast.AsyncFor, ast.While, ast.Await, ast.Yield, ast.YieldFrom)


@dataclass(frozen=True, slots=True)
class Terms:
    """Whose status it is about: ``cls`` is the object's class, ``lock`` the table's own (which may be taken again).

    ``modules`` are those that may define its subclasses or put something into its containers.
    """

    cls: ClassInfo
    subject: Subject
    lock: str | None
    modules: tuple[Module, ...]
    depth: int = _MAX_DEPTH


def blocks(place: Place, terms: Terms, part: Sequence[ast.AST] | None = None) -> ast.AST | None:
    """What in the body of ``place`` (or in ``part``) may wait, takes a lock or is unknown; None where nothing does."""
    if isinstance(place.node, ast.AsyncFunctionDef) and part is None:
        return place.node
    nodes = place.body if part is None else [node for statement in part for node in ast.walk(statement)]
    for node in nodes:
        if isinstance(node, _WAITS) or (isinstance(node, ast.With) and not _is_own(node, terms)):
            return node
        if isinstance(node, ast.Call) and not _is_brief(place, node, terms):
            return node
    return None


def _is_own(statement: ast.With, terms: Terms) -> bool:
    """Whether a statement takes the table's own lock and nothing else."""
    texts = [ast.unparse(item.context_expr) for item in statement.items]
    return terms.lock is not None and all(text.rpartition(".")[2] == terms.lock for text in texts)


def _is_brief(place: Place, call: ast.Call, terms: Terms) -> bool:
    match call.func:
        case ast.Name(id=name):
            return name in _BUILTINS or _is_enum(place, name)
        case ast.Attribute(value=owner, attr=name):
            if _root(owner) in _LOGGERS or dotted_name(call.func) in _CLOCKS:
                return True
            if name in _CONTAINER_METHODS and _is_container(owner, terms):
                return True
            return terms.depth > 0 and _method_is_brief(place, owner, name, terms)
        case _:
            return False


def _is_enum(place: Place, name: str) -> bool:
    found = resolve_class(place.world, place.module, name)
    return found is not None and enum_info(found) is not None


def _is_container(owner: ast.expr, terms: Terms) -> bool:
    """Whether an object is a dict, list or set of the manager's, or a value out of one."""
    match owner:
        case ast.Attribute(attr=attr):
            return attr == terms.subject.attribute or _is_always_container(attr, terms)
        case ast.Subscript(value=inner):
            return _holds_containers(inner, terms)
        case ast.Call(func=ast.Attribute(value=inner, attr=name), args=[_, *defaults]) if name in _GIVING:
            return _holds_containers(inner, terms) and all(map(is_new_container, defaults))
        case _:
            return False


def _holds_containers(owner: ast.expr, terms: Terms) -> bool:
    """Whether what a container of the manager's holds are containers: a queue or an event would wait."""
    return isinstance(owner, ast.Attribute) and (
        _is_always_container(owner.attr, terms) and keeps_containers(terms.modules, owner.attr)
    )


def _is_always_container(attribute: str, terms: Terms) -> bool:
    """Whether no subclass puts something else in the place of the container."""
    return all(cls.is_container(attribute) for cls in subclasses_in(terms.modules, terms.cls))


def _method_is_brief(place: Place, owner: ast.expr, name: str, terms: Terms) -> bool:
    """Whether every definition that the call may reach, on an object of the class or of a subclass, is brief."""
    match owner:
        case ast.Name(id=receiver) if receiver == place.receiver:
            after = None
        case ast.Call(func=ast.Name(id="super"), args=[]) if place.cls is not None:
            after = place.cls
        case _:
            return False
    reached = [
        cls.lookup(name, after=after)
        for cls in subclasses_in(terms.modules, terms.cls)
        if after is None or after in cls.resolution_order
    ]
    return bool(reached) and all(_definition_is_brief(place, method, terms) for method in reached)


def _definition_is_brief(place: Place, method: Method | None, terms: Terms) -> bool:
    if method is None or method.kind == "wrapped" or method.node is place.node:
        return False
    target = place_of(place.world, method.owner.module, method.node)
    return target is not None and blocks(target, replace(terms, depth=terms.depth - 1)) is None


def subclasses_in(modules: Sequence[Module], base: ClassInfo) -> tuple[ClassInfo, ...]:
    """The class itself and the classes of ``modules`` that inherit from it."""
    known = (cls for module in modules for cls in classes_of(base.world, module))
    return (base, *(cls for cls in known if cls is not base and base in cls.resolution_order))


def _root(expression: ast.expr) -> str | None:
    dotted = dotted_name(expression)
    return None if dotted is None else dotted.rpartition(".")[2]
