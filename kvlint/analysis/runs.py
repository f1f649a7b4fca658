"""Whole runs of functions on a worker's terms: from every stored status, one round of each loop that serves items."""

from __future__ import annotations

import ast

from msgspec import Struct

from kvlint.analysis.conclusions import Reach
from kvlint.analysis.frames import Frame, GaveUp
from kvlint.analysis.interpreter import Interpreter
from kvlint.analysis.lower import lowered
from kvlint.analysis.places import Place
from kvlint.analysis.states import Env, State, Trace
from kvlint.analysis.subject import Subject
from kvlint.analysis.threads import takes_in
from kvlint.analysis.values import Item, Object, Something, Value
from kvlint.semantics.class_body import annotation_class, parameters
from kvlint.semantics.hierarchy import resolve_class


class Run(Struct, frozen=True):
    """How a function can end: ``ends`` by returning, ``raised`` by an exception, ``rounds`` of its serving loops.

    With ``gave_up`` it has more paths than are followed, and nothing is known.
    """

    ends: tuple[State, ...]
    rounds: tuple[State, ...]
    raised: tuple[State, ...] = ()
    gave_up: bool = False


def run_once(place: Place, subject: Subject, reach: Reach, items: frozenset[str] | None = None) -> Run:
    """``run``, once per function and world."""
    key = ("run", place.node, subject, items)
    known = place.world.memo.get(key)
    if not isinstance(known, Run):
        try:
            known = run(place, subject, reach, items)
        except GaveUp:
            known = Run((), (), gave_up=True)
        place.world.memo[key] = known
    return known


def run(place: Place, subject: Subject, reach: Reach, items: frozenset[str] | None = None) -> Run:
    """Run ``place`` from every status that may be stored.

    ``items`` are parameters that hold the work item; with a set (even an empty
    one) the item counts as taken from the start.
    """
    interpreter = Interpreter(place.world, subject, in_worker=True, reach=reach)
    takes = list(takes_in(place))
    interpreter.takes = frozenset(take.call for take in takes if take.call is not None and not take.is_message)
    interpreter.served = frozenset(take.loop for take in takes)
    started = Trace(taken=items is not None)
    env = Env(_bindings(place, interpreter, items or frozenset()))
    function = lowered(place.world, place.node)
    ends: list[State] = []
    for stored in subject.stored_values:
        frame = Frame(place.module, place.cls, place.node, 0, receiver=place.receiver)
        ends.extend(state for _, state in interpreter.run_body(function, State(stored, env, trace=started), frame))
        if interpreter.served and interpreter.rounds:
            break  # a serving loop starts each round from every status by itself
    raised = (thrown.state for thrown in interpreter.escaped)
    return Run(tuple(dict.fromkeys(ends)), tuple(dict.fromkeys(interpreter.rounds)), tuple(dict.fromkeys(raised)))


def _bindings(place: Place, interpreter: Interpreter, items: frozenset[str]) -> dict[str, Value]:
    bound: dict[str, Value] = {}
    outer = place.outer
    while outer is not None:
        for node in outer.body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute(value=ast.Name(id=owner), attr=attr)):
                    if owner == outer.receiver and outer.cls is not None:
                        bound.setdefault(name, interpreter.attribute_of(Object(outer.cls), attr, State(None)))
                case _:
                    pass
        outer = outer.outer
    for argument in parameters(place.node):
        dotted = annotation_class(argument.annotation)
        cls = resolve_class(place.world, place.module, dotted) if dotted else None
        bound[argument.arg] = Something() if cls is None else Object(cls)
        if argument.arg in items:
            bound[argument.arg] = Item()
    if place.receiver is not None and place.cls is not None:
        bound[place.receiver] = Object(place.cls)
    return bound
