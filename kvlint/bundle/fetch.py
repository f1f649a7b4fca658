"""Where releases come from: an index, by way of pip and the cache, or whatever else offers the same two questions."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kvlint.bundle import BundleError, pip
from kvlint.bundle.cache import Archive, Cache, cache_folder
from kvlint.bundle.source_index import download_source

if TYPE_CHECKING:
    from packaging.version import Version

# What decides which files an index serves under a name.
_INDEX_SETTINGS = ("index-url", "extra-index-url", "find-links", "no-index")


class NoSuchRelease(BundleError):
    """The index answered, and has no release of that name and version."""


class Releases(Protocol):
    """A source of releases; it travels to the processes that analyse them."""

    def versions(self, name: str) -> tuple[Version, ...]:
        """Every version of a distribution, oldest first; raises BundleError."""

    def archive(self, name: str, version: str) -> Archive:
        """The wheel of a release, or its source distribution; raises BundleError."""


@dataclass(frozen=True)
class IndexReleases:
    """Releases of the index that pip is configured for, kept in ``folder``; ``settings`` are pip's, None to ask it."""

    folder: Path
    settings: dict[str, str] | None = field(default=None, repr=False)

    def versions(self, name: str) -> tuple[Version, ...]:
        """Every version of a distribution, oldest first; raises PipFailed."""
        return pip.versions(name)

    def archive(self, name: str, version: str) -> Archive:
        """The wheel of a release, or else its source distribution; raises BundleError."""
        settings = self._settings()
        cache = Cache(self.folder, "\n".join(settings.get(key, "") for key in _INDEX_SETTINGS))
        if found := cache.find(name, version):
            return found
        with cache.lock(name, version):
            # Somebody else may have fetched it while this process waited.
            if found := cache.find(name, version):
                return found
            with cache.scratch() as folder:
                return cache.keep(name, version, self._download(name, version, folder))

    def _download(self, name: str, version: str, folder: Path) -> Path:
        try:
            return pip.download_wheel(name, version, folder)
        except pip.NoMatch as error:
            settings = {"index-url": pip.default_index(), **self._settings()}
            source = download_source(name, version, folder, settings)
            if source is None:
                raise NoSuchRelease(self._what_there_is(name, version)) from error
            return source

    def _settings(self) -> dict[str, str]:
        return pip.settings() if self.settings is None else self.settings

    def _what_there_is(self, name: str, version: str) -> str:
        try:
            listed = pip.versions(name)
        except pip.NoMatch:
            return f"{name}=={version}: the package index knows no distribution called {name}; check the spelling"
        newest = ", ".join(str(known) for known in listed[-5:])
        return f"{name}=={version}: there is no such release; the newest of {len(listed)} are {newest}"


def configured_releases() -> IndexReleases:
    """The releases of the user's index, in the user's cache; raises BundleError where there is no place for one."""
    return IndexReleases(cache_folder())
