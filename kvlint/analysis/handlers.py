"""The long-lived functions of a module as a reader would list them: what runs on a thread, and what handles aborts."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from kvlint.analysis.aborts import abort_code
from kvlint.analysis.places import Place, callees, places_of
from kvlint.analysis.threads import Thread, starts_in, takes_in, threads_of
from kvlint.protocol import is_abort_name
from kvlint.semantics.module import Module, inner_blocks
from kvlint.semantics.world import World


class Root(Struct, frozen=True, eq=False, dict=True):
    """A function that a thread spends its life in: it is started on one (``starts``: where), or loops over takes."""

    place: Place
    thread: Thread
    starts: tuple[ast.AST, ...]
    takes_items: bool
    takes_messages: bool


class AbortHandler(Struct, frozen=True, eq=False, dict=True):
    """A stretch of a function, or all of it, that runs because a room is to be given up."""

    place: Place
    first_line: int
    last_line: int
    reason: str


def thread_roots(world: World, module: Module) -> tuple[Root, ...]:
    """Every function of ``module`` that loops over takes, and everything that it starts on a thread of its own."""
    started: dict[Place, list[ast.AST]] = {}
    for start in starts_in(world, module):
        where = started.setdefault(start.place, [])
        if start.call is not None:
            where.append(start.call)
    found = []
    for place in dict.fromkeys((*started, *places_of(world, module))):
        takes = tuple(takes_in(place))
        if takes or place in started:
            found.append(
                Root(
                    place,
                    _thread_of(world, module, place),
                    tuple(started.get(place, ())),
                    any(not take.is_message for take in takes),
                    any(take.is_message for take in takes),
                )
            )
    return tuple(sorted(found, key=lambda root: (root.place.module is not module, root.place.node.lineno)))


def _thread_of(world: World, module: Module, place: Place) -> Thread:
    """As `thread_of`, but as ``module`` starts it, which need not be where it is defined."""
    kinds = threads_of(world, module)[place.node]
    return next(kind for kind in (Thread.LISTENER, Thread.WORKER, Thread.BACKGROUND) if kind in kinds)


def threads_by_function(world: World, modules: tuple[Module, ...]) -> dict[ast.AST, frozenset[Thread]]:
    """All threads that each function of ``modules`` may run on.

    What nothing starts, and what such functions call, runs on the scheduler.
    """
    found: dict[ast.AST, set[Thread]] = {}
    for module in modules:
        for node, kinds in threads_of(world, module).items():
            found.setdefault(node, set()).update(kinds)
    places = [place for module in modules for place in places_of(world, module)]
    pending = [place for place in places if place.node not in found]
    while pending:
        place = pending.pop()
        kinds_here = found.setdefault(place.node, set())
        if Thread.SCHEDULER not in kinds_here:
            kinds_here.add(Thread.SCHEDULER)
            pending.extend(target for _, target in callees(place))
    return {node: frozenset(kinds) for node, kinds in found.items()}


def abort_handlers(world: World, module: Module) -> tuple[AbortHandler, ...]:
    """The abort handlers of ``module``, in source order, each with what makes it one."""
    marked = abort_code(world, module)
    return tuple(handler for place in places_of(world, module) for handler in _handlers_of(place, marked))


def _handlers_of(place: Place, marked: dict[ast.AST, str]) -> Iterator[AbortHandler]:
    body = place.node.body
    if all(statement in marked for statement in body):
        last = body[-1].end_lineno or body[-1].lineno
        outer_has_it = place.outer is not None and place.node in marked
        if not outer_has_it:
            why = "its name says so" if is_abort_name(place.name) else "an abort handler calls it"
            yield AbortHandler(place, place.node.lineno, last, why)
        return
    for run in _runs(body, marked):
        yield AbortHandler(place, run[0].lineno, run[-1].end_lineno or run[-1].lineno, marked[run[0]])


def _runs(block: list[ast.stmt], marked: dict[ast.AST, str]) -> Iterator[list[ast.stmt]]:
    """The longest stretches of marked statements, nested blocks included."""
    run = [statement for statement in block if statement in marked]  # a block is marked from somewhere to its end
    for statement in block[: len(block) - len(run)]:
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for inner in inner_blocks(statement):
                yield from _runs(inner, marked)
    if run:
        yield run
