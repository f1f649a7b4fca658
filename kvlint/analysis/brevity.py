"""Whether code may run under a lock: it must not wait for anything, nor take another lock."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kvlint.analysis.places import Place, place_of, target_of
from kvlint.analysis.subject import Subject
from kvlint.semantics.constants import enum_info
from kvlint.semantics.hierarchy import ClassInfo, resolve_class
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
_LOGGERS = frozenset({"logger", "logging", "log", "_logger", "LOGGER", "LOG"})
_CLOCKS = frozenset({"time.time", "time.monotonic", "time.perf_counter"})
_WAITS = (ast.AsyncWith, ast.AsyncFor, ast.While, ast.Await, ast.Yield, ast.YieldFrom)


@dataclass(frozen=True, slots=True)
class Terms:
    """Whose status it is about: ``cls`` is the object's class, ``lock`` the table's own (which may be taken again)."""

    cls: ClassInfo
    subject: Subject
    lock: str | None
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
            return attr == terms.subject.attribute or terms.cls.is_container(attr)
        case ast.Subscript(value=inner) | ast.Call(func=ast.Attribute(value=inner)):
            return _is_container(inner, terms)
        case _:
            return False


def _method_is_brief(place: Place, owner: ast.expr, name: str, terms: Terms) -> bool:
    match owner:
        case ast.Name(id=receiver) if receiver == place.receiver:
            method = terms.cls.lookup(name)
            target = None if method is None else place_of(place.world, method.owner.module, method.node)
        case ast.Call(func=ast.Name(id="super")):
            target = target_of(place, ast.Attribute(value=owner, attr=name, ctx=ast.Load()))
        case _:
            return False
    if target is None or target.node is place.node:
        return False
    return blocks(target, replace(terms, depth=terms.depth - 1)) is None


def _root(expression: ast.expr) -> str | None:
    dotted = dotted_name(expression)
    return None if dotted is None else dotted.rpartition(".")[2]
