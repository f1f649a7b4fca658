"""Definitions are found in a text as the parser finds them; a module parsed by pieces is the module parsed whole."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import kvlint
from kvlint.config import Config
from kvlint.semantics import outlined
from kvlint.semantics.module import Module, first_line, parse_module
from kvlint.semantics.outline import Definition, definitions, inner_imports
from kvlint.semantics.outlined import OutlinedModule, load_module
from kvlint.semantics.world import External, Symbol, World
from kvlint.source.text import SourceText, UnreadableSource, decode, parse_piece

SOURCES = sorted(Path(kvlint.__file__).parent.rglob("*.py"))

ODD = '''\
"""A docstring
class NotThis:
    pass
"""
import os  # a 'comment
from a import (
    b,
)
@decorated(
    "with text",
)
@twice
class First(Base):
    text = """
def not_this(): ...
"""
    def method(self):
        import inner
        from pkg.mod import (one,
            two as three)
        return 'it\\'s """ no string'


def second(
    a,
) -> int:
    """
    import in_a_docstring
    """
    return 1
# a comment between
async def third(): return f"{x!r:>{width}}"
x = {
"key": 1,
}
def first_again(): \\
    pass
if os.name == "nt":
    def second(): pass
class First: pass
try:
    import fast
except ImportError:
    fast = None
'''


def source_of(text: str, path: str = "/nowhere/a.py") -> SourceText:
    return decode(path, text.encode())


def expected(text: str) -> list[tuple[str, int]]:
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return [(node.name, first_line(node)) for node in ast.parse(text).body if isinstance(node, kinds)]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_definitions_are_those_that_the_parser_finds(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert [(found.name, found.start) for found in definitions(text)] == expected(text)


def test_odd_text() -> None:
    found = definitions(ODD)
    assert [(each.name, each.start) for each in found] == expected(ODD)
    lines = ODD.split("\n")
    for each in found:
        (node,) = ast.parse("\n".join(lines[each.start - 1 : each.end - 1])).body
        assert getattr(node, "name", None) == each.name


def test_imports_of_indented_code() -> None:
    assert [text.split()[1] for text in inner_imports(ODD) or ()] == ["inner", "pkg.mod", "fast"]


@pytest.mark.parametrize(
    "text",
    [
        "def f(): import abc\n",
        "def f():\n    x = 1; import abc\n",
        "def f():\n    if x: import abc\n",
        "def f():\n    from a import (  # one) of them\n        abc,\n    )\n",
        "def f():\n    from a import abc; x = 1\n",
        "def f():\n    from a \\\n        import abc\n",
        "def f():\n    'import nothing'  # import this\n    import abc\n",
    ],
)
def test_no_local_import_is_missed(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, whole = outlined_module(text + "def g(): pass\n", monkeypatch), parse_module(source_of(text))
    assert isinstance(module, OutlinedModule)
    assert module.local_import("abc") == whole.local_import("abc") is not None


@pytest.mark.parametrize(
    "text",
    [
        "class A:\n    pass\n# C:\\dir\\\nclass B:\n    pass\n",
        "class A:\n    pass\n\f\nclass B:\n    pass\n",
        "class A:\n    pass\n\fclass B:\n    pass\n",
        "class A:\n    pass\nx = 'a # b \\\nclass C:'\nclass B:\n    pass\n",
        "class A:\n    pass\nx = 1 + \\\n2\nclass B:\n    pass\n",
    ],
)
def test_no_definition_is_missed(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [(found.name, found.start) for found in definitions(text)] == expected(text)
    assert isinstance(outlined_module(text, monkeypatch).names["B"], ast.ClassDef)


def test_a_definition_that_the_outline_missed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "class A:\n    pass\nclass B:\n    pass\n"
    monkeypatch.setattr(outlined, "definitions", lambda text: (Definition("A", 1, 5),))
    module = outlined_module(text, monkeypatch)
    assert isinstance(module.names["B"], ast.ClassDef)
    function = module.names["A"]
    assert isinstance(function, ast.ClassDef)
    assert module.nodes_of(function)
    assert module.names.get("C") is None


def test_nodes_of_a_piece_after_the_outline_was_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "def f():\n    pass\ndef g():\n    pass\n"
    monkeypatch.setattr(outlined, "definitions", lambda text: (Definition("f", 1, 3), Definition("h", 3, 5)))
    module = outlined_module(text, monkeypatch)
    function = module.names["f"]
    assert isinstance(function, ast.FunctionDef)
    assert module.names.get("h") is None
    assert [type(node) for node in module.body_of(function)] == [ast.Pass]


def outlined_module(text: str, monkeypatch: pytest.MonkeyPatch) -> Module:
    monkeypatch.setattr(outlined, "_SMALLEST", 0)
    return load_module(source_of(text))


def test_pieces_make_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    module, whole = outlined_module(ODD, monkeypatch), parse_module(source_of(ODD))
    assert isinstance(module, OutlinedModule)
    assert set(module.names) == set(whole.names)
    assert len(module.names) == len(whole.names)
    for name, bound in whole.names.items():
        other = module.names[name]
        if isinstance(bound, ast.AST):
            assert isinstance(other, ast.AST)
            assert ast.dump(other, include_attributes=True) == ast.dump(bound, include_attributes=True)
        else:
            assert other == bound
    assert ast.dump(module.tree, include_attributes=True) == ast.dump(whole.tree, include_attributes=True)
    assert module.local_import("three") == whole.local_import("three")
    assert module.local_import("in_a_docstring") is None


def test_nodes_of_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    module, whole = outlined_module(ODD, monkeypatch), parse_module(source_of(ODD))
    second, other = module.names["third"], whole.names["third"]
    assert isinstance(second, ast.AsyncFunctionDef)
    assert isinstance(other, ast.AsyncFunctionDef)
    assert list(map(ast.dump, module.nodes_of(second))) == list(map(ast.dump, whole.nodes_of(other)))
    assert list(map(ast.dump, module.body_of(second))) == list(map(ast.dump, whole.body_of(other)))


def test_calls_are_found_in_any_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "def f():\n    g(1)\ng(2)\nclass C:\n    def g(self):\n        self.g(3)\n"
    for module in (outlined_module(text, monkeypatch), parse_module(source_of(text))):
        assert [ast.unparse(call.args[0]) for call in module.calls_of("g")] == ["1", "2", "3"]


def test_what_is_cut_wrongly_is_parsed_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    # Arguments that start at the margin look like statements.
    module = outlined_module("def f(\na,\n):\n    return a\n\n\ndef g():\n    pass\n", monkeypatch)
    assert not isinstance(module, OutlinedModule)
    assert isinstance(module.names["f"], ast.FunctionDef)


def test_a_piece_that_is_something_else_is_taken_from_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "def f():\n    pass\ndef g():\n    pass\n"
    monkeypatch.setattr(outlined, "definitions", lambda text: (Definition("f", 1, 5), Definition("g", 3, 5)))
    module = outlined_module(text, monkeypatch)
    assert isinstance(module, OutlinedModule)
    function = module.names["f"]
    assert isinstance(function, ast.FunctionDef)
    assert function.name == "f"
    monkeypatch.setattr(outlined, "definitions", lambda text: (Definition("h", 1, 5),))
    assert outlined_module(text, monkeypatch).names.get("h") is None


def test_an_error_matters_where_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    module = outlined_module("def f():\n    return (\n\n\ndef g():\n    pass\n", monkeypatch)
    assert module.names.get("f") is None
    assert isinstance(module.names["g"], ast.FunctionDef)
    assert [getattr(statement, "name", None) for statement in module.tree.body] == ["g"]


def test_an_error_between_definitions(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnreadableSource, match="cannot be parsed"):
        outlined_module("x = = 1\n\n\ndef g():\n    pass\n", monkeypatch)


def test_the_last_binding_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    module = outlined_module("f = 1\ndef f(): pass\ndef g(): pass\ng = 2\n", monkeypatch)
    assert isinstance(module.names["f"], ast.FunctionDef)
    assert isinstance(module.names["g"], ast.Constant)


def test_a_world_resolves_through_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlined, "_SMALLEST", 0)
    files = {
        "/nowhere/a.py": b"from .b import C, missing, broken\n",
        "/nowhere/b.py": b"class C:\n    pass\n\n\ndef broken():\n    return (\n",
    }
    world = World(Config(), overlay=files)
    module = world.module("/nowhere/a.py")
    assert isinstance(world.resolve(module, "C"), Symbol)
    assert isinstance(world.resolve(module, "missing"), External)
    assert isinstance(world.resolve(module, "broken"), External)


def test_a_piece_keeps_its_lines() -> None:
    source = source_of("\n\nx = 1\n")
    assert parse_piece(source, "\n\nx = 1\n").body[0].lineno == 3
