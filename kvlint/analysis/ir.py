"""The small intermediate representation that all analyses run on: about thirty node kinds instead of Python's ninety.

Structured (no control-flow graph): statements nest as the source does.  Every
node keeps the syntax node it came from in ``at``, for positions only.  Nodes
compare by identity.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from kvlint.semantics.constants import Constant


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A constant."""

    value: Constant
    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class Name:
    """A variable read."""

    id: str
    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class Attribute:
    """``owner.name``."""

    owner: Expression
    name: str
    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class Subscript:
    """``owner[key]``."""

    owner: Expression
    key: Expression
    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """``callee(*arguments, **keywords)``; ``spread`` where ``*x`` or ``**x`` is among the arguments."""

    callee: Expression
    arguments: tuple[Expression, ...]
    keywords: tuple[tuple[str, Expression], ...]
    spread: bool
    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class Compare:
    """``first op second op third …`` with Python's operator spellings (``not in``, ``is``)."""

    first: Expression
    rest: tuple[tuple[str, Expression], ...]
    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class Logical:
    """``and`` (``stops_on`` False) or ``or`` (``stops_on`` True)."""

    stops_on: bool
    operands: tuple[Expression, ...]
    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class Not:
    """``not operand``."""

    operand: Expression
    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class Arithmetic:
    """A binary operator, by its ast class name (``Add``, ``BitOr``)."""

    operator: str
    left: Expression
    right: Expression
    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class Conditional:
    """``then if test else other``."""

    test: Expression
    then: Expression
    other: Expression
    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class Bind:
    """``(name := value)``."""

    name: str
    value: Expression
    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class Collection:
    """A tuple, list or set display (``kind`` names which)."""

    kind: str
    items: tuple[Expression, ...]
    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class Mapping:
    """A dict display without ``**``."""

    items: tuple[tuple[Expression, Expression], ...]
    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class Repeated:
    """A comprehension: ``parts`` run any number of times, the result is unknown; ``names`` are its own variables."""

    parts: tuple[Expression, ...]
    names: frozenset[str]
    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class Opaque:
    """Any other expression: ``parts`` are evaluated in order, the result is unknown."""

    parts: tuple[Expression, ...]
    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
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


@dataclass(frozen=True, slots=True, eq=False)
class Assign:
    """``targets[0] = targets[1] = … = value``."""

    targets: tuple[Expression, ...]
    value: Expression
    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class Update:
    """``target op= value``."""

    target: Expression
    operator: str
    value: Expression
    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class Evaluate:
    """An expression statement."""

    value: Expression
    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class If:
    """``if test: then else: other``."""

    test: Expression
    then: Block
    other: Block
    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class While:
    """``while test: body else: other``."""

    test: Expression
    body: Block
    other: Block
    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class For:
    """``for target in iterable: body else: other``, asynchronous or not."""

    target: Expression
    iterable: Expression
    body: Block
    other: Block
    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class Handler:
    """``except types as name: body``; ``types`` are dotted names, empty for a bare ``except``."""

    types: tuple[str, ...]
    name: str | None
    body: Block
    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class Try:
    """``try: body except …: … else: other finally: final``."""

    body: Block
    handlers: tuple[Handler, ...]
    other: Block
    final: Block
    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class With:
    """``with context as target, …: body``."""

    items: tuple[tuple[Expression, Expression | None], ...]
    body: Block
    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class Return:
    """``return value``."""

    value: Expression | None
    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class Raise:
    """``raise value`` (None: a re-raise)."""

    value: Expression | None
    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class Break:
    """``break``."""

    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class Continue:
    """``continue``."""

    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class Delete:
    """``del target, …``."""

    targets: tuple[Expression, ...]
    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class Assert:
    """``assert test``."""

    test: Expression
    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
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


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """``case pattern if guard: body``."""

    pattern: Pattern
    guard: Expression | None
    body: Block
    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """``match subject: case …``."""

    subject: Expression
    cases: tuple[Case, ...]
    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class Define:
    """A nested ``def``."""

    function: Function
    at: ast.AST


@dataclass(frozen=True, slots=True, eq=False)
class Forget:
    """A statement that binds ``names`` to something unknown (an import, a nested class)."""

    names: frozenset[str]
    at: ast.AST


Simple = Assign | Update | Evaluate | Return | Raise | Break | Continue | Delete | Assert | Define | Forget
Statement = Simple | If | While | For | Try | With | Match
Block = tuple[Statement, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Function:
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
