"""Modules of which only those top-level definitions are parsed that somebody asks for."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from functools import cached_property

from kvlint.semantics.module import (
    Binding,
    ImportedName,
    Module,
    Order,
    bindings,
    first_line,
    imports_in,
    order_of,
    parse_module,
)
from kvlint.semantics.outline import Definition, definitions, inner_imports
from kvlint.source.prefilter import is_candidate
from kvlint.source.text import SourceText, UnreadableSource, parse, parse_piece

_SMALLEST = 10_000  # characters; less is parsed whole


def load_module(source: SourceText) -> Module:
    """The module of ``source``; raises UnreadableSource where the text is not Python.

    One that does not speak of a status protocol is parsed piece by piece, so an
    error in a piece that nobody needs goes unnoticed.
    """
    if len(source.text) < _SMALLEST or is_candidate(source.data):
        return parse_module(source)
    found = definitions(source.text)
    try:
        rest = parse_piece(source, _without(source, found))
    except UnreadableSource:
        return parse_module(source)
    return OutlinedModule(source, found, rest)


def _without(source: SourceText, found: tuple[Definition, ...]) -> str:
    """The text with blank lines in place of definitions."""
    lines = list(source.lines)
    for definition in found:
        lines[definition.start - 1 : definition.end - 1] = [""] * (definition.end - definition.start)
    return "\n".join(lines)


class OutlinedModule(Module):
    """A module whose definitions are parsed when they are asked for, each once.

    Should a piece not be what the outline took it for, the whole is parsed.
    """

    def __init__(self, source: SourceText, found: tuple[Definition, ...], rest: ast.Module) -> None:
        bound, stars = bindings(rest.body)
        self._found = found
        self._rest = rest
        self._bound = bound
        self._starts = [definition.start for definition in found]
        self._parsed: dict[Definition, ast.stmt] = {}
        self._orders: dict[ast.AST, Order] = {}
        super().__init__(source.path, source, _Names(self, bound, found), stars)

    @cached_property
    def tree(self) -> ast.Module:
        """The whole tree; asking for it parses all."""
        body = [*self._rest.body, *(self.definition(each) for each in self._found)]
        return ast.Module(body=sorted(body, key=first_line), type_ignores=[])

    def definition(self, wanted: Definition) -> ast.stmt:
        """The syntax tree of one definition; raises UnreadableSource."""
        if wanted not in self._parsed:
            piece = "\n" * (wanted.start - 1) + "\n".join(self.source.lines[wanted.start - 1 : wanted.end - 1]) + "\n"
            statements = _parsed(self.source, piece)
            if len(statements) != 1 or getattr(statements[0], "name", None) != wanted.name:
                self._parse_whole()
            else:
                self._parsed[wanted] = statements[0]
        return self._parsed[wanted]

    def _parse_whole(self) -> None:
        """Take the definitions from the whole tree after all; raises UnreadableSource."""
        by_name: dict[str, list[ast.stmt]] = {}
        for statement in parse(self.source).body:
            by_name.setdefault(getattr(statement, "name", ""), []).append(statement)
        for each in self._found:
            there = [statement for statement in by_name.get(each.name, ()) if first_line(statement) == each.start]
            if not there:
                raise UnreadableSource(self.path, f"cannot be told apart: {each.name}", each.start)
            self._parsed.setdefault(each, there[0])

    def top_level(self, node: ast.AST) -> ast.stmt | None:
        """The top-level definition around (or at) ``node``, None for what stands outside of any."""
        line = getattr(node, "lineno", 0)
        index = bisect_right(self._starts, line) - 1
        if index < 0 or line >= self._found[index].end:
            return None
        return self.definition(self._found[index])

    def _statements_at(self, line: int) -> list[ast.stmt]:
        index = bisect_right(self._starts, line) - 1
        if index >= 0 and line < self._found[index].end:
            return [self.definition(self._found[index])]
        return [each for each in self._rest.body if each.lineno <= line <= (each.end_lineno or each.lineno)]

    def _order_around(self, node: ast.AST) -> Order:
        around = self.top_level(node) or self._rest
        if around not in self._orders:
            self._orders[around] = order_of(around)
        return self._orders[around]

    @cached_property
    def _local_imports(self) -> dict[str, ImportedName]:
        # The texts of the imports are enough: their functions need not be parsed.
        statements = [each for text in inner_imports(self.source.text) for each in _parsed(self.source, text)]
        return imports_in(statements)


class _Names(Mapping[str, Binding]):
    """The names of an outlined module, their definitions parsed on demand; one that cannot be parsed is not there."""

    def __init__(self, module: OutlinedModule, bound: Mapping[str, Binding], found: tuple[Definition, ...]) -> None:
        self._module = module
        self._bound = bound
        self._found = {definition.name: definition for definition in found}

    def __getitem__(self, name: str) -> Binding:
        definition = self._found.get(name)
        if definition is None:
            return self._bound[name]
        other = self._bound.get(name)
        if other is not None and getattr(other, "lineno", 0) > definition.start:
            return other
        try:
            node = self._module.definition(definition)
        except UnreadableSource as failure:
            raise KeyError(name) from failure
        assert isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        return node

    def __iter__(self) -> Iterator[str]:
        return iter({**self._bound, **self._found})

    def __len__(self) -> int:
        return len({**self._bound, **self._found})


def _parsed(source: SourceText, piece: str) -> list[ast.stmt]:
    try:
        return parse_piece(source, piece).body
    except UnreadableSource:
        return []
