"""Whether an exception can end the loop of a worker or listener, after which every later room waits for nobody.

Read off the loop's body alone, and honest about it: *ends* where a statement
of the body visibly raises and nothing in the body catches it, *goes on* where
all that does work stands in a ``try`` that catches ``Exception``, *unknown*
for everything else.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from kvlint.analysis.handlers import Root
from kvlint.analysis.places import Place, target_of
from kvlint.analysis.threads import takes_in
from kvlint.report.audit_model import Fate

_Loop = ast.While | ast.For | ast.AsyncFor

_CATCH_ALL = frozenset({"Exception", "BaseException"})
_LOG_CALLS = frozenset({"debug", "info", "warning", "warn", "error", "exception", "critical", "log", "print_exc"})
# Methods of dicts, sets, lists and queues that raise nothing on the arguments that such code gives them.
_CONTAINER_CALLS = frozenset(
    {"add", "append", "clear", "discard", "get", "items", "keys", "put", "setdefault", "values"}
)
_QUIET_BUILTINS = frozenset({"bool", "dict", "id", "isinstance", "list", "print", "repr", "set", "str", "type"})
_MAX_CALLEES = 3  # how deep the methods that a handler calls are looked into

_RANK = {Fate.GOES_ON: 0, Fate.UNKNOWN: 1, Fate.ENDS: 2}


@dataclass(frozen=True, slots=True)
class Ending:
    """What becomes of a loop, the line that decides, and why."""

    fate: Fate
    line: int
    reason: str


def ending_of(root: Root) -> Ending | None:
    """What an exception does to the loops of a long-lived function; None where it takes nothing in a loop."""
    loops = _served_loops(root.place)
    if not loops:
        return None
    found = [ending for loop in loops for ending in _Body(root.place, loop).endings()]
    worst = max(found, key=lambda ending: _RANK[ending.fate], default=None)
    if worst is None or worst.fate is Fate.GOES_ON:
        return Ending(Fate.GOES_ON, loops[0].lineno, "all its work stands in a try that catches Exception")
    return worst


def _served_loops(place: Place) -> tuple[_Loop, ...]:
    """The loops that serve one item or message a round; of nested ones the outermost, which lives longest."""
    taking = list(dict.fromkeys(take.loop for take in takes_in(place)))
    inside = {node for loop in taking for node in ast.walk(loop) if node is not loop}
    outer = [loop for loop in taking if loop not in inside]
    enclosing = [
        node for node in place.body if isinstance(node, ast.While) and any(loop in ast.walk(node) for loop in outer)
    ]
    outermost = [
        node for node in enclosing if not any(node in ast.walk(other) for other in enclosing if other is not node)
    ]
    return tuple(outermost or outer)


@dataclass(frozen=True, slots=True)
class _Guard:
    """What catches around a statement: names of exceptions (None: nothing is known of them), and everything."""

    all: bool = False
    some: frozenset[str] = frozenset()
    doubtful: bool = False


class _Body:
    """Walks the body of one loop."""

    def __init__(self, place: Place, loop: _Loop) -> None:
        self._place = place
        self._loop = loop
        takes = list(takes_in(place))
        self._takes = {take.call for take in takes if take.call is not None}
        self._message_takes = {take.call for take in takes if take.call is not None and take.is_message}
        self._messages = _names_of_messages(place, self._message_takes)

    def endings(self) -> Iterator[Ending]:
        """Everything in the loop that an exception may leave it by."""
        yield from self._block(self._loop.body, _Guard(), in_handler=False)

    def _block(self, block: Iterable[ast.stmt], guard: _Guard, *, in_handler: bool) -> Iterator[Ending]:
        for statement in block:
            yield from self._statement(statement, guard, in_handler)

    def _statement(self, statement: ast.stmt, guard: _Guard, in_handler: bool) -> Iterator[Ending]:
        match statement:
            case ast.Raise():
                yield from self._raised(statement, _raised_name(statement), guard, in_handler)
            case ast.Assert():
                yield from self._raised(statement, "AssertionError", guard, in_handler)
            case ast.Try() | ast.TryStar():
                yield from self._try(statement, guard, in_handler)
            case ast.With() | ast.AsyncWith():
                yield from self._with(statement, guard, in_handler)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                pass
            case _:
                for child in ast.iter_child_nodes(statement):
                    # Annotations of locals are never evaluated.
                    if isinstance(child, ast.expr) and child is not getattr(statement, "annotation", None):
                        yield from self._expression(child, guard, in_handler)
                yield from self._unpacked(statement, guard)
                for inner in _blocks(statement):
                    yield from self._block(inner, guard, in_handler=in_handler)

    # -- what raises --------------------------------------------------------------

    def _raised(self, node: ast.stmt, name: str | None, guard: _Guard, in_handler: bool) -> Iterator[Ending]:
        if guard.all:
            return
        what = "an assert" if isinstance(node, ast.Assert) else "a raise"
        if in_handler:
            what += " in an exception handler"
        if guard.doubtful or (guard.some and not _surely_outside(name, guard.some)):
            yield Ending(Fate.UNKNOWN, node.lineno, f"{what} that an enclosing handler may catch")
        else:
            yield Ending(Fate.ENDS, node.lineno, f"{what} that nothing in the loop catches")

    def _expression(self, expression: ast.expr, guard: _Guard, in_handler: bool) -> Iterator[Ending]:
        if guard.all:
            return
        outside = next((node for node in ast.walk(expression) if self._parses_message(node)), None)
        if outside is not None:
            yield self._on_outside_input(outside, guard)
        elif not self._is_quiet(expression, in_handler):
            yield Ending(
                Fate.UNKNOWN, expression.lineno, "code outside any try, of which it is not known what it raises"
            )

    def _on_outside_input(self, node: ast.AST, guard: _Guard) -> Ending:
        line: int = node.lineno  # type: ignore[attr-defined]
        if guard.some or guard.doubtful:
            return Ending(Fate.UNKNOWN, line, "what it makes of a malformed message may be caught")
        return Ending(Fate.ENDS, line, "a malformed message raises, and nothing in the loop catches that")

    def _unpacked(self, statement: ast.stmt, guard: _Guard) -> Iterator[Ending]:
        """``a, b = message`` raises on a message of another length."""
        match statement:
            case ast.Assign(targets=[ast.Tuple(elts=elements)], value=value) if not guard.all:
                stars = any(isinstance(element, ast.Starred) for element in elements)
                if not stars and (value in self._message_takes or self._is_message(value)):
                    yield self._on_outside_input(statement, guard)
            case _:
                pass

    def _parses_message(self, node: ast.AST) -> bool:
        """Whether ``node`` reads a message in a way that a malformed one makes raise."""
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr="decode")):
                return self._mentions_message(owner)
            case ast.Call(func=ast.Name(id="int" | "float"), args=[argument]):
                return self._mentions_message(argument)
            case ast.Subscript(value=owner, slice=ast.Constant(value=int() as index), ctx=ast.Load()):
                # The first frame is always there.
                return index > 0 and self._is_message(owner)
            case _:
                return False

    def _is_message(self, expression: ast.expr) -> bool:
        return isinstance(expression, ast.Name) and expression.id in self._messages

    def _mentions_message(self, expression: ast.expr) -> bool:
        return any(isinstance(node, ast.Name) and node.id in self._messages for node in ast.walk(expression))

    # -- what does not ----------------------------------------------------------------

    def _is_quiet(self, expression: ast.expr, in_handler: bool) -> bool:
        """Whether evaluating ``expression`` is known to raise nothing."""
        return all(self._is_quiet_node(node, in_handler) for node in ast.walk(expression))

    def _is_quiet_node(self, node: ast.AST, in_handler: bool) -> bool:
        match node:
            case ast.Call():
                return node in self._takes or self._is_quiet_call(node, in_handler)
            case ast.Subscript(ctx=ast.Load() | ast.Del()):
                return False
            case ast.BinOp() | ast.Await() | ast.Yield() | ast.YieldFrom() | ast.Starred():
                return False
            case _:
                return True

    def _is_quiet_call(self, call: ast.Call, in_handler: bool) -> bool:
        match call.func:
            case ast.Name(id=name) if name in _QUIET_BUILTINS:
                return True
            case ast.Attribute(attr=name) if name in _LOG_CALLS:
                return True
            case ast.Attribute(attr=name) if name in _CONTAINER_CALLS and in_handler:
                return True
            case ast.Attribute(attr="pop") if in_handler:
                return len(call.args) > 1
            case ast.Name() | ast.Attribute() if in_handler:
                return self._never_raises(self._place, call.func, _MAX_CALLEES)
            case _:
                return False

    def _never_raises(self, place: Place, function: ast.expr, depth: int) -> bool:
        """Whether a function that a handler calls is known and raises nothing by itself."""
        target = target_of(place, function)
        if target is None or depth == 0:
            return False
        for node in target.body:
            if isinstance(node, ast.Raise | ast.Assert):
                return False
            called = target_of(target, node.func) if isinstance(node, ast.Call) else None
            if isinstance(node, ast.Call) and called not in (None, target):
                known = self._never_raises(target, node.func, depth - 1)
                if not known:
                    return False
        return True

    # -- what catches --------------------------------------------------------------------

    def _try(self, statement: ast.Try | ast.TryStar, guard: _Guard, in_handler: bool) -> Iterator[Ending]:
        names = [_caught_names(handler) for handler in statement.handlers]
        caught = frozenset(name for found in names if found is not None for name in found)
        # A `finally` that leaves swallows what was raised; of a computed `except` nothing is known.
        doubtful = guard.doubtful or None in names or any(map(_leaves, statement.finalbody))
        inner = replace(guard, all=guard.all or bool(caught & _CATCH_ALL), some=guard.some | caught, doubtful=doubtful)
        yield from self._block(statement.body, inner, in_handler=in_handler)
        for handler, found in zip(statement.handlers, names, strict=True):
            if found is not None and found & _CATCH_ALL and not guard.all:
                yield from self._given_up(handler)
            yield from self._block(handler.body, guard, in_handler=True)
        yield from self._block(statement.orelse, guard, in_handler=in_handler)
        yield from self._block(statement.finalbody, guard, in_handler=True)

    def _given_up(self, handler: ast.ExceptHandler) -> Iterator[Ending]:
        """Handlers of every exception that leave the loop; a condition may be that the backend ends anyway."""
        for statement in handler.body:
            if isinstance(statement, ast.Break | ast.Return):
                yield Ending(Fate.ENDS, statement.lineno, "a handler of every exception leaves the loop")
                return
            for node in _own_nodes(statement):
                if isinstance(node, ast.Break | ast.Return):
                    yield Ending(Fate.UNKNOWN, node.lineno, "a handler of every exception may leave the loop")
                    return

    def _with(self, statement: ast.With | ast.AsyncWith, guard: _Guard, in_handler: bool) -> Iterator[Ending]:
        inner = guard
        for item in statement.items:
            names = _suppressed(item.context_expr)
            if names is None:
                # A lock lets exceptions through; what else is entered may not.
                is_lock = isinstance(item.context_expr, ast.Name | ast.Attribute)
                inner = inner if is_lock else replace(inner, doubtful=True)
                yield from self._expression(item.context_expr, guard, in_handler)
            else:
                inner = replace(inner, all=inner.all or bool(names & _CATCH_ALL), some=inner.some | names)
        yield from self._block(statement.body, inner, in_handler=in_handler)


def _names_of_messages(place: Place, calls: set[ast.Call]) -> frozenset[str]:
    """Locals that hold a received message or a part of one."""
    names: set[str] = set()
    grown = True
    while grown:
        grown = False
        for node in place.body:
            match node:
                case ast.Assign(targets=targets, value=value):
                    pass
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    targets = [target]
                case _:
                    continue
            if not _is_part(value, names, calls):
                continue
            for bound in (name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)):
                if bound not in names:
                    names.add(bound)
                    grown = True
    return frozenset(names)


def _is_part(value: ast.expr, names: set[str], calls: set[ast.Call]) -> bool:
    match value:
        case ast.Name(id=name):
            return name in names
        case ast.Call():
            return value in calls
        case ast.Await(value=inner) | ast.Subscript(value=inner) | ast.Starred(value=inner):
            return _is_part(inner, names, calls)
        case _:
            return False


def _raised_name(statement: ast.Raise) -> str | None:
    match statement.exc:
        case ast.Name(id=name) | ast.Call(func=ast.Name(id=name)):
            return name
        case _:
            return None


def _caught_names(handler: ast.ExceptHandler) -> frozenset[str] | None:
    match handler.type:
        case None:
            return frozenset({"BaseException"})
        case ast.Tuple(elts=elements):
            return frozenset(_last_name(element) or "?" for element in elements)
        case kind:
            name = _last_name(kind)
            return None if name is None else frozenset({name})


def _last_name(node: ast.expr) -> str | None:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return None


def _suppressed(expression: ast.expr) -> frozenset[str] | None:
    match expression:
        case ast.Call(func=ast.Name(id="suppress") | ast.Attribute(attr="suppress"), args=arguments):
            return frozenset(_last_name(argument) or "?" for argument in arguments)
        case _:
            return None


def _surely_outside(name: str | None, caught: frozenset[str]) -> bool:
    """Whether handlers of ``caught`` are known to let an exception called ``name`` pass."""
    raised = getattr(builtins, name or "", None)
    kinds = [getattr(builtins, handled, None) for handled in caught]
    if not isinstance(raised, type) or not all(isinstance(kind, type) for kind in kinds):
        return False
    return not any(issubclass(raised, kind) for kind in kinds if isinstance(kind, type))


def _leaves(statement: ast.stmt) -> bool:
    return any(isinstance(node, ast.Return | ast.Break | ast.Continue) for node in _own_nodes(statement))


def _own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement, those of nested loops and functions left out."""
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.While | ast.For | ast.AsyncFor | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        yield node
        pending.extend(ast.iter_child_nodes(node))


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse"):
        block = getattr(statement, name, None)
        if isinstance(block, list):
            yield block
    for case in getattr(statement, "cases", ()):
        yield case.body
