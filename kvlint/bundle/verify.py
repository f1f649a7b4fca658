"""Whether the bundle is what the released packages give: everything made anew and compared byte for byte."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from kvlint.bundle import BundleError
from kvlint.bundle.fetch import Releases
from kvlint.bundle.generate import Made, make
from kvlint.bundle.manifest import Manifest, ReleaseEntry, load, render
from kvlint.bundle.pool import Progress, each
from kvlint.report.audit_model import Failure


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many releases were compared, what differs, and which releases could not be had."""

    compared: int
    differences: tuple[str, ...]
    failures: tuple[Failure, ...]


def verify(
    releases: Releases,
    entries: Sequence[ReleaseEntry],
    folder: Path,
    *,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Make what the bundle in ``folder`` has of each release anew, and compare; raises BundleError."""
    manifest = load(folder)
    found: list[str] = []
    failures: list[Failure] = []
    compared = 0
    chosen = [(entry.package, entry.version) for entry in entries]
    for outcome in each(make, releases, chosen, jobs=jobs, progress=progress):
        if isinstance(outcome, Made):
            compared += 1
            found += differences(outcome, manifest, folder)
        else:
            failures.append(outcome)
    return Comparison(compared, tuple(sorted(found)), tuple(failures))


def differences(made: Made, manifest: Manifest, folder: Path) -> Iterator[str]:
    """How ``made`` differs from the bundle in ``folder``; measured results are no part of it.  Raises BundleError."""
    entry = made.entry
    listed = manifest.find(entry.package, entry.version)
    if listed is None:
        yield f"{entry.title}: is not in the manifest"
        return
    if render([replace(listed, results=())]) != render([entry]):
        yield f"{entry.title}: its entry in the manifest differs"
    path = folder / f"{entry.package}-{entry.version}.patch"
    try:
        shipped = path.read_bytes() if path.exists() else None
    except OSError as error:
        raise BundleError(f"{path}: cannot be read: {error.strerror or error}") from error
    if shipped != made.patch:
        yield f"{entry.title}: {_told(path.name, shipped, made)}"


def _told(name: str, shipped: bytes | None, made: Made) -> str:
    if shipped is None:
        return f"{name} is missing"
    if made.patch is not None:
        return f"{name} differs"
    if made.entry.insufficient:
        return f"{name} is there, but the safe fixes are not enough for this release"
    return f"{name} is there, but nothing is to be mended"
