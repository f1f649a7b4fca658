"""The small intermediate representation that all analyses run on: about thirty node kinds instead of Python's ninety.

Structured (no control-flow graph): statements nest as the source does.  Every
node keeps the syntax node it came from in ``at``, for positions only.  Nodes
compare by identity.
"""

from __future__ import annotations

import ast

from msgspec import Struct

from kvlint.semantics.constants import Constant


class Literal(Struct, frozen=True, eq=False):
    """A constant."""

    value: Constant
    at: ast.AST


class Name(Struct, frozen=True, eq=False):
    """A variable read."""

    id: str
    at: ast.AST


class Attribute(Struct, frozen=True, eq=False):
    """``owner.name``."""

    owner: Expression
    name: str
    at: ast.AST


class Subscript(Struct, frozen=True, eq=False):
    """``owner[key]``."""

    owner: Expression
    key: Expression
    at: ast.AST


class Call(Struct, frozen=True, eq=False):
    """``callee(*arguments, **keywords)``; ``spread`` where ``*x`` or ``**x`` is among the arguments."""

    callee: Expression
    arguments: tuple[Expression, ...]
    keywords: tuple[tuple[str, Expression], ...]
    spread: bool
    at: ast.AST


class Compare(Struct, frozen=True, eq=False):
    """``first op second op third …`` with Python's operator spellings (``not in``, ``is``)."""

    first: Expression
    rest: tuple[tuple[str, Expression], ...]
    at: ast.AST


class Logical(Struct, frozen=True, eq=False):
    """``and`` (``stops_on`` False) or ``or`` (``stops_on`` True)."""

    stops_on: bool
    operands: tuple[Expression, ...]
    at: ast.AST


class Not(Struct, frozen=True, eq=False):
    """``not operand``."""

    operand: Expression
    at: ast.AST


class Arithmetic(Struct, frozen=True, eq=False):
    """A binary operator, by its ast class name (``Add``, ``BitOr``)."""

    operator: str
    left: Expression
    right: Expression
    at: ast.AST


class Conditional(Struct, frozen=True, eq=False):
    """``then if test else other``."""

    test: Expression
    then: Expression
    other: Expression
    at: ast.AST


class Bind(Struct, frozen=True, eq=False):
    """``(name := value)``."""

    name: str
    value: Expression
    at: ast.AST


class Collection(Struct, frozen=True, eq=False):
    """A tuple, list or set display (``kind`` names which)."""

    kind: str
    items: tuple[Expression, ...]
    at: ast.AST


class Mapping(Struct, frozen=True, eq=False):
    """A dict display without ``**``."""

    items: tuple[tuple[Expression, Expression], ...]
    at: ast.AST


class Repeated(Struct, frozen=True, eq=False):
    """A comprehension: ``parts`` run any number of times, the result is unknown; ``names`` are its own variables."""

    parts: tuple[Expression, ...]
    names: frozenset[str]
    at: ast.AST


class Opaque(Struct, frozen=True, eq=False):
    """Any other expression: ``parts`` are evaluated in order, the result is unknown."""

    parts: tuple[Expression, ...]
    at: ast.AST


class Closure(Struct, frozen=True, eq=False):
    """A nested function or lambda; its body runs only when called."""

    function: Function
    at: ast.AST


Expression = (
    Literal
    | Name
    | Attribute
    | Subscript
    | Call
    | Compare
    | Logical
    | Not
    | Arithmetic
    | Conditional
    | Bind
    | Collection
    | Mapping
    | Repeated
    | Opaque
    | Closure
)


class Assign(Struct, frozen=True, eq=False):
    """``targets[0] = targets[1] = … = value``."""

    targets: tuple[Expression, ...]
    value: Expression
    at: ast.AST


class Update(Struct, frozen=True, eq=False):
    """``target op= value``."""

    target: Expression
    operator: str
    value: Expression
    at: ast.AST


class Evaluate(Struct, frozen=True, eq=False):
    """An expression statement."""

    value: Expression
    at: ast.AST


class If(Struct, frozen=True, eq=False):
    """``if test: then else: other``."""

    test: Expression
    then: Block
    other: Block
    at: ast.AST


class While(Struct, frozen=True, eq=False):
    """``while test: body else: other``."""

    test: Expression
    body: Block
    other: Block
    at: ast.AST


class For(Struct, frozen=True, eq=False):
    """``for target in iterable: body else: other``, asynchronous or not."""

    target: Expression
    iterable: Expression
    body: Block
    other: Block
    at: ast.AST


class Handler(Struct, frozen=True, eq=False):
    """``except types as name: body``; ``types`` are dotted names, empty for a bare ``except``."""

    types: tuple[str, ...]
    name: str | None
    body: Block
    at: ast.AST


class Try(Struct, frozen=True, eq=False):
    """``try: body except …: … else: other finally: final``."""

    body: Block
    handlers: tuple[Handler, ...]
    other: Block
    final: Block
    at: ast.AST


class With(Struct, frozen=True, eq=False):
    """``with context as target, …: body``."""

    items: tuple[tuple[Expression, Expression | None], ...]
    body: Block
    at: ast.AST


class Return(Struct, frozen=True, eq=False):
    """``return value``."""

    value: Expression | None
    at: ast.AST


class Raise(Struct, frozen=True, eq=False):
    """``raise value`` (None: a re-raise)."""

    value: Expression | None
    at: ast.AST


class Break(Struct, frozen=True, eq=False):
    """``break``."""

    at: ast.AST


class Continue(Struct, frozen=True, eq=False):
    """``continue``."""

    at: ast.AST


class Delete(Struct, frozen=True, eq=False):
    """``del target, …``."""

    targets: tuple[Expression, ...]
    at: ast.AST


class Assert(Struct, frozen=True, eq=False):
    """``assert test``."""

    test: Expression
    at: ast.AST


class Pattern(Struct, frozen=True, eq=False):
    """A match pattern.

    ``kind`` is ``value`` (equal to ``value``), ``is`` (the singleton ``value``),
    ``any``, ``either`` (one of ``parts``), ``sequence`` (``parts`` in order) or
    ``other`` (anything else; may or may not match).  ``name`` is bound to the
    subject; ``bound`` are further names a match binds.
    """

    kind: str
    value: Expression | None = None
    parts: tuple[Pattern, ...] = ()
    name: str | None = None
    bound: frozenset[str] = frozenset()


class Case(Struct, frozen=True, eq=False):
    """``case pattern if guard: body``."""

    pattern: Pattern
    guard: Expression | None
    body: Block
    at: ast.AST


class Match(Struct, frozen=True, eq=False):
    """``match subject: case …``."""

    subject: Expression
    cases: tuple[Case, ...]
    at: ast.AST


class Define(Struct, frozen=True, eq=False):
    """A nested ``def``."""

    function: Function
    at: ast.AST


class Forget(Struct, frozen=True, eq=False):
    """A statement that binds ``names`` to something unknown (an import, a nested class)."""

    names: frozenset[str]
    at: ast.AST


Simple = Assign | Update | Evaluate | Return | Raise | Break | Continue | Delete | Assert | Define | Forget
Statement = Simple | If | While | For | Try | With | Match
Block = tuple[Statement, ...]


class Function(Struct, frozen=True, eq=False):
    """A function's parameters (receiver included) and body.

    The first ``positional`` of the parameters take arguments by position, the
    first ``nameless`` by nothing else.  ``defaults`` maps a parameter to its default; ``shared`` are names declared
    ``global`` or ``nonlocal``; ``rest`` and ``options`` name its ``*args`` and ``**kwargs``.
    """

    name: str
    parameters: tuple[str, ...]
    positional: int
    nameless: int
    defaults: tuple[tuple[str, Expression], ...]
    rest: str | None
    options: str | None
    body: Block
    is_generator: bool
    shared: frozenset[str]
    at: ast.AST
