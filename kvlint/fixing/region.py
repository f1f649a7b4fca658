"""The one definition that an edit touches, as LibCST sees it, and its way back into the file.

LibCST takes ten seconds for 50,000 lines, ends the process on absurdly deep
expressions and forgets lone carriage returns.  So the standard library's parser
finds the definition, LibCST gets only its lines, and of what LibCST gives back
only the lines that differ are taken: every other byte of the file is a copy.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from kvlint.fixing.blocks import Place, places
from kvlint.fixing.document import Document, line_end
from kvlint.fixing.refusals import EditRefused
from kvlint.source.text import tree_of

# LibCST's printer recurses in Python (a thousand frames by default), its parser in native code, where nothing but the
# end of the process stops it: well below both.
_MAX_DEPTH = 200


@dataclass(frozen=True, slots=True)
class Region:
    """Whole lines of a document, from ``start`` (an index) on, parsed with stand-ins for what encloses them.

    ``scaffold`` counts the ``if`` lines that stand for the enclosing blocks;
    they give the region's indentation a meaning.
    """

    document: Document
    start: int
    end: int
    scaffold: int
    module: cst.Module
    places: tuple[Place, ...]

    def refuse(self, reason: str) -> EditRefused:
        """An error about this region's file, to be raised."""
        return EditRefused(self.document.path, reason)

    def at(self, line: int, column: int) -> Place:
        """The statement or handler that starts there (both count from 1, columns in characters).

        Raises:
            EditRefused: nothing starts there.
        """
        found = [place for place in self.places if self._start(place) == (line, column)]
        if not found:
            raise self.refuse(f"no statement starts at {line}:{column} any more")
        return found[0]

    def function(self, line: int, name: str) -> Place:
        """The definition of ``name`` whose ``def`` or first decorator stands on ``line``.

        Raises:
            EditRefused: it does not stand there.
        """
        plain = name.rpartition(".")[2]
        for place in self.places:
            node = place.node
            named = isinstance(node, cst.FunctionDef) and node.name.value == plain
            if named and self._line(place.first_line) <= line <= self._line(place.line):
                return place
        raise self.refuse(f"no definition of {name} stands at line {line} any more")

    def _start(self, place: Place) -> tuple[int, int]:
        return (self._line(place.line), place.column + 1)

    def _line(self, line: int) -> int:
        """A line of the module as a line of the document (both count from 1)."""
        return line - self.scaffold + self.start


def parse(path: str, text: str) -> ast.Module:
    """The tree of ``text``.

    Raises:
        EditRefused: it does not parse, or nests too deeply to be parsed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape in the user's string is not ours to report
            return tree_of(text, path)
    except (SyntaxError, ValueError) as error:
        raise EditRefused(path, f"does not parse: {error}") from error
    except (RecursionError, MemoryError) as error:
        raise EditRefused(path, "nests too deeply to be parsed") from error


def open_region(document: Document, line: int) -> Region:
    """The innermost definition that covers ``line`` (outside every definition: the outermost statement).

    Raises:
        EditRefused: no statement covers the line, or LibCST cannot represent what does.
    """
    tree = parse(document.path, document.text)
    chain = list(_enclosing(tree, line))
    if not chain:
        raise EditRefused(document.path, f"no statement stands at line {line} any more")
    inner = max((i for i, node in enumerate(chain) if _is_function(node)), default=0)
    node = chain[inner]
    if _depth(node) > _MAX_DEPTH:
        raise EditRefused(document.path, f"the definition at line {_first(node)} nests too deeply to be edited")
    start, end = _first(node) - 1, _with_trailing_comments(document, node.end_lineno or node.lineno)
    levels = _indentations(document, chain[:inner])
    scaffold = "".join(f"{indent}if True:\n" for indent in levels)
    module = _parse_exactly(document.path, scaffold + normalised(document.lines[start:end]))
    step = first_step(document, tree)
    return Region(document, start, end, len(levels), module, tuple(places(module, step)))


def close_region(region: Region, edited: cst.Module) -> list[str]:
    """The lines of the whole document with the region as ``edited``; lines that are the same are the very same.

    Raises:
        EditRefused: the edited region does not parse.
    """
    document = region.document
    code = edited.code
    parse(document.path, code)
    _parse_exactly(document.path, code)
    raw = list(document.lines[region.start : region.end])
    old = normalised(raw).split("\n")
    new = code.split("\n")[region.scaffold :]
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    ends = [line_end(line) for line in raw] + [""] * (len(old) - len(raw))
    fresh = document.newline_near(region.start + head)
    middle = [(text, fresh) for text in new[head : len(new) - tail]]
    pairs = [*zip(old, ends, strict=True)][:head] + middle + [*zip(old, ends, strict=True)][len(old) - tail :]
    # A file's last line may lack its end; once another line follows it must have one, and the new last line none.
    closed = [text + (end or fresh) for text, end in pairs[:-1]]
    last, _ = pairs[-1]
    return [*document.lines[: region.start], *closed, last, *document.lines[region.end :]]


def normalised(lines: list[str] | tuple[str, ...]) -> str:
    """The text of ``lines`` with plain line feeds, the only line end that LibCST gives back faithfully."""
    return "".join(line.rstrip("\r\n") + ("\n" if line_end(line) else "") for line in lines)


def _parse_exactly(path: str, text: str) -> cst.Module:
    try:
        module = cst.parse_module(text)
        if module.code == text:
            return module
    except cst.ParserSyntaxError as error:
        raise EditRefused(path, f"LibCST cannot parse the definition: {error.message}") from error
    raise EditRefused(path, "LibCST would change other lines of the definition (an unusual blank or line end)")


def _common(left: list[str], right: list[str]) -> int:
    """How many elements two lists have in common from their start."""
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return count


def _is_function(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def _first(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _enclosing(tree: ast.Module, line: int) -> Iterator[ast.stmt]:
    """The statements that cover ``line``, outermost first."""
    inside: ast.AST | None = tree
    while inside is not None:
        inside = next((s for s in _statements(inside) if _first(s) <= line <= (s.end_lineno or s.lineno)), None)
        if isinstance(inside, ast.stmt):
            yield inside


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    """The statements right inside ``node``, also those of its handlers and cases."""
    for name in ("body", "handlers", "cases", "orelse", "finalbody"):
        children = getattr(node, name, None)
        # An expression may have fields of these names too (`a if b else c`, a lambda), but no list in them.
        for child in children if isinstance(children, list) else ():
            if isinstance(child, ast.stmt):
                yield child
            else:
                yield from _statements(child)


def _depth(node: ast.AST) -> int:
    """How deep the tree below ``node`` goes, counted without recursion."""
    depth, level = 0, [node]
    while level:
        depth, level = depth + 1, [child for parent in level for child in ast.iter_child_nodes(parent)]
    return depth


def indentation(line: str) -> str:
    """The blanks that a line starts with."""
    return line[: len(line) - len(line.lstrip(" \t\f"))]


def _indentations(document: Document, ancestors: list[ast.stmt]) -> list[str]:
    """The indentation of each enclosing block's statement, outermost first, an `elif` and its `if` once."""
    return list(dict.fromkeys(indentation(document.lines[node.lineno - 1]) for node in ancestors))


def first_step(document: Document, tree: ast.Module) -> str:
    """The indentation of the file's first indented block, four spaces if it has none."""
    for node in tree.body:
        for inner in _statements(node):
            indent = indentation(document.lines[_first(inner) - 1])
            if indent:
                return indent
    return "    "


def _with_trailing_comments(document: Document, end: int) -> int:
    """``end`` moved over the comments that follow: those indented like the last block belong to it."""
    for index in range(end, len(document.lines)):
        line = document.lines[index].strip()
        if line.startswith("#"):
            end = index + 1
        elif line:
            break
    return end
