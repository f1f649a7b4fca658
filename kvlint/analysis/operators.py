"""What Python's operators and pure builtins do to abstract values."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from kvlint.analysis.values import (
    Item,
    Key,
    Known,
    Local,
    Object,
    Pairs,
    Several,
    Something,
    StatusTable,
    Value,
    causes_of,
    computed_from,
    with_causes,
)
from kvlint.semantics.constants import Constant, ConstantDict, Member


class RaisesError(Exception):
    """The operation raises ``name`` for these operands."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def truth(value: Value) -> bool | None:
    """Whether ``value`` is true, None where that is open."""
    match value:
        case Known(value=Member() as member):
            if member.overloads & {"__bool__", "__len__"}:
                return None
            return bool(member.value) if member.mixed else True
        case Known(value=ConstantDict(entries=entries)):
            return bool(entries)
        case Known(value=constant):
            return bool(constant)
        case Something(truth=answer):
            return answer
        case Several(items=items) | Pairs(items=items):
            return bool(items)
        case Object(cls=cls):
            own = cls.missing_bases or cls.lookup("__bool__") or cls.lookup("__len__")
            return None if own else True
        case Item(part=False):
            return True
        case _:
            return None


def is_none(value: Value) -> bool | None:
    """Whether ``value`` is None, None where that is open."""
    match value:
        case Known(value=constant):
            return constant is None
        case (
            Something(not_none=True)
            | Object()
            | Key()
            | Item(part=False)
            | Several()
            | Pairs()
            | Local()
            | StatusTable()
        ):
            return False
        case _:
            return None


def equal(left: Constant, right: Constant) -> bool:
    """Python's ``==`` on constants; a mixed-in enum member equals its value."""
    return _plain(left) == _plain(right)


def _plain(value: Constant) -> object:
    match value:
        case Member(mixed=True, value=inner):
            return inner
        case tuple():
            return tuple(_plain(item) for item in value)
        case frozenset():
            return frozenset(_plain(item) for item in value)
        case ConstantDict(entries=entries):
            return frozenset({_plain(key): _plain(held) for key, held in entries}.items())
        case _:
            return value


def _overloads(value: Constant, *names: str) -> bool:
    """Whether a member in ``value`` has its own idea of one of the operators ``names``."""
    match value:
        case Member(overloads=overloads):
            return bool(overloads.intersection(names))
        case tuple() | frozenset():
            return any(_overloads(item, *names) for item in value)
        case ConstantDict(entries=entries):
            return any(_overloads(item, *names) for entry in entries for item in entry)
        case _:
            return False


def _contains(items: Constant, value: Constant) -> bool:
    if isinstance(items, tuple | frozenset):
        return any(equal(item, value) for item in items)
    if isinstance(items, ConstantDict):
        return any(equal(key, value) for key, _ in items.entries)
    if isinstance(items, str) and isinstance(value, str):
        return value in items
    if isinstance(items, bytes) and isinstance(value, bytes | int):
        return value in items
    raise RaisesError("TypeError")


_ORDER: Final[dict[str, Callable[..., object]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compare(spelling: str, left: Value, right: Value) -> Value:
    """``left op right``; raises RaisesError where Python would."""
    causes = causes_of((left, right))
    if spelling in {"is", "is not"} and isinstance(right, Known) and right.value is None:
        answer = is_none(left)
        if answer is not None:
            return Known(answer == (spelling == "is"), causes)
        return computed_from((left, right))
    if (
        isinstance(left, Known)
        and isinstance(right, Known)
        and (spelling in {"in", "not in"} or not _is_mutable(left, right))
    ):
        answer = _compare_constants(spelling, left.value, right.value)
        return computed_from((left, right)) if answer is None else Known(answer, causes)
    if spelling in {"==", "!="} and isinstance(right, Known) and right.value is None and is_none(left) is False:
        return Known(spelling == "!=", causes)
    if isinstance(left, Key) and isinstance(right, Key) and spelling in {"==", "!="}:
        return Known(spelling == "==", causes)
    return computed_from((left, right))


def _is_mutable(*values: Known) -> bool:
    """Whether a list, set or dict is among ``values``: lists are kept as tuples, which never equal them."""
    return any(value.mutable for value in values)


def _compare_constants(spelling: str, left: Constant, right: Constant) -> bool | None:
    match spelling:
        case "is" | "is not":
            same = _is_same(left, right)
            return None if same is None else same == (spelling == "is")
        case "==" | "!=" | "in" | "not in":
            if _overloads((left, right), "__eq__", "__ne__"):
                return None
            found = equal(left, right) if spelling in {"==", "!="} else _contains(right, left)
            return found == (spelling in {"==", "in"})
        case _:
            return _is_ordered(spelling, left, right)


def _is_same(left: Constant, right: Constant) -> bool | None:
    if type(left) is not type(right) or left != right:
        return False
    return True if left is None or isinstance(left, bool | int | str | Member) else None


def _is_ordered(spelling: str, left: Constant, right: Constant) -> bool | None:
    if _overloads((left, right), "__lt__", "__le__", "__gt__", "__ge__"):
        return None
    try:
        if isinstance(left, ConstantDict) or isinstance(right, ConstantDict):
            raise RaisesError("TypeError")
        return bool(_ORDER[spelling](_plain(left), _plain(right)))
    except TypeError as error:
        raise RaisesError("TypeError") from error


_ARITHMETIC: Final[dict[str, Callable[..., object]]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "BitOr": operator.or_,
    "BitAnd": operator.and_,
}


def arithmetic(name: str, left: Value, right: Value) -> Value:
    """``left op right`` on small ints and frozen sets; anything else is unknown."""
    if isinstance(left, Known) and isinstance(right, Known) and name in _ARITHMETIC:
        first, second = left.value, right.value
        both_int = isinstance(first, int) and isinstance(second, int)
        both_sets = isinstance(first, frozenset) and isinstance(second, frozenset)
        if both_int or (both_sets and name != "Add"):
            result = _ARITHMETIC[name](first, second)
            assert isinstance(result, int | frozenset)
            return Known(result, causes_of((left, right)))
    return computed_from((left, right))


def builtin(name: str, arguments: Sequence[Value]) -> Value | None:
    """The result of a pure builtin, None where ``name`` is not one kept here; raises RaisesError."""
    if name in {"max", "min"}:
        return _extreme(name, arguments)
    if name in {"int", "bool", "str", "float", "abs", "len", "tuple", "list", "set", "frozenset", "hash", "repr"}:
        return _convert(name, arguments)
    if name in {"isinstance", "hasattr", "callable", "id", "type", "sorted", "any", "all", "sum", "range", "zip"} | {
        "enumerate",
        "print",
        "getattr",
        "iter",
        "next",
        "reversed",
        "dict",
        "round",
        "map",
        "filter",
        "format",
        "dir",
    }:
        return computed_from(arguments)
    return None


def _extreme(name: str, arguments: Sequence[Value]) -> Value:
    given = list(arguments)
    match given:
        case [Known(value=tuple() | frozenset() as items, causes=causes)]:
            given = [Known(item, causes) for item in items]
            if not given:
                raise RaisesError("ValueError")
        case [Several(items=parts, causes=causes)]:
            given = [with_causes(part, causes) for part in parts]
        case [_]:
            return computed_from(arguments)
        case _:
            pass
    constants = [argument.value for argument in given if isinstance(argument, Known)]
    if not given or len(constants) != len(given):
        return computed_from(arguments)
    best = constants[0]
    for candidate in constants[1:]:
        answer = _is_ordered(">" if name == "max" else "<", candidate, best)
        if answer is None:
            return computed_from(arguments)
        best = candidate if answer else best
    return Known(best, causes_of(given))


def _convert(name: str, arguments: Sequence[Value]) -> Value:
    if len(arguments) == 1:
        (argument,) = arguments
        if isinstance(argument, Key) and name == "int":
            return argument
        if name == "bool" and (answer := truth(argument)) is not None:
            return Known(answer, argument.causes)
        if name in {"tuple", "list"} and not isinstance(argument, Known):
            return replace(computed_from((argument,)), not_none=True)
        if isinstance(argument, Known):
            return _convert_constant(name, argument)
    return computed_from(arguments)


def _convert_constant(name: str, argument: Known) -> Value:
    value = argument.value
    plain = _plain(value)
    if name == "int" and isinstance(plain, int):
        return Known(int(plain), argument.causes)
    if name == "abs" and isinstance(plain, int):
        return Known(abs(plain), argument.causes)
    if name == "str" and isinstance(value, int | str) and not isinstance(value, bool):
        return Known(str(value), argument.causes)
    if name == "len" and isinstance(value, tuple | frozenset | str | bytes) and not argument.mutable:
        return Known(len(value), argument.causes)
    if name in {"tuple", "list"} and isinstance(value, tuple):
        return Known(value, argument.causes, mutable=name == "list")
    if name in {"set", "frozenset"} and isinstance(value, tuple | frozenset):
        return Known(frozenset(value), argument.causes, mutable=name == "set")
    return computed_from((argument,))
