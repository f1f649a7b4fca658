"""The workers of a module and the ways in which each drops a work item without an end for its room."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from kvlint.analysis.conclusions import Context, Reach
from kvlint.analysis.lower import lowered
from kvlint.analysis.places import Place, places_of
from kvlint.analysis.runs import run_once
from kvlint.analysis.states import Skip
from kvlint.analysis.subject import Subject
from kvlint.analysis.threads import starts_in, takes_in
from kvlint.analysis.values import Causes, Item, Stored
from kvlint.semantics.class_body import parameters
from kvlint.semantics.hierarchy import ClassInfo
from kvlint.semantics.module import Module
from kvlint.semantics.world import World


class Worker(Struct, frozen=True, eq=False, dict=True):
    """A function that takes work items in a loop, or is started once for each, and somewhere concludes them.

    ``items`` are the parameters that hold the item of a worker started for it,
    None for one that loops.
    """

    place: Place
    subject: Subject
    items: frozenset[str] | None

    @property
    def holder(self) -> ClassInfo | None:
        """The class whose objects keep the status, None where it is kept in an attribute of a record."""
        return self.place.holder


class Drop(Struct, frozen=True):
    """A way through a worker on which the item is given up while its room is live.

    ``causes`` is the shared state that decided, ``at`` the deciding statement,
    ``leave`` the statement that left (None: by falling through), ``frame`` the
    function both stand in, ``taken`` whether the ``then`` block was entered,
    ``stored`` the live statuses the room may have.
    """

    worker: Worker
    causes: Causes
    at: ast.AST
    leave: ast.AST | None
    frame: ast.AST
    taken: bool
    stored: frozenset[Stored]


def workers_in(world: World, module: Module, reach: Reach) -> tuple[Worker, ...]:
    """Every worker of ``module``, in source order."""
    found: dict[ast.AST, Worker] = {}
    for place in places_of(world, module):
        subject = place.subject
        if subject is None:
            continue
        takes = [take for take in takes_in(place) if not take.is_message]
        if takes and _concludes(place, subject, reach):
            found[place.node] = Worker(place, subject, None)
    for start in starts_in(world, module):
        place = start.place
        if place.node in found or place.module is not module or place.subject is None or list(takes_in(place)):
            continue
        if start.call is not None and not start.arguments:
            continue
        own = [argument.arg for argument in parameters(place.node)]
        given = own[1:] if own and own[0] == place.receiver else own
        items = frozenset(given[: len(start.arguments)])
        if _concludes(place, place.subject, reach):
            found[place.node] = Worker(place, place.subject, items)
    return tuple(sorted(found.values(), key=lambda worker: worker.place.node.lineno))


def _concludes(place: Place, subject: Subject, reach: Reach) -> bool:
    function = lowered(place.world, place.node)
    context = Context(subject, place.module, place.cls, place.cls, place.receiver)
    return reach.block_concludes(function.body, context)


def drops_of(worker: Worker, reach: Reach) -> tuple[Drop, ...]:
    """Every drop on the worker's paths, in source order of the place where it leaves."""
    outcome = run_once(worker.place, worker.subject, reach, worker.items)
    states = outcome.rounds if worker.items is None else (*outcome.ends, *outcome.rounds)
    grouped: dict[tuple[ast.AST, ast.AST | None], list[tuple[Skip, Stored]]] = {}
    for state in states:
        skip = state.trace.skip
        if skip is None or not state.trace.taken or state.trace.handed:
            continue
        if worker.subject.is_live(state.stored):
            grouped.setdefault((skip.at, skip.leave), []).append((skip, state.stored))
    return tuple(sorted(_drops(worker, grouped), key=lambda drop: (drop.leave or drop.at).lineno))  # type: ignore[attr-defined]


def _drops(worker: Worker, grouped: dict[tuple[ast.AST, ast.AST | None], list[tuple[Skip, Stored]]]) -> Iterator[Drop]:
    for (at, leave), skips in grouped.items():
        by_causes: dict[Causes, set[Stored]] = {}
        for skip, stored in skips:
            by_causes.setdefault(skip.causes, set()).add(stored)
        first, _ = skips[0]
        for causes, statuses in by_causes.items():
            yield Drop(worker, causes, at, leave, first.frame, first.taken, frozenset(statuses))


__all__ = ["Drop", "Item", "Worker", "drops_of", "workers_in"]
