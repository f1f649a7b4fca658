"""One parsed module and what its names are bound to; it knows nothing of other modules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from kvlint.diagnostics import Location, Span
from kvlint.source.text import SourceText, parse


@dataclass(frozen=True, slots=True)
class ImportedName:
    """``from module import name`` (``name`` None: ``import module``), ``level`` dots in front."""

    module: str
    name: str | None
    level: int


Function = ast.FunctionDef | ast.AsyncFunctionDef
Binding = ast.ClassDef | Function | ast.expr | ImportedName


@dataclass(eq=False, slots=True, repr=False)
class Module:
    """A module's tree and its bindings by name.

    ``names`` holds what the module body binds, also below ``if`` (TYPE_CHECKING
    included) and ``try``; ``local_imports`` what function bodies import.
    """

    path: str
    source: SourceText
    tree: ast.Module
    names: dict[str, Binding]
    local_imports: dict[str, ImportedName]
    star_imports: tuple[ImportedName, ...]
    _lines: list[str] | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return f"<module {self.path}>"

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


def parse_module(source: SourceText) -> Module:
    """Parse ``source`` and index its bindings.

    Raises UnreadableSource where the text is not Python.
    """
    tree = parse(source)
    names: dict[str, Binding] = {}
    stars: list[ImportedName] = []
    for node in _binding_statements(tree.body):
        _bind(node, names, stars)
    local: dict[str, ImportedName] = {}
    for inner in ast.walk(tree):
        if isinstance(inner, ast.Import | ast.ImportFrom):
            for name, imported in _imported(inner):
                local.setdefault(name, imported)
    return Module(source.path, source, tree, names, local, tuple(stars))


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
