"""One parsed module and what its names are bound to; it knows nothing of other modules."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property

from msgspec import Struct

from kvlint.diagnostics import Location, Span
from kvlint.source.prefilter import is_candidate
from kvlint.source.text import SourceText, parse


class ImportedName(Struct, frozen=True):
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
_DEFINITIONS = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda})
_COMPOUND = frozenset(
    {ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match}
    | {ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef}
)
# Constants are looked at from the nodes that hold them.
_VISITED = frozenset(
    kind
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST) and not issubclass(kind, ast.Constant)
)
# Fields whose nodes only say what kind of node they belong to, and those that hold no node.
_NOT_VISITED = frozenset(
    {"ctx", "op", "ops", "id", "attr", "arg", "level", "module", "asname", "rest", "kind", "conversion", "simple"}
    | {"is_async", "type_comment", "type_ignores"}
)
Function = ast.FunctionDef | ast.AsyncFunctionDef
Binding = ast.ClassDef | Function | ast.expr | ImportedName


class Module:
    """A module's tree and its bindings by name.

    ``names`` holds what the module body binds, also below ``if`` (TYPE_CHECKING
    included) and ``try``.
    """

    def __init__(
        self, path: str, source: SourceText, names: Mapping[str, Binding], star_imports: tuple[ImportedName, ...]
    ) -> None:
        self.path = path
        self.source = source
        self.names = names
        self.star_imports = star_imports

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return parse(self.source)

    def top_level(self, node: ast.AST) -> ast.stmt | None:  # noqa: ARG002 - a hook
        """The top-level definition that ``node`` can be looked up in by itself, None for the whole module."""
        return None

    def __repr__(self) -> str:
        return f"<module {self.path}>"

    @cached_property
    def unsettled(self) -> frozenset[str]:
        """Names that code of the module binds more than once, or whose list, set or dict it changes."""
        return _unsettled(self.nodes_of_kind(ast.Name, ast.Subscript, ast.Call))

    @cached_property
    def _order(self) -> Order:
        return order_of(self.tree)

    def _order_around(self, node: ast.AST) -> Order:  # noqa: ARG002 - a hook
        """An order in which ``node`` has its place."""
        return self._order

    @property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the module, in source order."""
        return self._order.nodes

    def local_import(self, name: str) -> ImportedName | None:
        """What a function body imports as ``name``."""
        return self._local_imports.get(name)

    @cached_property
    def _local_imports(self) -> dict[str, ImportedName]:
        return imports_in(statements_in(self.tree.body))

    @cached_property
    def is_candidate(self) -> bool:
        """Whether the text speaks of a status protocol at all."""
        return is_candidate(self.source.data)

    def nodes_of(self, node: ast.AST, *kinds: type[ast.AST]) -> Sequence[ast.AST]:
        """Every node, or every one of some kinds, below (and with) a function, class or lambda, in source order."""
        order = self._order_around(node)
        start, end = order.extents[node]
        return order.nodes[start:end] if not kinds else order.between(start, end, kinds)

    def nodes_of_kind(self, *kinds: type[ast.AST]) -> list[ast.AST]:
        """Every node of some kinds in the module, in source order."""
        return self._order.between(0, len(self.nodes), kinds)

    def body_of(self, function: Function) -> tuple[ast.AST, ...]:
        """Every node of a function's body in source order, what nested functions and classes hold left out."""
        return tuple(self._order_around(function).bodies[function])

    def statements_calling(self, name: str) -> list[ast.stmt]:
        """The top-level statements in whose text something like a call of ``name`` stands."""
        text, found = self.source.text, dict[int, None]()
        line, position, start = 1, 0, text.find(f"{name}(")
        while start >= 0:
            if not (text[start - 1 : start].isidentifier() or text.endswith(("class ", "def "), 0, start)):
                line, position = line + text.count("\n", position, start), start
                found[line] = None
            start = text.find(f"{name}(", start + 1)
        return list(dict.fromkeys(statement for line in found for statement in self._statements_at(line)))

    def _statements_at(self, line: int) -> list[ast.stmt]:
        """The top-level statement that ``line`` belongs to."""
        index = bisect_right(self._first_lines, line) - 1
        return [self.tree.body[index]] if index >= 0 else []

    @cached_property
    def _first_lines(self) -> list[int]:
        return [first_line(statement) for statement in self.tree.body]

    def calls_of(self, name: str) -> list[ast.Call]:
        """Every call of a function or method by that name, in source order."""
        found: list[ast.Call] = []
        for statement in self.statements_calling(name):
            is_definition = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            nodes = self.nodes_of(statement, ast.Call) if is_definition else ast.walk(statement)
            found += [node for node in nodes if isinstance(node, ast.Call) and _called_name(node) == name]
        return found

    def location(self, node: ast.AST) -> Location:
        """Where ``node`` stands, with columns in characters."""
        line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
        end_line, end_column = node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
        span = Span(line, self._characters(line, column) + 1, end_line, self._characters(end_line, end_column) + 1)
        return Location(self.path, span)

    def _characters(self, line: int, byte_column: int) -> int:
        text = self.source.lines[line - 1] if line <= len(self.source.lines) else ""
        return byte_column if text.isascii() else len(text.encode()[:byte_column].decode(errors="ignore"))


def imports_in(statements: Iterable[ast.stmt]) -> dict[str, ImportedName]:
    """What the import statements among ``statements`` bind, by name; the first one counts."""
    found: dict[str, ImportedName] = {}
    for statement in statements:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            for name, imported in _imported(statement):
                found.setdefault(name, imported)
    return found


def first_line(statement: ast.stmt) -> int:
    """The line on which a statement starts, its decorators included."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def _called_name(call: ast.Call) -> str | None:
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return None


def statements_in(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Every statement of a block, those of nested blocks, functions and classes included, in source order.

    It looks at no expression, which costs a tenth of what ``Module.nodes`` does.
    """
    pending = list(body)[::-1]
    while pending:
        statement = pending.pop()
        yield statement
        if statement.__class__ not in _COMPOUND:
            continue
        inner: list[ast.stmt] = []
        for name in ("body", "orelse"):
            inner.extend(getattr(statement, name, ()))
            if name == "body":
                for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
                    inner.extend(part.body)
        inner.extend(getattr(statement, "finalbody", ()))
        pending.extend(inner[::-1])


def inner_blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks that a statement holds."""
    if statement.__class__ not in _COMPOUND:
        return
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if isinstance(block, list):
            yield block
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


def leaves(block: list[ast.stmt]) -> bool:
    """Whether control visibly never reaches the end of a block."""
    return bool(block) and isinstance(block[-1], ast.Return | ast.Continue | ast.Break | ast.Raise)


def parse_module(source: SourceText) -> Module:
    """Parse ``source`` and index its bindings.

    Raises UnreadableSource where the text is not Python.
    """
    tree = parse(source)
    module = Module(source.path, source, *bindings(tree.body))
    module.tree = tree
    return module


def bindings(body: list[ast.stmt]) -> tuple[dict[str, Binding], tuple[ImportedName, ...]]:
    """What the statements of a module body bind, by name, and the star imports among them."""
    names: dict[str, Binding] = {}
    stars: list[ImportedName] = []
    for node in _binding_statements(body):
        _bind(node, names, stars)
    return names, tuple(stars)


def _unsettled(nodes: Iterable[ast.AST]) -> frozenset[str]:
    bound: Counter[str] = Counter()
    changed: set[str] = set()
    for node in nodes:
        if isinstance(getattr(node, "ctx", None), ast.Load):
            continue  # nearly all of them
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


class Order(Struct, frozen=True, eq=False, dict=True):
    """All nodes of a tree in source order, constants, operators and contexts left out.

    ``extents`` says for each definition where its nodes begin and end in that
    order, ``bodies`` which nodes belong to each function's own body.
    """

    nodes: tuple[ast.AST, ...]
    extents: dict[ast.AST, tuple[int, int]]
    bodies: dict[ast.AST, list[ast.AST]]

    def between(self, start: int, end: int, kinds: Iterable[type[ast.AST]]) -> list[ast.AST]:
        """The nodes of some kinds from place ``start`` up to ``end``."""
        found: list[int] = []
        for kind in kinds:
            indexes = self._places_of_kinds.get(kind, [])
            found.extend(indexes[bisect_left(indexes, start) : bisect_left(indexes, end)])
        return [self.nodes[index] for index in sorted(found)]

    @cached_property
    def _places_of_kinds(self) -> dict[type[ast.AST], list[int]]:
        found: dict[type[ast.AST], list[int]] = {}
        for index, node in enumerate(self.nodes):
            found.setdefault(type(node), []).append(index)
        return found


@cache
def _child_fields(kind: type[ast.AST]) -> tuple[str, ...]:
    """The fields of a kind of node that may hold nodes worth a visit, last one first."""
    return tuple(name for name in reversed(kind._fields) if name not in _NOT_VISITED)


def order_of(tree: ast.AST) -> Order:
    """Walk a tree once: every question about the nodes of a function is a slice of what is found.

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
        elif node.__class__ in _DEFINITIONS:
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
                if value.__class__ in _VISITED:
                    pending.append(value)
                elif value.__class__ is list:
                    pending += [child for child in reversed(value) if child.__class__ in _VISITED]
    return Order(tuple(nodes), extents, bodies)


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
