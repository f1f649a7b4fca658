"""What is kept in an object's containers, as far as all the code in sight tells."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from kvlint.semantics.class_body import is_new_container
from kvlint.semantics.module import Module
from kvlint.semantics.world import dotted_name

# Methods that put nothing in and give the container itself to nobody.
_TAKING = frozenset(
    {"get", "pop", "popitem", "clear", "keys", "values", "items", "discard", "remove", "copy"}
    | {"__getitem__", "__contains__"}
)
_FACTORIES = frozenset({"dict", "list", "set", "deque"})


def keeps_containers(modules: Iterable[Module], attribute: str) -> bool:
    """Whether something is seen to be kept in the containers of that name, and all of it are new built-in containers.

    What cannot be followed (another name for the container, an ``update``) counts as something else.
    """
    found = [kind for module in modules for kind in _kept(module, attribute)]
    return bool(found) and all(found)


def _kept(module: Module, attribute: str) -> Iterator[bool]:
    """For each value that a module puts into such a container, whether it is a new container."""
    followed: set[ast.AST] = set()
    mentions: list[ast.AST] = []
    for node in ast.walk(module.tree):
        match node:
            case ast.Attribute(attr=name) if name == attribute:
                mentions.append(node)
            case ast.Constant(value=str(name)) if name == attribute:  # getattr and setattr
                mentions.append(node)
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    yield from _assigned(target, value, attribute)
                    followed.update(_container_of(target))
            case ast.AnnAssign(target=target, value=annotated):
                if annotated is not None:
                    yield from _assigned(target, annotated, attribute)
                followed.update(_container_of(target))
            case ast.Call(func=ast.Attribute(value=owner, attr="setdefault"), args=arguments) if _is(owner, attribute):
                yield len(arguments) == 2 and is_new_container(arguments[1])
                followed.add(owner)
            case _:
                followed.update(_looked_at(node))
    yield from (False for node in mentions if node not in followed)


def _is(node: ast.AST, attribute: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == attribute


def _container_of(target: ast.expr) -> tuple[ast.expr, ...]:
    return (target.value if isinstance(target, ast.Subscript) else target,)


def _assigned(target: ast.expr, value: ast.expr, attribute: str) -> Iterator[bool]:
    """What an assignment puts into the container: what a new one starts with, or the value of a key."""
    if _is(target, attribute):
        yield from _initial(value)
    elif isinstance(target, ast.Subscript) and _is(target.value, attribute):
        yield is_new_container(value)


def _initial(value: ast.expr) -> Iterator[bool]:
    match value:
        case ast.Dict(values=values) | ast.List(elts=values) | ast.Set(elts=values):
            yield from map(is_new_container, values)
        case ast.Call(args=[], keywords=[]):
            if not is_new_container(value):
                yield False
        case ast.Call(func=callee, args=[factory], keywords=[]):
            made_by = (dotted_name(callee) or "").rpartition(".")[2]
            yield made_by == "defaultdict" and _makes_containers(factory)
        case _:
            yield False


def _makes_containers(factory: ast.expr) -> bool:
    if isinstance(factory, ast.Lambda):
        return is_new_container(factory.body)
    return (dotted_name(factory) or "").rpartition(".")[2] in _FACTORIES


def _looked_at(node: ast.AST) -> tuple[ast.expr, ...]:
    """The containers that a node only takes something out of, or asks about."""
    match node:
        case ast.Subscript(value=owner, ctx=ast.Load() | ast.Del()):
            return (owner,)
        case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in _TAKING:
            return (owner,)
        case ast.Call(func=ast.Name(id="len" | "list" | "sorted"), args=[owner]):
            return (owner,)
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[owner]):
            return (owner,)
        case ast.For(iter=owner) | ast.comprehension(iter=owner):
            return (owner,)
        case _:
            return ()
