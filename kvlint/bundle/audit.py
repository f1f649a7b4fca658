"""Audits: which releases are meant, what is found in each, and the first later one that is not affected."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from packaging.version import Version

from kvlint.bundle import BundleError
from kvlint.bundle.fetch import Releases
from kvlint.bundle.pool import Progress, each
from kvlint.bundle.requirements import Wanted, version_of
from kvlint.bundle.survey import survey, targets_below
from kvlint.bundle.trees import unpacked
from kvlint.processes import available
from kvlint.report.audit_model import Audit, Failure, Release
from kvlint.source.display import Target

#: Whether a release of a distribution is affected, as far as that is known without looking.
Known = Mapping[Version, bool]


@dataclass(frozen=True, slots=True)
class Installed:
    """An installed distribution and its files."""

    name: str
    version: str
    targets: tuple[Target, ...]


def _nothing_known(_: str) -> Known:
    return {}


@dataclass
class Run:
    """One audit: ``known`` gives, for a distribution, what need not be looked at again to tell what fixed it."""

    releases: Releases
    jobs: int | None = None
    look_ahead: bool = True
    known: Callable[[str], Known] = _nothing_known
    progress: Progress | None = None

    def __call__(self, wanted: Sequence[Wanted], installed: Sequence[Installed] = ()) -> Audit:
        """Audit every release that is ``wanted`` or ``installed``; what fails does not cost the others' results."""
        failures: list[Failure] = []
        chosen: dict[tuple[str, str], str] = {}
        for item in wanted:
            try:
                for version in self._versions_of(item):
                    chosen.setdefault((item.name, str(version)), item.text)
            except BundleError as error:
                failures.append(Failure(item.text, str(error)))
        here = [_judged_installed(item) for item in installed]
        found: list[Release] = []
        failed: list[Failure] = []
        for outcome in self.judge(tuple(chosen)):
            if isinstance(outcome, Release):
                found.append(outcome)
            else:
                failed.append(outcome)
        found.sort(key=_order)
        failures += sorted(failed, key=lambda failure: failure.requirement)
        notes: list[str] = []
        fixes = _Fixes(self, (*found, *here), notes)
        fixed = tuple(fixes.named(release) for release in (*here, *found))
        return Audit(fixed, tuple(failures), tuple(dict.fromkeys(notes)))

    def _versions_of(self, item: Wanted) -> Iterable[Version]:
        if item.pinned is not None:
            return (item.pinned,)
        listed = self.releases.versions(item.name)
        matching = item.matching(listed)
        if not matching:
            some = ", ".join(str(version) for version in listed[-5:])
            raise BundleError(f"{item.text}: no release matches; the newest of {len(listed)} are {some}")
        return matching

    def judge(self, chosen: Sequence[tuple[str, str]]) -> Iterator[Release | Failure]:
        """Judge releases, given by name and version, in no particular order."""
        return each(judge, self.releases, chosen, jobs=self.jobs, progress=self.progress)


class _Fixes:
    """Finds the first later release that is not affected, looking at no more releases than that takes."""

    def __init__(self, run: Run, found: Sequence[Release], notes: list[str]) -> None:
        self._run = run
        self._notes = notes
        self._judged: dict[str, dict[Version, bool]] = {}
        self._known: dict[str, Known] = {}
        self._listed: dict[str, tuple[Version, ...]] = {}
        for release in found:
            self._note(release)

    def named(self, release: Release) -> Release:
        """``release`` with the release that fixed it."""
        from msgspec.structs import replace

        here = version_of(release.version)
        if not release.affected or here is None:
            return release
        fixed = self._first_clean(release.package, here)
        return replace(release, fixed_in=None if fixed is None else str(fixed))

    def _first_clean(self, package: str, here: Version) -> Version | None:
        while True:
            clean: Version | None = None
            unknown: list[Version] = []
            for version in self._later(package, here):
                affected = self._state(package, version)
                if affected is None:
                    unknown.append(version)
                elif not affected:
                    clean = version
                    break
            if not unknown or not self._run.look_ahead:
                return clean
            # A batch as large as can be judged side by side: most are affected, one of them need not be.
            self._look_at(package, unknown[: max(1, available(self._run.jobs))])

    def _later(self, package: str, here: Version) -> list[Version]:
        versions = {*self._judged.get(package, {})}
        if self._run.look_ahead:
            versions |= {*self._known_of(package), *self._list(package)}
        ordinary = (version for version in versions if version > here and not version.is_devrelease)
        return sorted(version for version in ordinary if here.is_prerelease or not version.is_prerelease)

    def _state(self, package: str, version: Version) -> bool | None:
        judged = self._judged.get(package, {}).get(version)
        return self._known_of(package).get(version) if judged is None and self._run.look_ahead else judged

    def _known_of(self, package: str) -> Known:
        if package not in self._known:
            self._known[package] = self._run.known(package)
        return self._known[package]

    def _list(self, package: str) -> tuple[Version, ...]:
        if package not in self._listed:
            try:
                self._listed[package] = self._run.releases.versions(package)
            except BundleError as error:
                self._listed[package] = ()
                self._notes.append(f"later releases of {package} could not be looked up: {error}")
        return self._listed[package]

    def _look_at(self, package: str, versions: Sequence[Version]) -> None:
        for outcome in self._run.judge([(package, str(version)) for version in versions]):
            if isinstance(outcome, Release):
                self._note(outcome)
            else:
                self._notes.append(f"left out while looking for a fixed release: {outcome.message}")
        for version in versions:
            # Whatever could not be judged is not known to be a fix.
            self._judged.setdefault(package, {}).setdefault(version, True)

    def _note(self, release: Release) -> None:
        version = version_of(release.version)
        if version is not None:
            clean = not release.affected and bool(release.backends) and not release.incomplete
            self._judged.setdefault(release.package, {})[version] = not clean


def _order(release: Release) -> tuple[str, Version]:
    return release.package, Version(release.version)


def judge(releases: Releases, name: str, version: str) -> Release:
    """Audit one release; what fixed it is not known yet.  Raises BundleError."""
    with unpacked(releases, name, version) as tree:
        seen = survey(targets_below(str(tree.folder), tree.files), str(tree.folder))
        archive = tree.archive
        return Release(name, version, archive.filename, archive.sha256, seen.backends, incomplete=seen.incomplete)


def _judged_installed(item: Installed) -> Release:
    seen = survey(item.targets, os.getcwd())
    return Release(item.name, item.version, None, None, seen.backends, incomplete=seen.incomplete)
