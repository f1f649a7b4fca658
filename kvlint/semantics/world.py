"""Every module the analysis has looked at, loaded on demand and once; and what a dotted name means in a module."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from kvlint.config import Config
from kvlint.semantics.module import Function, ImportedName, Module, parse_module
from kvlint.source.text import UnreadableSource, decode, read_source


@dataclass(frozen=True, slots=True, eq=False)
class ModuleSymbol:
    """A name bound to a module (``module`` None: a namespace package, whose folder is ``folder``)."""

    module: Module | None
    folder: str


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name bound to a definition: ``node`` stands in ``module``."""

    module: Module
    node: ast.ClassDef | Function | ast.expr


@dataclass(frozen=True, slots=True)
class External:
    """A name whose definition is not on disk below the roots; ``dotted`` is its full name."""

    dotted: str


Resolved = ModuleSymbol | Symbol | External

_MAX_HOPS = 16  # a chain of re-exports longer than this is a cycle


class World:
    """Loads modules by path or by import, each once; ``overlay`` replaces files' bytes (paths absolute).

    A name that cannot be found resolves to External, never to a guess.
    """

    def __init__(self, config: Config, overlay: Mapping[str, bytes] | None = None) -> None:
        self.config = config
        self._overlay = dict(overlay or {})
        self._modules: dict[str, Module | UnreadableSource] = {}
        self._found: dict[tuple[str, str], str | None] = {}
        self._resolved: dict[tuple[str, str], Resolved] = {}
        self.memo: dict[object, object] = {}

    def module(self, path: str) -> Module:
        """The module at absolute ``path``.

        Raises UnreadableSource where it cannot be read, decoded or parsed.
        """
        known = self._modules.get(path)
        if known is None:
            try:
                data = self._overlay.get(path)
                source = read_source(path) if data is None else decode(path, data)
                known = parse_module(source)
            except UnreadableSource as failure:
                known = failure
            self._modules[path] = known
        if isinstance(known, UnreadableSource):
            raise known
        return known

    def resolve(self, module: Module, dotted: str) -> Resolved:
        """What ``dotted`` (``a.b.C``) means in ``module``."""
        key = (module.path, dotted)
        known = self._resolved.get(key)
        if known is None:
            known = self._resolved[key] = self._resolve(module, dotted, _MAX_HOPS)
        return known

    def _resolve(self, module: Module, dotted: str, hops: int) -> Resolved:
        head, _, rest = dotted.partition(".")
        binding = module.names.get(head) or module.local_imports.get(head)
        if binding is None:
            return self._from_stars(module, dotted, hops)
        if isinstance(binding, ImportedName):
            return self._imported(module, binding, rest, hops)
        if not rest:
            alias = _dotted(binding) if isinstance(binding, ast.expr) else None
            if alias and hops and alias != head:
                target = self._resolve(module, alias, hops - 1)
                if isinstance(target, Symbol):
                    return target
            return Symbol(module, binding)
        if isinstance(binding, ast.ClassDef):
            inner = _class_member(binding, rest)
            return Symbol(module, inner) if inner is not None else External(dotted)
        return External(dotted)

    def _from_stars(self, module: Module, dotted: str, hops: int) -> Resolved:
        for star in module.star_imports:
            source = self._load(module, star.module, star.level)
            if source is not None and source.module is not None and hops:
                found = self._resolve(source.module, dotted, hops - 1)
                if not isinstance(found, External):
                    return found
        return External(dotted)

    def _imported(self, module: Module, name: ImportedName, rest: str, hops: int) -> Resolved:
        full = ".".join(part for part in ("." * name.level + name.module, name.name or "", rest) if part)
        if hops == 0:
            return External(full)
        source = self._load(module, name.module, name.level)
        if source is None:
            return External(full)
        path = ".".join(part for part in (name.name or "", rest) if part)
        return self._member(source, path, full, hops)

    def _member(self, source: ModuleSymbol, path: str, full: str, hops: int) -> Resolved:
        if not path:
            return source
        head, _, rest = path.partition(".")
        if source.module is not None:
            found = self._resolve(source.module, path, hops - 1)
            if not isinstance(found, External):
                return found
        inner = self._at(os.path.join(source.folder, head)) if source.folder else None
        return External(full) if inner is None else self._member(inner, rest, full, hops - 1)

    def _load(self, module: Module, dotted: str, level: int) -> ModuleSymbol | None:
        folder = os.path.dirname(module.path)
        parts = dotted.split(".") if dotted else []
        if level:
            for _ in range(level - 1):
                folder = os.path.dirname(folder)
            return self._at(os.path.join(folder, *parts))
        where = self._search(folder, dotted, os.path.join(*parts))
        return None if where is None else self._at(where)

    def _search(self, folder: str, dotted: str, tail: str) -> str | None:
        """The path (without suffix) of ``dotted`` below a configured root or the nearest folder upwards."""
        if dotted.partition(".")[0] in sys.stdlib_module_names:
            return None
        key = (folder, dotted)
        if key not in self._found:
            found = None
            for root in self.config.root_folders:
                if _is_module(os.path.join(root, tail)):
                    found = os.path.join(root, tail)
                    break
            current = folder
            while found is None:
                if _is_module(os.path.join(current, tail)):
                    found = os.path.join(current, tail)
                    break
                parent = os.path.dirname(current)
                if parent == current:
                    break
                current = parent
            self._found[key] = found
        return self._found[key]

    def _at(self, stem: str) -> ModuleSymbol | None:
        for path in (os.path.join(stem, "__init__.py"), stem + ".py", stem + ".pyi"):
            if path in self._overlay or os.path.isfile(path):
                try:
                    loaded = self.module(path)
                except UnreadableSource:
                    return None
                return ModuleSymbol(loaded, stem if os.path.basename(path) == "__init__.py" else "")
        return ModuleSymbol(None, stem) if os.path.isdir(stem) else None


_MAX_NEIGHBOURS = 400


def neighbours(path: str, names: frozenset[str]) -> tuple[str, ...]:
    """Other Python files in the file's folder and in the folders beside it that mention one of ``names``."""
    folder = os.path.dirname(path)
    folders = [folder]
    try:
        with os.scandir(os.path.dirname(folder)) as entries:
            folders += sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        pass
    wanted = [name.encode() for name in names]
    found: dict[str, None] = {}
    looked_at = 0
    for each in dict.fromkeys(folders):
        try:
            files = sorted(name for name in os.listdir(each) if name.endswith(".py"))
        except OSError:
            continue
        for name in files:
            other = os.path.join(each, name)
            looked_at += 1
            if other == path or looked_at > _MAX_NEIGHBOURS or not os.path.isfile(other):
                continue
            try:
                with open(other, "rb") as stream:
                    data = stream.read()
            except OSError:
                continue
            if any(word in data for word in wanted):
                found[other] = None
    return tuple(found)


def _is_module(stem: str) -> bool:
    return os.path.isfile(stem + ".py") or os.path.isdir(stem) or os.path.isfile(stem + ".pyi")


def _dotted(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value)
        return None if base is None else f"{base}.{node.attr}"
    return None


def _class_member(node: ast.ClassDef, path: str) -> ast.ClassDef | Function | ast.expr | None:
    head, _, rest = path.partition(".")
    for statement in node.body:
        match statement:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef() if statement.name == head:
                if not rest:
                    return statement
                return _class_member(statement, rest) if isinstance(statement, ast.ClassDef) else None
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ) if name == head and not rest:
                return value
            case _:
                pass
    return None


def dotted_name(node: ast.expr) -> str | None:
    """``a.b.c`` for a chain of names, None for anything else (quoted annotations are parsed)."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            node = ast.parse(node.value, mode="eval").body
        except SyntaxError:
            return None
    return _dotted(node)
