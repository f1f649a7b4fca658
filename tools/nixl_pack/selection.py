"""What of NIXL's wheels a UCX transfer needs: the Python package, one plugin, UCX's modules, and their libraries.

The layout is that of the wheels of nixl-cu12 and nixl-cu13 0.7.1 to 1.5.1.
NIXL looks for its plugins in the folder ``plugins`` beside libnixl.so; UCX
looks for its modules in the folder ``ucx`` beside libucs (its
``UCX_MODULE_DIR``). As paths are kept, both still find theirs.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nixl_pack import PackError, elf
from nixl_pack.wheels import Wheel

PLUGIN = "libplugin_UCX.so"
CORE = "libnixl.so"

#: Modules of UCX beside what is linked into libuct (shared memory, TCP): copies within a host, CUDA memory.
MODULES = ("cma", "cuda", "cuda_gdrcopy")

#: Kernels that run on the device; they take most of the wheels, and no transfer over UCX needs them.
_DEVICE_API = re.compile(r"nixl_ep($|_)")
_MODULE = re.compile(r"^lib(?:uct|ucm)_(\w+)\.so(?:\.|$)")


@dataclass(frozen=True, slots=True)
class Selection:
    """Members of a wheel that go into the bundle, and what was found out on the way."""

    members: tuple[str, ...]
    modules: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def select_backend(wheel: Wheel, modules: Sequence[str], dynamic: Callable[[str], elf.Dynamic]) -> Selection:
    """What a UCX transfer needs of ``nixl-cu12`` or ``nixl-cu13``, ``modules`` of UCX included.

    Raises PackError if the wheel has no such plugin or not the usual layout.
    """
    package = wheel.name.replace("-", "_")
    own = [name for name in wheel.members if name.startswith(f"{package}/")]
    if not own:
        raise PackError(f"{wheel.path}: holds no package {package}")
    libraries = [name for name in wheel.members if elf.is_library(name)]
    found = _modules(libraries)
    taken = sorted(set(modules) & set(found))
    roots = [name for name in own if elf.is_library(name)] + _plugin(wheel, libraries)
    roots += [path for module in taken for path in found[module]]
    closure = elf.close(roots, libraries, dynamic)
    members = {*own, *closure.inside, *wheel.about()}
    return Selection(tuple(sorted(members)), tuple(taken), tuple(sorted(set(found) - set(taken))))


def _plugin(wheel: Wheel, libraries: Sequence[str]) -> list[str]:
    """The UCX plugin that NIXL loads. Wheels hold a second copy, which auditwheel repaired and nothing loads."""
    cores = {posixpath.dirname(name) for name in libraries if posixpath.basename(name) == CORE}
    plugins = [name for name in libraries if posixpath.basename(name) == PLUGIN]
    loaded = [name for name in plugins if posixpath.dirname(posixpath.dirname(name)) in cores]
    if not loaded:
        where = f"only in {', '.join(plugins)}" if plugins else "nowhere"
        raise PackError(
            f"{wheel.path}: {PLUGIN} is expected in the folder plugins beside {CORE}, and is {where}; this release's "
            "layout is not known here: ask for another one with --nixl"
        )
    return loaded


def _modules(libraries: Sequence[str]) -> dict[str, list[str]]:
    """Modules of UCX by their names; one can have several files, as wheels hold copies in place of links."""
    found: dict[str, list[str]] = {}
    for path in libraries:
        folder, base = posixpath.split(path)
        if posixpath.basename(folder) == "ucx" and (match := _MODULE.match(base)):
            found.setdefault(match[1], []).append(path)
    return found


def select_all(wheel: Wheel) -> Selection:
    """A distribution as it is installed, less scripts, headers and the device API.

    Of ``nixl`` that leaves the package which dispatches to the one for the
    host's CUDA.
    """
    return Selection(tuple(name for name in wheel.contents() if installed_path(name) is not None and not _device(name)))


def _device(name: str) -> bool:
    return _DEVICE_API.match(name.partition("/")[0]) is not None


def installed_path(name: str) -> str | None:
    """Where below site-packages a member of a wheel is installed; None for what belongs elsewhere."""
    top, _, rest = name.partition("/")
    if not top.endswith(".data"):
        return name
    scheme, _, path = rest.partition("/")
    return path if scheme in ("purelib", "platlib") else None
