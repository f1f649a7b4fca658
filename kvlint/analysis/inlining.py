"""Abstract calls of functions whose source is known: binding arguments, running the body, coming back."""

from __future__ import annotations

import ast
from abc import abstractmethod

from msgspec.structs import replace

from kvlint.analysis import ir, walk
from kvlint.analysis.conclusions import Reach
from kvlint.analysis.effects import Effects
from kvlint.analysis.frames import Frame, Raised
from kvlint.analysis.memory import Outcomes
from kvlint.analysis.states import EMPTY, Env, State, Trace
from kvlint.analysis.subject import Subject
from kvlint.analysis.values import (
    NO_CAUSES,
    UNDECIDED,
    UNKNOWN,
    Known,
    Local,
    Object,
    Pairs,
    Several,
    Something,
    Value,
    carries,
    computed_from,
)
from kvlint.semantics.hierarchy import ClassInfo
from kvlint.semantics.module import Module
from kvlint.semantics.world import World

MAX_DEPTH = 8  # calls within calls before the analysis stops following them


class Inliner(Effects):
    """Runs functions on given arguments; running a body is left to the subclass in ``interpreter``."""

    def __init__(self, world: World, subject: Subject, *, in_worker: bool, reach: Reach) -> None:
        super().__init__(world, subject, in_worker=in_worker)
        self.reach = reach
        self.depth = 0
        self.takes: frozenset[ast.AST] = frozenset()
        self._activations = 0
        self.raised_again = False
        self._calls: dict[object, tuple[Outcomes, tuple[Raised, ...]]] = {}

    @abstractmethod
    def run_body(self, function: ir.Function, state: State, frame: Frame) -> Outcomes:
        """The returned values of ``function`` started in ``state`` (parameters bound), each with its state."""

    @abstractmethod
    def followed(self, function: ir.Function) -> frozenset[str]:
        """The locals of ``function`` that can matter on a worker's path."""

    def _frame(
        self, module: Module, owner: ClassInfo | None, node: ast.AST, caller: Frame, receiver: str | None
    ) -> Frame:
        return Frame(
            module,
            owner,
            node,
            self._next_number(),
            caller.raised,
            caller.after_call,
            caller.caught,
            receiver=receiver,
        )

    def _next_number(self) -> int:
        """A number for an activation; on a worker's paths one for each depth is enough."""
        self._activations += 1
        return self.depth + 1 if self.in_worker else self._activations

    def inline(
        self,
        function: ir.Function,
        arguments: list[Value],
        named: dict[str, Value],
        state: State,
        frame: Frame,
        caller: Frame,
        touches: bool,
    ) -> Outcomes:
        """Run ``function`` on the given arguments; the caller's locals come back afterwards.

        One that does not touch the status has left it alone even where not all that it does can be followed.
        """
        if function.is_generator:
            return [(Something(), state.poisoned())]
        bound = self._bind(function, arguments, named, state, frame)
        if bound is None:
            self.raise_("TypeError", state, frame)
            return []
        started = state.within(Env(bound)).under(NO_CAUSES, NO_CAUSES)
        outcomes, thrown = self._run_once(function, started, frame)
        ends = [*(after for _, after in outcomes), *(each.state for each in thrown)]
        if not touches and any(_is_guess(after, started) for after in ends):
            started = started.holding(EMPTY)
            # What it raises stays a guess; one that never returns has no result either.
            outcomes = [(self._guessed([*arguments, *named.values()]), started)] if outcomes else []
        for each in thrown:
            self.throw(replace(each, state=_returned(each.state, state)), caller)
        results: Outcomes = []
        for value, after in outcomes:
            results.append((value, _returned(after, state)))
        return list(dict.fromkeys(results))

    def _guessed(self, values: list[Value]) -> Something:
        """The result of a call of which something could not be decided."""
        value = computed_from(values)
        return value if self.in_worker else Something(value.causes, undecided=True, reaches=any(map(carries, values)))

    def _run_once(self, function: ir.Function, started: State, frame: Frame) -> tuple[Outcomes, tuple[Raised, ...]]:
        """Run a body, or repeat what the same call in the same state did before.

        What happened before the call does not change what happens in it, so it is added afterwards.
        """
        self.noted = []  # what an evaluation came to that led here is not to be recalled
        before = started.trace
        started = started.traced(Trace(taken=before.taken))
        within = (frame.after_call, frame.raised is None, self.depth, frame.enclosing)
        key: tuple[object, ...] = (function, started, frame.defined_in, within)
        known = self._calls.get(key)
        if known is None and (known := self._calls.get((*key, frame.caught))) is not None:
            self.raised_again = True
        if known is None:
            raised_again, self.raised_again = self.raised_again, False
            escaped, self.escaped = self.escaped, []
            frame.raised = None if frame.raised is None else []
            self.depth += 1
            try:
                outcomes = self.run_body(function, started, frame)
            finally:
                self.depth -= 1
            thrown = tuple(dict.fromkeys((*self.escaped, *(frame.raised or ()))))
            self.escaped = escaped
            if self.in_worker and self._only_fails(started, outcomes):
                thrown = tuple(replace(each, state=each.state.note(handed=True)) for each in thrown)
            # What is being handled only matters to a call that raises it again.
            known = self._calls[(*key, frame.caught) if self.raised_again else key] = (outcomes, thrown)
            self.raised_again = self.raised_again or raised_again
        outcomes, thrown = known
        if before == started.trace:
            return known
        return (
            [(value, after.traced(_continued(before, after.trace))) for value, after in outcomes],
            tuple(
                Raised(each.name, each.state.traced(_continued(before, each.state.trace)), each.causes)
                for each in thrown
            ),
        )

    def _only_fails(self, started: State, outcomes: Outcomes) -> bool:
        """Whether all that a call does to a live room is to fail it: when it raises, the end has been tried."""
        if not self.subject.is_live(started.stored) or not outcomes:
            return False
        return all(self.subject.enum.is_failure(after.stored) for _, after in outcomes)

    def _bind(  # noqa: C901 - one arm a kind
        self, function: ir.Function, arguments: list[Value], named: dict[str, Value], state: State, frame: Frame
    ) -> dict[str, Value] | None:
        bound = dict(zip(function.parameters[: function.positional], arguments, strict=False))
        if len(arguments) > function.positional and function.rest is None:
            return None
        for name, value in named.items():
            if name in function.parameters[function.nameless :]:
                if name in bound:
                    return None
                bound[name] = value
            elif function.options is None:
                return None
        if not self.in_worker:
            self._gather(function, arguments, named, bound)
        for name, default in function.defaults:
            if name not in bound:
                bound[name] = self._default(default, state, frame)
        if not self.in_worker and any(name not in bound for name in function.parameters):
            return None
        for name in function.parameters:
            bound.setdefault(name, UNKNOWN)
        if self.in_worker:
            followed = self.followed(function)
            for name in function.parameters:
                if name not in followed and not isinstance(bound[name], Object):
                    bound[name] = UNKNOWN
        return bound

    def _gather(
        self, function: ir.Function, arguments: list[Value], named: dict[str, Value], bound: dict[str, Value]
    ) -> None:
        """Bind ``*args`` and ``**kwargs`` to the arguments that no parameter takes."""
        if function.rest is not None:
            bound[function.rest] = Several(tuple(arguments[function.positional :]))
        if function.options is not None:
            takes = function.parameters[function.nameless :]
            bound[function.options] = Pairs(
                tuple((Known(name), value) for name, value in named.items() if name not in takes)
            )

    def _default(self, default: ir.Expression, state: State, frame: Frame) -> Value:
        """The default of a parameter, which was computed when the function was made."""
        if not self.in_worker:
            names = {part.id for part in walk.subexpressions(default) if isinstance(part, ir.Name)}
            if names & frame.locals:
                return Something(undecided=True, reaches=True)
            state = state.within(EMPTY)
        ((value, _), *_) = self.evaluate(default, state, frame) or [(UNKNOWN, state)]
        return UNKNOWN if isinstance(value, Known) and value.mutable and not self.in_worker else value

    def _on_local(
        self,
        expression: ir.Call,
        callee: Local,
        values: list[Value],
        named: dict[str, Value],
        state: State,
        frame: Frame,
    ) -> Outcomes:
        """Call a nested function or lambda, which sees the locals of the activation that made it."""
        function, everything = callee.function, [*values, *named.values()]
        env = state.env if callee.frame == frame.number else dict(frame.enclosing).get(callee.frame)
        if env is None or expression.spread or self.depth >= MAX_DEPTH:
            return self._unknown(expression, callee, everything, state, frame)
        if self.in_worker and not function.shared and not self._local_matters(function, state, frame):
            return [(computed_from(everything), state)]
        bound = self._bind(function, values, named, state, frame)
        if bound is None and not self.in_worker:
            self.raise_("TypeError", state, frame)
            return []
        if bound is None or function.is_generator:
            return [(Something(), state.poisoned())]
        inner = self._within(callee, env, frame)
        for name, value in bound.items():
            env = env.set(name, value)
        outcomes, thrown = self._run_once(function, state.within(env).under(state.control, NO_CAUSES), inner)
        env = state.env if self.in_worker else self.forget_mutable(state).env
        for name in function.shared:
            env = env.set(name, Something(undecided=True))
        before = state.within(env)
        for each in thrown:
            self.throw(replace(each, state=_returned(each.state, before)), frame)
        return [
            (value, _returned(after, before).under(before.control, state.tested | after.tested))
            for value, after in outcomes
        ]

    def _within(self, callee: Local, env: Env, caller: Frame) -> Frame:
        """A frame for ``callee``, whose own enclosing activation has the locals ``env``."""
        inner = self._frame(caller.module, caller.defined_in, callee.function.at, caller, caller.receiver)
        inner.locals, inner.volatile = caller.locals, caller.volatile
        if self.in_worker:
            inner.number = caller.number
        else:
            outer = [each for each in caller.enclosing if each[0] < callee.frame]
            inner.enclosing = (*outer, (callee.frame, env))
        return inner

    def _local_matters(self, function: ir.Function, state: State, frame: Frame) -> bool:
        """Whether a nested function touches the room's status or one of its tables."""
        receiver = self._receiver(state, frame)
        cls = receiver.cls if receiver is not None else None
        return self.reach.nested_touches(function.at, frame.module, cls, frame.defined_in, frame.receiver, self.subject)

    def _receiver(self, state: State, frame: Frame) -> Object | None:
        value = state.env.get(frame.receiver) if frame.receiver is not None else None
        return value if isinstance(value, Object) else None


def _is_guess(after: State, before: State) -> bool:
    """Whether something on the way from ``before`` to ``after`` could not be decided."""
    lost = after.stored is UNDECIDED and before.stored is not UNDECIDED
    return lost or after.trace.uncertain > before.trace.uncertain


def _continued(before: Trace, after: Trace) -> Trace:
    """``before``, then what happened in a call that began with nothing but its ``taken``."""
    return Trace(
        after.taken,
        before.handed or after.handed,
        before.cleared or after.cleared,
        before.uncertain or after.uncertain,
        before.skip or after.skip,
        before.removals | after.removals,
    )


def _returned(after: State, caller: State) -> State:
    """``after`` back in the caller: its own locals, what the callee did to everything else."""
    return State(after.stored, caller.env, after.heap, after.trace, caller.control, caller.tested)
