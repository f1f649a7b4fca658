"""Random code of status writers: expressions are text, statements a small tree that renders to lines.

All of it runs: names are bound before they are read, loops end, locks are
re-entrant.  It may raise, and often does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Choose(Protocol):
    """One of some options: ``random.Random.choice``, or hypothesis."""

    def __call__(self, options: Sequence[T], /) -> T: ...


@dataclass(frozen=True, slots=True)
class Suite:
    """The clauses of one compound statement, each a header and its block."""

    clauses: tuple[tuple[str, Block], ...]


Statement = str | Suite
Block = tuple[Statement, ...]


def rendered(block: Block, depth: int) -> Iterator[str]:
    """The lines of ``block`` at an indentation of ``depth`` steps."""
    for statement in block or ("pass",):
        if isinstance(statement, str):
            yield "    " * depth + statement
            continue
        for header, inner in statement.clauses:
            yield "    " * depth + header
            yield from rendered(inner, depth + 1)


@dataclass(frozen=True, slots=True)
class Enumeration:
    """A generated status enum; ``kind`` is the way it is written."""

    name: str
    kind: str
    members: tuple[str, ...]
    source: str

    @property
    def is_ordered(self) -> bool:
        """Whether members compare with ``<``."""
        return self.kind != "Enum"

    @property
    def is_real(self) -> bool:
        """Whether it is an Enum rather than a class of constants."""
        return self.kind not in {"class of int", "class of str"}


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What all functions of a program share.

    ``collections`` and ``maps`` are module constants, ``flags`` tests of state
    that has nothing to do with the room's status, ``opaque`` whether code may
    appear that no analysis can follow.
    """

    enum: Enumeration
    collections: tuple[str, ...]
    maps: tuple[str, ...]
    flags: tuple[str, ...] = ()
    opaque: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
    """What a piece of code can use.

    ``statuses`` are names of members, ``optionals`` of members or None, ``owned``
    those of both that may be assigned; ``rooms`` and ``tables`` are names of the
    room and of the status table, ``helpers`` what may be called, ``functions``
    nested functions by kind, ``loops`` how many loops surround the code and
    ``result`` what it returns.
    """

    statuses: tuple[str, ...]
    optionals: tuple[str, ...] = ()
    owned: frozenset[str] = frozenset()
    rooms: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    receiver: str | None = None
    helpers: frozenset[str] = frozenset()
    functions: tuple[tuple[str, str], ...] = ()
    loops: int = 0
    result: str = "nothing"

    def own(self, kind: str, name: str) -> Scope:
        """This scope with a new variable."""
        changed: dict[str, Any] = {kind: (*getattr(self, kind), name)}
        return replace(self, owned=self.owned | {name}, **changed)


@dataclass(eq=False)
class Writing:
    """Draws the code of one function."""

    choose: Choose
    words: Vocabulary
    names: int = field(default=0)

    # -- choices --------------------------------------------------------------

    def pick(self, options: Sequence[T]) -> T:
        """One of ``options``, the first when shrinking."""
        return self.choose(options) if len(options) > 1 else options[0]

    def do(self, *options: Callable[[], T] | None) -> T:
        """The result of one of ``options`` (None: not available here)."""
        return self.pick([option for option in options if option is not None])()

    def up_to(self, most: int, least: int = 0) -> int:
        """A small number."""
        return self.choose(range(least, most + 1))

    def fresh(self, stem: str) -> str:
        """A name that nothing else in the function has."""
        self.names += 1
        return f"{stem}{self.names}"

    # -- members --------------------------------------------------------------

    def member(self) -> str:
        """A member of the enum."""
        return f"{self.words.enum.name}.{self.pick(self.words.enum.members)}"

    def members(self, least: int = 1) -> str:
        """Members, as they stand in a tuple with a comma after each."""
        return " ".join(self.member() + "," for _ in range(self.up_to(3, least)))

    def collection(self) -> str:
        """A constant collection of members."""
        return self.do(
            lambda: f"({self.members()})",
            lambda: self.pick(self.words.collections),
            lambda: f"{{{self.members()}}}",
            lambda: f"frozenset(({self.members(0)}))" if self.up_to(3) else "frozenset()",
            lambda: f"[{self.members()}]",
        )

    def display(self, values: Callable[[], str]) -> str:
        """A dict display from members."""
        return "{" + " ".join(f"{self.member()}: {values()}," for _ in range(self.up_to(3, 1))) + "}"

    def mapping(self) -> str:
        """A dict from members to collections of members."""
        return self.do(lambda: self.pick(self.words.maps), lambda: self.display(self.collection))

    # -- expressions ----------------------------------------------------------

    def status(self, scope: Scope, depth: int) -> str:
        """An expression for a member."""
        if depth <= 0 or not self.up_to(2):
            return self.do((lambda: self.pick(scope.statuses)) if scope.statuses else None, self.member)
        return self.do(
            lambda: self._choice(scope, depth - 1),
            (lambda: self._read(scope, depth - 1)) if scope.tables else None,
            (lambda: self._extreme(scope, depth - 1)) if self.words.enum.is_ordered else None,
            lambda: self._computed(scope, depth - 1),
            (lambda: self._walrus(scope, depth - 1, "statuses")) if self._owned(scope, "statuses") else None,
            lambda: self._helped(scope, depth - 1),
        )

    def _choice(self, scope: Scope, depth: int) -> str:
        return self.do(
            lambda: f"({self.status(scope, depth)} if {self.condition(scope, depth)} else {self.status(scope, depth)})",
            lambda: f"({self.optional(scope, depth)} or {self.status(scope, depth)})",
            lambda: f"({self.status(scope, depth)} and {self.status(scope, depth)})",
        )

    def _read(self, scope: Scope, depth: int) -> str:
        table, room = self.pick(scope.tables), self.pick(scope.rooms)
        return self.do(
            lambda: f"{table}.get({room}, {self.status(scope, depth)})",
            lambda: f"{table}[{room}]",
            lambda: f"{table}.setdefault({room}, {self.status(scope, depth)})",
            lambda: f"{table}.pop({room}, {self.status(scope, depth)})",
            lambda: f"{table}.pop({room})",
        )

    def _extreme(self, scope: Scope, depth: int) -> str:
        name = self.pick(("max", "min"))
        parts = f"{self.status(scope, depth)}, {self.status(scope, depth)}"
        return self.do(
            lambda: f"{name}({parts})",
            lambda: f"{name}({parts}, {self.member()})",
            lambda: f"{name}(({parts}))",
            lambda: f"{name}({self.collection()})",
        )

    def _computed(self, scope: Scope, depth: int) -> str:
        first = self.status(scope, depth)
        real = self.words.enum.is_real
        return self.do(
            lambda: f"({first}, {self.status(scope, depth)})[{self.up_to(1)}]",
            lambda: f"{self.display(self.member)}.get({first}, {self.status(scope, depth)})",
            lambda: f"{self.display(self.member)}[{first}]",
            (lambda: f"{self.words.enum.name}({first}.value)") if real else None,
            lambda: self._called_lambda(scope, first, depth),
        )

    def _called_lambda(self, scope: Scope, argument: str, depth: int) -> str:
        name = self.fresh("given")
        inner = replace(scope, owned=frozenset(), statuses=(*scope.statuses, name))
        return f"(lambda {name}: {self.status(inner, depth)})({argument})"

    def _owned(self, scope: Scope, kind: str) -> list[str]:
        return [name for name in getattr(scope, kind) if name in scope.owned]

    def _walrus(self, scope: Scope, depth: int, kind: str) -> str:
        name = self.pick(self._owned(scope, kind))
        value = self.status(scope, depth) if kind == "statuses" else self.optional(scope, depth)
        return f"({name} := {value})"

    def _helped(self, scope: Scope, depth: int) -> str:
        first, second = self.optional(scope, depth), self.status(scope, depth)
        choosers = [name for name, kind in scope.functions if kind == "chooser"]
        methods = [f"{scope.receiver}.merged", f"{scope.receiver}.weaker"] if scope.receiver else []
        known = [name for name in (*methods, "stronger") if name.rpartition(".")[2] in scope.helpers]
        return self.do(
            lambda: second,
            (lambda: f"{self.pick(known)}({first}, {second})") if known else None,
            (lambda: f"{self.pick(known)}(stored={first}, status={second})") if known else None,
            (lambda: f"{self.pick(choosers)}({second})") if choosers else None,
        )

    def optional(self, scope: Scope, depth: int) -> str:
        """An expression for a member or None."""
        if depth <= 0 or not self.up_to(2):
            return self.pick((*scope.optionals, *scope.statuses, self.member(), "None"))
        return self.do(
            lambda: self.status(scope, depth),
            (lambda: f"{self.pick(scope.tables)}.get({self.pick(scope.rooms)})") if scope.tables else None,
            (lambda: f"{self.pick(scope.tables)}.pop({self.pick(scope.rooms)}, None)") if scope.tables else None,
            lambda: f"{self.display(self.member)}.get({self.optional(scope, depth - 1)})",
            lambda: f"(None if {self.condition(scope, depth - 1)} else {self.optional(scope, depth - 1)})",
            (lambda: self._walrus(scope, depth - 1, "optionals")) if self._owned(scope, "optionals") else None,
        )

    def condition(self, scope: Scope, depth: int) -> str:
        """A boolean expression."""
        if depth <= 0 or not self.up_to(2):
            return self._test(scope, depth)
        return self.do(
            lambda: f"not {self.condition(scope, depth - 1)}",
            lambda: f"({self._joined(scope, depth, ' and ')})",
            lambda: f"({self._joined(scope, depth, ' or ')})",
            lambda: f"({self._chained(scope, depth - 1)})",
            lambda: f"bool({self.condition(scope, depth - 1)})",
            lambda: self._asked(scope, depth - 1),
            (lambda: self.pick(self.words.flags)) if self._has_flags(scope) else None,
        )

    def _has_flags(self, scope: Scope) -> bool:
        return scope.receiver == "self" and any(bool(scope.rooms) or "room" not in flag for flag in self.words.flags)

    def _joined(self, scope: Scope, depth: int, word: str) -> str:
        return word.join(self.condition(scope, depth - 1) for _ in range(self.up_to(3, 2)))

    def _test(self, scope: Scope, depth: int) -> str:
        first = self.optional(scope, depth - 1)
        return self.do(
            lambda: f"({first} {self.pick(('in', 'not in'))} {self.collection()})",
            (lambda: f"({self.pick(scope.rooms)} {self.pick(('in', 'not in'))} {self.pick(scope.tables)})")
            if scope.tables
            else None,
            lambda: f"({first} {self.pick(('is', 'is not'))} None)",
            lambda: f"({first} {self.pick(('==', '!=', 'is', 'is not'))} {self.optional(scope, depth - 1)})",
            (lambda: f"({self.status(scope, depth - 1)} {self.pick(('<', '<=', '>', '>='))} {self.member()})")
            if self.words.enum.is_ordered or not self.up_to(3)
            else None,
            lambda: f"({self.status(scope, depth - 1)} in {self.mapping()}.get({first}, ()))",
        )

    def _chained(self, scope: Scope, depth: int) -> str:
        parts = [self.optional(scope, depth) for _ in range(self.up_to(3, 2))]
        spellings = ["==", "!=", "is"] + ["<", "<="] * self.words.enum.is_ordered
        text = parts[0] + "".join(f" {self.pick(spellings)} {part}" for part in parts[1:])
        return self.do(lambda: text, lambda: f"{text} in {self.collection()}")

    def _asked(self, scope: Scope, depth: int) -> str:
        first = self.optional(scope, depth)
        on_object = scope.receiver is not None and "is_final" in scope.helpers
        with_room = scope.receiver is not None and "has_ended" in scope.helpers and scope.rooms
        return self.do(
            lambda: f"({first} is None)",
            (lambda: f"{scope.receiver}.is_final({first})") if on_object else None,
            (lambda: f"{scope.receiver}.has_ended({scope.rooms[0]})") if with_room else None,
            (lambda: f"final({first})") if "final" in scope.helpers else None,
            (lambda: f"({self.status(scope, depth)}.name == {self.pick(self.words.enum.members)!r})")
            if self.words.enum.is_real
            else None,
            lambda: f"({self.status(scope, depth)} in {self.mapping()}[{first}])",
        )
