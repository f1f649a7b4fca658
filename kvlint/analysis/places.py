"""Every function of a module with the class it serves, and what static typing says of expressions in it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar, cast

from kvlint.analysis.infer import attribute_subjects, subject_of
from kvlint.analysis.subject import Subject
from kvlint.semantics.class_body import annotation_class, parameters
from kvlint.semantics.hierarchy import ClassInfo, class_info, resolve_class
from kvlint.semantics.module import Function, Module, inner_blocks
from kvlint.semantics.world import World, dotted_name

Node = TypeVar("Node", bound=ast.AST)


@dataclass(eq=False)
class Place:
    """A function or method: ``cls`` is the class whose body (or whose method's body) it stands in."""

    world: World = field(repr=False)
    module: Module = field(repr=False)
    node: Function
    cls: ClassInfo | None
    outer: Place | None

    @property
    def name(self) -> str:
        """The function's own name."""
        return self.node.name

    @property
    def qualified(self) -> str:
        """``Class.method`` or ``Class.method.nested``."""
        if self.outer is not None:
            return f"{self.outer.qualified}.{self.name}"
        return f"{self.cls.name}.{self.name}" if self.cls is not None else self.name

    @property
    def method(self) -> Place:
        """The outermost function around this one, itself if it is not nested."""
        return self if self.outer is None else self.outer.method

    @cached_property
    def receiver(self) -> str | None:
        """The variable that holds the object, also seen by nested functions; None in functions outside classes."""
        if self.outer is not None:
            own = {argument.arg for argument in parameters(self.node)}
            return self.outer.receiver if self.outer.receiver not in own else None
        if self.cls is None or self.is_static:
            return None
        named = parameters(self.node)
        return named[0].arg if named else None

    @property
    def is_static(self) -> bool:
        """Whether the method is a static one."""
        return any(dotted_name(decorator) == "staticmethod" for decorator in self.node.decorator_list)

    @property
    def is_constructor(self) -> bool:
        """Whether the function makes its object."""
        return self.outer is None and self.name in {"__init__", "__post_init__", "__new__"}

    @cached_property
    def body(self) -> tuple[ast.AST, ...]:
        """Every node of the function, nested functions left out."""
        return self.module.body_of(self.node)

    def nodes(self, *kinds: type[Node]) -> list[Node]:
        """Those nodes of `body` that are of some kinds."""
        if len(kinds) == 1:
            return cast("list[Node]", self._nodes_by_kind.get(kinds[0], []))
        return cast("list[Node]", [node for node in self.body if node.__class__ in kinds])

    @cached_property
    def _nodes_by_kind(self) -> dict[type[ast.AST], list[ast.AST]]:
        found: dict[type[ast.AST], list[ast.AST]] = {}
        for node in self.body:
            found.setdefault(node.__class__, []).append(node)
        return found

    @cached_property
    def nested(self) -> dict[str, Function]:
        """The functions that the function's body defines, by name."""
        found: dict[str, Function] = {}
        for node in self.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.setdefault(node.name, node)
        return found

    @cached_property
    def _bindings(self) -> tuple[dict[str, list[ast.expr]], dict[str, ast.expr]]:
        """Assigned values and annotations of the function's own local variables."""
        values: dict[str, list[ast.expr]] = {}
        annotations: dict[str, ast.expr] = {}
        for node in self.nodes(ast.Assign, ast.AnnAssign, ast.NamedExpr):
            match node:
                case ast.Assign(targets=[ast.Name(id=bound)], value=value):
                    values.setdefault(bound, []).append(value)
                case ast.AnnAssign(target=ast.Name(id=bound), annotation=annotation, value=assigned):
                    annotations.setdefault(bound, annotation)
                    if assigned is not None:
                        values.setdefault(bound, []).append(assigned)
                case ast.NamedExpr(target=ast.Name(id=bound), value=value):
                    values.setdefault(bound, []).append(value)
                case _:
                    pass
        return values, annotations

    def assigned(self, name: str) -> list[ast.expr]:
        """What is assigned to a local variable, the enclosing functions' included."""
        found = self._bindings[0].get(name, [])
        if not found and self.outer is not None and name not in {arg.arg for arg in parameters(self.node)}:
            return self.outer.assigned(name)
        return found

    def parameter(self, name: str) -> ast.arg | None:
        """The parameter of that name, the enclosing functions' included."""
        for argument in parameters(self.node):
            if argument.arg == name:
                return argument
        return None if self.outer is None else self.outer.parameter(name)

    def class_of(self, expression: ast.expr, depth: int = 6) -> ClassInfo | None:
        """The class of the object an expression yields, None where nothing tells."""
        if depth == 0:
            return None
        if expression not in self._classes:
            self._classes[expression] = None  # `a = a.b` asks for itself
            self._classes[expression] = self._class_of(expression, depth)
        return self._classes[expression]

    @cached_property
    def _classes(self) -> dict[ast.expr, ClassInfo | None]:
        return {}

    def _class_of(self, expression: ast.expr, depth: int) -> ClassInfo | None:
        match expression:
            case ast.Name(id=name):
                return self._class_of_name(name, depth)
            case ast.Attribute(value=owner, attr=attr):
                outer = self.class_of(owner, depth - 1)
                return None if outer is None else outer.attribute_class(attr)
            case ast.Call(func=ast.Name(id="super")):
                return self.cls
            case ast.Call(func=ast.Name() | ast.Attribute() as callee):
                dotted = dotted_name(callee)
                return resolve_class(self.world, self.module, dotted) if dotted else None
            case ast.Await(value=inner):
                return self.class_of(inner, depth - 1)
            case _:
                return None

    def _class_of_name(self, name: str, depth: int) -> ClassInfo | None:
        if name == self.receiver:
            return self.cls
        annotation = self._bindings[1].get(name)
        if annotation is not None:
            dotted = annotation_class(annotation)
            return resolve_class(self.world, self.module, dotted) if dotted else None
        argument = self.parameter(name)
        if argument is not None:
            dotted = annotation_class(argument.annotation)
            return resolve_class(self.world, self.module, dotted) if dotted else None
        values = self.assigned(name)
        return self.class_of(values[0], depth - 1) if len(values) == 1 else None

    @cached_property
    def subject(self) -> Subject | None:
        """The status protocol the function deals with.

        Its class's own, else that of a typed attribute or parameter it uses,
        else one kept in an attribute of records that it reads or writes.
        """
        if self.holder is not None:
            return subject_of(self.holder)
        for candidate in attribute_subjects(self.world, self.module):
            if any(getattr(node, "attr", None) == candidate.attribute for node in self.nodes(ast.Attribute)):
                return candidate
        return None

    @cached_property
    def holder(self) -> ClassInfo | None:
        """The class whose objects keep the status that the function deals with."""
        for cls in self._candidates():
            if subject_of(cls) is not None:
                return cls
        return None

    def _candidates(self) -> Iterator[ClassInfo]:
        if self.cls is not None:
            yield self.cls
            for node in self.nodes(ast.Attribute):
                found = self.class_of(node)
                if found is not None:
                    yield found
        current: Place | None = self
        while current is not None:
            for argument in parameters(current.node):
                found = current._class_of_name(argument.arg, 1)
                if found is not None:
                    yield found
            current = current.outer


def places_of(world: World, module: Module) -> tuple[Place, ...]:
    """Every function of ``module``, nested ones and methods included, in source order."""
    key = ("places", module)
    known = world.memo.get(key)
    if not isinstance(known, tuple):
        known = world.memo[key] = tuple(
            place for statement in module.tree.body for place in _places_in(world, module, statement)
        )
    return known


def place_of(world: World, module: Module, function: ast.AST) -> Place | None:
    """The place of a function's node, with no more of ``module`` looked at than has to be."""
    around = module.top_level(function)
    if around is None:
        return place_index(world, module).get(function)
    return next((place for place in _places_in(world, module, around) if place.node is function), None)


def _places_in(world: World, module: Module, statement: ast.stmt) -> tuple[Place, ...]:
    key = ("places in", statement)
    known = world.memo.get(key)
    if not isinstance(known, tuple):
        known = world.memo[key] = tuple(_places(world, module, [statement], None, None))
    return known


def _places(
    world: World, module: Module, body: list[ast.stmt], cls: ClassInfo | None, outer: Place | None
) -> Iterator[Place]:
    for statement in body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                place = Place(world, module, statement, cls, outer)
                yield place
                yield from _places(world, module, statement.body, cls, place)
            case ast.ClassDef():
                yield from _places(world, module, statement.body, class_info(world, module, statement), None)
            case _:
                for block in inner_blocks(statement):
                    yield from _places(world, module, block, cls, outer)


def place_index(world: World, module: Module) -> dict[ast.AST, Place]:
    """The places of ``module`` by their function node."""
    key = ("place index", module)
    known = world.memo.get(key)
    if isinstance(known, dict):
        return known
    index: dict[ast.AST, Place] = {place.node: place for place in places_of(world, module)}
    world.memo[key] = index
    return index


def callees(place: Place) -> Iterator[tuple[ast.Call, Place]]:
    """The calls of a function whose target's source is known: methods, nested and module-level functions."""
    for node in place.nodes(ast.Call):
        target = target_of(place, node.func)
        if target is not None:
            yield node, target


def target_of(place: Place, callee: ast.expr) -> Place | None:
    """The function that ``callee`` names in ``place``."""
    world = place.world
    match callee:
        case ast.Attribute(value=owner, attr=name):
            cls = place.class_of(owner)
            if cls is None:
                return None
            is_super = isinstance(owner, ast.Call)
            method = cls.lookup(name, after=place.cls if is_super else None)
            return None if method is None else place_of(world, method.owner.module, method.node)
        case ast.Name(id=name):
            current: Place | None = place
            index = place_index(world, place.module)
            while current is not None:
                if name in current.nested:
                    return index.get(current.nested[name])
                current = current.outer
            bound = place.module.names.get(name)
            return index.get(bound) if isinstance(bound, ast.FunctionDef | ast.AsyncFunctionDef) else None
        case ast.Call(func=func, args=[first, *_]) if (dotted_name(func) or "").rpartition(".")[2] == "partial":
            return target_of(place, first)
        case ast.Lambda(body=ast.Call(func=inner)):
            return target_of(place, inner)
        case _:
            return None
