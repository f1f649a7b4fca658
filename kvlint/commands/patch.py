"""``kvlint patch``: the bundle of generated patches for released packages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import click

from kvlint.commands.progress import Bar
from kvlint.commands.streams import emit, say
from kvlint.source.display import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from kvlint.bundle.choice import Choice
    from kvlint.bundle.installation import Found, Locate
    from kvlint.bundle.manifest import Manifest, ReleaseEntry

_target = click.argument("path", required=False, type=click.Path(), metavar="[PATH]")
_installed = click.option("--installed", metavar="NAME", help="Take an installed distribution; it is not imported.")
_release = click.option(
    "--release", metavar="VERSION", help="The release that PATH holds.  [default: told by its files]"
)
_dry_run = click.option("--dry-run", is_flag=True, help="Say what would be done and write nothing.")
_quiet = click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")


@dataclass(frozen=True, slots=True)
class _Words:
    """What is said of a file in the state ``changing``, and of the others."""

    changing: str
    done: str
    left: str


@click.group(short_help="Patch a released package, or take the patch off.")
def patch() -> None:
    """Generated patches with the safe fixes for released packages, which need no checkout and no analysis."""


@patch.command("list", short_help="List the affected releases and their patches.")
@click.option("--all", "everything", is_flag=True, help="List releases that are not affected, too.")
@click.option("--output-format", type=click.Choice(("text", "json")), default="text", help="[default: text]")
def list_(everything: bool, output_format: str) -> None:
    """List the affected releases: files that the patch changes, codes that it closes, codes that remain.

    A release has no patch where the safe fixes leave findings of KVL001, KVL002 or KVL004.
    """
    from kvlint.bundle.manifest import load

    entries = [entry for entry in load().releases if everything or entry.affected]
    emit(_as_json(entries) if output_format == "json" else "".join(map(_line, entries)))


@patch.command(short_help="Print a release's patch.")
@click.argument("release", metavar="RELEASE")
@click.option("--output-format", type=click.Choice(("text", "json")), default="text", help="[default: text]")
@click.pass_context
def show(ctx: click.Context, /, *, release: str, output_format: str) -> None:
    """Print the patch of RELEASE (`sglang==0.5.14`, or `0.5.14`) as it is; as JSON, what the manifest says of it.

    Exits with 0 if there is a patch or none is needed, 1 if the safe fixes are not enough for the release, 2 if the
    command failed.
    """
    from kvlint.bundle.manifest import load

    manifest = load()
    entry = _entry(manifest, release)
    if output_format == "json":
        emit(_as_json([entry]))
    elif entry.insufficient:
        say(f"error: {_not_enough(manifest, entry)}")
        ctx.exit(1)
    elif entry.patch is None:
        say(_needs_none(entry))
    else:
        emit(_patch_text(entry))


@patch.command(short_help="Patch an installed package or a folder that holds one.")
@_target
@_installed
@_release
@_dry_run
@_quiet
@click.pass_context
def apply(
    ctx: click.Context, /, *, path: str | None, installed: str | None, release: str | None, dry_run: bool, quiet: bool
) -> None:
    """Patch the package in the folder PATH, or an installed one; a file that is not the released one is refused.

    So is a release of which the safe fixes leave findings of KVL001, KVL002 or KVL004: `kvlint patch list` names them.

    The original is kept beside each file (conn.py.kvlint-orig). RECORD, the installer's list of digests, is left as
    it is, so that tools which compare files with it report the change.

    Exits with 0 if the patch is on or none is needed, 1 if the files are not the released ones or the safe fixes are
    not enough for the release, 2 if the command or the system failed.
    """
    from kvlint.bundle.installation import State
    from kvlint.bundle.installation import apply as put_on

    words = _Words(State.ORIGINAL, "would be patched" if dry_run else "patched", "already patched")
    ctx.exit(_change(path, installed, release, quiet, partial(put_on, dry_run=dry_run), words, ending=True))


@patch.command(short_help="Take a patch off again.")
@_target
@_installed
@_release
@_dry_run
@_quiet
@click.pass_context
def revert(
    ctx: click.Context, /, *, path: str | None, installed: str | None, release: str | None, dry_run: bool, quiet: bool
) -> None:
    """Restore the released files; one that was changed since it was patched is refused.

    Exits with 0 if the files are the released ones, 1 if one was changed, 2 if the command or the system failed.
    """
    from kvlint.bundle.installation import State
    from kvlint.bundle.installation import revert as take_off

    words = _Words(State.PATCHED, "would be restored" if dry_run else "restored", "not patched")
    ctx.exit(_change(path, installed, release, quiet, partial(take_off, dry_run=dry_run), words, ending=False))


@patch.command(short_help="Make the patches anew from the released packages and compare.")
@click.argument("releases", nargs=-1, metavar="[RELEASE]...")
@click.option("--jobs", "-j", type=click.IntRange(min=1), metavar="N", help="Make at most N patches at a time.")
@_quiet
@click.pass_context
def verify(ctx: click.Context, /, *, releases: tuple[str, ...], jobs: int | None, quiet: bool) -> None:
    """Download each RELEASE (all of the bundle if none is named), make its patch anew and compare byte for byte.

    Exits with 0 if all are the same, 1 if one differs, 2 if the command failed or a release could not be had.
    """
    from kvlint.bundle.fetch import configured_releases
    from kvlint.bundle.manifest import bundle_folder, load
    from kvlint.bundle.verify import verify as compare

    manifest = load()
    entries = [_entry(manifest, release) for release in releases] or list(manifest.releases)
    with Bar("patches compared", quiet=quiet) as progress:
        result = compare(configured_releases(), entries, bundle_folder(), jobs=jobs, progress=progress.update)
    emit("".join(f"{line}\n" for line in result.differences))
    for failure in result.failures:
        say(f"error: {failure.message}")
    if not quiet:
        say(f"{result.compared} of {len(entries)} releases compared, {len(result.differences)} differences.")
    ctx.exit(2 if result.failures else 1 if result.differences else 0)


def _change(
    path: str | None,
    installed: str | None,
    release: str | None,
    quiet: bool,
    act: Callable[[ReleaseEntry, Locate, bytes], tuple[Found, ...]],
    words: _Words,
    *,
    ending: bool,
) -> int:
    from kvlint.bundle.choice import Unknown
    from kvlint.bundle.installation import Refused
    from kvlint.bundle.manifest import load
    from kvlint.bundle.survey import faults_below

    manifest = load()
    try:
        choice = _chosen(manifest, path, installed, release)
        entry = choice.entry
        if entry.insufficient and ending:
            say(f"error: {_not_enough(manifest, entry)}")
            return 1
        if entry.patch is None:
            faults = faults_below(choice.locate(entry.package)) if ending and not entry.affected else ()
            if faults:
                say(f"error: {_not_as_released(entry, faults)}")
                return 1
            text = f"{_needs_none(entry)}\n"
        else:
            text = _told(act(entry, choice.locate, _patch_text(entry)), words)
            text += f"{entry.title}: the patch {_effect(entry)}\n" if ending else ""
    except (Refused, Unknown) as error:
        say(f"error: {error}")
        return 1
    if not quiet:
        emit(text)
    return 0


def _chosen(manifest: Manifest, path: str | None, installed: str | None, release: str | None) -> Choice:
    from kvlint.bundle.choice import of_folder, of_installed

    if (path is None) == (installed is None):
        raise click.UsageError("give either the folder that holds the package or --installed NAME")
    if path is not None:
        return of_folder(manifest, path, release)
    if release is not None:
        raise click.UsageError("--release says what PATH holds; of an installed distribution its version is known")
    return of_installed(manifest, str(installed))


def _entry(manifest: Manifest, text: str) -> ReleaseEntry:
    """The release that ``sglang==0.5.14`` or ``0.5.14`` names; raises UsageError."""
    name, equals, version = text.partition("==")
    named = (name, version) if equals else (next((entry.package for entry in manifest.releases), ""), text)
    entry = manifest.find(*(part.strip() for part in named))
    if entry is None:
        known = [entry.version for entry in manifest.releases if entry.package == named[0].strip()]
        range_ = (
            f"it knows {known[0]} to {known[-1]} of {named[0].strip()}" if known else "see `kvlint patch list --all`"
        )
        raise click.UsageError(f"{text}: the bundle does not know this release; {range_}")
    return entry


def _patch_text(entry: ReleaseEntry) -> bytes:
    from kvlint.bundle import BundleError
    from kvlint.bundle.manifest import bundle_folder

    file = bundle_folder() / str(entry.patch)
    try:
        return file.read_bytes()
    except OSError as error:
        raise BundleError(f"{file}: cannot be read: {error.strerror or error}; install flake8-kvlint again") from error


def _line(entry: ReleaseEntry) -> str:
    return f"{entry.title:22} {counted(len(entry.files), 'file'):8}  {_effect(entry)}\n"


def _effect(entry: ReleaseEntry) -> str:
    if not entry.affected:
        return "needs no patch"
    if entry.patch is None:
        return _why_none(entry)
    closes = f"closes {', '.join(entry.closed)}" if entry.closed else "closes no code wholly"
    return closes + (f"; leaves findings of {', '.join(entry.remaining)}" if entry.remaining else "")


def _needs_none(entry: ReleaseEntry) -> str:
    if not entry.affected:
        return f"{entry.title}: nothing found by kvlint's rules, so no patch is needed"
    return f"{entry.title}: {_why_none(entry)}"


def _not_as_released(entry: ReleaseEntry, faults: Sequence[str]) -> str:
    more = f" and {len(faults) - 1} more" if len(faults) > 1 else ""
    return (
        f"{entry.title} needs no patch, but these files are not those of that release: {faults[0]}{more}; name the "
        "release that they are of with --release, or run `kvlint fix`, which reads the code itself"
    )


def _why_none(entry: ReleaseEntry) -> str:
    """Why an affected release has no patch."""
    if entry.insufficient:
        return f"no patch: the safe fixes leave findings of {', '.join(entry.insufficient)}"
    return f"no patch: no safe fix mends {', '.join(entry.remaining)}"


def _not_enough(manifest: Manifest, entry: ReleaseEntry) -> str:
    left = "; ".join(f"{code} remains at {', '.join(places)}" for code, places in entry.insufficient.items())
    since = manifest.clean_since(entry)
    advice = f"upgrade to {since} or later, or run" if since is not None else "run"
    return f"the safe fixes are not enough for {entry.title} ({left}): {advice} `kvlint fix` and mend the rest by hand"


def _told(found: Iterable[Found], words: _Words) -> str:
    return "".join(f"{item.path}: {words.done if item.state == words.changing else words.left}\n" for item in found)


def _as_json(entries: Iterable[ReleaseEntry]) -> str:
    import json

    import msgspec

    return json.dumps([msgspec.to_builtins(entry) for entry in entries], indent=2, ensure_ascii=False) + "\n"
