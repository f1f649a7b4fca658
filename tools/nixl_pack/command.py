"""The command line of tools/pack_nixl.py."""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from nixl_pack import PackError
from nixl_pack.bundle import README, Bundle, write
from nixl_pack.requirements import resolve
from nixl_pack.selection import MODULES
from nixl_pack.sources import FolderSource, PipSource, Source
from nixl_pack.target import MACHINES, Target
from nixl_pack.texts import modules_of, readme, summary
from nixl_pack.wheels import Wheel

ROOT = Path(__file__).resolve().parent.parent.parent

CUDA = ("12", "13")

#: Large, and on every host that can run a model server.
HOST = ("numpy", "torch")
#: Requirements of kvlint that only other commands than `check` and `drill` import.
UNUSED = ("greenlet", "libcst")

_DESCRIPTION = """\
Make an archive of kvlint, NIXL with its UCX plugin, and what `kvlint drill` needs besides, for a host that has Python,
numpy and torch, but no package index.
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to pack."""

    target: Target
    cuda: str
    nixl: str | None
    #: None: the usual ones, as far as the release has them.
    modules: tuple[str, ...] | None
    host: tuple[str, ...]


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status is 2 if no bundle could be made."""
    options = _parser().parse_args(arguments)
    target = Target(options.python, options.glibc, options.machine)
    host = tuple(dict.fromkeys((*HOST, *options.host)))
    plan = Plan(target, options.cuda, options.nixl, options.modules, host)
    try:
        _pack(plan, options.source, options.keep, options.output)
    except PackError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; no archive was written", file=sys.stderr)
        return 130
    return 0


def collect(plan: Plan, kvlint: Wheel, source: Source) -> Bundle:
    """Everything that goes in. Raises PackError."""
    python = SpecifierSet(kvlint.metadata.get("Requires-Python", ""))
    if not python.contains(plan.target.python_version):
        raise PackError(f"kvlint needs Python {python}, and --python is {plan.target.python_version}")
    backend_name = canonicalize_name(f"nixl-cu{plan.cuda}")
    pinned = f"=={plan.nixl}" if plan.nixl else ""
    (backend,) = source.get([Requirement(f"{backend_name}{pinned}")])
    # Releases of both come in pairs, and the newest of one may lack the other.
    (shim,) = source.get([Requirement(f"nixl=={backend.version}")])
    others = [f"nixl-cu{cuda}" for cuda in CUDA if cuda != plan.cuda]
    roots = [Requirement(f"{kvlint.name}[drill]"), Requirement(f"{backend.name}=={backend.version}")]
    without = {*plan.host, *UNUSED, *others}
    bundle = Bundle(plan.target)
    for wheel in resolve(roots, [kvlint, backend, shim], source, plan.target, without):
        if wheel is backend:
            bundle.add_backend(wheel, MODULES if plan.modules is None else plan.modules)
            _require_modules(bundle, plan)
        else:
            bundle.add(wheel)
    return bundle


def build_kvlint(folder: Path) -> Wheel:
    """kvlint's own wheel, of this checkout. Raises PackError if it cannot be built."""
    try:
        (built,) = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    except Exception as error:
        # A build backend runs whatever hooks and metadata the checkout has.
        raise PackError(f"{ROOT}: kvlint's wheel cannot be built: {error}") from error
    return Wheel.open(Path(built))


def _pack(plan: Plan, wheels: Path | None, keep: Path | None, output: Path | None) -> None:
    with tempfile.TemporaryDirectory(prefix="pack-nixl-") as scratch:
        kvlint = build_kvlint(Path(scratch))
        bundle = collect(plan, kvlint, _source(plan.target, wheels, keep, Path(scratch)))
        nixl = next(part.wheel.version for part in bundle.parts if part.wheel.name == "nixl")
        usual = f"kvlint-nixl-{nixl}-cu{plan.cuda}-{plan.target.abi}-{plan.target.machine}.tar.xz"
        path = Path(usual) if output is None else output
        bundle.files[README] = readme(bundle, plan.cuda, plan.host)
        print(*summary(bundle, MODULES if plan.modules is None else ()), sep="\n")
        unpacked = sum(map(len, bundle.files.values()))
        size = write(path, bundle.files, plan.target.machine)
    print(f"{path}: {size / (1 << 20):.2f} MiB, {unpacked / (1 << 20):.2f} MiB unpacked, {len(bundle.files)} files")


def _require_modules(bundle: Bundle, plan: Plan) -> None:
    """Raises PackError for a module that was asked for by its name and is not there."""
    present, left_out = modules_of(bundle)
    if absent := sorted(set(plan.modules or ()) - set(present)):
        known = ", ".join(sorted([*present, *left_out])) or "none"
        raise PackError(f"--modules: the wheel of nixl-cu{plan.cuda} has no module {absent[0]} of UCX; it has {known}")


def _source(target: Target, wheels: Path | None, keep: Path | None, scratch: Path) -> Source:
    if wheels is not None:
        return FolderSource(wheels, target)
    folder = keep or scratch / "wheels"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PackError(f"{folder}: cannot be made: {error.strerror or error}; choose another --keep") from error
    return PipSource(folder, target)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pack_nixl.py", description=_DESCRIPTION, allow_abbrev=False)
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    parser.add_argument(
        "--python", type=_python, default=running, metavar="3.N", help="the host's Python (%(default)s)"
    )
    parser.add_argument(
        "--cuda", choices=CUDA, required=True, help="the CUDA version that the host's torch is built for"
    )
    parser.add_argument("--machine", choices=MACHINES, default="x86_64", help="the host's processor (%(default)s)")
    parser.add_argument(
        "--glibc", type=_glibc, default="2.28", metavar="2.N", help="the host's C library (%(default)s)"
    )
    parser.add_argument("--nixl", type=_version, metavar="VERSION", help="the release of NIXL (the newest)")
    parser.add_argument(
        "--modules",
        type=_names,
        metavar="NAME,...",
        help=f"modules of UCX, where the release has them ({','.join(MODULES)}); add ib,ib_mlx5 for InfiniBand",
    )
    parser.add_argument(
        "--host",
        action="append",
        type=_name,
        default=[],
        metavar="NAME",
        help="leave out what the host has; repeatable",
    )
    folders = parser.add_mutually_exclusive_group()
    folders.add_argument(
        "--from", dest="source", type=Path, metavar="FOLDER", help="take wheels from there, ask no index"
    )
    folders.add_argument("--keep", type=Path, metavar="FOLDER", help="save downloaded wheels there, for --from")
    parser.add_argument("--output", type=_output, metavar="FILE", help="the archive (kvlint-nixl-….tar.xz here)")
    return parser


def _python(text: str) -> tuple[int, int]:
    if not (match := re.fullmatch(r"3\.(\d{1,2})", text)):
        raise argparse.ArgumentTypeError(f"{text!r} is no version such as 3.12")
    return 3, int(match[1])


def _glibc(text: str) -> tuple[int, int]:
    if not (match := re.fullmatch(r"2\.(\d{1,2})", text)) or int(match[1]) < 17:
        raise argparse.ArgumentTypeError(f"{text!r} is no version such as 2.28, or older than 2.17")
    return 2, int(match[1])


def _version(text: str) -> str:
    try:
        return str(Version(text))
    except InvalidVersion as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no version such as 1.5.1") from error


def _names(text: str) -> tuple[str, ...]:
    names = tuple(filter(None, text.split(",")))
    if odd := [name for name in names if not re.fullmatch(r"[a-z0-9_]+", name)]:
        raise argparse.ArgumentTypeError(f"{odd[0]!r} is no name such as cuda")
    return names


def _name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9]([\w.-]*[A-Za-z0-9])?", text, flags=re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is no name of a distribution")
    name = canonicalize_name(text)
    if name.startswith(("nixl", "flake8-kvlint")):
        raise argparse.ArgumentTypeError(f"{text} is what the bundle is for; it stays in")
    return name


def _output(text: str) -> Path:
    path = Path(text)
    if not text.endswith(".tar.xz") or path.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is no file name that ends in .tar.xz")
    return path
