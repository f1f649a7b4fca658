"""Constant folding: literals, module constants, class constants and enum members, across files."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from msgspec import Struct

from kvlint.semantics.hierarchy import ClassInfo, resolve_class
from kvlint.semantics.module import Module
from kvlint.semantics.world import External, Symbol, World, dotted_name


class Member(Struct, frozen=True):
    """A member of a real Enum: it equals only itself, unless ``mixed`` in int or str, when it also equals its value.

    ``overloads`` are the operators' methods that the Enum defines itself.
    """

    enum: str
    name: str
    value: object
    mixed: bool
    overloads: frozenset[str] = frozenset()


class ConstantDict(Struct, frozen=True):
    """A dict display of constants, entries in order; as in a display, a later entry of a key wins."""

    entries: tuple[tuple[Constant, Constant], ...]


Scalar = None | bool | int | float | str | bytes | Member
Constant = Scalar | tuple["Constant", ...] | frozenset["Constant"] | ConstantDict


class NotConstant:
    """The type of NOT_CONSTANT."""

    def __repr__(self) -> str:
        return "NOT_CONSTANT"


NOT_CONSTANT: Final = NotConstant()
_OPERATORS: Final = frozenset({"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__bool__", "__len__"})
_MAX_DEPTH = 12


@dataclass(eq=False)
class EnumInfo:
    """A class of named constants: a real Enum or a plain class of ints or strings."""

    owner: ClassInfo
    values: dict[str, Constant]

    @property
    def name(self) -> str:
        """The class's name."""
        return self.owner.name

    @cached_property
    def by_value(self) -> dict[Constant, str]:
        """Member name by value; an alias keeps the first name."""
        found: dict[Constant, str] = {}
        for name, value in self.values.items():
            found.setdefault(value, name)
        return found


def enum_info(owner: ClassInfo) -> EnumInfo | None:
    """``owner`` as an enum, None where it has fewer than two constant members or is something else."""
    key = ("enum", owner)
    memo = owner.world.memo
    if key not in memo:
        memo[key] = _enum_info(owner)
    known = memo[key]
    return known if isinstance(known, EnumInfo) else None


def _enum_info(owner: ClassInfo) -> EnumInfo | None:  # noqa: C901 - one arm a kind
    bases = {entry.dotted.rpartition(".")[2] for entry in owner.resolution_order if isinstance(entry, External)}
    is_enum = bool(bases & {"Enum", "IntEnum", "StrEnum", "IntFlag", "Flag", "ReprEnum"})
    mixed = bool(bases & {"IntEnum", "StrEnum", "IntFlag", "int", "str"})
    values: dict[str, Constant] = {}
    last = 0
    for entry in reversed(owner.family()):
        for name, expression in entry.class_values.items():
            if name.startswith("_"):
                continue
            folded: Constant | NotConstant
            if is_enum and _is_auto(expression):
                folded = name.lower() if "StrEnum" in bases else last + 1
            else:
                folded = fold(owner.world, entry.module, expression)
            if isinstance(folded, NotConstant | frozenset | ConstantDict | Member):
                if is_enum:
                    continue
                return None
            if isinstance(folded, int):
                last = max(last, folded)
            values[name] = folded
    if not is_enum:
        if len(values) < 2 or len({type(value) for value in values.values()}) != 1 or owner.methods:
            return None
        if not isinstance(next(iter(values.values())), int | str) or len(set(values.values())) != len(values):
            return None
        return EnumInfo(owner, values)
    overloads = frozenset(name for entry in owner.family() for name in entry.methods if name in _OPERATORS)
    first: dict[Constant, str] = {}
    members: dict[str, Constant] = {}
    for name, value in values.items():
        members[name] = Member(owner.name, first.setdefault(value, name), value, mixed, overloads)
    return EnumInfo(owner, members) if members else None


def _is_auto(expression: ast.expr) -> bool:
    return (
        isinstance(expression, ast.Call)
        and not expression.args
        and (dotted_name(expression.func) or "").rpartition(".")[2] == "auto"
    )


def fold(world: World, module: Module, expression: ast.expr, depth: int = _MAX_DEPTH) -> Constant | NotConstant:  # noqa: C901 - one arm a kind
    """The constant that ``expression`` is at module level, NOT_CONSTANT where that cannot be told."""
    if depth == 0:
        return NOT_CONSTANT
    match expression:
        case ast.Constant(value=value):
            return value if value is None or isinstance(value, bool | int | float | str | bytes) else NOT_CONSTANT
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return _fold_all(world, module, elements, depth)
        case ast.Set(elts=elements):
            folded = _fold_all(world, module, elements, depth)
            return frozenset(folded) if isinstance(folded, tuple) else NOT_CONSTANT
        case ast.Dict(keys=keys, values=values):
            return _fold_dict(world, module, keys, values, depth)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = fold(world, module, operand, depth - 1)
            return -inner if isinstance(inner, int | float) else NOT_CONSTANT
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            first, second = fold(world, module, left, depth - 1), fold(world, module, right, depth - 1)
            if isinstance(first, frozenset) and isinstance(second, frozenset):
                return first | second
            return NOT_CONSTANT
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            first, second = fold(world, module, left, depth - 1), fold(world, module, right, depth - 1)
            if isinstance(first, frozenset) and isinstance(second, frozenset):
                return first - second
            return NOT_CONSTANT
        case ast.Call():
            return _fold_call(world, module, expression, depth)
        case ast.Name() | ast.Attribute():
            dotted = dotted_name(expression)
            return NOT_CONSTANT if dotted is None else constant_of(world, module, dotted, depth - 1)
        case _:
            return NOT_CONSTANT


def constant_of(world: World, module: Module, dotted: str, depth: int = _MAX_DEPTH) -> Constant | NotConstant:
    """The module constant, class constant or enum member that a dotted name stands for in ``module``."""
    owner, _, attribute = dotted.rpartition(".")
    if owner:
        holder = resolve_class(world, module, owner)
        if holder is not None:
            members = enum_info(holder)
            if members is not None and attribute in members.values:
                return members.values[attribute]
            found = holder.value(attribute)
            return NOT_CONSTANT if found is None else fold(world, found[0], found[1], depth)
        if attribute in {"value", "name"}:
            member = constant_of(world, module, owner, depth - 1) if depth else NOT_CONSTANT
            if isinstance(member, Member):
                return member.name if attribute == "name" else member.value  # type: ignore[return-value]
    target = world.resolve(module, dotted)
    if isinstance(target, Symbol) and isinstance(target.node, ast.expr) and not _is_unsettled(target):
        return fold(world, target.module, target.node, depth)
    return NOT_CONSTANT


def _is_unsettled(target: Symbol) -> bool:
    """Whether a module-level name may mean something else later: bound again, or a container to be filled."""
    match target.node:
        case ast.List(elts=[]) | ast.Dict(keys=[]):
            return True
        case ast.Call(func=ast.Name(id="set" | "list" | "dict"), args=[], keywords=[]):
            return True
        case _:
            return any(
                binding is target.node and name in target.module.unsettled
                for name, binding in target.module.names.items()
            )


def member_of(world: World, module: Module, dotted: str) -> tuple[EnumInfo, str] | None:
    """The enum and member name that ``dotted`` (``KVPoll.Failed``, ``base.KVPoll.Failed``) names in ``module``."""
    owner, _, attribute = dotted.rpartition(".")
    if not owner:
        home, bound = world.bound(module, dotted)
        alias = dotted_name(bound) if isinstance(bound, ast.expr) else None
        return member_of(world, home, alias) if alias is not None and alias != dotted else None
    holder = resolve_class(world, module, owner)
    members = enum_info(holder) if holder is not None else None
    return (members, attribute) if members is not None and attribute in members.values else None


def _fold_all(world: World, module: Module, elements: list[ast.expr], depth: int) -> tuple[Constant, ...] | NotConstant:
    folded: list[Constant] = []
    for element in elements:
        value = fold(world, module, element, depth - 1)
        if isinstance(value, NotConstant):
            return NOT_CONSTANT
        folded.append(value)
    return tuple(folded)


def _fold_dict(
    world: World, module: Module, keys: list[ast.expr | None], values: list[ast.expr], depth: int
) -> ConstantDict | NotConstant:
    named = [key for key in keys if key is not None]
    if len(named) != len(keys):  # ``**other``
        return NOT_CONSTANT
    first, second = _fold_all(world, module, named, depth), _fold_all(world, module, values, depth)
    if isinstance(first, NotConstant) or isinstance(second, NotConstant):
        return NOT_CONSTANT
    return ConstantDict(tuple(zip(first, second, strict=True)))


def _fold_call(world: World, module: Module, call: ast.Call, depth: int) -> Constant | NotConstant:
    name = dotted_name(call.func)
    if name not in {"frozenset", "set", "tuple", "list"} or call.keywords or len(call.args) > 1:
        return NOT_CONSTANT
    if not call.args:
        return frozenset() if name in {"frozenset", "set"} else ()
    if name in {"frozenset", "set"}:
        holder = dotted_name(call.args[0])
        owner = resolve_class(world, module, holder) if holder else None
        members = enum_info(owner) if owner is not None else None
        if members is not None:
            return frozenset(members.values.values())
    inner = fold(world, module, call.args[0], depth - 1)
    if not isinstance(inner, tuple | frozenset):
        return NOT_CONSTANT
    return frozenset(inner) if name in {"frozenset", "set"} else (inner if isinstance(inner, tuple) else NOT_CONSTANT)
