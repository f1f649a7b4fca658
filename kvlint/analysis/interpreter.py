"""Abstract execution of statements: states go in, states come out, sorted by the way they leave a block."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cached_property
from typing import assert_never

from msgspec.structs import replace

from kvlint.analysis import ir, walk
from kvlint.analysis.attempts import Attempter, exception_bases
from kvlint.analysis.branches import Exits
from kvlint.analysis.decisive import assigned_names, decisive_names
from kvlint.analysis.frames import ANY, After, Frame, GaveUp, forget
from kvlint.analysis.liveness import Liveness, liveness
from kvlint.analysis.loops import MAX_STATES
from kvlint.analysis.memory import Outcomes
from kvlint.analysis.recall import Evaluations
from kvlint.analysis.states import State, distinct, joined
from kvlint.analysis.values import NONE, STATUS, Known, Local, Something, computed_from, with_causes

_MAX_STEPS = 400_000  # statements run for one question; the largest release read needs a tenth


class Interpreter(Attempter):
    """Runs functions for one subject; see ``memory.Memory`` for the two uses and ``loops.Looper`` for rounds."""

    steps: int = 0

    def ask_anew(self) -> None:
        """Be ready for another question; what calls came to is kept."""
        self.escaped = []
        self.steps = 0

    def run_body(self, function: ir.Function, state: State, frame: Frame) -> Outcomes:
        """The returned values of ``function`` started in ``state``, each with its state."""
        exits = Exits()
        decisive, assigned, live = self._facts(function)
        frame.locals = frame.locals | assigned | frozenset(function.parameters)
        frame.volatile = frame.volatile | function.shared
        if self.in_worker:
            frame.decisive, frame.live = decisive, live
        frame.evaluations = self._evaluations(function, frame)
        after = After(normal=frame.after_call, returning=frame.after_call, raising=frame.raised is not None)
        ends = self.block(function.body, [state], frame, exits, after)
        return list(dict.fromkeys([*exits.returns, *((NONE, end) for end in ends)]))

    def _facts(self, function: ir.Function) -> tuple[frozenset[str], frozenset[str], Liveness]:
        key = ("decisive", function)
        known = self.world.memo.get(key)
        if not isinstance(known, tuple):
            known = (decisive_names(function), assigned_names(function), liveness(function))
            self.world.memo[key] = known
        return known

    def _evaluations(self, function: ir.Function, frame: Frame) -> dict[ir.Expression, Evaluations]:
        """What the expressions of ``function`` came to in activations that see what ``frame`` does."""
        scope = (frame.module, frame.defined_in, frame.receiver, frame.number, frame.enclosing)
        return self._known.setdefault((function, scope, frame.locals, frame.volatile), {})

    @cached_property
    def _known(self) -> dict[object, dict[ir.Expression, Evaluations]]:
        return {}

    def followed(self, function: ir.Function) -> frozenset[str]:
        """The locals of ``function`` that can matter on a worker's path."""
        return self._facts(function)[0]

    def block(self, block: ir.Block, states: Iterable[State], frame: Frame, exits: Exits, after: After) -> list[State]:
        """Run a block from each of ``states``; returns the states at its end."""
        current = distinct(states)
        for index, statement in enumerate(block):
            if not current:
                return []
            if self.in_worker:
                ends: list[State] = []
                for alike in _by_items(current):
                    here = self._after(block, index + 1, alike[0], frame, after)
                    frame.after_call = here.normal
                    ends.extend(self.statement(statement, alike, frame, exits, here))
                current = joined(ends)
            else:
                frame.after_call = after.normal
                current = distinct(self.statement(statement, current, frame, exits, after))
            if frame.live is not None and statement in frame.live.after:
                live = frame.live.after[statement]
                current = distinct(forget(state, live, frame.receiver) for state in current)
            if len(current) > MAX_STATES:
                current = distinct(self._coarse(state) for state in current)
        return current

    def _after(self, block: ir.Block, start: int, state: State, frame: Frame, after: After) -> After:
        """``after`` for the statement before ``start``: what can follow it in ``block`` counts."""
        normal = self.reach.can(block, after, self._context(state, frame), start)
        return after if normal is after.normal else replace(after, normal=normal)

    def _coarse(self, state: State) -> State:
        """A state without what it knows of plain values: fewer states, never a wrong one."""
        env, heap = state.env, state.heap
        for name in list(env.names()):
            value = env.get(name)
            if isinstance(value, Known | Something):
                undecided = not self.in_worker or STATUS in value.causes or computed_from((value,)).undecided
                env = env.set(name, Something(value.causes, undecided))
        for name in list(heap.names()):
            heap = heap.set(name, Something(undecided=True))
        return state.within(env).holding(heap)

    def statement(
        self, statement: ir.Statement, states: list[State], frame: Frame, exits: Exits, after: After
    ) -> list[State]:
        """Run one statement from each of ``states``; returns the states in which control reaches the next one."""
        self.steps += len(states)
        if self.steps > _MAX_STEPS:
            raise GaveUp(f"more than {_MAX_STEPS} steps")
        match statement:
            case ir.If():
                return self._if(statement, states, frame, exits, after)
            case ir.While():
                return self._while(statement, states, frame, exits, after)
            case ir.For():
                return self._for(statement, states, frame, exits, after)
            case ir.Try():
                return self._try(statement, states, frame, exits, after)
            case ir.With():
                return self._with(statement, states, frame, exits, after)
            case ir.Match():
                return self._match(statement, states, frame, exits, after)
            case _:
                return [end for state in states for end in self._simple(statement, state, frame, exits)]

    def _simple(self, statement: ir.Simple, state: State, frame: Frame, exits: Exits) -> list[State]:  # noqa: C901 - one arm a kind
        match statement:
            case ir.Evaluate(value=value):
                return [end for _, end in self.evaluated(value, state, frame)]
            case ir.Assign(targets=targets, value=value):
                return [
                    end
                    for result, ready in self.evaluated(value, state, frame)
                    for end in self._assign_all(targets, result, ready, frame)
                ]
            case ir.Update():
                return self._update(statement, state, frame)
            case ir.Return(value=value):
                ready = _leaving(state, statement.at, frame)
                for result, end in [(NONE, ready)] if value is None else self.evaluated(value, ready, frame):
                    result = with_causes(result, end.control or end.tested)
                    exits.returns.append((result, end))
                return []
            case ir.Raise(value=value):
                self._raise(value, state, frame)
                return []
            case ir.Break(at=at):
                exits.breaks.append(_leaving(state, at, frame))
                return []
            case ir.Continue(at=at):
                exits.continues.append(_leaving(state, at, frame))
                return []
            case ir.Delete(targets=targets):
                return self._delete(targets, statement.at, state, frame)
            case ir.Assert(test=test):
                return self._assert(test, state, frame)
            case ir.Define(function=function):
                return [state.bind(function.name, Local(function, frame.number))]
            case ir.Forget(names=names):
                del names  # an import or class: its name is looked up in the module
                return [state]
            case _:
                assert_never(statement)

    def _assert(self, test: ir.Expression, state: State, frame: Frame) -> list[State]:
        ends = []
        for value, ready in self.evaluated(test, state, frame):
            for answer, end in self.decide(value, ready):
                if answer:
                    ends.append(end)
                else:
                    self.raise_("AssertionError", end, frame, value.causes)
        return ends

    def _raise(self, value: ir.Expression | None, state: State, frame: Frame) -> None:
        if value is None:
            self.raised_again = True
            self.raise_(frame.caught, state, frame, state.tested)
            return
        dotted = walk.text_of(value.callee if isinstance(value, ir.Call) else value)
        if dotted is None:
            name = "?" if self.in_worker else ANY
        elif dotted in frame.locals:
            self.raised_again = True
            name = frame.caught if self.in_worker or dotted == frame.caught_as else ANY
        else:
            name = dotted.rpartition(".")[2]
            bases = exception_bases(self.world, frame.module, dotted)
            self.bases[name] = bases if self.bases.get(name, bases) == bases else None
        for _, end in self.evaluated(value, state, frame):
            self.raise_(name, end, frame, end.tested)


def _by_items(states: list[State]) -> Iterable[list[State]]:
    """``states`` grouped by the variables that hold a work item: what they can conclude depends on those."""
    first = states[0].env.items
    if all(state.env.items == first for state in states):
        return (states,)
    groups: dict[frozenset[str], list[State]] = {}
    for state in states:
        groups.setdefault(state.env.items, []).append(state)
    return groups.values()


def _leaving(state: State, at: ast.AST, frame: Frame) -> State:
    skip = state.trace.skip
    if skip is None or skip.leave is not None or skip.frame is not frame.node:
        return state
    return state.note(skip=replace(skip, leave=at))
