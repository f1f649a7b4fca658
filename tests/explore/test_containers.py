"""Controlled containers answer as the built-in ones do, in a run and outside of one."""

from __future__ import annotations

import copy
import json
import re
from collections import OrderedDict, defaultdict, deque
from collections.abc import (
    Callable,
    ItemsView,
    KeysView,
    ValuesView,
)
from typing import Any

import pytest

from kvlint.explore.containers import CONTROLLED, Controlled, adopt
from kvlint.explore.control import Control
from kvlint.explore.switching import Greenlets

from .models import Cut, Model, World, cached, naive, searched

Use = Callable[[Any], Any]


def _dict() -> dict[Any, Any]:
    return {1: "a", "two": 2, 3: (4, 5)}


def _defaultdict() -> defaultdict[Any, Any]:
    return defaultdict(int, _dict())


def _ordered() -> OrderedDict[Any, Any]:
    made = OrderedDict(_dict())
    made.move_to_end(1)
    return made


def _set() -> set[Any]:
    return {1, 2, "three"}


def _list() -> list[Any]:
    return [3, 1, 2, 1]


def _deque() -> deque[Any]:
    return deque([3, 1, 2, 1], maxlen=6)


def _matched(value: Any) -> str:
    match value:
        case {1: held, **others}:
            return f"mapping {held} {others}"
        case [first, *rest]:
            return f"sequence {first} {rest}"
        case set():
            return "set"
        case _:
            return "nothing"


def _augmented(operator: str, other: Any) -> Use:
    def use(value: Any) -> Any:
        kept = value
        names = {"value": value, "other": other}
        exec(f"value {operator} other", names)
        return names["value"] is kept, names["value"]

    use.__name__ = f"value {operator} {other!r}"
    return use


def _unpacked(*items: Any, **named: Any) -> Any:
    return items, named


def _starred(value: Any) -> Any:
    first, *rest = value
    return first, rest


def _changed_in_loop(value: Any) -> None:
    for item in value:
        (value.add if hasattr(value, "add") else value.append if hasattr(value, "append") else value.pop)(item)
        if len(value) > 9:
            break


# Any of them: what can be asked of every container.
COMMON: list[str] = [
    "len(v)", "bool(v)", "list(v)", "tuple(v)", "sorted(v, key=str)", "set(v)", "frozenset(v)", "[*v]", "{*v}",
    "[item for item in v]", "[item for item in enumerate(v)]", "list(zip(v, v))", "list(map(str, v))", "iter(v)",
    "next(iter(v))", "1 in v", "9 in v", "v == o()", "o() == v", "v != o()", "v == v", "v == 1", "v != 1", "repr(v)",
    "str(v)", "f'{v}'", "copy.copy(v)", "copy.deepcopy(v)", "pickle.loads(pickle.dumps(v))",
    "isinstance(v, type(o()))", "hash(v)", "max(v, key=str)", "any(v)", "all(v)", "Counter(v)", "dict.fromkeys(v)",
    "list(chain(v, v))", "list(islice(v, 2))", "next(filter(None, v))", "_starred(v)", "_unpacked(*v)",
    "list(reversed(v))", "reversed(v)", "v < o()", "v <= o()", "v > o()", "v >= o()", "v + o()", "v | o()",
    "v & o()", "v - o()", "v ^ o()", "v * 2", "2 * v", "o() + v", "o() | v", "o() & v", "o() - v", "o() ^ v",
    "_matched(v)", "v.copy()", "v.clear()", "v.pop()", "v.copy(1)", "v.nothing", "v.__sizeof__() > 0",
    "', '.join(map(str, v))", "v.clear() or list(v)", "v is v", "deque(v)", "_changed_in_loop(v)", "v.__len__()",
    "v.__contains__(1)", "v[[]]", "v.__iter__()", "_augmented('*=', 2)(v)", "_augmented('|=', o())(v)",
    "_augmented('+=', o())(v)", "_augmented('+=', 1)(v)", "_augmented('|=', 1)(v)",
]  # fmt: skip
MAPPING: list[str] = [
    "v[1]", "v[9]", "v.get(1)", "v.get(9)", "v.get(9, 'd')", "v.get()", "v.pop(1)", "v.pop(9)", "v.pop(9, None)",
    "v.popitem()", "v.setdefault(1, 'x')", "v.setdefault(9, 'x')", "v.setdefault(9)", "v.setdefault(9, default=1)",
    "v.update({1: 2})", "v.update(a=1)", "v.update([(5, 6)], b=2)", "v.update(5)", "v.update(v)",
    "v.__setitem__(1, 7)", "v.__setitem__([], 7)", "v.__delitem__(1)", "v.__delitem__(9)", "dict(v)", "{**v}",
    "OrderedDict(v)", "{**v, 1: 0}", "_unpacked(**{k: x for k, x in v.items() if isinstance(k, str)})", "v | {9: 9}",
    "{9: 9} | v", "_augmented('|=', {9: 9})(v)", "_augmented('|=', [(9, 9)])(v)", "v.keys()", "v.values()",
    "v.items()", "list(v.keys())", "list(v.values())", "list(v.items())", "[k for k in v.keys()]",
    "[x for x in v.values()]", "[k for k, x in v.items()]", "len(v.keys())", "len(v.values())", "len(v.items())",
    "1 in v.keys()", "'a' in v.values()", "(1, 'a') in v.items()", "(1, 'b') in v.items()",
    "v.keys() == {1, 'two', 3}", "v.keys() != {1}", "v.keys() & {1}", "{1} & v.keys()", "v.keys() | {9}",
    "{9} | v.keys()", "v.keys() - {1}", "{1, 9} - v.keys()", "v.keys() ^ {1, 9}", "{1, 9} ^ v.keys()",
    "v.keys() <= {1}", "v.keys() >= {1}", "v.keys() > {1}", "v.keys() < {1}", "v.keys().isdisjoint([9])",
    "v.items() & {(1, 'a')}", "v.items() - {(1, 'a')}", "v.items() == o().items()", "v.keys() == v.keys()",
    "v.keys() & v.keys()", "v.values() == v.values()", "list(reversed(v.keys()))", "list(reversed(v.values()))",
    "list(reversed(v.items()))", "repr(v.keys())", "repr(v.items())", "repr(v.values())",
    "isinstance(v.keys(), KeysView)", "isinstance(v.items(), ItemsView)", "isinstance(v.values(), ValuesView)",
    "isinstance(v, Mapping)", "isinstance(v, MutableMapping)", "dict(v.keys().mapping)", "dict(v.items())",
    "sum(1 for _ in v.items())", "sorted(v.items(), key=str)", "json.dumps(v, default=str)",
    "json.dumps({'x': v}, indent=1)", "dict(zip(v.keys(), v.values()))", "hash(v.values()) != 0", "hash(v.keys())",
    "[v.pop(k) for k in list(v)]", "[k for k in v if v.pop(k)]", "{k: x for k, x in v.items()}",
    "v.move_to_end(1, last=False) or list(v)", "v.popitem(last=False)", "v.fromkeys([1])",
]  # fmt: skip
SET: list[str] = [
    "v.add(9)", "v.add(1)", "v.add([])", "v.discard(1)", "v.discard(9)", "v.remove(1)", "v.remove(9)",
    "v.update([9], (8,))", "v.union([9], {8})", "v.intersection([1])", "v.difference([1])",
    "v.symmetric_difference([1, 9])", "v.issubset([1])", "v.issuperset([1])", "v.isdisjoint([9])",
    "v.difference_update([1])", "v.intersection_update([1])", "v.symmetric_difference_update([1, 9])", "v | {9}",
    "{9} | v", "v & {1}", "{1} & v", "v - {1}", "{1, 9} - v", "v ^ {1, 9}", "{1, 9} ^ v", "v <= {1}", "{1} <= v",
    "{1} < v", "v >= {1}", "v > frozenset([1])", "frozenset([1]) | v", "v | [1]", "_augmented('|=', {9})(v)",
    "_augmented('&=', {1})(v)", "_augmented('-=', {1})(v)", "_augmented('^=', {1})(v)", "_augmented('-=', [1])(v)",
    "isinstance(v, MutableSet)", "{7}.union(v)", "{1}.issubset(v)", "set.union({7}, v)", "v.update(v)", "v - v",
    "v | v", "v.issuperset(v)", "json.dumps(v)", "v.pop() in o()", "_augmented('|=', [9])(v)",
    "(lambda s: s.update(v) or s)({7})", "type(v | {1})",
]  # fmt: skip
SEQUENCE: list[str] = [
    "v[0]", "v[-1]", "v[9]", "v[1:3]", "v['a']", "v.append(9)", "v.extend([8, 9])", "v.extend(v)", "v.extend(1)",
    "v.insert(1, 9)", "v.remove(1)", "v.remove(9)", "v.index(1)", "v.index(9)", "v.index(1, 2)", "v.count(1)",
    "v.reverse()", "v.__setitem__(0, 9)", "v.__setitem__(9, 9)", "v.__delitem__(0)", "v.__delitem__(9)",
    "v.__setitem__(slice(0, 2), [7, 8, 9])", "v.sort()", "v.sort(key=lambda x: -x, reverse=True)", "v.sort(None)",
    "v.pop(0)", "v.pop(9)", "v.clear() or v.pop()", "v < [9]", "[9] > v", "v + [9]", "[9] + v", "v + (9,)", "v * 0",
    "v + deque([9])", "deque([9]) + v", "v.maxlen", "v.appendleft(9)", "v.popleft()", "v.extendleft([8, 9])",
    "v.rotate(1)", "v.rotate()", "json.dumps(v)", "isinstance(v, MutableSequence)", "[7].__add__(v)", "[7, *v]",
    "(lambda s: s.extend(v) or s)([7])", "sum(v)", "v.__reversed__()", "_augmented('+=', (9,))(v)",
    "_augmented('*=', 2)(v)", "v.appendleft(9) or list(v)", "v.extend(range(9)) or list(v)",
]  # fmt: skip
KINDS: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "dict": (_dict, MAPPING),
    "defaultdict": (_defaultdict, MAPPING),
    "OrderedDict": (_ordered, MAPPING),
    "set": (_set, SET),
    "list": (_list, SEQUENCE),
    "deque": (_deque, SEQUENCE),
}
CASES = [(kind, code) for kind, (_, own) in KINDS.items() for code in [*COMMON, *own]]
#: Shows what it is made of; of no other container is the class to be seen.
_CLASSES = {
    **{each.__name__: kind.__name__ for kind, each in CONTROLLED.items()},
    "Keys": "dict_keys",
    "odict_keys": "dict_keys",
}


def _outcome(code: str, value: Any, make: Callable[[], Any]) -> Any:
    names = {**globals(), "v": value, "o": make}
    try:
        result = eval(code, names)
    except Exception as problem:
        words = str(problem)
        for ours, theirs in _CLASSES.items():
            words = words.replace(ours, theirs)
        # The same of a subscript in C and of the method.
        words = re.sub(
            r"sequence index must be integer, not ('\w+')", r"\1 object cannot be interpreted as an integer", words
        )
        return type(problem), words.replace("collections.", "")
    return _shown(result)


def _shown(result: Any) -> Any:
    if issubclass(type(result), Controlled):
        result = result.plain()
    if isinstance(result, (list, tuple)):
        return type(result)(map(_shown, result))
    if isinstance(result, KeysView | ItemsView | ValuesView):
        return "view", list(result)
    if hasattr(result, "__next__"):
        return "iterator", list(result)
    return type(result), result


@pytest.mark.parametrize(("kind", "code"), CASES, ids=[f"{kind}: {code}" for kind, code in CASES])
def test_answers_as_the_built_in_type(kind: str, code: str) -> None:
    make, _ = KINDS[kind]
    plain = make()
    expected = _outcome(code, plain, make)
    for outcome, left in (_outside(code, make), _inside(code, make, shared=False), _inside(code, make, shared=True)):
        assert outcome == expected
        assert type(left) is type(plain)
        assert left == plain
        assert isinstance(plain, set) or list(left) == list(plain)


def _outside(code: str, make: Callable[[], Any]) -> tuple[Any, Any]:
    value = adopt(Control(Greenlets()), make(), "value")
    return _outcome(code, value, make), value.plain()


def _inside(code: str, make: Callable[[], Any], *, shared: bool) -> tuple[Any, Any]:
    outcomes: list[Any] = []

    def build(world: World) -> None:
        world.value = make()

    def user(world: World) -> None:
        outcomes.append((_outcome(code, world.value, make), world.value.plain()))

    model = Model(build, user)
    if shared:
        model.control.sharing.always_stop(model.world.value.resource)

    naive(lambda: model)
    return outcomes[-1][0], outcomes[-1][1]


@pytest.mark.parametrize("kind", KINDS)
def test_every_public_method_is_an_operation_or_one_of_the_known(kind: str) -> None:
    plain = type(KINDS[kind][0]())
    ours = CONTROLLED[plain]
    known = {
        *dir(object),
        "__class_getitem__", "__new__", "__init__", "fromkeys", "__missing__", "default_factory", "maxlen",
        "__length_hint__",
        "__dict__", "__module__", "__weakref__", "__hash__", "__copy__", "__reduce__", "__reduce_ex__", "__getstate__",
    }  # fmt: skip
    own = {name for base in ours.__mro__ if base.__module__.startswith("kvlint.") for name in vars(base)}
    assert set(dir(plain)) - own - known == set()


# One operation or several.


def _steps(use: Use, make: Callable[[], Any]) -> int:
    """How many steps an actor does, with another that changes the container."""

    def build(world: World) -> None:
        world.value, world.end = make(), {}

    def user(world: World) -> None:
        use(world.value)

    def changer(world: World) -> None:
        (world.value.add if isinstance(world.value, set) else world.value.clear)(*[9] * isinstance(world.value, set))

    _, found = naive(lambda: Model(build, user, changer))
    return found.schedules - 1


WHOLE_USES: list[Use] = [
    list, tuple, dict, set, sorted, repr, len, bool, copy.copy, json.dumps, lambda v: list(v.values()),
    lambda v: {**v}, lambda v: [*v], lambda v: sorted(v.items()), lambda v: dict(v.items()), lambda v: v == {},
    lambda v: 1 in v, lambda v: v.copy(), lambda v: list(v.keys()), lambda v: tuple(v.items()),
    lambda v: len(v.items()), lambda v: v.keys() & {1}, lambda v: v | {}, lambda v: {} | v, lambda v: sum(v),
    lambda v: 1 in v.values(), lambda v: v.keys() == {1}, lambda v: {9: 9}.update(v),
    lambda v: OrderedDict.fromkeys(v), lambda v: "".join(map(str, list(v))), lambda v: max(v, default=0),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(WHOLE_USES)))
def test_what_c_code_does_is_one_operation(number: int) -> None:
    assert _steps(WHOLE_USES[number], lambda: {1: 1, 2: 2}) == 1


@pytest.mark.parametrize(
    "use", [list, sorted, set, frozenset, len, lambda v: {9} | v, lambda v: {9}.update(v), lambda v: v - {1}]
)
def test_what_c_code_does_with_a_set_is_one_operation(use: Use) -> None:
    assert _steps(use, lambda: {1, 2}) == 1


def test_a_loop_is_an_operation_for_each_item() -> None:
    def looping(value: Any) -> None:
        for _ in value:
            pass

    def counting(value: Any) -> None:
        for _ in enumerate(value):
            pass

    # Two items and the end; enumerate begins before.  The other comes at once, or later and ends it with an error.
    assert _steps(looping, lambda: {1: 1, 2: 2}) == 3
    assert _steps(counting, lambda: {1: 1, 2: 2}) == 4


def test_what_compares_with_another_shared_container_is_told() -> None:
    def build(world: World) -> None:
        world.one, world.other = {1: 1}, {1: 1}

    def comparer(world: World) -> None:
        world.one == world.other  # noqa: B015 - the comparison is what is tested

    def changer(world: World) -> None:
        world.one[1] = 2
        world.other[1] = 2

    model = Model(build, comparer, changer)
    with pytest.raises(Cut, match=r"^other is used in the middle of an operation on something else$"):
        searched(model)


# Other names of what was stored.


def test_a_change_by_a_name_that_nobody_can_find_is_told() -> None:
    def build(world: World) -> None:
        world.rooms, world.end = {}, {}

    def opener(world: World) -> None:
        class Holder:
            infos: dict[str, int] = {}  # noqa: RUF012 - what is tested

        world.rooms["room"] = Holder.infos
        Holder.infos["peer"] = 1

    def other(world: World) -> None:
        world.rooms.get("room")

    with pytest.raises(Cut, match=r"^a container that rooms\[…\] holds is changed by another name of it$"):
        searched(Model(build, opener, other))


def test_names_in_callers_and_closures_mean_what_was_stored() -> None:
    def build(world: World) -> None:
        world.rooms = {}

    def store(world: World, room: int, infos: dict[str, int]) -> None:
        world.rooms[room] = infos
        infos["callee"] = 1

    def opener(world: World) -> None:
        infos: dict[str, int] = {}

        def add(name: str) -> None:
            infos[name] = 1

        store(world, 1, infos)
        infos["caller"] = 1
        add("closure")
        world.rooms[2] = infos

    def other(world: World) -> None:
        world.rooms.get(1)

    _, found = cached(lambda: Model(build, opener, other))
    held = (("callee", 1), ("caller", 1), ("closure", 1))
    assert found.ends == {(("rooms", ((1, held), (2, held))),)}


def test_one_container_under_two_names_stays_one() -> None:
    control = Control(Greenlets())
    plain: dict[int, int] = {}
    one, other = adopt(control, {1: plain}, "one"), adopt(control, [plain], "other")
    assert one[1] is other[0]
