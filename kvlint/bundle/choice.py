"""Which release's patch belongs to files on disk: told by the installed version, or by the files themselves."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata

from packaging.utils import canonicalize_name

from kvlint.bundle import BundleError
from kvlint.bundle.installation import Found, Locate, State, look
from kvlint.bundle.manifest import Manifest, ReleaseEntry
from kvlint.bundle.requirements import version_of
from kvlint.source.display import one_line

# Where a package is below a checkout, an environment, or the folder around either.
_USUAL_FOLDERS = (("*",), ("lib", "python*", "site-packages"), ("*", "lib", "python*", "site-packages"))


class Unknown(BundleError):
    """Files that no patch of the bundle is for."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A release of the bundle, and where its files are on this disk."""

    entry: ReleaseEntry
    locate: Locate


def of_installed(manifest: Manifest, name: str) -> Choice:
    """The release of an installed distribution, from its metadata alone: nothing is imported.

    Raises Unknown where it is not installed, or the bundle does not know its release.
    """
    try:
        distribution = metadata.distribution(name)
    except (metadata.PackageNotFoundError, ValueError) as error:
        raise BundleError(
            f"--installed {name}: no distribution of that name is installed beside kvlint; give the folder that holds "
            "the package, e.g. the site-packages of its environment"
        ) from error
    version = distribution.version
    entry = manifest.find(name, version)
    if entry is None:
        raise Unknown(_no_patch(manifest, canonicalize_name(name), version, f"--installed {name}"))
    return Choice(entry, lambda path: os.path.abspath(str(distribution.locate_file(path))))


def of_folder(manifest: Manifest, folder: str, release: str | None = None) -> Choice:
    """The release in ``folder``: the one named, the one whose metadata is there, or the one whose files are.

    Raises BundleError where there is no package in ``folder``, Unknown where no patch is for what is there.
    """

    def locate(path: str) -> str:
        return os.path.join(os.path.abspath(folder), path)

    packages = [package for package in _packages(manifest) if os.path.isdir(locate(package))]
    if not packages:
        raise BundleError(f"{one_line(folder)}: {_where_to_look(manifest, folder)}")
    for package in packages:
        version = release or _version_beside(folder, package)
        if version is not None:
            entry = manifest.find(package, version)
            if entry is None:
                raise Unknown(_no_patch(manifest, package, version, one_line(folder)))
            return Choice(entry, locate)
    fitting = [entry for entry in manifest.releases if entry.files and _fits(look(entry, locate))]
    if not fitting:
        raise Unknown(
            f"{one_line(folder)}: its files are not those of any release that has a patch (a fork, another release or "
            f"local edits); run `kvlint fix {one_line(folder)}`, which reads the code itself"
        )
    # Releases may share some files: the one that accounts for most of what is there.
    return Choice(max(fitting, key=lambda entry: (len(entry.files), version_of(entry.version))), locate)


def _fits(found: tuple[Found, ...]) -> bool:
    return all(item.state in (State.ORIGINAL, State.PATCHED) for item in found)


def _packages(manifest: Manifest) -> Iterator[str]:
    yield from dict.fromkeys(entry.package for entry in manifest.releases)


def _version_beside(folder: str, package: str) -> str | None:
    """The version in the metadata beside a package, None where there is none or several."""
    pattern = os.path.join(glob.escape(folder), "*.dist-info")
    versions = set()
    for path in glob.glob(pattern):
        name, _, version = os.path.basename(path).removesuffix(".dist-info").rpartition("-")
        if canonicalize_name(name) == package and version_of(version) is not None:
            versions.add(version)
    return versions.pop() if len(versions) == 1 else None


def _where_to_look(manifest: Manifest, folder: str) -> str:
    if not os.path.isdir(folder):
        return "is no folder; give the one that holds the package, e.g. site-packages"
    for package in _packages(manifest):
        if os.path.basename(os.path.abspath(folder)) == package:
            return f"is the package itself; give the folder that holds it, {os.path.dirname(os.path.abspath(folder))}"
        for below in _USUAL_FOLDERS:
            for inner in glob.glob(os.path.join(glob.escape(folder), *below, package)):
                return f"holds the package further down; give {os.path.dirname(inner)}"
    known = ", ".join(_packages(manifest)) or "none"
    return f"holds no package that the bundle has patches for ({known})"


def _no_patch(manifest: Manifest, package: str, version: str, where: str) -> str:
    known = [entry.version for entry in manifest.releases if entry.package == package]
    if not known:
        return f"{where}: the bundle has no patches for {package}; run `kvlint fix`, which reads the code itself"
    return (
        f"{where}: the bundle does not know {package} {one_line(version)} (it knows {known[0]} to {known[-1]}); run "
        "`kvlint fix`, which reads the code itself, or install a newer kvlint"
    )
