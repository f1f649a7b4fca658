"""Every module the analysis has looked at, loaded on demand and once; and what a dotted name means in a module."""

from __future__ import annotations

import ast
import os
from collections.abc import Mapping

from msgspec import Struct

from kvlint.config import Config
from kvlint.semantics.disk import FOLDER, Asked, Disk
from kvlint.semantics.module import Binding, Function, ImportedName, Module
from kvlint.semantics.outlined import load_module
from kvlint.source.text import UnreadableSource, decode, read_bytes


class ModuleSymbol(Struct, frozen=True, eq=False):
    """A name bound to a module (``module`` None: a namespace package, whose folder is ``folder``)."""

    module: Module | None
    folder: str


class Symbol(Struct, frozen=True):
    """A name bound to a definition: ``node`` stands in ``module``."""

    module: Module
    node: ast.ClassDef | Function | ast.expr


class External(Struct, frozen=True):
    """A name whose definition is not on disk below the roots; ``dotted`` is its full name."""

    dotted: str


Resolved = ModuleSymbol | Symbol | External

_MAX_HOPS = 16  # a chain of re-exports longer than this is a cycle


class World:
    """Loads modules by path or by import, each once; ``overlay`` replaces files' bytes (paths absolute).

    A name that cannot be found resolves to External, never to a guess.  What was
    asked of the disk is remembered with the module for whose sake it was asked:
    see `seen_from`.  ``size`` is that of all loaded files in bytes.
    """

    def __init__(self, config: Config, overlay: Mapping[str, bytes] | None = None) -> None:
        self.config = config
        self._overlay = dict(overlay or {})
        self._modules: dict[str, Module | UnreadableSource] = {}
        self._unread: dict[str, bytes | None] = {}
        self._disk = Disk(config.root_folders, self._overlay)
        self._asked: dict[str, Asked] = {}
        self._asking = Asked()
        self._resolved: dict[tuple[str, str], Resolved] = {}
        self.memo: dict[object, object] = {}
        self.size = 0

    def module(self, path: str) -> Module:
        """The module at absolute ``path``.

        Raises UnreadableSource where it cannot be read, decoded or parsed.
        """
        known = self._modules.get(path)
        if known is None:
            known = self._modules[path] = self._loaded(path)
        if isinstance(known, UnreadableSource):
            raise known
        return known

    def _loaded(self, path: str) -> Module | UnreadableSource:
        data = self._overlay.get(path)
        try:
            if data is None:
                data = read_bytes(path)
            self.size += len(data)
            return load_module(decode(path, data))
        except OSError as error:
            self._unread[path] = None
            return UnreadableSource(path, f"cannot be read: {error.strerror or error}")
        except UnreadableSource as failure:
            self._unread[path] = data
            return failure

    def has_parsed(self, path: str) -> bool:
        """Whether the file at ``path`` was read and is a Python module."""
        return isinstance(self._modules.get(path), Module)

    def neighbours(self, module: Module, names: frozenset[str]) -> tuple[str, ...]:
        """Other Python files in the module's folder and in the folders beside it that mention one of ``names``."""
        found = self._disk.neighbours(module.path, names)
        self._asked.setdefault(module.path, Asked()).neighbours[module.path, names] = found
        return found

    def seen_from(self, path: str) -> tuple[dict[str, bytes | None], Asked]:
        """All that was looked at so far on behalf of the module at ``path``, directly or through other modules.

        Returns the contents of files (None for one that could not be read) and
        the questions asked of the disk.  As what is known of a module is shared,
        this may hold what only other modules needed, but it never lacks anything.

        Raises RecursionError where a file was nested too deeply for the stack
        that was left, so that another run may see more.
        """
        contents: dict[str, bytes | None] = {}
        asked = Asked()
        pending = [path]
        while pending:
            current = pending.pop()
            if current in contents or current not in self._modules:
                continue
            known = self._modules[current]
            if isinstance(known, UnreadableSource) and isinstance(known.__cause__, RecursionError | MemoryError):
                raise RecursionError(str(known))
            contents[current] = known.source.data if isinstance(known, Module) else self._unread[current]
            if current in self._asked:
                asked.add(self._asked[current])
                pending += self._asked[current].files()
        return contents, asked

    def resolve(self, module: Module, dotted: str) -> Resolved:
        """What ``dotted`` (``a.b.C``) means in ``module``."""
        key = (module.path, dotted)
        known = self._resolved.get(key)
        if known is None:
            self._asking = self._asked.setdefault(module.path, Asked())
            known = self._resolved[key] = self._resolve(module, dotted, _MAX_HOPS)
        return known

    def bound(self, module: Module, name: str) -> tuple[Module, Binding | None]:
        """What ``name`` is bound to in ``module`` itself or where it was imported from, aliases not followed."""
        for _ in range(_MAX_HOPS):
            binding = module.names.get(name) or module.local_import(name)
            if not isinstance(binding, ImportedName) or binding.name is None:
                return module, binding
            source = self._load(module, binding.module, binding.level)
            if source is None or source.module is None:
                break
            module, name = source.module, binding.name
        return module, None

    def _resolve(self, module: Module, dotted: str, hops: int) -> Resolved:
        head, _, rest = dotted.partition(".")
        binding = module.names.get(head) or module.local_import(head)
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
        stem = self._asking.finds[folder, dotted] = self._disk.finds(folder, dotted)
        return None if stem is None else self._at(stem)

    def _at(self, stem: str) -> ModuleSymbol | None:
        path = self._asking.stands[stem] = self._disk.stands(stem)
        if path is None:
            return None
        if path == FOLDER:
            return ModuleSymbol(None, stem)
        try:
            loaded = self.module(path)
        except UnreadableSource:
            return None
        return ModuleSymbol(loaded, stem if os.path.basename(path) == "__init__.py" else "")


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
