"""One parsed module and what its names are bound to; it knows nothing of other modules."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from kvlint.diagnostics import Location, Span
from kvlint.source.prefilter import is_candidate
from kvlint.source.text import SourceText, parse


@dataclass(frozen=True, slots=True)
class ImportedName:
    """``from module import name`` (``name`` None: ``import module``), ``level`` dots in front."""

    module: str
    name: str | None
    level: int


#: Methods by which a list, set or dict changes.
MUTATORS = frozenset(
    {"append", "appendleft", "add", "extend", "insert", "update", "remove", "discard", "clear", "pop", "popleft"}
    | {"setdefault", "popitem", "sort", "reverse", "difference_update", "intersection_update", "__setitem__"}
    | {"symmetric_difference_update", "__delitem__", "rotate", "move_to_end"}
)
_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
# Fields whose nodes only say what kind of node they belong to.
_MARKS = frozenset({"ctx", "op", "ops"})
Function = ast.FunctionDef | ast.AsyncFunctionDef
Binding = ast.ClassDef | Function | ast.expr | ImportedName


@dataclass(eq=False, repr=False)
class Module:
    """A module's tree and its bindings by name.

    ``names`` holds what the module body binds, also below ``if`` (TYPE_CHECKING
    included) and ``try``; ``local_imports`` what function bodies import.
    """

    path: str
    source: SourceText
    tree: ast.Module
    names: dict[str, Binding]
    star_imports: tuple[ImportedName, ...]
    _lines: list[str] | None = None

    def __repr__(self) -> str:
        return f"<module {self.path}>"

    @cached_property
    def unsettled(self) -> frozenset[str]:
        """Names that code of the module binds more than once, or whose list, set or dict it changes."""
        return _unsettled(self.nodes)

    @cached_property
    def _order(self) -> _Order:
        return _in_order(self.tree)

    @property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the module, in source order."""
        return self._order.nodes

    @cached_property
    def _places_of_kinds(self) -> dict[type[ast.AST], list[int]]:
        found: dict[type[ast.AST], list[int]] = {}
        for index, node in enumerate(self.nodes):
            found.setdefault(type(node), []).append(index)
        return found

    @cached_property
    def local_imports(self) -> dict[str, ImportedName]:
        """What function bodies import, by name."""
        found: dict[str, ImportedName] = {}
        for node in statements_in(self.tree.body):
            if isinstance(node, ast.Import | ast.ImportFrom):
                for name, imported in _imported(node):
                    found.setdefault(name, imported)
        return found

    @cached_property
    def is_candidate(self) -> bool:
        """Whether the text speaks of a status protocol at all."""
        return is_candidate(self.source.data)

    def nodes_of(self, node: ast.AST, *kinds: type[ast.AST]) -> Sequence[ast.AST]:
        """Every node, or every one of some kinds, below (and with) a function, class or lambda, in source order."""
        start, end = self._order.extents[node]
        if not kinds:
            return self.nodes[start:end]
        found: list[int] = []
        for kind in kinds:
            indexes = self._places_of_kinds.get(kind, [])
            found.extend(indexes[bisect_left(indexes, start) : bisect_left(indexes, end)])
        return [self.nodes[index] for index in (found if len(kinds) == 1 else sorted(found))]

    def nodes_of_kind(self, *kinds: type[ast.AST]) -> list[ast.AST]:
        """Every node of some kinds in the module, in source order."""
        indexes = sorted(index for kind in kinds for index in self._places_of_kinds.get(kind, ()))
        return [self.nodes[index] for index in indexes]

    def body_of(self, function: Function) -> tuple[ast.AST, ...]:
        """Every node of a function's body in source order, what nested functions and classes hold left out."""
        return tuple(self._order.bodies[function])

    def location(self, node: ast.AST) -> Location:
        """Where ``node`` stands, with columns in characters."""
        line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
        end_line, end_column = node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
        span = Span(line, self._characters(line, column) + 1, end_line, self._characters(end_line, end_column) + 1)
        return Location(self.path, span)

    def _characters(self, line: int, byte_column: int) -> int:
        if self._lines is None:
            self._lines = self.source.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        return byte_column if text.isascii() else len(text.encode()[:byte_column].decode(errors="ignore"))


def statements_in(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Every statement of a block, those of nested blocks, functions and classes included, in source order.

    It looks at no expression, which costs a tenth of what ``Module.nodes`` does.
    """
    pending = list(body)[::-1]
    while pending:
        statement = pending.pop()
        yield statement
        inner: list[ast.stmt] = []
        for name in ("body", "orelse"):
            inner.extend(getattr(statement, name, ()))
            if name == "body":
                for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
                    inner.extend(part.body)
        inner.extend(getattr(statement, "finalbody", ()))
        pending.extend(inner[::-1])


def parse_module(source: SourceText) -> Module:
    """Parse ``source`` and index its bindings.

    Raises UnreadableSource where the text is not Python.
    """
    tree = parse(source)
    names: dict[str, Binding] = {}
    stars: list[ImportedName] = []
    for node in _binding_statements(tree.body):
        _bind(node, names, stars)
    return Module(source.path, source, tree, names, tuple(stars))


def _unsettled(nodes: tuple[ast.AST, ...]) -> frozenset[str]:
    bound: Counter[str] = Counter()
    changed: set[str] = set()
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                bound[name] += 1
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
                changed.add(name)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if method in MUTATORS:
                changed.add(name)
            case _:
                pass
    return frozenset(changed | {name for name, count in bound.items() if count > 1})


@dataclass(frozen=True, slots=True, eq=False)
class _Order:
    """All nodes of a module in source order, operators and contexts left out.

    ``extents`` says for each definition where its nodes begin and end in that
    order, ``bodies`` which nodes belong to each function's own body.
    """

    nodes: tuple[ast.AST, ...]
    extents: dict[ast.AST, tuple[int, int]]
    bodies: dict[ast.AST, list[ast.AST]]


@cache
def _child_fields(kind: type[ast.AST]) -> tuple[str, ...]:
    """The fields of a kind of node that may hold nodes worth a visit, last one first."""
    return tuple(name for name in reversed(kind._fields) if name not in _MARKS)


def _in_order(tree: ast.Module) -> _Order:
    """Walk a module once: every question about the nodes of a function is a slice of what is found.

    With ``ast.iter_child_nodes`` it would take four times as long.
    """
    nodes: list[ast.AST] = []
    extents: dict[ast.AST, tuple[int, int]] = {}
    bodies: dict[ast.AST, list[ast.AST]] = {}
    opened: list[tuple[ast.AST, int]] = []
    body: list[ast.AST] = []
    # Besides nodes: None where the definition opened last ends, and a list where nodes start to belong to that body.
    pending: list[ast.AST | list[ast.AST] | None] = [tree]
    while pending:
        node = pending.pop()
        if node is None:
            definition, start = opened.pop()
            extents[definition] = (start, len(nodes))
        elif isinstance(node, list):
            body = node
        elif isinstance(node, _DEFINITIONS):
            opened.append((node, len(nodes)))
            nodes.append(node)
            body.append(node)
            own = bodies[node] = body if isinstance(node, ast.Lambda) else []
            pending += [None, body, *_parts_of_definition(node, own)]
        else:
            nodes.append(node)
            body.append(node)
            for name in _child_fields(node.__class__):  # type: ignore[arg-type]
                value = getattr(node, name, None)
                if value.__class__ is list:
                    pending += [child for child in reversed(value) if isinstance(child, ast.AST)]
                elif isinstance(value, ast.AST):
                    pending.append(value)
    return _Order(tuple(nodes), extents, bodies)


def _parts_of_definition(node: ast.AST, own: list[ast.AST]) -> Iterator[ast.AST | list[ast.AST]]:
    """The children of a definition, last one first, those of its body between a switch to ``own`` and one away."""
    for name in _child_fields(node.__class__):  # type: ignore[arg-type]
        value = getattr(node, name, None)
        parts = value if isinstance(value, list) else [value]
        away: list[ast.AST] = own if isinstance(node, ast.Lambda) else []
        yield away
        yield from (child for child in reversed(parts) if isinstance(child, ast.AST))
        yield own if name == "body" else away


def children(node: ast.AST) -> Iterator[ast.AST]:
    """The child nodes, last one first, operators and contexts left out."""
    for name in _child_fields(node.__class__):  # type: ignore[arg-type]
        value = getattr(node, name, None)
        if isinstance(value, list):
            yield from (child for child in reversed(value) if isinstance(child, ast.AST))
        elif isinstance(value, ast.AST):
            yield value


def _binding_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.If):
            yield from _binding_statements(node.body)
            yield from _binding_statements(node.orelse)
        elif isinstance(node, ast.Try):
            for block in (node.body, *(handler.body for handler in node.handlers), node.orelse, node.finalbody):
                yield from _binding_statements(block)
        elif isinstance(node, ast.With):
            yield from _binding_statements(node.body)
        else:
            yield node


def _bind(node: ast.stmt, names: dict[str, Binding], stars: list[ImportedName]) -> None:
    match node:
        case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            names[node.name] = node
        case ast.Import() | ast.ImportFrom():
            for name, imported in _imported(node):
                if name == "*":
                    stars.append(imported)
                else:
                    # An import under `except ImportError` does not displace the first one.
                    names.setdefault(name, imported)
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            names[name] = value
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            names[name] = value
        case _:
            pass


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, ImportedName]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.asname:
                yield alias.asname, ImportedName(alias.name, None, 0)
            else:
                root = alias.name.partition(".")[0]
                yield root, ImportedName(root, None, 0)
    else:
        for alias in node.names:
            yield alias.asname or alias.name, ImportedName(node.module or "", alias.name, node.level)
