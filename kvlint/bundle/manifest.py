"""``fixes/manifest.toml``: what the bundle knows of each release, as data that is checked when it is read.

The file's format is version 1:

- ``[[release]]``: ``package``, ``version``; ``patch`` is the file beside the manifest, left out where there is none;
  ``fixes`` are the names of the edits, ``closed`` the codes that the patch takes away wholly, ``remaining`` those that
  it leaves findings of, or, where there is no patch, those that the release has.  A release without either is not
  affected.  ``insufficient`` is why there is no patch: a code of `kvlint.bundle.CLEARED`, and the places in the
  released files (``path:line``) whose finding the safe fixes leave.
- ``[[release.file]]``: ``path`` below the folder that holds the package, ``before`` and ``after`` the SHA-256 of its
  bytes, ``closed`` the findings that go, by code.
- ``[[release.writer]]``: a status writer that the patch mends, ``name`` and ``path``, and its transition table
  ``before`` and ``after``, in kvlint's notation.
- ``[[release.result]]``: what a tool measured on this release: ``tool`` (``explore`` or ``drill``), ``state``
  (``before`` or ``after`` the patch), ``kvlint`` (the version that measured), ``figures`` (names to numbers, texts or
  flags).  Written by hand or by those tools; kept when the rest is made anew.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from packaging.utils import canonicalize_name
from packaging.version import Version

from kvlint.bundle import BundleError
from kvlint.bundle.requirements import version_of

FORMAT = 1
NAME = "manifest.toml"

Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Code = Annotated[str, Meta(pattern="^KVL[0-9]{3}$")]


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of the manifest."""


class FileEntry(_Entry, frozen=True):
    """A file that a patch changes."""

    path: str
    before: Digest
    after: Digest
    closed: dict[Code, int]


class WriterEntry(_Entry, frozen=True):
    """A status writer that a patch mends, and its transition tables."""

    name: str
    path: str
    before: str
    after: str


class ResultEntry(_Entry, frozen=True):
    """What a tool measured on a release."""

    tool: Literal["explore", "drill"]
    state: Literal["before", "after"]
    kvlint: str
    figures: dict[str, bool | int | float | str]


class ReleaseEntry(_Entry, frozen=True, rename={"files": "file", "writers": "writer", "results": "result"}):
    """What the bundle knows of a release."""

    package: str
    version: str
    patch: Annotated[str, Meta(pattern=r"^[\w.+-]+\.patch$")] | None = None
    fixes: tuple[str, ...] = ()
    closed: tuple[Code, ...] = ()
    remaining: tuple[Code, ...] = ()
    insufficient: dict[Code, tuple[str, ...]] = {}
    files: tuple[FileEntry, ...] = ()
    writers: tuple[WriterEntry, ...] = ()
    results: tuple[ResultEntry, ...] = ()

    @property
    def title(self) -> str:
        """``sglang 0.5.14``."""
        return f"{self.package} {self.version}"

    @property
    def affected(self) -> bool:
        """Whether the release has findings."""
        return bool(self.closed or self.remaining or self.files)


class Manifest(_Entry, frozen=True, rename={"releases": "release"}):
    """The whole file; releases in the order of package and version."""

    format: Literal[1]
    releases: tuple[ReleaseEntry, ...] = ()

    def find(self, package: str, version: str) -> ReleaseEntry | None:
        """The entry of a release, however its name and version are spelled."""
        name, wanted = canonicalize_name(package), version_of(version)
        for entry in self.releases:
            if entry.package == name and version_of(entry.version) == wanted:
                return entry
        return None

    def clean_since(self, entry: ReleaseEntry) -> str | None:
        """The version after ``entry`` from which on no release of the package is affected; None where there is none.

        Pre-releases do not count, as an installer does not choose them.
        """
        here, since = Version(entry.version), None
        for other in sorted(self.releases, key=lambda other: Version(other.version), reverse=True):
            version = Version(other.version)
            if other.package != entry.package or version.is_prerelease:
                continue
            if version <= here or other.affected:
                break
            since = other.version
        return since


def bundle_folder() -> Path:
    """Where the patches and their manifest are: in the installed package, or beside it in a checkout.

    Raises BundleError.
    """
    here = Path(__file__).resolve().parent
    for folder in (here / "fixes", here.parent.parent / "fixes"):
        if (folder / NAME).is_file():
            return folder
    raise BundleError("the patch bundle is missing from this installation of kvlint; install flake8-kvlint again")


def load(folder: Path | None = None) -> Manifest:
    """The manifest in ``folder``, the bundle's own if None; raises BundleError naming what is wrong with it."""
    path = (folder or bundle_folder()) / NAME
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BundleError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BundleError(f"{path}: is not valid TOML: {error}") from error
    if document.get("format") != FORMAT:
        raise BundleError(f"{path}: has format {document.get('format')!r}, this kvlint reads format {FORMAT}")
    try:
        manifest = msgspec.convert(document, Manifest)
    except msgspec.ValidationError as error:
        raise BundleError(f"{path}: {error}") from error
    for entry in manifest.releases:
        if reason := _contradiction(entry):
            raise BundleError(f"{path}: {entry.title}: {reason}")
    if len({(entry.package, entry.version) for entry in manifest.releases}) < len(manifest.releases):
        raise BundleError(f"{path}: a release is listed twice")
    return manifest


def affected_releases(package: str) -> Mapping[Version, bool]:
    """Whether each release of a distribution that the bundle knows is affected; empty where there is no bundle."""
    try:
        manifest = load()
    except BundleError:
        return {}
    return {Version(entry.version): entry.affected for entry in manifest.releases if entry.package == package}


def render(entries: Iterable[ReleaseEntry]) -> str:
    """The manifest as TOML, the same bytes for the same entries."""
    ordered = sorted(entries, key=lambda entry: (entry.package, Version(entry.version)))
    head = (
        "# Made by tools/generate_fixes.py, read by `kvlint patch`; kvlint/bundle/manifest.py describes the format.\n"
        f"format = {FORMAT}\n"
    )
    return head + "".join(line + "\n" for entry in ordered for line in _lines(entry))


def _contradiction(entry: ReleaseEntry) -> str | None:
    if version_of(entry.version) is None:
        return f"{entry.version!r} is no version"
    if entry.package != canonicalize_name(entry.package):
        return f"the package is to be written {canonicalize_name(entry.package)!r}"
    if (entry.patch is None) != (not entry.files):
        return "a patch without files, or files without a patch"
    if entry.insufficient and entry.patch is not None:
        return "a patch, and a reason why there is none"
    if not {*entry.insufficient} <= {*entry.remaining}:
        return "a code that the fixes leave is not among those that remain"
    return None


def _lines(entry: ReleaseEntry) -> Iterator[str]:
    yield from ("", "[[release]]")
    for key in ("package", "version", "patch", "fixes", "closed", "remaining", "insufficient"):
        value = getattr(entry, key)
        if value is not None and value not in ((), {}):
            yield f"{key} = {_value(value)}"
    for key, tables in (("file", entry.files), ("writer", entry.writers), ("result", entry.results)):
        for table in tables:
            yield from ("", f"[[release.{key}]]")
            for name in table.__struct_fields__:
                yield f"{name} = {_value(getattr(table, name))}"


def _value(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case tuple():
            return f"[{', '.join(map(_value, value))}]"
        case dict():
            return (
                f"{{ {', '.join(f'{_key(key)} = {_value(held)}' for key, held in value.items())} }}" if value else "{}"
            )
        case _:
            # A string of JSON is one of TOML; DEL alone has to be escaped besides.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key)
