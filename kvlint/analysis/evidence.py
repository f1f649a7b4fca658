"""What the code says about statuses: which enum a value, a parameter or a table belongs to."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kvlint.analysis.conclusions import receiver_name
from kvlint.analysis.subject import StatusEnum, status_enum
from kvlint.config import ProtocolOverride
from kvlint.semantics.class_body import annotation_class, parameters
from kvlint.semantics.constants import EnumInfo, enum_info, member_of
from kvlint.semantics.hierarchy import ClassInfo, Method, class_info, resolve_class
from kvlint.semantics.module import Function, Module
from kvlint.semantics.world import World, dotted_name


def override_of(world: World) -> ProtocolOverride | None:
    """The first configured protocol, None where nothing is configured."""
    return world.config.protocol[0] if world.config.protocol else None


def status_enum_of(cls: ClassInfo) -> StatusEnum | None:
    """``cls`` as a status enum, roles from the configuration where it names this class."""
    info = enum_info(cls)
    if info is None:
        return None
    for override in cls.world.config.protocol:
        if override.status_enum in {None, cls.name}:
            failures = tuple(name for name in override.failure if name in info.values) or None
            successes = tuple(name for name in override.success if name in info.values) or None
            if override.status_enum == cls.name or failures or successes:
                return _kept(cls.world, info, failures, successes)
    return _kept(cls.world, info, None, None)


def _kept(
    world: World, info: EnumInfo, failures: tuple[str, ...] | None, successes: tuple[str, ...] | None
) -> StatusEnum | None:
    key = ("status enum", info, failures, successes)
    if key not in world.memo:
        world.memo[key] = status_enum(info, failures, successes)
    known = world.memo[key]
    return known if isinstance(known, StatusEnum) else None


def member_named(world: World, module: Module, expression: ast.expr) -> tuple[StatusEnum, str] | None:
    """The status enum and member that ``expression`` names in ``module``."""
    dotted = dotted_name(expression) if isinstance(expression, ast.Name | ast.Attribute) else None
    if dotted is None:
        return None
    found = member_of(world, module, dotted)
    if found is None:
        return None
    enum = status_enum_of(found[0].owner)
    return None if enum is None else (enum, found[1])


def enums_in(world: World, module: Module) -> tuple[StatusEnum, ...]:
    """The status enums whose members ``module`` mentions or that it defines, in order of appearance."""
    key = ("enums", module)
    if key not in world.memo:
        found: dict[StatusEnum, None] = {}
        tried: set[str] = set()
        for node in module.nodes_of_kind(ast.ClassDef, ast.Attribute):
            if isinstance(node, ast.ClassDef):
                enum = status_enum_of(class_info(world, module, node)) if _is_constant_class(node) else None
                if enum is not None:
                    found.setdefault(enum)
            else:
                assert isinstance(node, ast.Attribute)
                owner = dotted_name(node.value)
                if owner and owner not in tried and owner.rpartition(".")[2][:1].isupper():
                    tried.add(owner)
                    cls = resolve_class(world, module, owner)
                    enum = status_enum_of(cls) if cls is not None else None
                    if enum is not None:
                        found.setdefault(enum)
        world.memo[key] = tuple(found)
    known = world.memo[key]
    return known if isinstance(known, tuple) else ()


def _is_constant_class(node: ast.ClassDef) -> bool:
    return any(isinstance(statement, ast.Assign) for statement in node.body)


def methods_of(cls: ClassInfo) -> Iterator[Method]:
    """Every method of the class and its known bases, overridden ones included, most derived first."""
    for entry in cls.family():
        for node in entry.methods.values():
            yield Method(entry, node)


def table_evidence(cls: ClassInfo) -> tuple[tuple[str, StatusEnum], ...]:
    """Each sign in the class's own body that an attribute maps keys to statuses of an enum."""
    key = ("evidence", cls)
    memo = cls.world.memo
    if key not in memo:
        found: list[tuple[str, StatusEnum]] = []
        for node in cls.methods.values():
            found.extend(_evidence_in(cls, node))
        memo[key] = tuple(found)
    known = memo[key]
    return known if isinstance(known, tuple) else ()


def _evidence_in(cls: ClassInfo, node: Function) -> Iterator[tuple[str, StatusEnum]]:
    for part in cls.module.nodes_of(node, ast.Assign, ast.AnnAssign, ast.Call):
        for attribute, _, value in table_stores(part):
            enum = _enum_of_value(cls, node, value)
            if enum is not None:
                yield attribute, enum
        match part:
            case ast.AnnAssign(target=ast.Attribute(attr=attribute), annotation=annotation):
                enum = _enum_of_annotation(cls, annotation)
                if enum is not None:
                    yield attribute, enum
            case _:
                pass


def table_stores(part: ast.AST) -> Iterator[tuple[str, ast.expr, ast.expr]]:
    """(attribute, key, value) of each entry that a statement or call sets in ``….attribute``."""
    match part:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                attribute = stored_attribute(target)
                if attribute is not None and isinstance(target, ast.Subscript):
                    yield attribute, target.slice, value
        case ast.Call(
            func=ast.Attribute(value=ast.Attribute(attr=attribute), attr="setdefault" | "__setitem__"),
            args=[key, value],
        ):
            yield attribute, key, value
        case ast.Call(
            func=ast.Attribute(value=ast.Attribute(attr=attribute), attr="update"),
            args=[ast.Dict(keys=keys, values=values)],
        ):
            yield from ((attribute, key, value) for key, value in zip(keys, values, strict=True) if key is not None)
        case _:
            pass


def stored_attribute(target: ast.expr) -> str | None:
    """The attribute of ``….attribute[key] = …``; a nested ``….attribute[key][other]`` is none."""
    match target:
        case ast.Subscript(value=ast.Attribute(attr=attribute)):
            return attribute
        case _:
            return None


def _enum_of_annotation(cls: ClassInfo, annotation: ast.expr) -> StatusEnum | None:
    if isinstance(annotation, ast.Subscript) and isinstance(annotation.slice, ast.Tuple):
        name = annotation_class(annotation.slice.elts[-1])
        return enum_named(cls, name)
    return None


def enum_named(cls: ClassInfo, dotted: str | None) -> StatusEnum | None:
    """The status enum that a dotted name stands for in the class's module."""
    named = resolve_class(cls.world, cls.module, dotted) if dotted else None
    return status_enum_of(named) if named is not None else None


def _enum_of_value(cls: ClassInfo, node: Function, value: ast.expr) -> StatusEnum | None:  # noqa: C901 - one arm a kind
    """The status enum a stored value belongs to: a member, or a parameter that carries one."""
    names: set[str] = set()
    for part in ast.walk(value):
        if isinstance(part, ast.Attribute):
            found = member_named(cls.world, cls.module, part)
            if found is not None:
                return found[0]
        if isinstance(part, ast.Name):
            names.add(part.id)
    for name in sorted(names):
        enum = enum_of_parameter(cls, node, name)
        if enum is not None:
            return enum
    for name in sorted(names):
        for assigned in assigned_in(cls.module, node, name):
            if assigned is not value:
                for part in ast.walk(assigned):
                    enum = enum_of_parameter(cls, node, part.id) if isinstance(part, ast.Name) else None
                    if enum is not None:
                        return enum
    return None


def assigned_in(module: Module, node: Function, name: str) -> Iterator[ast.expr]:
    """What a function assigns to a local variable."""
    for part in module.nodes_of(node, ast.Assign, ast.NamedExpr):
        match part:
            case ast.Assign(targets=targets, value=value) if any(
                isinstance(target, ast.Name) and target.id == name for target in targets
            ):
                yield value
            case ast.NamedExpr(target=ast.Name(id=bound), value=value) if bound == name:
                yield value
            case _:
                pass


def enum_of_parameter(cls: ClassInfo, node: Function, name: str) -> StatusEnum | None:
    """The status enum of a parameter: by annotation, by what it is compared with, by what callers pass."""
    for argument in parameters(node)[1:]:
        if argument.arg == name:
            enum = enum_named(cls, annotation_class(argument.annotation))
            return enum or compared_with(cls, node, name) or passed_at(cls, node.name, position_of(node, name), name)
    return None


def position_of(node: Function, name: str) -> int:
    """The position of a parameter among the arguments of a call."""
    return [argument.arg for argument in parameters(node)].index(name) - 1


def compared_with(cls: ClassInfo, node: Function, name: str) -> StatusEnum | None:
    """The status enum whose members a function compares a parameter with."""
    for part in cls.module.nodes_of(node, ast.Compare, ast.Match):
        if isinstance(part, ast.Compare):
            sides = [part.left, *part.comparators]
            if any(isinstance(side, ast.Name) and side.id == name for side in sides):
                for side in sides:
                    for inner in ast.walk(side):
                        found = member_named(cls.world, cls.module, inner) if isinstance(inner, ast.Attribute) else None
                        if found is not None:
                            return found[0]
        if isinstance(part, ast.Match) and isinstance(part.subject, ast.Name) and part.subject.id == name:
            for inner in ast.walk(part):
                found = member_named(cls.world, cls.module, inner) if isinstance(inner, ast.Attribute) else None
                if found is not None:
                    return found[0]
    return None


def passed_at(cls: ClassInfo, method: str, position: int, name: str) -> StatusEnum | None:
    """The enum whose members callers in the same module pass for a parameter."""
    for call, argument in calls_of(cls, method):
        del call
        for index, value in argument:
            if index in {position, name}:
                found = member_named(cls.world, cls.module, value)
                if found is not None:
                    return found[0]
    return None


def calls_of(cls: ClassInfo, method: str) -> list[tuple[ast.Call, list[tuple[int | str, ast.expr]]]]:
    """The calls of a method name in the class's module, each with its arguments by position or keyword."""
    key = ("calls", cls.module, method)
    memo = cls.world.memo
    if key not in memo:
        found = []
        for node in cls.module.calls_of(method):
            if isinstance(node.func, ast.Attribute):
                arguments: list[tuple[int | str, ast.expr]] = list(enumerate(node.args))
                arguments.extend((keyword.arg, keyword.value) for keyword in node.keywords if keyword.arg)
                found.append((node, arguments))
        memo[key] = found
    known = memo[key]
    return known if isinstance(known, list) else []


def own_stores(method: Method) -> Iterator[tuple[str, ast.expr]]:
    """(attribute, value) of every ``self.attribute = value`` in a method."""
    receiver = receiver_name(method.node)
    for part in method.owner.module.nodes_of(method.node, ast.Assign):
        match part:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=owner), attr=attribute)], value=value):
                if owner == receiver:
                    yield attribute, value
            case _:
                pass
