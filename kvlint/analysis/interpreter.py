"""Abstract execution of statements: states go in, states come out, sorted by the way they leave a block."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

from kvlint.analysis import ir, operators
from kvlint.analysis.calls import Caller
from kvlint.analysis.conclusions import Context
from kvlint.analysis.decisive import assigned_names, decisive_names
from kvlint.analysis.evaluate import After, Frame, GaveUp, Outcomes, Raised, forget
from kvlint.analysis.liveness import Liveness, liveness
from kvlint.analysis.values import (
    EXCEPTION,
    NONE,
    STATUS,
    UNDECIDED,
    UNKNOWN,
    BoundCall,
    Causes,
    Field,
    Global,
    Item,
    Known,
    Local,
    Object,
    Several,
    Skip,
    Something,
    State,
    StatusTable,
    Trace,
    Value,
    computed_from,
    distinct,
    with_causes,
)
from kvlint.semantics.constants import enum_info
from kvlint.semantics.hierarchy import resolve_class

_MAX_ROUNDS = 24  # loop iterations before the analysis stops following a loop
_MAX_STATES = 400  # states kept at one point before the analysis gives up on local variables
_MAX_STEPS = 400_000  # statements run for one question; the largest release read needs a tenth
_WAITING = frozenset({"Empty", "Full", "QueueEmpty", "QueueFull", "Again", "TimeoutError", "Timeout", "ShutDown"})


@dataclass(slots=True, eq=False)
class Exits:
    """The states in which a block was left other than by running to its end."""

    breaks: list[State] = field(default_factory=list)
    continues: list[State] = field(default_factory=list)
    returns: list[tuple[Value, State]] = field(default_factory=list)


class Interpreter(Caller):
    """Runs functions for one subject; see ``evaluate.Evaluator`` for the two uses.

    ``served`` are loops that take one work item or message a round: each is run
    for one round, started from every stored status, and the states at the end
    of the round are kept in ``rounds``.
    """

    served: frozenset[ast.AST] = frozenset()
    steps: int = 0

    @cached_property
    def rounds(self) -> list[State]:
        """The states in which rounds of served loops ended."""
        return []

    def run_body(self, function: ir.Function, state: State, frame: Frame) -> Outcomes:
        """The returned values of ``function`` started in ``state``, each with its state."""
        exits = Exits()
        decisive, assigned, live = self._facts(function)
        frame.locals = frame.locals | assigned | frozenset(function.parameters)
        if self.in_worker:
            frame.decisive, frame.live = decisive, live
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

    def followed(self, function: ir.Function) -> frozenset[str]:
        """The locals of ``function`` that can matter on a worker's path."""
        return self._facts(function)[0]

    def block(self, block: ir.Block, states: Iterable[State], frame: Frame, exits: Exits, after: After) -> list[State]:
        """Run a block from each of ``states``; returns the states at its end."""
        current = distinct(states)
        for index, statement in enumerate(block):
            if not current:
                return []
            here = after
            if self.in_worker:
                context = self._context(current[0], frame)
                here = replace(after, normal=self.reach.can(block, after, context, index + 1))
            frame.after_call = here.normal
            current = distinct(end for state in current for end in self.statement(statement, state, frame, exits, here))
            if frame.live is not None and statement in frame.live.after:
                live = frame.live.after[statement]
                current = distinct(forget(state, live, frame.receiver) for state in current)
            if len(current) > _MAX_STATES:
                current = distinct(self._coarse(state) for state in current)
        return current

    def _coarse(self, state: State) -> State:
        """A state without what it knows of plain values: fewer states, never a wrong one."""
        env, heap = state.env, state.heap
        for name in list(env.names()):
            value = env.get(name)
            if isinstance(value, Known | Something):
                undecided = STATUS in value.causes or (isinstance(value, Something) and value.undecided)
                env = env.set(name, Something(value.causes, undecided))
        for name in list(heap.names()):
            heap = heap.set(name, Something(undecided=True))
        return replace(state, env=env, heap=heap)

    def _context(self, state: State, frame: Frame) -> Context:
        receiver = frame.receiver
        holder = state.env.get(receiver) if receiver else None
        cls = holder.cls if isinstance(holder, Object) else None
        return Context(self.subject, frame.module, cls, frame.defined_in, receiver, state.env.items)

    def _can(self, block: ir.Block, after: After, state: State, frame: Frame) -> bool:
        return self.reach.can(block, after, self._context(state, frame))

    # -- statements -----------------------------------------------------------

    def statement(  # noqa: C901
        self, statement: ir.Statement, state: State, frame: Frame, exits: Exits, after: After
    ) -> list[State]:
        """Run one statement; returns the states in which control reaches the next one."""
        self.steps += 1
        if self.steps > _MAX_STEPS:
            raise GaveUp(f"more than {_MAX_STEPS} steps")
        match statement:
            case ir.Evaluate(value=value):
                return [end for _, end in self.evaluate(value, state, frame)]
            case ir.Assign(targets=targets, value=value):
                return [
                    end
                    for result, ready in self.evaluate(value, state, frame)
                    for end in self._assign_all(targets, result, ready, frame)
                ]
            case ir.Update():
                return self._update(statement, state, frame)
            case ir.If():
                return self._if(statement, state, frame, exits, after)
            case ir.While():
                return self._while(statement, state, frame, exits, after)
            case ir.For():
                return self._for(statement, state, frame, exits, after)
            case ir.Try():
                return self._try(statement, state, frame, exits, after)
            case ir.With():
                return self._with(statement, state, frame, exits, after)
            case ir.Match():
                return self._match(statement, state, frame, exits, after)
            case ir.Return(value=value):
                ready = _leaving(state, statement.at, frame)
                for result, end in [(NONE, ready)] if value is None else self.evaluate(value, ready, frame):
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

    def _assert(self, test: ir.Expression, state: State, frame: Frame) -> list[State]:
        ends = []
        for value, ready in self.evaluate(test, state, frame):
            for answer, end in self.decide(value, ready):
                if answer:
                    ends.append(end)
                else:
                    self.raise_("AssertionError", end, frame, value.causes)
        return ends

    def _raise(self, value: ir.Expression | None, state: State, frame: Frame) -> None:
        if value is None:
            self.raise_(frame.caught, state, frame, state.tested)
            return
        named = value.callee if isinstance(value, ir.Call) else value
        name = "?"
        if isinstance(named, ir.Name | ir.Attribute):
            name = named.id if isinstance(named, ir.Name) else named.name
        if isinstance(named, ir.Name) and named.id in frame.locals:
            name = frame.caught
        for _, end in self.evaluate(value, state, frame):
            self.raise_(name, end, frame, end.tested)

    # -- assignment -----------------------------------------------------------

    def _assign_all(self, targets: tuple[ir.Expression, ...], value: Value, state: State, frame: Frame) -> list[State]:
        states = [state]
        for target in targets:
            states = [end for before in states for end in self.assign(target, value, before, frame)]
        return states

    def assign(self, target: ir.Expression, value: Value, state: State, frame: Frame) -> list[State]:
        """The states after ``target = value``."""
        match target:
            case ir.Name(id=name):
                if frame.decisive is not None and name not in frame.decisive:
                    return [state]
                return [state.bind(name, self._kept(self.constant(value)))]
            case ir.Collection(items=items):
                return self._unpack(items, value, state, frame)
            case ir.Subscript(owner=owner, key=key):
                return self._store_item(owner, key, value, state, frame)
            case ir.Attribute(owner=owner, name=name):
                return [
                    self._store_attribute(holder, name, value, ready)
                    for holder, ready in self.evaluate(owner, state, frame)
                ]
            case _:
                return [state]

    def _kept(self, value: Value) -> Value:
        """What a variable keeps of a value: on a worker's paths, only what a decision about the room can use."""
        if not self.in_worker:
            return value
        if isinstance(value, BoundCall) and isinstance(value.owner, Something | Item):
            return Something(value.causes)
        if isinstance(value, Something) and value.not_none and not value.causes:
            return UNKNOWN
        return value

    def _unpack(self, items: tuple[ir.Expression, ...], value: Value, state: State, frame: Frame) -> list[State]:
        parts: list[Value]
        match value:
            case Several(items=values) if len(values) == len(items):
                parts = [with_causes(part, value.causes) for part in values]
            case Known(value=tuple() as constants) if len(constants) == len(items):
                parts = [Known(constant, value.causes) for constant in constants]
            case Item():
                parts = [Item(part=not _looks_like_item(item)) for item in items]
            case _:
                parts = [self.part_of(computed_from((value,))) for _ in items]
        states = [state]
        for item, part in zip(items, parts, strict=True):
            states = [end for before in states for end in self.assign(item, part, before, frame)]
        return states

    def _store_item(
        self, owner: ir.Expression, key: ir.Expression, value: Value, state: State, frame: Frame
    ) -> list[State]:
        ends = []
        for (table, index), ready in self.evaluate_all((owner, key), state, frame):
            if isinstance(table, StatusTable):
                ends.append(self.store(self.constant(index), value, ready))
            elif isinstance(owner, ir.Name) and isinstance(table, Known):
                ends.append(replace(ready, env=ready.env.set(owner.id, Something(not_none=True))))
            else:
                ends.append(ready)
        return ends

    def _store_attribute(self, holder: Value, name: str, value: Value, state: State) -> State:
        value = self.constant(value)
        if name == self.subject.attribute:
            if self.subject.kind == "table":
                return state if isinstance(value, StatusTable) else replace(state, stored=UNDECIDED)
            return replace(state, stored=value.value if isinstance(value, Known) else UNDECIDED)
        if isinstance(holder, Object) and not self.in_worker:
            return replace(state, heap=state.heap.set(name, value))
        return state

    def _update(self, statement: ir.Update, state: State, frame: Frame) -> list[State]:
        ends = []
        for (old, new), ready in self.evaluate_all((statement.target, statement.value), state, frame):
            if isinstance(old, StatusTable):
                ends.append(replace(ready, stored=UNDECIDED))
                continue
            result = operators.arithmetic(statement.operator, self.constant(old), self.constant(new))
            ends.extend(self.assign(statement.target, result, ready, frame))
        return ends

    def _delete(self, targets: tuple[ir.Expression, ...], at: ast.AST, state: State, frame: Frame) -> list[State]:
        states = [state]
        for target in targets:
            if not isinstance(target, ir.Subscript):
                continue
            following = []
            for before in states:
                for (table, key), ready in self.evaluate_all((target.owner, target.key), before, frame):
                    end = self._deleted(table, self.constant(key), at, ready, frame)
                    following.extend([end] if end is not None else [])
            states = following
        return states

    def _deleted(self, table: Value, key: Value, at: ast.AST, state: State, frame: Frame) -> State | None:
        if isinstance(table, StatusTable):
            if self.is_room(key) and state.stored is not UNDECIDED and self.item_of(table, key, state, frame) == []:
                return None
            return self.remove(key, state)
        if isinstance(table, Field) and self.is_room(key):
            self.raise_("KeyError", state, frame, frozenset({table.name}))
            return self.removed_from(table.name, at, state)
        return state

    # -- branches -------------------------------------------------------------

    def _if(self, statement: ir.If, state: State, frame: Frame, exits: Exits, after: After) -> list[State]:
        ends: list[State] = []
        for value, ready in self.evaluate(statement.test, state, frame):
            causes = value.causes
            for answer, chosen in self.decide(value, ready):
                branch = statement.then if answer else statement.other
                if causes and self.in_worker:
                    rival = statement.other if answer else statement.then
                    chosen = self._decided(chosen, causes, statement.at, answer, branch, rival, frame, after)
                ends.extend(self._controlled(branch, chosen, causes, frame, exits, after))
        return ends

    def _controlled(
        self, block: ir.Block, state: State, causes: Causes, frame: Frame, exits: Exits, after: After
    ) -> list[State]:
        """Run ``block`` as controlled by a decision on ``causes``."""
        # What was tested matters to what a helper returns; the outermost frame returns to nobody.
        tested = state.tested | causes if frame.number else state.tested
        inside = replace(state, control=state.control | causes, tested=tested)
        ends = self.block(block, [inside], frame, exits, after)
        return [replace(end, control=state.control) for end in ends]

    def _decided(
        self,
        state: State,
        causes: Causes,
        at: ast.AST,
        taken: bool,
        branch: ir.Block,
        rival: ir.Block,
        frame: Frame,
        after: After,
    ) -> State:
        """``state``, marked if taking ``branch`` rather than ``rival`` gives up on concluding the room."""
        if state.trace.skip is not None or not state.trace.taken or self._is_writer(frame):
            return state
        context = self._context(state, frame)
        if self.reach.can(branch, after, context) or not self.reach.can(rival, after, context):
            return state
        return state.note(skip=Skip(causes, at, taken, frame.node))

    def _is_writer(self, frame: Frame) -> bool:
        """Whether the frame runs a writer: what that refuses to store is its own fault, not a skip of the worker's."""
        return getattr(frame.node, "name", None) in self.subject.writers

    def _match(self, statement: ir.Match, state: State, frame: Frame, exits: Exits, after: After) -> list[State]:
        ends: list[State] = []
        for subject, ready in self.evaluate(statement.subject, state, frame):
            pending = [ready]
            for case in statement.cases:
                following: list[State] = []
                for before in pending:
                    matched, missed = self._matches(case, subject, before, frame)
                    causes = subject.causes
                    for chosen in matched:
                        if causes and self.in_worker:
                            rival = tuple(
                                inner for other in statement.cases if other is not case for inner in other.body
                            )
                            chosen = self._decided(chosen, causes, case.at, True, case.body, rival, frame, after)
                        ends.extend(self._controlled(case.body, chosen, causes, frame, exits, after))
                    following.extend(missed)
                pending = distinct(following)
            ends.extend(pending)
        return ends

    def _matches(self, case: ir.Case, subject: Value, state: State, frame: Frame) -> tuple[list[State], list[State]]:
        matched: list[State] = []
        missed: list[State] = []
        for answer, ready in self._pattern(case.pattern, subject, state, frame):
            if not answer:
                missed.append(state)
                continue
            if case.guard is None:
                matched.append(ready)
                continue
            for value, after in self.evaluate(case.guard, ready, frame):
                for passed, end in self.decide(value, after):
                    (matched if passed else missed).append(end)
        return distinct(matched), distinct(missed)

    def _pattern(self, pattern: ir.Pattern, subject: Value, state: State, frame: Frame) -> list[tuple[bool, State]]:  # noqa: C901 - one arm a kind
        if pattern.name is not None:
            state = state.bind(pattern.name, subject)
        for name in pattern.bound:
            state = state.bind(name, computed_from((subject,)))
        match pattern.kind:
            case "any":
                return [(True, state)]
            case "value" | "is" if pattern.value is not None:
                results = []
                for value, ready in self.evaluate(pattern.value, state, frame):
                    spelling = "is" if pattern.kind == "is" else "=="
                    for answer, after in self._compared(spelling, subject, value, ready, frame):
                        results.extend(self.decide(answer, after))
                return results
            case "either":
                return self._either(pattern.parts, subject, state, frame)
            case "sequence" if isinstance(subject, Several) and len(subject.items) == len(pattern.parts):
                return self._in_order(pattern.parts, subject.items, state, frame)
            case _:
                undecided = computed_from((subject,)).undecided
                for part in pattern.parts:
                    for name in _bound_names(part):
                        state = state.bind(name, computed_from((subject,)))
                return self.decide(Something(undecided=undecided), state)

    def _either(
        self, parts: tuple[ir.Pattern, ...], subject: Value, state: State, frame: Frame
    ) -> list[tuple[bool, State]]:
        results: list[tuple[bool, State]] = []
        pending = [state]
        for part in parts:
            following = []
            for before in pending:
                for answer, after in self._pattern(part, subject, before, frame):
                    (results.append((True, after)) if answer else following.append(after))
            pending = following
        return [*results, *((False, after) for after in pending)]

    def _in_order(
        self, parts: tuple[ir.Pattern, ...], items: tuple[Value, ...], state: State, frame: Frame
    ) -> list[tuple[bool, State]]:
        results: list[tuple[bool, State]] = []
        pending = [state]
        for part, item in zip(parts, items, strict=True):
            following = []
            for before in pending:
                for answer, after in self._pattern(part, item, before, frame):
                    (following.append(after) if answer else results.append((False, after)))
            pending = following
        return [*results, *((True, after) for after in pending)]

    # -- loops ----------------------------------------------------------------

    def _while(self, statement: ir.While, state: State, frame: Frame, exits: Exits, after: After) -> list[State]:
        def enter(current: State) -> tuple[list[State], list[State]]:
            inside: list[State] = []
            outside: list[State] = []
            for value, ready in self.evaluate(statement.test, current, frame):
                for answer, end in self.decide(value, ready):
                    (inside if answer else outside).append(end)
            return inside, outside

        if statement.at in self.served:
            return self._serve(enter, statement.body, state, frame, exits)
        return self._loop(enter, statement.body, statement.other, state, frame, exits, after)

    def _serve(
        self,
        enter: Callable[[State], tuple[list[State], list[State]]],
        body: ir.Block,
        state: State,
        frame: Frame,
        exits: Exits,
    ) -> list[State]:
        """One round of a served loop for every status that may be stored when it starts."""
        taken = state.trace.taken
        starts = [replace(state, stored=stored, trace=Trace(taken=taken)) for stored in self.subject.stored_values]
        inside: list[State] = []
        outside: list[State] = []
        for start in starts:
            entering, leaving = enter(start)
            inside.extend(entering)
            outside.extend(leaving)
        inner = Exits()
        ends = self.block(body, inside, frame, inner, After(raising=frame.raised is not None))
        self.rounds.extend([*ends, *inner.continues, *inner.breaks, *(end for _, end in inner.returns)])
        exits.returns.extend(inner.returns)
        return distinct([*outside, *inner.breaks])

    def _for(self, statement: ir.For, state: State, frame: Frame, exits: Exits, after: After) -> list[State]:
        ends: list[State] = []
        for iterable, ready in self.evaluate(statement.iterable, state, frame):
            iterable = self._iterated(self.constant(iterable))
            if isinstance(iterable, Known) and isinstance(iterable.value, tuple):
                items: tuple[Value, ...] = tuple(Known(item, iterable.causes) for item in iterable.value)
                ends.extend(self._unrolled(items, iterable.causes, statement, ready, frame, exits, after))
                continue
            if isinstance(iterable, Several):
                ends.extend(self._unrolled(iterable.items, iterable.causes, statement, ready, frame, exits, after))
                continue
            ends.extend(self._for_unknown(iterable, statement, ready, frame, exits, after))
        return ends

    def _iterated(self, value: Value) -> Value:
        """Iterating an enum class gives its members; a set has no order to rely on, but every member comes once."""
        if isinstance(value, Known) and isinstance(value.value, frozenset):
            return Something(value.causes, undecided=True)
        if isinstance(value, Global):
            cls = resolve_class(self.world, value.module, value.dotted)
            members = enum_info(cls) if cls is not None else None
            if members is not None:
                return Known(tuple(members.values.values()))
        if isinstance(value, StatusTable):
            return Something(undecided=True)
        return value

    def _unrolled(
        self,
        items: tuple[Value, ...],
        causes: Causes,
        statement: ir.For,
        state: State,
        frame: Frame,
        exits: Exits,
        after: After,
    ) -> list[State]:
        if not items and causes and self.in_worker:
            state = self._decided(state, causes, statement.at, False, (), statement.body, frame, after)
        inner = Exits(returns=exits.returns)
        current = [state]
        for item in items:
            here = replace(after, breaking=after.normal, continuing=True)
            started = [end for before in current for end in self.assign(statement.target, item, before, frame)]
            current = distinct([*self.block(statement.body, started, frame, inner, here), *inner.continues])
            inner.continues.clear()
        finished = self.block(statement.other, current, frame, exits, after)
        return [*finished, *inner.breaks]

    def _for_unknown(
        self, iterable: Value, statement: ir.For, state: State, frame: Frame, exits: Exits, after: After
    ) -> list[State]:
        element: Value = Item() if isinstance(iterable, Item) else self.part_of(computed_from((iterable,)))
        undecided = isinstance(element, Something) and element.undecided

        def enter(current: State) -> tuple[list[State], list[State]]:
            if undecided:
                current = current.note(uncertain=True)
            if statement.at in self.served:
                current = current.note(taken=True)
            return self.assign(statement.target, element, current, frame), [current]

        if statement.at in self.served:
            element = Item()
            return self._serve(enter, statement.body, state, frame, exits)
        return self._loop(enter, statement.body, statement.other, state, frame, exits, after)

    def _loop(
        self,
        enter: Callable[[State], tuple[list[State], list[State]]],
        body: ir.Block,
        other: ir.Block,
        state: State,
        frame: Frame,
        exits: Exits,
        after: After,
    ) -> list[State]:
        """Run a loop to a fixed point; ``enter`` gives the states that go round and those that stop."""
        inner = Exits(returns=exits.returns)
        again = after.normal or (self.in_worker and self.reach.block_concludes(body, self._context(state, frame)))
        here = replace(after, normal=again, breaking=after.normal, continuing=again)
        seen: set[State] = set()
        frontier = [state]
        stopped: list[State] = []
        for round_number in range(_MAX_ROUNDS):
            fresh = [current for current in frontier if current not in seen]
            seen.update(fresh)
            if not fresh:
                break
            if round_number == _MAX_ROUNDS - 1 or len(seen) > _MAX_STATES:
                stopped.extend(replace(current, stored=UNDECIDED) for current in fresh)
                break
            entering: list[State] = []
            for current in fresh:
                inside, outside = enter(current)
                entering.extend(inside)
                stopped.extend(outside)
            frontier = distinct([*self.block(body, entering, frame, inner, here), *inner.continues])
            inner.continues.clear()
        finished = self.block(other, stopped, frame, exits, after)
        return distinct([*finished, *inner.breaks])

    # -- try and with ---------------------------------------------------------

    def _try(self, statement: ir.Try, state: State, frame: Frame, exits: Exits, after: After) -> list[State]:
        inner = Exits()
        outer = frame.raised
        raised: list[Raised] = []
        caught_after = replace(after, raising=True)
        if self.in_worker and statement.final:
            caught_after = replace(caught_after, normal=self._can(statement.final, after, state, frame))
        frame.raised = raised
        outer_handled = frame.handled
        if frame.live is not None:
            frame.handled = frame.live.handlers.get(statement)
        body_after = caught_after
        if self.in_worker and statement.other:
            body_after = replace(caught_after, normal=self._can(statement.other, caught_after, state, frame))
        ends = self.block(statement.body, [state], frame, inner, body_after)
        escaping: list[Raised] = []
        frame.handled = outer_handled
        frame.raised = escaping if statement.final else outer
        ends = self.block(statement.other, ends, frame, inner, caught_after)
        for thrown in _distinct_raised(raised):
            ends.extend(self._handle(statement, thrown, frame, inner, caught_after, escaping))
        frame.raised = outer
        if not statement.final:
            for thrown in escaping:
                self.raise_(thrown.name, thrown.state, frame, thrown.causes)
            exits.breaks.extend(inner.breaks)
            exits.continues.extend(inner.continues)
            exits.returns.extend(inner.returns)
            return distinct(ends)
        return self._finally(statement.final, ends, inner, escaping, frame, exits, after)

    def _handle(
        self,
        statement: ir.Try,
        thrown: Raised,
        frame: Frame,
        exits: Exits,
        after: After,
        escaping: list[Raised],
    ) -> list[State]:
        ends: list[State] = []
        for handler in statement.handlers:
            caught = _catches(handler, thrown.name)
            if caught is False:
                continue
            state = thrown.state
            if handler.name is not None and (frame.decisive is None or handler.name in frame.decisive):
                state = state.bind(handler.name, Something(not_none=True))
            causes = thrown.causes or frozenset({EXCEPTION})
            if self.in_worker:
                state = self._decided(state, causes, handler.at, True, handler.body, statement.body, frame, after)
            outer_name, frame.caught = frame.caught, thrown.name
            ends.extend(self._controlled(handler.body, state, causes, frame, exits, after))
            frame.caught = outer_name
            if caught is True:
                return ends
        escaping.append(thrown)
        return ends

    def _finally(
        self,
        final: ir.Block,
        ends: list[State],
        inner: Exits,
        escaping: list[Raised],
        frame: Frame,
        exits: Exits,
        after: After,
    ) -> list[State]:
        """Run ``final`` on every way out."""
        finished = self.block(final, ends, frame, exits, after)
        exits.breaks.extend(self.block(final, inner.breaks, frame, exits, replace(after, normal=after.breaking)))
        exits.continues.extend(
            self.block(final, inner.continues, frame, exits, replace(after, normal=after.continuing))
        )
        for value, state in inner.returns:
            for end in self.block(final, [state], frame, exits, replace(after, normal=after.returning)):
                exits.returns.append((value, end))
        for thrown in _distinct_raised(escaping):
            for end in self.block(final, [thrown.state], frame, exits, replace(after, normal=after.raising)):
                self.raise_(thrown.name, end, frame, thrown.causes)
        return finished

    def _with(self, statement: ir.With, state: State, frame: Frame, exits: Exits, after: After) -> list[State]:
        states = [state]
        swallows: tuple[str, ...] | None = None
        for context, target in statement.items:
            names = _suppressed(context)
            swallows = names if names is not None else swallows
            following = []
            for before in states:
                for value, ready in self.evaluate(context, before, frame):
                    entered = value if isinstance(value, Item) else computed_from((value,))
                    following.extend([ready] if target is None else self.assign(target, entered, ready, frame))
            states = following
        if swallows is None:
            return self.block(statement.body, states, frame, exits, after)
        handler = ir.Handler(swallows, None, (), statement.at)
        attempt = ir.Try(statement.body, (handler,), (), (), statement.at)
        return [end for before in states for end in self._try(attempt, before, frame, exits, after)]


def _leaving(state: State, at: ast.AST, frame: Frame) -> State:
    skip = state.trace.skip
    if skip is None or skip.leave is not None or skip.frame is not frame.node:
        return state
    return state.note(skip=replace(skip, leave=at))


def _looks_like_item(target: ir.Expression) -> bool:
    """Whether an unpacked part may be the item itself rather than its room (``room, chunk = queue.get()``)."""
    return isinstance(target, ir.Name) and not any(
        word in target.id.lower() for word in ("room", "id", "key", "idx", "index", "rank", "num")
    )


def _bound_names(pattern: ir.Pattern) -> set[str]:
    names = set(pattern.bound)
    if pattern.name is not None:
        names.add(pattern.name)
    for part in pattern.parts:
        names |= _bound_names(part)
    return names


def _distinct_raised(raised: list[Raised]) -> list[Raised]:
    return list(dict.fromkeys(raised))


def _catches(handler: ir.Handler, name: str) -> bool | None:
    """Whether ``handler`` catches the exception ``name``; None: it may."""
    if not handler.types or {"BaseException", "Exception"} & set(handler.types):
        return True
    if name == "Empty":
        return bool(_WAITING & set(handler.types))
    if name == "?":
        narrow = all(hasattr(builtins, caught) or caught in _WAITING for caught in handler.types)
        return False if narrow else None
    raised = getattr(builtins, name, None)
    for caught in handler.types:
        kind = getattr(builtins, caught, None)
        if caught == name:
            return True
        if isinstance(raised, type) and isinstance(kind, type) and issubclass(raised, kind):
            return True
    if not isinstance(raised, type) and any(not hasattr(builtins, caught) for caught in handler.types):
        return None  # a class of the project's own may be a base of another
    return False


def _suppressed(context: ir.Expression) -> tuple[str, ...] | None:
    """The exception names of ``contextlib.suppress(...)``, None for any other context manager."""
    if not isinstance(context, ir.Call) or not isinstance(context.callee, ir.Name | ir.Attribute):
        return None
    name = context.callee.id if isinstance(context.callee, ir.Name) else context.callee.name
    if name != "suppress":
        return None
    return tuple(
        argument.id if isinstance(argument, ir.Name) else argument.name
        for argument in context.arguments
        if isinstance(argument, ir.Name | ir.Attribute)
    )
