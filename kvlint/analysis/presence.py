"""What a function takes for granted between a test and a use: keys seen in a dict, locks held, exceptions caught.

A walk over the syntax tree of one function.  It knows nothing of threads: whether
somebody can remove the key in between is asked elsewhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum

from kvlint.analysis.places import Place
from kvlint.semantics.module import inner_blocks, leaves

#: A lock's text and the statement since which it is held: releasing and taking it again is no common hold.
Hold = tuple[str, ast.AST]

_CATCHES_KEY_ERROR = frozenset({"KeyError", "LookupError", "Exception", "BaseException"})
_REMOVERS = frozenset({"pop", "discard", "remove"})


class Act(StrEnum):
    """What is done to a key that was seen in a container, and raises if it is gone."""

    SUBSCRIPT = "subscript"
    POP = "pop"
    DELETE = "del"
    REMOVE = "remove"
    CALL = "call"


@dataclass(frozen=True, slots=True)
class Seen:
    """That ``key in table`` held at ``test`` in ``statement``, with the locks held then (all as texts).

    ``made`` where the statement stores the key if the test misses it.
    """

    table: str
    key: str
    test: ast.expr
    statement: ast.stmt
    locks: frozenset[Hold]
    made: bool = False


@dataclass(frozen=True, slots=True)
class Use:
    """An act on ``owner`` by ``key`` in ``statement``; ``seen`` is the test it relies on, None where there is none."""

    act: Act
    node: ast.AST
    statement: ast.stmt
    owner: ast.expr
    seen: Seen | None
    locks: frozenset[Hold]
    caught: bool

    @property
    def is_guarded(self) -> bool:
        """Whether one lock is held from the test to the use."""
        return self.seen is not None and bool(self.seen.locks & self.locks)


@dataclass(slots=True)
class Presence:
    """Everything that a walk of one function found; ``held`` and ``caught`` speak of every expression in it."""

    uses: list[Use] = field(default_factory=list)
    held: dict[ast.AST, frozenset[Hold]] = field(default_factory=dict)
    caught: set[ast.AST] = field(default_factory=set)

    def names_held(self, node: ast.AST) -> frozenset[str]:
        """The last names of the locks held at ``node``."""
        return frozenset(text.rpartition(".")[2] for text, _ in self.held.get(node, ()))


def presence_in(place: Place) -> Presence:
    """The walk of ``place``; done once per function."""
    key = ("presence", place.node)
    known = place.world.memo.get(key)
    if not isinstance(known, Presence):
        walker = _Walker(place)
        walker.block(place.node.body, _Here())
        known = place.world.memo[key] = walker.found
    return known


@dataclass(frozen=True, slots=True)
class _Here:
    locks: frozenset[Hold] = frozenset()
    seen: tuple[Seen, ...] = ()
    caught: bool = False


class _Walker:
    def __init__(self, place: Place) -> None:
        self.place = place
        self.found = Presence()
        self.statement_now: ast.stmt = place.node

    # -- statements ------------------------------------------------------------

    def block(self, body: list[ast.stmt], here: _Here) -> _Here:
        for statement in body:
            self.found.held[statement] = here.locks
            here = self._statement(statement, here)
        return here

    def _statement(self, statement: ast.stmt, here: _Here) -> _Here:
        self.statement_now = statement
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return here
            case ast.If():
                return self._if(statement, here)
            case ast.While(test=test):
                here = _without_names(here, statement)
                self._expression(test, here)
                self.block(statement.body, self._tested(here, test, True))
                self.block(statement.orelse, here)
                return here
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                for item in items:
                    self._expression(item.context_expr, here)
                    if item.optional_vars is not None:
                        here = _without_names(here, item.optional_vars)
                taken = frozenset((ast.unparse(item.context_expr), statement) for item in items)
                end = self.block(body, replace(here, locks=here.locks | taken))
                return _without_names(replace(end, locks=here.locks), statement)
            case ast.Try() | ast.TryStar():
                return self._try(statement, here)
            case ast.For() | ast.AsyncFor() | ast.Match():
                self._own_expressions(statement, here)
                here = _without_names(here, statement)
                for block in inner_blocks(statement):
                    self.block(block, here)
                return here
            case _:
                return self._simple(statement, here)

    def _if(self, statement: ast.If, here: _Here) -> _Here:
        test, then, other = statement.test, statement.body, statement.orelse
        self._expression(test, here)
        self.block(then, self._tested(here, test, True, statement))
        self.block(other, self._tested(here, test, False, statement))
        if leaves(then) or _fills(then, test):
            here = self._tested(here, test, False, statement, made=not leaves(then))
        elif other and leaves(other):
            here = self._tested(here, test, True, statement)
        return _without_names(here, statement)

    def _try(self, statement: ast.Try | ast.TryStar, here: _Here) -> _Here:
        caught = here.caught or any(_catches(handler) for handler in statement.handlers)
        end = self.block(statement.body, replace(here, caught=caught))
        self.block(statement.orelse, replace(end, caught=here.caught))
        for handler in statement.handlers:
            self.block(handler.body, here)
        self.block(statement.finalbody, here)
        return _without_names(here, statement)

    def _simple(self, statement: ast.stmt, here: _Here) -> _Here:
        self._own_expressions(statement, here)
        match statement:
            case ast.AugAssign(target=ast.Subscript(value=owner, slice=key) as node):
                self._use(Act.SUBSCRIPT, node, owner, key, here)
            case ast.Delete(targets=targets):
                for target in targets:
                    if isinstance(target, ast.Subscript):
                        self._use(Act.DELETE, target, target.value, target.slice, here)
            case ast.Assert(test=test):
                here = self._tested(here, test, True)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=lock, attr="acquire"))):
                here = replace(here, locks=here.locks | {(ast.unparse(lock), statement)})
            case _:
                pass
        return _without_removed(_without_names(here, statement), statement)

    def _own_expressions(self, statement: ast.stmt, here: _Here) -> None:
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.expr):
                self._expression(child, here)

    # -- expressions -----------------------------------------------------------

    def _expression(self, node: ast.expr, here: _Here) -> None:
        self.found.held[node] = here.locks
        if here.caught:
            self.found.caught.add(node)
        match node:
            case ast.BoolOp(op=op, values=values):
                for value in values:
                    self._expression(value, here)
                    here = self._tested(here, value, isinstance(op, ast.And))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self._expression(test, here)
                self._expression(body, self._tested(here, test, True))
                self._expression(orelse, self._tested(here, test, False))
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                self._comprehension(node, here)
            case ast.Lambda():
                pass  # it runs elsewhere
            case _:
                self._uses_of(node, here)
                for child in ast.iter_child_nodes(node):
                    inner = child.value if isinstance(child, ast.keyword) else child
                    if isinstance(inner, ast.expr):
                        self._expression(inner, here)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, here: _Here) -> None:
        for generator in node.generators:
            self._expression(generator.iter, here)
            for test in generator.ifs:
                self._expression(test, here)
                here = self._tested(here, test, True)
        for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self._expression(part, here)

    def _uses_of(self, node: ast.expr, here: _Here) -> None:
        match node:
            case ast.Subscript(value=owner, slice=key, ctx=ast.Load()):
                self._use(Act.SUBSCRIPT, node, owner, key, here)
            case ast.Call(func=ast.Attribute(value=owner, attr="pop"), args=[key], keywords=[]):
                self._use(Act.POP, node, owner, key, here)
            case ast.Call(func=ast.Attribute(value=owner, attr="remove"), args=[key], keywords=[]):
                self._use(Act.REMOVE, node, owner, key, here)
            case ast.Call(func=ast.Attribute() as method, args=[key, *_]):
                for seen in here.seen:
                    if seen.key == ast.unparse(key):
                        self._note(Act.CALL, node, method, seen, here)
            case _:
                pass

    def _use(self, act: Act, node: ast.AST, owner: ast.expr, key: ast.expr, here: _Here) -> None:
        if not isinstance(owner, ast.Attribute):
            return
        table, wanted = ast.unparse(owner), ast.unparse(key)
        seen = next((seen for seen in here.seen if (seen.table, seen.key) == (table, wanted)), None)
        if seen is not None or act is Act.REMOVE:
            self._note(act, node, owner, seen, here)

    def _note(self, act: Act, node: ast.AST, owner: ast.expr, seen: Seen | None, here: _Here) -> None:
        self.found.uses.append(Use(act, node, self.statement_now, owner, seen, here.locks, here.caught))

    def _tested(
        self, here: _Here, test: ast.expr, holds: bool, statement: ast.stmt | None = None, made: bool = False
    ) -> _Here:
        where = statement or self.statement_now
        new = tuple(
            Seen(ast.unparse(table), ast.unparse(key), at, where, here.locks, made)
            for table, key, at in _present(test, holds)
            if isinstance(table, ast.Attribute)
        )
        return replace(here, seen=(*new, *here.seen)) if new else here


def _present(test: ast.expr, holds: bool) -> Iterator[tuple[ast.expr, ast.expr, ast.expr]]:
    """(table, key, test) of every key that is in a table where ``test`` came out as ``holds``."""
    match test:
        case ast.Compare(left=key, ops=[ast.In() | ast.NotIn() as op], comparators=[table]):
            if isinstance(op, ast.In) is holds:
                yield table, key, test
        case ast.Compare(
            left=ast.Call(func=ast.Attribute(value=table, attr="get"), args=[key]),
            ops=[ast.Is() | ast.IsNot() as op],
            comparators=[ast.Constant(value=None)],
        ):
            if isinstance(op, ast.IsNot) is holds:
                yield table, key, test
        case ast.Call(func=ast.Attribute(value=table, attr="get"), args=[key]) if holds:
            yield table, key, test
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from _present(operand, not holds)
        case ast.BoolOp(op=op, values=values) if isinstance(op, ast.And) is holds:
            for value in values:
                yield from _present(value, holds)
        case _:
            pass


def _fills(block: list[ast.stmt], test: ast.expr) -> bool:
    """Whether ``if key not in table: table[key] = …`` leaves the key in the table either way."""
    wanted = {(ast.unparse(table), ast.unparse(key)) for table, key, _ in _present(test, False)}
    return bool(wanted) and any(
        isinstance(target, ast.Subscript) and (ast.unparse(target.value), ast.unparse(target.slice)) in wanted
        for statement in block
        if isinstance(statement, ast.Assign)
        for target in statement.targets
    )


def _catches(handler: ast.ExceptHandler) -> bool:
    """Whether a handler takes a KeyError and does not pass an exception on."""
    if isinstance(handler.body[-1], ast.Raise):
        return False
    kinds: Iterable[ast.expr | None] = handler.type.elts if isinstance(handler.type, ast.Tuple) else (handler.type,)
    return any(kind is None or (isinstance(kind, ast.Name) and kind.id in _CATCHES_KEY_ERROR) for kind in kinds)


def _without_names(here: _Here, binding: ast.AST) -> _Here:
    """``here`` without what was seen under names that ``binding`` binds anew."""
    if not here.seen:
        return here
    bound = {node.id for node in ast.walk(binding) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    kept = tuple(seen for seen in here.seen if not bound & _names_in(seen))
    return here if len(kept) == len(here.seen) else replace(here, seen=kept)


def _names_in(seen: Seen) -> set[str]:
    return {node.id for node in ast.walk(seen.test) if isinstance(node, ast.Name)}


def _without_removed(here: _Here, statement: ast.stmt) -> _Here:
    """``here`` without the keys that ``statement`` itself removes."""
    gone: set[tuple[str, str]] = set()
    for node in ast.walk(statement) if here.seen else ():
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr=name), args=[key, *_]) if name in _REMOVERS:
                gone.add((ast.unparse(owner), ast.unparse(key)))
            case ast.Subscript(value=owner, slice=key, ctx=ast.Del()):
                gone.add((ast.unparse(owner), ast.unparse(key)))
            case _:
                pass
    kept = tuple(seen for seen in here.seen if (seen.table, seen.key) not in gone)
    return here if len(kept) == len(here.seen) else replace(here, seen=kept)
