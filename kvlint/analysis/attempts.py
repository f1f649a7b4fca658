"""Abstract exceptions: ``try`` with its handlers and ``finally``, and ``with``."""

from __future__ import annotations

import builtins
from functools import cached_property

from msgspec.structs import replace

from kvlint.analysis import ir
from kvlint.analysis.branches import Exits
from kvlint.analysis.frames import After, Frame, Raised
from kvlint.analysis.loops import Looper
from kvlint.analysis.states import State, distinct, joined
from kvlint.analysis.values import EXCEPTION, Causes, Item, Object, Something, Value
from kvlint.semantics.hierarchy import ClassInfo, resolve_class
from kvlint.semantics.module import Module
from kvlint.semantics.world import World

_WAITING = frozenset({"Empty", "Full", "QueueEmpty", "QueueFull", "Again", "TimeoutError", "Timeout", "ShutDown"})


class Attempter(Looper):
    """Runs ``try`` and ``with``."""

    def _try(self, statement: ir.Try, states: list[State], frame: Frame, exits: Exits, after: After) -> list[State]:
        inner = Exits()
        outer = frame.raised
        raised: list[Raised] = []
        caught_after = replace(after, raising=True)
        if self.in_worker and statement.final:
            caught_after = replace(caught_after, normal=self._can(statement.final, after, states[0], frame))
        frame.raised = raised
        outer_handled = frame.handled
        if frame.live is not None:
            frame.handled = frame.live.handlers.get(statement)
        body_after = caught_after
        if self.in_worker and statement.other:
            body_after = replace(caught_after, normal=self._can(statement.other, caught_after, states[0], frame))
        ends = self.block(statement.body, states, frame, inner, body_after)
        escaping: list[Raised] = []
        frame.handled = outer_handled
        frame.raised = escaping if statement.final else outer
        ends = self.block(statement.other, ends, frame, inner, caught_after)
        for (name, causes), thrown in _grouped(raised, self.in_worker).items():
            ends.extend(self._handle(statement, name, causes, thrown, frame, inner, caught_after, escaping))
        frame.raised = outer
        if not statement.final:
            for each in escaping:
                self.raise_(each.name, each.state, frame, each.causes)
            exits.breaks.extend(inner.breaks)
            exits.continues.extend(inner.continues)
            exits.returns.extend(inner.returns)
            return distinct(ends)
        return self._finally(statement.final, ends, inner, escaping, frame, exits, after)

    def _handle(
        self,
        statement: ir.Try,
        name: str,
        causes: Causes,
        thrown: list[State],
        frame: Frame,
        exits: Exits,
        after: After,
        escaping: list[Raised],
    ) -> list[State]:
        ends: list[State] = []
        deciding = causes or frozenset({EXCEPTION})
        for handler in statement.handlers:
            caught = self._catches(handler, name)
            if caught is False:
                continue
            if caught is None and name != "?":
                thrown = [state.doubted(self.in_worker) for state in thrown]
            states = thrown
            if handler.name is not None and (frame.decisive is None or handler.name in frame.decisive):
                states = [state.bind(handler.name, Something(not_none=True)) for state in states]
            if self.in_worker:
                at, body, rival = handler.at, handler.body, statement.body
                states = [self._decided(state, deciding, at, True, body, rival, frame, after) for state in states]
            outer = frame.caught, frame.caught_as
            frame.caught, frame.caught_as = name, handler.name
            ends.extend(self._controlled(handler.body, states, deciding, frame, exits, after))
            frame.caught, frame.caught_as = outer
            if caught is True:
                return ends
        escaping.extend(Raised(name, state, causes) for state in thrown)
        return ends

    @cached_property
    def bases(self) -> dict[str, frozenset[str] | None]:
        """What `exception_bases` says of each class that the code raises, by its name."""
        return {}

    def _catches(self, handler: ir.Handler, name: str) -> bool | None:
        """Whether ``handler`` catches the exception ``name``; None: it may."""
        types = set(handler.types)
        if not types or {"BaseException", "Exception"} & types:
            return True
        if name == "Empty":
            return bool(_WAITING & types)
        foreign = {caught for caught in types if not hasattr(builtins, caught)}
        if name == "?":
            return None if foreign - _WAITING else False
        raised = getattr(builtins, name, None)
        bases = self.bases.get(name)
        if isinstance(raised, type) and bases is None:
            bases, foreign = frozenset(base.__name__ for base in raised.__mro__), set()
        names = {getattr(getattr(builtins, caught, None), "__name__", caught) for caught in types}  # IOError is OSError
        if name in names or names & (bases or frozenset()):
            return True
        if foreign:
            return None  # a class of the project's own may be a base of another, or go by another name
        return False if bases is not None or self.in_worker else None

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
        returned: dict[Value, list[State]] = {}
        for value, state in inner.returns:
            returned.setdefault(value, []).append(state)
        for value, states in returned.items():
            for end in self.block(final, states, frame, exits, replace(after, normal=after.returning)):
                exits.returns.append((value, end))
        for (name, causes), states in _grouped(escaping, self.in_worker).items():
            for end in self.block(final, states, frame, exits, replace(after, normal=after.raising)):
                self.raise_(name, end, frame, causes)
        return finished

    def _with(self, statement: ir.With, states: list[State], frame: Frame, exits: Exits, after: After) -> list[State]:
        swallows: tuple[str, ...] | None = None
        for context, target in statement.items:
            names = _suppressed(context)
            if names is not None:
                swallows = names  # making the manager itself raises nothing
                continue
            following = []
            for before in states:
                for value, ready in self.evaluate(context, before, frame):
                    if isinstance(value, Object):
                        ready = ready.doubted(self.in_worker)  # what its `__exit__` does is not followed
                    entered = value if isinstance(value, Item) else self.computed((value,))
                    following.extend([ready] if target is None else self.assign(target, entered, ready, frame))
            states = following
        if swallows is None:
            return self.block(statement.body, states, frame, exits, after)
        handler = ir.Handler(swallows, None, (), statement.at)
        attempt = ir.Try(statement.body, (handler,), (), (), statement.at)
        return self._try(attempt, states, frame, exits, after) if states else []


def _grouped(raised: list[Raised], in_worker: bool) -> dict[tuple[str, Causes], list[State]]:
    """The distinct states of exceptions, by what was raised and why."""
    groups: dict[tuple[str, Causes], list[State]] = {}
    for thrown in raised:
        groups.setdefault((thrown.name, thrown.causes), []).append(thrown.state)
    simplified = joined if in_worker else distinct
    return {kind: simplified(states) for kind, states in groups.items()}


def exception_bases(world: World, module: Module, dotted: str) -> frozenset[str] | None:
    """The names of the classes that the exception class ``dotted`` is one of, None where they are not all known."""
    cls = resolve_class(world, module, dotted)
    if cls is None:
        return None
    names: set[str] = set()
    for entry in cls.resolution_order:
        if isinstance(entry, ClassInfo):
            names.add(entry.name)
            continue
        kind = getattr(builtins, entry.dotted, None)
        if not isinstance(kind, type):
            return None
        names |= {base.__name__ for base in kind.__mro__}
    return frozenset(names)


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
