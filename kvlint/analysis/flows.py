"""Schedules that lead to a hazard, told thread by thread: which event on which thread, in which order.

Everything here was found out elsewhere; this module only puts it in order.  A
schedule that is not known in full is told as far as it is: what no fact names is
left out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kvlint.analysis.exposure import Exposed
from kvlint.analysis.facts import Facts
from kvlint.analysis.places import Place
from kvlint.analysis.removals import RemovalSite
from kvlint.analysis.threads import Thread, takes_in, thread_of
from kvlint.analysis.values import EXCEPTION, STATUS
from kvlint.analysis.workers import Drop, Worker
from kvlint.analysis.writes import Write
from kvlint.diagnostics import Flow, Location, Step

_Event = tuple[Location, str]


def other_failure(facts: Facts, exposed: Exposed) -> tuple[Thread, Write] | None:
    """Another thread than that of an exposed write which may have stored the failure, with the place where it does."""
    mine = thread_of(exposed.write.place)
    for thread, write in facts.failing_threads(exposed.write.subject).items():
        if thread is not mine:
            return thread, write
    return None


def flows_of_overwrite(facts: Facts, exposed: Exposed) -> tuple[Flow, ...]:
    """One thread stores the failure, another replaces it; empty where nobody is known to store it."""
    write = exposed.write
    mine = thread_of(write.place)
    found = other_failure(facts, exposed)
    if found is None:
        own = facts.failing_threads(write.subject).get(mine)
        if own is None:
            return ()
        found = (mine, own)
    thread, failing = found
    stored = (
        facts.location(failing.node, failing.place.module),
        f"{failing.place.qualified} stores {exposed.failure}",
    )
    replaced = tuple(_replacement(facts, exposed))
    if thread is mine:
        return (_flow(mine, (stored, *replaced), 1),)
    return _flow(thread, (stored,), 1), _flow(mine, replaced, 2)


def flows_of_drop(facts: Facts, drop: Drop, removal: RemovalSite | None) -> tuple[Flow, ...]:
    """A worker gives an item up, in one schedule with the ``removal`` (None: with none) that made it do so.

    ``facts`` are those of the worker's module.
    """
    if removal is None:
        return (_flow(Thread.WORKER, tuple(_drop(facts, drop)), 1),)
    removed = (
        facts.location(removal.node, removal.place.module),
        f"{removal.place.qualified} removes the room from {removal.table}: {removal.reason}",
    )
    thread = thread_of(removal.place)
    if thread is Thread.WORKER:
        return (_flow(thread, (removed, *_drop(facts, drop)), 1),)
    return _flow(thread, (removed,), 1), _flow(Thread.WORKER, tuple(_drop(facts, drop)), 2)


def _flow(thread: Thread, events: tuple[_Event, ...], first: int) -> Flow:
    return Flow(thread.value, tuple(Step(order, *event) for order, event in enumerate(events, first)))


def _replacement(facts: Facts, exposed: Exposed) -> Iterator[_Event]:
    write = exposed.write
    what = f"{write.place.qualified} writes {exposed.member}"
    if write.writer is None:
        what += f" straight into {write.subject.attribute}: {exposed.failure} is replaced"
    yield facts.location(write.node), what
    if write.writer is not None:
        method = write.writer.method
        yield (
            facts.location(method.node, method.owner.module),
            f"{method.owner.name}.{write.writer.name} lets {exposed.outcome} replace {exposed.failure}",
        )


def _drop(facts: Facts, drop: Drop) -> Iterator[_Event]:
    worker = drop.worker
    yield _take(facts, worker)
    frame = facts.place_of(drop.frame) or worker.place
    where = frame.qualified
    if drop.leave is not None and drop.leave is not drop.at:
        yield facts.location(drop.at, frame.module), f"{where} {_decision(drop)}"
    enum = worker.subject.enum
    stored = [name for name in enum.members if enum.value(name) in drop.stored]
    yield (
        facts.location(drop.leave or drop.at, frame.module),
        f"{where} gives the item up while the status may be {' or '.join(stored)}: nothing concludes the room any more",
    )


def _take(facts: Facts, worker: Worker) -> _Event:
    place = worker.place
    take = _taking(place) if worker.items is None else None
    if take is None:
        return facts.location(place.node, place.module), f"{place.qualified} is started for a work item of the room"
    return facts.location(take, place.module), f"{place.qualified} takes a work item of the room"


def _taking(place: Place) -> ast.AST | None:
    return next((take.call or take.loop for take in takes_in(place) if not take.is_message), None)


def _decision(drop: Drop) -> str:
    tables = sorted(drop.causes - {STATUS, EXCEPTION})
    if tables:
        return f"finds the room missing from {' or '.join(tables)}"
    return "catches an exception" if EXCEPTION in drop.causes else "decides by the status"


__all__ = ["flows_of_drop", "flows_of_overwrite", "other_failure"]
