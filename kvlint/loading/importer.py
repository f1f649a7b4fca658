"""Loads modules of a tree into a table of its own, with stand-ins for all that they import and must not run.

To import is to run: this executes code of the tree. Nothing in kvlint does so but the child processes of
`kvlint explore` and `kvlint drill`.

Every module of a tree gets builtins of its own, whose `__import__` is Importer.import_name(). So sys.modules, sys.path
and the import machinery stay as they are, nothing but the tree's modules sees the stand-ins, trees can be loaded one
after the other, and nothing is written beside the sources.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from kvlint.loading.errors import MARKER, LoadError, Marker, UnforeseenUse, place_of
from kvlint.loading.stand_in import Overlay, Placeholder, StandInModule
from kvlint.loading.system import private_builtins
from kvlint.loading.tree import Tree

#: What is loaded from the tree, with all that is below it; the rest of sglang gets stand-ins.
REAL = (
    "sglang.srt.disaggregation",
    "sglang.srt.distributed.communication_tags",
    "sglang.srt.environ",
    "sglang.srt.utils.network",
)
#: What is below, and is not loaded: the other backends, and what needs a model.
NOT_REAL = tuple(
    f"sglang.srt.disaggregation.{name}" for name in ("ascend", "decode", "encoder", "mooncake", "mori", "prefill")
)
#: Modules of other distributions that are loaded as they are.
SHARED = frozenset({"numpy", "msgspec", "typing_extensions", "packaging"})


class Importer:
    """The modules of one tree.

    Args:
        tree: The tree.
        replaced: Modules in place of others, by name: of the standard library, of other distributions, of sglang.
        shared: Other distributions whose modules are loaded as they are.

    Attributes:
        modules: The modules that were loaded from the tree or took the place of one, by name.
        sources: The bytes of those that were loaded from the tree.
        marker: Tells the stand-ins that code of this tree uses them, and keeps the uses they refused.
    """

    def __init__(self, tree: Tree, replaced: Mapping[str, object], shared: Collection[str] = SHARED) -> None:
        self.tree = tree
        self._shared = frozenset(shared)
        self.modules: dict[str, ModuleType] = {}
        self.sources: dict[str, bytes] = {}
        self.marker = Marker(tree.package)
        self._replaced = dict(replaced)
        self._replaced["importlib"] = StandInModule("importlib", {"import_module": self._import_module})
        self._builtins = {**private_builtins(self.import_name), MARKER: self.marker}

    def load(self, name: str) -> ModuleType:
        """A module of the tree, loaded with all that it imports.

        Raises:
            LoadError: The tree has no such module, or it cannot be loaded; the message says why and where.
        """
        try:
            return self._module(name)
        except (Exception, UnforeseenUse, SystemExit) as error:
            raise LoadError(self._reason(name, error)) from error

    def name(self, module: str, name: str) -> Any:
        """What a module of the tree calls so.

        Raises:
            LoadError: The module cannot be loaded, or has no such name.
        """
        loaded = self.load(module)
        found = getattr(loaded, name, None)
        if found is None:
            raise LoadError(f"{loaded.__file__}: there is no {name}; the backend cannot be built without it.")
        return found

    def guarded(self, what: str, action: Callable[[], Any]) -> Any:
        """What code of the tree returns.

        Args:
            what: What it builds, in words.
            action: Runs it.

        Raises:
            LoadError: It raised something; the message says what and where.
        """
        try:
            return action()
        except LoadError:
            raise
        except UnforeseenUse as error:
            raise LoadError(f"{what} cannot be built: {error}") from error
        except (Exception, SystemExit) as error:
            place = place_of(error, self.tree.package) or str(self.tree.package)
            raise LoadError(f"{place}: {what} cannot be built: {type(error).__name__}: {error}") from error

    def _reason(self, name: str, error: BaseException) -> str:
        if isinstance(error, UnforeseenUse):
            return f"{name} cannot be loaded: {error}"
        place = place_of(error, self.tree.package) or str(self.tree.package)
        kind = type(error).__name__
        text = error.msg if isinstance(error, SyntaxError) else str(error)
        return f"{place}: {name} cannot be loaded: {kind}: {text}"

    def import_name(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002 (the names of __import__)
        locals: object = None,  # noqa: A002, ARG002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """What an import statement in the tree gives: the `__import__` of its modules."""
        if level:
            package = str((globals or {}).get("__package__") or "")
            name = importlib.util.resolve_name("." * level + name, package)
        module = self._module(name)
        if not fromlist:
            return module if level else self._module(name.partition(".")[0])
        for wanted in fromlist:
            self._submodule(module, name, wanted)
        return module

    def _import_module(self, name: str, package: str | None = None) -> ModuleType:
        return self._module(importlib.util.resolve_name(name, package) if name.startswith(".") else name)

    def _submodule(self, module: ModuleType, name: str, wanted: str) -> None:
        """Make sure that `from module import wanted` finds a submodule that was not loaded yet."""
        found = module.__dict__.get(wanted)
        if found is not None and not isinstance(found, Placeholder):
            return
        full = f"{name}.{wanted}"
        in_tree = _is_sglang(full) and self.tree.has(full)
        as_it_is = self._is_as_it_is(name) and not hasattr(module, wanted) and _exists(full)
        if full in self._replaced or in_tree or as_it_is:
            self._module(full)

    def _is_as_it_is(self, name: str) -> bool:
        top = name.partition(".")[0]
        return top in self._shared or top in sys.stdlib_module_names

    def _module(self, name: str) -> ModuleType:
        module = self.modules.get(name)
        if module is not None:
            return module
        parent_name, _, own_name = name.rpartition(".")
        parent = self._module(parent_name) if parent_name else None
        # A parent may have loaded it on the way.
        module = self.modules.get(name)
        if module is None:
            module = self._find(name, parent, own_name)
        if parent is not None and parent_name in self.modules:
            setattr(parent, own_name, module)
        return module

    def _find(self, name: str, parent: ModuleType | None, own_name: str) -> ModuleType:
        if _is_sglang(name) and name != "sglang" and not self.tree.has(name):
            raise ModuleNotFoundError(f"{self.tree.package} has no module {name}", name=name)
        if name in self._replaced:
            return self._keep(name, self._replaced[name])
        if _is_sglang(name):
            return self._from_tree(name)
        if isinstance(parent, StandInModule):
            return self._keep(name, StandInModule(name))
        if parent is not None and isinstance(found := getattr(parent, own_name, None), ModuleType):
            return found
        if any(other.startswith(f"{name}.") for other in self._replaced):
            # A package of which only a part is replaced needs a module of its own to hold that part.
            return self._keep(name, Overlay(importlib.import_module(name), {}))
        if self._is_as_it_is(name):
            return importlib.import_module(name)
        raise ModuleNotFoundError(f"{name} is not at hand here, and no stand-in is known for it", name=name)

    def _keep(self, name: str, module: object) -> ModuleType:
        if module is None:
            raise ModuleNotFoundError(f"{name} was ruled out, as None stands for it", name=name)
        # An engine's substitute may be any object with a module's names.
        self.modules[name] = module  # type: ignore[assignment]
        return self.modules[name]

    def _from_tree(self, name: str) -> ModuleType:
        if not _is_real(name):
            return self._keep(name, StandInModule(name))
        source, folder = self.tree.source(name), self.tree.folder(name)
        module = ModuleType(name)
        module.__dict__["__builtins__"] = self._builtins
        module.__package__ = name if folder else name.rpartition(".")[0]
        if folder:
            module.__path__ = [str(folder)]
        self.modules[name] = module
        if source:
            module.__file__ = str(source)
            self._run(module, source)
        return module

    def _run(self, module: ModuleType, source: Path) -> None:
        name = module.__name__
        before = sys.modules.get(name)
        # dataclasses and typing look the module of a class up while the class is made.
        sys.modules[name] = module
        try:
            exec(self._code(name, source), module.__dict__)
        except BaseException:
            del self.modules[name]
            raise
        finally:
            if before is None:
                del sys.modules[name]
            else:
                sys.modules[name] = before

    def _code(self, name: str, source: Path) -> CodeType:
        self.sources[name] = source.read_bytes()
        with warnings.catch_warnings():
            # Warnings about the tree's code are its authors' business, not the user's.
            warnings.simplefilter("ignore")
            return compile(self.sources[name], source, "exec", dont_inherit=True)


def _exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        # What it would be a part of is no package.
        return False


def _is_sglang(name: str) -> bool:
    return name == "sglang" or name.startswith("sglang.")


def _is_real(name: str) -> bool:
    return _is_below(name, REAL) and not _is_below(name, NOT_REAL)


def _is_below(name: str, packages: Sequence[str]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)
