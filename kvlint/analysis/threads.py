"""Which thread each function runs on: what starts threads and tasks, what takes work, what receives messages."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct

from kvlint.analysis.places import Place, callees, places_of, target_of
from kvlint.protocol import is_receive_name
from kvlint.semantics.hierarchy import ClassInfo
from kvlint.semantics.module import Module, inner_blocks
from kvlint.semantics.world import External, World, dotted_name

_STARTERS = frozenset({"Thread", "Process", "Timer"})
_TASK_STARTERS = frozenset({"create_task", "ensure_future", "run_coroutine_threadsafe", "start_soon"})
_QUEUE_TAKES = frozenset({"get", "get_nowait", "popleft", "dequeue", "take", "pop_task", "get_many"})


class Thread(StrEnum):
    """The kinds of thread of a backend."""

    SCHEDULER = "scheduler"
    LISTENER = "listener"
    WORKER = "worker"
    BACKGROUND = "background thread"


class Take(Struct, frozen=True):
    """A call that receives one work item or message in ``loop``; ``call`` is None where the loop itself receives."""

    loop: ast.While | ast.For | ast.AsyncFor
    call: ast.Call | None
    is_message: bool


def takes_in(place: Place) -> Iterator[Take]:
    """Every take in a function's loops, the innermost loop around each."""
    yield from _takes(place, place.node.body, None)


def _takes(place: Place, body: list[ast.stmt], loop: ast.While | ast.For | ast.AsyncFor | None) -> Iterator[Take]:
    for statement in body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                continue
            case ast.While():
                yield from _takes_of_expression(place, statement.test, statement)
                yield from _takes(place, statement.body, statement)
            case ast.For() | ast.AsyncFor():
                kind = _iterates_items(place, statement)
                if kind is not None:
                    yield Take(statement, None, kind == "message" or _is_message_source(statement.iter))
                yield from _takes(place, statement.body, loop)
            case _:
                if loop is not None:
                    for expression in _own_expressions(statement):
                        yield from _takes_of_expression(place, expression, loop)
                for block in inner_blocks(statement):
                    yield from _takes(place, block, loop)


def _own_expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.expr):
            yield child
        elif isinstance(child, ast.withitem):
            yield child.context_expr


def _takes_of_expression(
    place: Place, expression: ast.expr, loop: ast.While | ast.For | ast.AsyncFor
) -> Iterator[Take]:
    for node in ast.walk(expression):
        if isinstance(node, ast.Call):
            kind = _take_kind(place, node)
            if kind is not None:
                yield Take(loop, node, kind == "message")


def _take_kind(place: Place, call: ast.Call, depth: int = 2) -> str | None:
    match call.func:
        case ast.Attribute(attr=name):
            pass
        case ast.Name(id=name):
            if name == "heappop":
                return "item"
        case _:
            return None
    if is_receive_name(name):
        return "message"
    if name in _QUEUE_TAKES and isinstance(call.func, ast.Attribute) and _waits(call):
        return "item"
    if depth:
        target = target_of(place, call.func)
        if target is not None and target.node is not place.node:
            for node in target.body:
                inner = _unawaited(node.value) if isinstance(node, ast.Return) else None
                if isinstance(inner, ast.Call):
                    return _take_kind(target, inner, depth - 1)
    return None


def _unawaited(node: ast.expr | None) -> ast.expr | None:
    return node.value if isinstance(node, ast.Await) else node


def _waits(call: ast.Call) -> bool:
    """Whether a ``get`` is a queue's: no argument but blocking flags (a dict's has a key)."""
    positional = all(
        isinstance(argument, ast.Constant) and isinstance(argument.value, bool | int | float) for argument in call.args
    )
    return positional and all(keyword.arg in {"block", "timeout"} for keyword in call.keywords)


def _iterates_items(place: Place, loop: ast.For | ast.AsyncFor) -> str | None:
    """``for item in iter(queue.get, None)``, ``async for item in queue``, a loop over a batch that was taken."""
    match loop.iter:
        case ast.Call(func=ast.Name(id="iter"), args=[ast.Attribute(attr=name), _]):
            found = "item" if name in _QUEUE_TAKES or is_receive_name(name) else None
        case ast.Name(id=name):
            found = next((kind for value in place.assigned(name) if (kind := _batch_kind(place, value))), None)
        case iterable:
            found = _batch_kind(place, iterable)
    return found or ("item" if isinstance(loop, ast.AsyncFor) else None)


def _batch_kind(place: Place, value: ast.expr, depth: int = 2) -> str | None:
    """What a batch is of: a take, a list that begins with one, what a helper took and hands out."""
    match value:
        case ast.List(elts=[first, *_]):
            return _batch_kind(place, first, depth)
        case ast.Await(value=inner):
            return _batch_kind(place, inner, depth)
        case ast.Call() as call:
            return _take_kind(place, call) or (_handed_out(place, call, depth - 1) if depth else None)
        case _:
            return None


def _handed_out(place: Place, call: ast.Call, depth: int) -> str | None:
    """What a generator takes and yields, or a helper takes into the list that it returns."""
    target = target_of(place, call.func)
    if target is None or target.node is place.node:
        return None
    taken = {node: kind for node in target.body if isinstance(node, ast.Call) and (kind := _take_kind(target, node))}
    if not taken:
        return None
    kind = next(iter(taken.values()))
    returned: set[str] = set()
    for node in target.body:
        match node:
            case ast.Yield():
                return kind
            case ast.Return(value=ast.Name(id=name)):
                returned.add(name)
            case _:
                pass
    if any(_batch_kind(target, value, depth) for name in returned for value in target.assigned(name)):
        return kind
    for node in target.body:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[given]):
                if name in returned and _unawaited(given) in taken:
                    return kind
            case _:
                pass
    return None


def _is_message_source(iterable: ast.expr) -> bool:
    return any(
        is_receive_name(part.attr if isinstance(part, ast.Attribute) else part.id)
        or (isinstance(part, ast.Attribute) and part.attr in {"messages", "frames"})
        for part in ast.walk(iterable)
        if isinstance(part, ast.Attribute | ast.Name)
    )


# -- what is started on a thread of its own ------------------------------------


class Start(Struct, frozen=True):
    """A function started on a thread, process, pool or task; ``arguments`` are what it is given there."""

    place: Place
    call: ast.Call | None
    arguments: tuple[ast.expr, ...]


def starts_in(world: World, module: Module) -> tuple[Start, ...]:
    """Every function of ``module`` (or a base's) that something in ``module`` starts on its own."""
    key = ("starts", module)
    known = world.memo.get(key)
    if not isinstance(known, tuple):
        known = world.memo[key] = tuple(_starts(world, module))
    return known


def _starts(world: World, module: Module) -> Iterator[Start]:
    for place in places_of(world, module):
        if place.name == "run" and place.cls is not None and place.outer is None and _is_thread_class(place.cls):
            yield Start(place, None, ())
        for node in place.body:
            if isinstance(node, ast.Call):
                yield from _started(place, node)


def _is_thread_class(cls: ClassInfo) -> bool:
    return any(
        isinstance(entry, External) and entry.dotted.rpartition(".")[2] in {"Thread", "Process"}
        for entry in cls.resolution_order
    )


def _started(place: Place, call: ast.Call) -> Iterator[Start]:  # noqa: C901 - one arm a kind
    name = (dotted_name(call.func) or "").rpartition(".")[2]
    if isinstance(call.func, ast.Attribute):
        name = call.func.attr
    target: ast.expr | None = None
    arguments: tuple[ast.expr, ...] = ()
    if name in _STARTERS:
        for keyword in call.keywords:
            if keyword.arg in {"target", "function"}:
                target = keyword.value
            if keyword.arg == "args" and isinstance(keyword.value, ast.Tuple | ast.List):
                arguments = tuple(keyword.value.elts)
    elif name == "submit" and call.args:
        target, arguments = call.args[0], tuple(call.args[1:])
    elif name == "run_in_executor" and len(call.args) > 1:
        target, arguments = call.args[1], tuple(call.args[2:])
    elif name in _TASK_STARTERS and call.args and isinstance(call.args[0], ast.Call):
        target, arguments = call.args[0].func, tuple(call.args[0].args)
    if target is not None:
        found = target_of(place, target)
        if found is not None:
            yield Start(found, call, arguments)


def threads_of(world: World, module: Module) -> dict[ast.AST, frozenset[Thread]]:
    """The threads on which each function of ``module`` runs; one that nothing started runs on the scheduler."""
    key = ("threads", module)
    known = world.memo.get(key)
    if isinstance(known, dict):
        return known
    found: dict[ast.AST, set[Thread]] = {}
    roots = [(place, kind) for place in places_of(world, module) if (kind := _kind_of_loops(place)) is not None]
    roots.extend((start.place, _kind_of_start(start.place)) for start in starts_in(world, module))
    for place, kind in roots:
        pending = [place]
        while pending:
            current = pending.pop()
            kinds = found.setdefault(current.node, set())
            if kind in kinds:
                continue
            kinds.add(kind)
            pending.extend(callee for _, callee in callees(current))
    result = {node: frozenset(kinds) for node, kinds in found.items()}
    world.memo[key] = result
    return result


def _kind_of_loops(place: Place) -> Thread | None:
    takes = list(takes_in(place))
    if any(take.is_message for take in takes):
        return Thread.LISTENER
    return Thread.WORKER if takes else None


def _kind_of_start(place: Place) -> Thread:
    pending, seen = [place], {place.node}
    while pending:
        current = pending.pop()
        kind = _kind_of_loops(current)
        if kind is not None:
            return kind
        for _, callee in callees(current):
            if callee.node not in seen:
                seen.add(callee.node)
                pending.append(callee)
    return Thread.BACKGROUND


def thread_of(place: Place) -> Thread:
    """The thread a function runs on; a listener or worker wins over others."""
    kinds = threads_of(place.world, place.module).get(place.node, frozenset())
    for kind in (Thread.LISTENER, Thread.WORKER, Thread.BACKGROUND):
        if kind in kinds:
            return kind
    return Thread.SCHEDULER
