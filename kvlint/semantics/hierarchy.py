"""Classes across files: bases, method resolution order, methods, and the classes of attributes."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

from msgspec import Struct

from kvlint.semantics.class_body import (
    annotation_class,
    bound_names,
    class_statements,
    is_new_container,
    note_attribute_types,
    parameters,
)
from kvlint.semantics.linearisation import linearised
from kvlint.semantics.module import Function, Module, statements_in
from kvlint.semantics.world import External, Symbol, World, dotted_name

# Bases outside the tree that define nothing a status protocol could inherit.
_NEUTRAL_BASES = frozenset(
    {"object", "abc.ABC", "ABC", "typing.Protocol", "typing.Generic", "Generic", "Protocol", "threading.Thread"}
    | {
        "msgspec.Struct",
        "pydantic.BaseModel",
        "typing.NamedTuple",
        "typing.TypedDict",
        "multiprocessing.Process",
        "enum.Enum",
        "enum.IntEnum",
        "enum.StrEnum",
        "str",
        "int",
        "dict",
        "Exception",
    }
)

# Decorators that leave what a call of the method does unchanged.
_NEUTRAL_DECORATORS = frozenset({"override", "final", "abstractmethod", "staticmethod", "classmethod"})


@dataclass(eq=False, repr=False)
class ClassInfo:
    """A class statement in a module; identity is the node, so each class has one ClassInfo per world."""

    module: Module
    node: ast.ClassDef
    world: World = field(repr=False)

    def __repr__(self) -> str:
        return f"<class {self.name}>"

    @property
    def name(self) -> str:
        """The class's own name."""
        return self.node.name

    @cached_property
    def methods(self) -> dict[str, Function]:
        """Methods by name, those under ``if`` included; the last definition wins, ``a = b`` aliases are followed."""
        found: dict[str, Function] = {}
        for statement in class_statements(self.node.body):
            match statement:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    found[statement.name] = statement
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=other)) if other in found:
                    found[name] = found[other]
                case _:
                    pass
        return found

    @cached_property
    def class_values(self) -> dict[str, ast.expr]:
        """What the class body assigns, by name."""
        found: dict[str, ast.expr] = {}
        for statement in class_statements(self.node.body):
            match statement:
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=value)
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                ):
                    found[name] = value
                case _:
                    pass
        return found

    @cached_property
    def bases(self) -> tuple[ClassInfo | External, ...]:
        """The direct bases; one whose definition cannot be found is External."""
        return tuple(self._base(expression) for expression in self.node.bases)

    def _base(self, expression: ast.expr) -> ClassInfo | External:
        if isinstance(expression, ast.Subscript):  # Generic[T]
            expression = expression.value
        dotted = dotted_name(expression)
        if dotted is None:
            return External(ast.unparse(expression))
        target = self.world.resolve(self.module, dotted)
        if isinstance(target, Symbol) and isinstance(target.node, ast.ClassDef):
            return class_info(self.world, target.module, target.node)
        return External(target.dotted if isinstance(target, External) else dotted)

    @cached_property
    def resolution_order(self) -> tuple[ClassInfo | External, ...]:
        """The method resolution order (C3; depth first where the bases contradict each other)."""
        return tuple(linearised(self, _bases_of))

    @cached_property
    def missing_bases(self) -> tuple[str, ...]:
        """Dotted names of bases that could not be found and may hide methods."""
        return tuple(
            entry.dotted
            for entry in self.resolution_order
            if isinstance(entry, External) and entry.dotted not in _NEUTRAL_BASES
        )

    def family(self) -> tuple[ClassInfo, ...]:
        """The classes of the resolution order whose source is known."""
        return self._family

    @cached_property
    def _family(self) -> tuple[ClassInfo, ...]:
        return tuple(entry for entry in self.resolution_order if isinstance(entry, ClassInfo))

    def lookup(self, name: str, after: ClassInfo | None = None) -> Method | None:
        """The method that ``name`` reaches on an instance (``after``: as ``super()`` in that class would).

        None where no class defines it or an unknown base could come first.
        """
        started = after is None
        for entry in self.resolution_order:
            if not started:
                started = entry is after
                continue
            if isinstance(entry, External):
                if entry.dotted not in _NEUTRAL_BASES:
                    return None
            elif name in entry.methods:
                return Method(entry, entry.methods[name])
            elif name in entry.class_values:
                return None
        return None

    def value(self, name: str) -> tuple[Module, ast.expr] | None:
        """The class-level value that ``name`` reaches, with the module that holds it."""
        for entry in self.family():
            if name in entry.class_values:
                return entry.module, entry.class_values[name]
        return None

    def assigns(self, name: str) -> bool:
        """Whether a method of the hierarchy sets ``self.name``, or a class body sets ``name`` twice."""
        return any(name in entry.assigned for entry in self.family())

    @cached_property
    def assigned(self) -> frozenset[str]:
        """Attributes that the class's own methods set, and names that its body binds more than once."""
        found: set[str] = set()
        for method in self.methods.values():
            named = parameters(method)
            for node in self.module.nodes_of(method, ast.Attribute):
                match node:
                    case ast.Attribute(value=ast.Name(id=owner), attr=attr, ctx=ast.Store() | ast.Del()):
                        if named and owner == named[0].arg:
                            found.add(attr)
                    case _:
                        pass
        bound = [name for statement in class_statements(self.node.body) for name in bound_names(statement)]
        found.update(name for name, count in Counter(bound).items() if count > 1 and name in self.class_values)
        return frozenset(found)

    def is_container(self, name: str) -> bool:
        """Whether all that the hierarchy's methods set ``self.name`` to are new built-in containers."""
        kinds = [kind for entry in self.family() for kind in entry._assigned_kinds.get(name, ())]
        return bool(kinds) and all(kinds)

    @cached_property
    def _assigned_kinds(self) -> dict[str, list[bool]]:
        """For each attribute that the class's methods set, whether each value is a new built-in container."""
        found: dict[str, list[bool]] = {}
        for method in self.methods.values():
            for node in self.module.nodes_of(method, ast.Attribute):
                match node:
                    case ast.Attribute(attr=name, ctx=ast.Store() | ast.Del()):
                        found.setdefault(name, []).append(False)
                    case _:
                        pass
            for node in self.module.nodes_of(method, ast.Assign, ast.AnnAssign):
                match node:
                    case (
                        ast.Assign(targets=[ast.Attribute(attr=name)], value=value)
                        | ast.AnnAssign(target=ast.Attribute(attr=name), value=ast.expr() as value)
                    ):
                        if is_new_container(value):
                            found[name].remove(False)
                            found[name].append(True)
                    case _:
                        pass
        return found

    @cached_property
    def attribute_types(self) -> dict[str, str]:
        """Dotted class names (as written in this class's module) by attribute.

        From annotations in the class body, ``self.x: C``, ``self.x = C(...)`` and
        ``self.x = parameter`` with an annotated parameter.
        """
        found: dict[str, str] = {}
        for statement in self.node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                dotted = annotation_class(statement.annotation)
                if dotted is not None:
                    found.setdefault(statement.target.id, dotted)
        for method in self.methods.values():
            note_attribute_types(method, found)
        return found

    def attribute_class(self, name: str) -> ClassInfo | None:
        """The class of ``self.name``, looked up along the hierarchy; the most derived annotation wins."""
        for entry in self.family():
            dotted = entry.attribute_types.get(name)
            if dotted is not None:
                return resolve_class(self.world, entry.module, dotted)
        parameter = self._initialised_from.get(name)
        return None if parameter is None else self._passed_class(parameter)

    @cached_property
    def _initialised_from(self) -> dict[str, int]:
        """Position of the constructor parameter behind each attribute that is set from one."""
        constructor = self.methods.get("__init__")
        if constructor is None:
            return {}
        names = [argument.arg for argument in parameters(constructor)]
        return {
            node.targets[0].attr: names.index(node.value.id) - 1
            for node in statements_in(constructor.body)
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in names[1:]
        }

    def _passed_class(self, position: int) -> ClassInfo | None:
        """The class whose methods pass ``self`` at ``position`` when they make an instance in the same module."""
        found = {
            holder
            for holder, arguments, receiver in _constructions(self.world, self.module, self.name)
            if len(arguments) > position
            and isinstance(argument := arguments[position], ast.Name)
            and argument.id == receiver
        }
        return class_info(self.world, self.module, found.pop()) if len(found) == 1 else None

    def is_related(self, other: ClassInfo) -> bool:
        """Whether one of the two inherits from the other (or they are the same)."""
        return other in self.resolution_order or self in other.resolution_order


class Method(Struct, frozen=True):
    """A function and the class whose body defines it."""

    owner: ClassInfo
    node: Function

    @property
    def is_property(self) -> bool:
        """Whether reading the attribute runs the method."""
        return any(
            (dotted_name(decorator) or "").rpartition(".")[2] in {"property", "cached_property"}
            for decorator in self.node.decorator_list
        )

    @property
    def kind(self) -> str:
        """``instance``, ``static``, ``class``, or ``wrapped`` by a decorator of unknown effect."""
        kinds = {"staticmethod": "static", "classmethod": "class"}
        kind = "instance"
        for decorator in self.node.decorator_list:
            name = (dotted_name(decorator) or "?").rpartition(".")[2]
            if name not in _NEUTRAL_DECORATORS:
                return "wrapped"
            kind = kinds.get(name, kind)
        return kind


def class_info(world: World, module: Module, node: ast.ClassDef) -> ClassInfo:
    """The one ClassInfo of ``node`` in ``world``."""
    key = ("class", node)
    known = world.memo.get(key)
    if not isinstance(known, ClassInfo):
        known = world.memo[key] = ClassInfo(module, node, world)
    return known


def resolve_class(world: World, module: Module, dotted: str) -> ClassInfo | None:
    """The class that ``dotted`` names in ``module``, None where it is unknown."""
    target = world.resolve(module, dotted)
    if isinstance(target, Symbol) and isinstance(target.node, ast.ClassDef):
        return class_info(world, target.module, target.node)
    return None


def classes_of(world: World, module: Module) -> tuple[ClassInfo, ...]:
    """Every class statement of ``module``, nested ones included, in source order."""
    key = ("classes", module)
    known = world.memo.get(key)
    if not isinstance(known, tuple):
        nodes = [node for node in statements_in(module.tree.body) if isinstance(node, ast.ClassDef)]
        nodes.sort(key=lambda node: node.lineno)
        known = world.memo[key] = tuple(class_info(world, module, node) for node in nodes)
    return known


_Construction = tuple[ast.ClassDef, list[ast.expr], str]


def _constructions(world: World, module: Module, name: str) -> tuple[_Construction, ...]:
    """(class it stands in, arguments, receiver's name) of every ``name(…)`` in a method."""
    key = ("constructions", module, name)
    known = world.memo.get(key)
    if not isinstance(known, tuple):
        known = world.memo[key] = tuple(
            (holder, node.args, method.args.args[0].arg)
            for holder in statements_in(module.statements_calling(name))
            if isinstance(holder, ast.ClassDef)
            for method in holder.body
            if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) and method.args.args
            for node in module.nodes_of(method, ast.Call)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
        )
    return known


def _bases_of(entry: ClassInfo | External) -> tuple[ClassInfo | External, ...]:
    return entry.bases if isinstance(entry, ClassInfo) else ()
