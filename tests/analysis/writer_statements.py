"""Random statements of status writers, on top of the expressions of ``writer_grammar``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .writer_grammar import Block, Scope, Statement, Suite, Writing

Step = tuple[Block, Scope]
_LEAVES = ("return", "raise", "break", "continue")


def leaves(block: Block) -> bool:
    """Whether control visibly never reaches the end of ``block``."""
    return bool(block) and isinstance(block[-1], str) and block[-1].startswith(_LEAVES)


class Scripting(Writing):
    """Draws the statements of one function."""

    def block(self, scope: Scope, depth: int, least: int = 0) -> Block:
        """Statements that leave the names of ``scope`` bound."""
        found: list[Statement] = []
        for _ in range(self.up_to(3, least)):
            step, scope = self.statement(scope, depth)
            found.extend(step)
            if leaves(step):
                break
        return tuple(found)

    def statement(self, scope: Scope, depth: int) -> Step:
        """One statement or a few that belong together, and the scope after it."""
        if depth <= 0:
            return self._simple(scope, depth)
        nested = [self._if, self._if, self._match, self._try, self._for, self._while, self._with, self._nested]
        if self.up_to(1):
            return self._simple(scope, depth)
        return self.pick(nested)(scope, depth)

    # -- simple statements ----------------------------------------------------

    def _simple(self, scope: Scope, depth: int) -> Step:
        options: list[Callable[[Scope, int], Step] | None] = [
            self._store if scope.tables else None,
            self._store if scope.tables else None,
            self._assign,
            self._leave,
            self._call,
            self._remove if scope.tables else None,
            self._aside if scope.receiver else None,
            self._check,
        ]
        return self.pick([option for option in options if option is not None])(scope, depth)

    def _store(self, scope: Scope, depth: int) -> Step:
        table, room = self.pick(scope.tables), self.pick(scope.rooms)
        value = self.status(scope, depth)
        owned = self._owned(scope, "statuses")
        text = self.do(
            lambda: f"{table}[{room}] = {value}",
            lambda: f"{table}.update({{{room}: {value}}})",
            lambda: f"{table}.__setitem__({room}, {value})",
            lambda: f"{table}.setdefault({room}, {value})",
            (lambda: f"{self.pick(owned)} = {table}[{room}] = {value}") if owned else None,
            (lambda: f"{table}[{room}], {self.pick(owned)} = {value}, {self.status(scope, depth)}") if owned else None,
            lambda: f"{table}[-1] = {value}",
        )
        return (text,), scope

    def _remove(self, scope: Scope, _: int) -> Step:
        table, room = self.pick(scope.tables), self.pick(scope.rooms)
        forms = (f"{table}.pop({room}, None)", f"del {table}[{room}]", f"{table}.pop({room})", f"{table}.clear()")
        return (self.pick(forms),), scope

    def _assign(self, scope: Scope, depth: int) -> Step:
        if self._owned(scope, "statuses") and self.up_to(1):
            return (f"{self.pick(self._owned(scope, 'statuses'))} = {self.status(scope, depth)}",), scope
        if self._owned(scope, "optionals") and self.up_to(1):
            return (f"{self.pick(self._owned(scope, 'optionals'))} = {self.optional(scope, depth)}",), scope
        return self.declare(scope, depth)

    def declare(self, scope: Scope, depth: int) -> Step:
        """Bind a new name."""
        return self.do(
            lambda: self._declare_status(scope, depth),
            lambda: self._declare_optional(scope, depth),
            (lambda: self._declare_table(scope)) if scope.tables else None,
            (lambda: self._declare_room(scope)) if scope.rooms else None,
            (lambda: self._declare_attribute(scope, depth)) if scope.receiver == "self" else None,
        )

    def _declare_status(self, scope: Scope, depth: int) -> Step:
        name = self.fresh("new")
        return (f"{name} = {self.status(scope, depth)}",), scope.own("statuses", name)

    def _declare_optional(self, scope: Scope, depth: int) -> Step:
        name = self.fresh("old")
        return (f"{name} = {self.optional(scope, depth)}",), scope.own("optionals", name)

    def _declare_table(self, scope: Scope) -> Step:
        name = self.fresh("table")
        return (f"{name} = {self.pick(scope.tables)}",), replace(scope, tables=(*scope.tables, name))

    def _declare_room(self, scope: Scope) -> Step:
        name = self.fresh("key")
        return (f"{name} = {self.pick(scope.rooms)}",), replace(scope, rooms=(*scope.rooms, name))

    def _declare_attribute(self, scope: Scope, depth: int) -> Step:
        return ("self.last = " + self.status(scope, depth),), replace(scope, statuses=(*scope.statuses, "self.last"))

    def _leave(self, scope: Scope, depth: int) -> Step:
        text = self.do(
            lambda: self.result(scope, depth),
            (lambda: self.pick(("break", "continue"))) if scope.loops else None,
            lambda: f"raise {self.pick(('ValueError', 'KeyError', 'Refused'))}({self.status(scope, depth)})",
        )
        return (text,), scope

    def result(self, scope: Scope, depth: int) -> str:
        """A return statement that fits the function."""
        match scope.result:
            case "status":
                return f"return {self.status(scope, depth)}"
            case "condition":
                return f"return {self.condition(scope, depth)}"
            case _:
                return "return"

    def _call(self, scope: Scope, depth: int) -> Step:
        receiver, room = scope.receiver, scope.rooms[0] if scope.rooms else None
        doers = [name for name, kind in scope.functions if kind == "doer"]
        known = [name for name in ("keep", "check") if name in scope.helpers and receiver and room]
        value = self.status(scope, depth)
        text = self.do(
            lambda: f"logger.debug('%s', {value})",
            (lambda: f"{receiver}.{self.pick(known)}({room}, {value})") if known else None,
            (lambda: f"{receiver}.{self.pick(known)}(status={value}, room={room})") if known else None,
            (lambda: f"force({receiver}, {room}, {value})") if "force" in scope.helpers and receiver and room else None,
            (lambda: f"{self.pick(doers)}({value})") if doers else None,
            (lambda: f"super().update({room}, {value})") if "super" in scope.helpers and receiver == "self" else None,
            (lambda: f"return super().update({room}, status={value})")
            if "super" in scope.helpers and receiver == "self" and scope.result == "nothing"
            else None,
        )
        return (text,), scope

    def _aside(self, scope: Scope, depth: int) -> Step:
        """Something that does not matter to the status."""
        receiver = scope.receiver
        room = scope.rooms[0] if scope.rooms else "0"
        text = self.do(
            lambda: f"{receiver}.infos[{room}] = {self.status(scope, depth)}",
            lambda: f"{receiver}.seen.add({room})",
            lambda: f"{receiver}.infos.pop({room}, None)",
            lambda: f"{receiver}.count += 1",
            lambda: f"{receiver}.changed = {self.condition(scope, depth)}",
            lambda: f"{receiver}.listener = None",
        )
        return (text,), scope

    def _check(self, scope: Scope, depth: int) -> Step:
        return (f"assert {self.condition(scope, depth)}",), scope

    # -- compound statements --------------------------------------------------

    def _if(self, scope: Scope, depth: int) -> Step:
        clauses = [(f"if {self.condition(scope, 2)}:", self.block(scope, depth - 1, 1))]
        if not self.up_to(2):
            clauses.append((f"elif {self.condition(scope, 2)}:", self.block(scope, depth - 1)))
        if self.up_to(1):
            clauses.append(("else:", self.block(scope, depth - 1)))
        return (Suite(tuple(clauses)),), scope

    def _with(self, scope: Scope, depth: int) -> Step:
        contexts = ["suppress(KeyError)", "suppress(KeyError, Refused)"]
        if scope.receiver is not None:
            contexts = [f"{scope.receiver}.lock", *contexts, f"{scope.receiver}.lock, suppress(ValueError)"]
        return (Suite(((f"with {self.pick(contexts)}:", self.block(scope, depth - 1, 1)),)),), scope

    def _try(self, scope: Scope, depth: int) -> Step:
        clauses = [("try:", self.block(scope, depth - 1, 1))]
        kinds = ("KeyError", "(KeyError, ValueError)", "LookupError", "Refused", "Exception", "TypeError as error")
        if final := not self.up_to(3):
            clauses.append(("finally:", self.block(replace(scope, loops=0), depth - 1)))
        if not final or self.up_to(1):
            handlers = [
                (f"except {self.pick(kinds)}:", self._handler(scope, depth - 1)) for _ in range(self.up_to(2, 1))
            ]
            if self.up_to(1):
                handlers.append(("else:", self.block(scope, depth - 1)))
            clauses[1:1] = handlers
        return (Suite(tuple(clauses)),), scope

    def _handler(self, scope: Scope, depth: int) -> Block:
        block = self.block(scope, depth)
        return block if leaves(block) or self.up_to(3) else (*block, "raise")

    def _for(self, scope: Scope, depth: int) -> Step:
        name = self.fresh("each")
        parts = " ".join(self.status(scope, 1) + "," for _ in range(self.up_to(3, 1)))
        iterables = [f"({parts})", f"({parts})", self.pick(self.words.collections), f"({self.members()})"]
        if self.words.enum.is_real:
            iterables.append(self.words.enum.name)
        inner = replace(scope.own("statuses", name), loops=scope.loops + 1)
        clauses = [(f"for {name} in {self.pick(iterables)}:", self.block(inner, depth - 1, 1))]
        if not self.up_to(2):
            clauses.append(("else:", self.block(scope, depth - 1)))
        return (Suite(tuple(clauses)),), scope

    def _while(self, scope: Scope, depth: int) -> Step:
        name = self.fresh("tries")
        limit = f"{name} < {self.up_to(3, 1)}"
        header = self.do(lambda: f"while {limit}:", lambda: f"while {limit} and {self.condition(scope, 1)}:")
        inner = replace(scope, loops=scope.loops + 1)
        clauses = [(header, (f"{name} += 1", *self.block(inner, depth - 1, 1)))]
        if not self.up_to(2):
            clauses.append(("else:", self.block(scope, depth - 1)))
        return (f"{name} = 0", Suite(tuple(clauses))), scope

    def _nested(self, scope: Scope, depth: int) -> Step:
        given = self.fresh("given")
        inner = replace(scope, owned=frozenset(), functions=(), loops=0).own("statuses", given)
        inner = replace(inner, helpers=inner.helpers - {"super"})
        kind = self.pick(("chooser", "doer"))
        name = self.fresh("choose" if kind == "chooser" else "apply")
        inner = replace(inner, result="status" if kind == "chooser" else "nothing")
        body = self.block(inner, depth - 1, 1)
        if kind == "chooser" and not leaves(body):
            body = (*body, self.result(inner, 1))
        outer = replace(scope, functions=(*scope.functions, (name, kind)))
        return (Suite(((f"def {name}({given}):", body),)),), outer

    # -- match ----------------------------------------------------------------

    def _match(self, scope: Scope, depth: int) -> Step:
        if self.up_to(1):
            header, width = f"match ({self.optional(scope, 1)}, {self.status(scope, 1)}):", 2
        else:
            header, width = f"match {self.optional(scope, 1)}:", 1
        cases: list[tuple[str, Block]] = []
        for _ in range(self.up_to(3, 1)):
            pattern, names, irrefutable = self._pattern(width)
            inner = scope
            for name in names:
                inner = inner.own("optionals", name)
            guard = f" if {self.condition(inner, 1)}" if not self.up_to(3) or irrefutable else ""
            cases.append((f"case {pattern}{guard}:", self.block(inner, depth - 1)))
        if self.up_to(1):
            cases.append(("case _:", self.block(scope, depth - 1)))
        return (Suite(((header, (Suite(tuple(cases)),)),)),), scope

    def _pattern(self, width: int) -> tuple[str, list[str], bool]:
        """A pattern, the names it binds, and whether it always matches."""
        if width == 1:
            return self._single()
        if not self.up_to(4):
            return "_", [], True
        (first, names, _), (second, others, _) = self._single(), self._single()
        return f"({first}, {second})", [*names, *others], False

    def _single(self) -> tuple[str, list[str], bool]:
        name = self.fresh("found")
        alternatives = " | ".join(self.member() for _ in range(self.up_to(3, 1)))
        return self.do(
            lambda: (alternatives, [], False),
            lambda: ("None", [], False),
            lambda: ("_", [], True),
            lambda: (name, [name], True),
            lambda: (f"({alternatives}) as {name}", [name], False),
            lambda: (f"None | {alternatives}", [], False),
        )
