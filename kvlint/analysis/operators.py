"""What Python's operators and pure builtins do to abstract values."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Final

from kvlint.analysis.values import (
    STATUS,
    Item,
    Key,
    Known,
    Object,
    Something,
    Value,
    causes_of,
    computed_from,
)
from kvlint.semantics.constants import Constant, Member


class RaisesError(Exception):
    """The operation raises ``name`` for these operands."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def truth(value: Value) -> bool | None:
    """Whether ``value`` is true, None where that is open."""
    match value:
        case Known(value=Member(mixed=True, value=inner)):
            return bool(inner)
        case Known(value=Member()):
            return True
        case Known(value=constant):
            return bool(constant)
        case Object() | Item(part=False):
            return True
        case _:
            return None


def is_none(value: Value) -> bool | None:
    """Whether ``value`` is None, None where that is open."""
    match value:
        case Known(value=constant):
            return constant is None
        case Something(not_none=True) | Object() | Key() | Item(part=False):
            return False
        case _:
            return None


def equal(left: Constant, right: Constant) -> bool:
    """Python's ``==`` on constants; a mixed-in enum member equals its value."""
    return _plain(left) == _plain(right)


def _plain(value: Constant) -> object:
    return value.value if isinstance(value, Member) and value.mixed else value


def _contains(items: Constant, value: Constant) -> bool:
    if isinstance(items, tuple | frozenset):
        return any(equal(item, value) for item in items)
    if isinstance(items, str) and isinstance(value, str):
        return value in items
    if isinstance(items, bytes) and isinstance(value, bytes | int):
        return value in items
    raise RaisesError("TypeError")


_ORDER: Final[dict[str, Callable[[object, object], bool]]] = {
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
    if isinstance(left, Known) and isinstance(right, Known) and not (left.mutable and spelling != "in"):
        return Known(_compare_constants(spelling, left.value, right.value), causes)
    if spelling in {"==", "!="} and isinstance(right, Known) and right.value is None and is_none(left) is False:
        return Known(spelling == "!=", causes)
    if isinstance(left, Key) and isinstance(right, Key) and spelling in {"==", "!="}:
        return Known(spelling == "==", causes)
    return computed_from((left, right))


def _compare_constants(spelling: str, left: Constant, right: Constant) -> bool:
    match spelling:
        case "==":
            return equal(left, right)
        case "!=":
            return not equal(left, right)
        case "is":
            return type(left) is type(right) and left == right
        case "is not":
            return not (type(left) is type(right) and left == right)
        case "in":
            return _contains(right, left)
        case "not in":
            return not _contains(right, left)
        case _:
            try:
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
            if isinstance(result, int | frozenset):
                return Known(result, causes_of((left, right)))
    return computed_from((left, right))


def builtin(name: str, arguments: Sequence[Value]) -> Value | None:
    """The result of a pure builtin, None where ``name`` is not one kept here; raises RaisesError."""
    if name in {"max", "min"}:
        return _extreme(name, arguments)
    if name in {"int", "bool", "str", "float", "abs", "len", "tuple", "list", "set", "frozenset", "hash", "repr"}:
        return _convert(name, arguments)
    if name in {"isinstance", "hasattr", "callable", "id", "type", "sorted", "any", "all", "sum", "range", "zip"} | {
        "enumerate", "print", "getattr", "iter", "next", "reversed", "dict", "round", "map", "filter", "format", "dir",
    }:
        return computed_from(arguments)
    return None


def _extreme(name: str, arguments: Sequence[Value]) -> Value:
    if len(arguments) == 1 and isinstance(arguments[0], Known) and isinstance(arguments[0].value, tuple):
        causes = arguments[0].causes
        arguments = [Known(item, causes) for item in arguments[0].value]
    constants = [argument.value for argument in arguments if isinstance(argument, Known)]
    if not arguments or len(constants) != len(arguments):
        return computed_from(arguments)
    best = constants[0]
    for candidate in constants[1:]:
        if _compare_constants(">" if name == "max" else "<", candidate, best):
            best = candidate
    return Known(best, causes_of(arguments))


def _convert(name: str, arguments: Sequence[Value]) -> Value:
    if len(arguments) == 1:
        (argument,) = arguments
        if isinstance(argument, Key) and name == "int":
            return argument
        if name == "bool" and (answer := truth(argument)) is not None:
            return Known(answer, argument.causes)
        if name in {"tuple", "list"} and not isinstance(argument, Known):
            return Something(argument.causes, _is_undecided(argument), not_none=True)
        if isinstance(argument, Known):
            return _convert_constant(name, argument)
    return computed_from(arguments)


def _is_undecided(value: Value) -> bool:
    return STATUS in value.causes or (isinstance(value, Something) and value.undecided)


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
