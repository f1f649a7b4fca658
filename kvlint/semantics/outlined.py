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
    statements_in,
)
from kvlint.semantics.outline import Definition, definitions, inner_imports, seems_defined
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

    Should a piece not be what the outline took it for, the whole is parsed and
    taken instead.  Of a text that is not Python as a whole, the pieces that are
    can be had: the module is there for the sake of another one.
    """

    def __init__(self, source: SourceText, found: tuple[Definition, ...], rest: ast.Module) -> None:
        self.bound, stars = bindings(rest.body)
        self.found = found
        self._rest = rest
        self._starts = [definition.start for definition in found]
        self._parsed: dict[Definition, ast.stmt | None] = {}
        self._orders: dict[ast.AST, Order] = {}
        super().__init__(source.path, source, _Names(self), stars)

    @cached_property
    def tree(self) -> ast.Module:
        """The tree of all that can be parsed; asking for it parses it."""
        definitions = [self.definition(each) for each in self.found]
        body = [*self._rest.body, *(statement for statement in definitions if statement is not None)]
        return ast.Module(body=sorted(body, key=first_line), type_ignores=[])

    def definition(self, wanted: Definition) -> ast.stmt | None:
        """The syntax tree of one definition, None where it cannot be had."""
        if wanted not in self._parsed:
            piece = "\n" * (wanted.start - 1) + "\n".join(self.source.lines[wanted.start - 1 : wanted.end - 1]) + "\n"
            statements = _parsed(self.source, piece)
            is_it = len(statements) == 1 and getattr(statements[0], "name", None) == wanted.name
            self._parsed[wanted] = statements[0] if is_it else self._from_whole(wanted)
        return self._parsed[wanted]

    def _from_whole(self, wanted: Definition) -> ast.stmt | None:
        self.take_whole()
        here = (each for each in self._rest.body if first_line(each) == wanted.start)
        return next((each for each in here if getattr(each, "name", None) == wanted.name), None)

    def take_whole(self) -> None:
        """Give the outline up for the tree of the whole, if it has one."""
        try:
            self._rest = parse(self.source)
        except UnreadableSource:
            return
        self.bound, self.star_imports = bindings(self._rest.body)
        self.found, self._starts = (), []

    def top_level(self, node: ast.AST) -> ast.stmt | None:
        """The top-level definition around (or at) ``node``, None for what stands outside of any."""
        found = self._definition_at(getattr(node, "lineno", 0))
        return None if found is None else self.definition(found)

    def _definition_at(self, line: int) -> Definition | None:
        index = bisect_right(self._starts, line) - 1
        return self.found[index] if index >= 0 and line < self.found[index].end else None

    def _statements_at(self, line: int) -> list[ast.stmt]:
        found = self._definition_at(line)
        if found is None:
            return [each for each in self._rest.body if each.lineno <= line <= (each.end_lineno or each.lineno)]
        statement = self.definition(found)
        return [] if statement is None else [statement]

    def _order_around(self, node: ast.AST) -> Order:
        # The pieces come last: nodes of theirs may be about still after the outline was given up.
        for tree in (self.top_level(node), self._rest, *self._parsed.values()):
            if tree is not None and node in self._order_of(tree).extents:
                return self._order_of(tree)
        raise KeyError(node)

    def _order_of(self, tree: ast.AST) -> Order:
        if tree not in self._orders:
            self._orders[tree] = order_of(tree)
        return self._orders[tree]

    @cached_property
    def _local_imports(self) -> dict[str, ImportedName]:
        # The texts of the imports are enough: their functions need not be parsed.
        texts = inner_imports(self.source.text)
        statements = [_parsed(self.source, text) for text in texts or ()]
        if texts is None or not all(statements):
            return imports_in(statements_in(self.tree.body))
        return imports_in(each for found in statements for each in found)


class _Names(Mapping[str, Binding]):
    """The names of an outlined module, their definitions parsed on demand; one that cannot be parsed is not there."""

    def __init__(self, module: OutlinedModule) -> None:
        self._module = module

    def __getitem__(self, name: str) -> Binding:
        definition = self._definitions.get(name)
        if definition is None:
            if name not in self._module.bound and self._module.found and seems_defined(self._module.source.text, name):
                self._module.take_whole()
            return self._module.bound[name]
        other = self._module.bound.get(name)
        if other is not None and getattr(other, "lineno", 0) > definition.start:
            return other
        node = self._module.definition(definition)
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            raise KeyError(name)
        return node

    @property
    def _definitions(self) -> dict[str, Definition]:
        return {definition.name: definition for definition in self._module.found}

    def __iter__(self) -> Iterator[str]:
        return iter({**self._module.bound, **self._definitions})

    def __len__(self) -> int:
        return len({**self._module.bound, **self._definitions})


def _parsed(source: SourceText, piece: str) -> list[ast.stmt]:
    try:
        return parse_piece(source, piece).body
    except UnreadableSource:
        return []
