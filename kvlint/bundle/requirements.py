"""Requirements as they are given on the command line: a distribution and the versions of it that are wanted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from kvlint.bundle import BundleError
from kvlint.source.display import one_line

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet


@dataclass(frozen=True, slots=True)
class Wanted:
    """Releases of one distribution; ``text`` is what the user wrote, ``name`` is normalised (PEP 503)."""

    text: str
    name: str
    specifier: SpecifierSet

    @property
    def pinned(self) -> Version | None:
        """The only version that can match, None if several may: ``==0.5.14``, not ``==0.5.*``."""
        clauses = tuple(self.specifier)
        if len(clauses) != 1 or clauses[0].operator not in {"==", "==="}:
            return None
        return None if clauses[0].version.endswith(".*") else version_of(clauses[0].version)

    def matching(self, versions: Iterable[Version]) -> tuple[Version, ...]:
        """Those of ``versions`` that are wanted, oldest first; without a specifier, the newest alone.

        Pre-releases count where the specifier names one, or nothing else matches (PEP 440).
        """
        found = sorted(self.specifier.filter(versions))
        return tuple(found) if self.specifier else tuple(found[-1:])


def parse(text: str) -> Wanted:
    """``sglang>=0.5.10,<0.5.17`` as data; extras are ignored, as they bring other distributions only.

    Raises BundleError if it is no requirement, names a URL, or is bound to a condition.
    """
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        reason = str(error).splitlines()[0]
        raise BundleError(
            f"{one_line(text)}: is no requirement ({one_line(reason)}); write it as `sglang==0.5.14` or "
            "`sglang>=0.5.10,<0.5.17`"
        ) from error
    if requirement.url is not None:
        raise BundleError(
            f"{one_line(text)}: names a URL; give versions to look up in the index, or run `kvlint check` on the source"
        )
    if requirement.marker is not None:
        raise BundleError(f"{one_line(text)}: a release is the same wherever it runs; leave out what follows the `;`")
    return Wanted(text, canonicalize_name(requirement.name), requirement.specifier)


def version_of(text: str) -> Version | None:
    """``text`` as a version, None where it is none."""
    try:
        return Version(text)
    except InvalidVersion:
        return None
