"""Makes the patch bundle in fixes/ out of released packages; with --check, tells whether it is up to date.

Without names, the releases that are in the manifest are made anew, results
measured on them are kept.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from msgspec.structs import replace

from kvlint.bundle import BundleError
from kvlint.bundle.fetch import configured_releases
from kvlint.bundle.generate import Made, make
from kvlint.bundle.manifest import NAME, Manifest, ReleaseEntry, load, render
from kvlint.bundle.pool import each
from kvlint.bundle.verify import Comparison, verify

FOLDER = Path(__file__).resolve().parent.parent / "fixes"
PACKAGE = "sglang"


def main(arguments: list[str] | None = None) -> int:
    """Run the command; the exit status is 1 if --check finds a difference, 2 if a release could not be had."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", nargs="*", metavar="VERSION", help=f"a release of {PACKAGE}")
    parser.add_argument("--check", action="store_true", help="write nothing, print what would change")
    parser.add_argument("--jobs", type=int, help="how many releases are made at a time")
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except BundleError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> int:
    known = load(FOLDER) if (FOLDER / NAME).exists() else Manifest(format=1)
    versions = options.versions or [entry.version for entry in known.releases]
    releases = configured_releases()
    if options.check:
        return _check(verify(releases, [_entry(known, version) for version in versions], FOLDER, jobs=options.jobs))
    entries = {entry.version: entry for entry in known.releases}
    status = 0
    for outcome in each(make, releases, [(PACKAGE, version) for version in versions], jobs=options.jobs):
        if isinstance(outcome, Made):
            _write(outcome, entries)
            # After each release, so that a run that is interrupted loses one and not all.
            (FOLDER / NAME).write_text(render(entries.values()), encoding="utf-8")
        else:
            print(f"error: {outcome.message}", file=sys.stderr)
            status = 2
    return status


def _entry(known: Manifest, version: str) -> ReleaseEntry:
    """What is known of a release, or next to nothing, which then is the difference."""
    return known.find(PACKAGE, version) or ReleaseEntry(package=PACKAGE, version=version)


def _check(result: Comparison) -> int:
    for line in (*result.differences, *(f"error: {failure.message}" for failure in result.failures)):
        print(line)
    return 2 if result.failures else 1 if result.differences else 0


def _write(made: Made, entries: dict[str, ReleaseEntry]) -> None:
    entry = made.entry
    old = entries.get(entry.version)
    # A measurement is of the bytes that were patched; other bytes, other measurement.
    is_same = old is not None and old.files == entry.files
    entries[entry.version] = replace(entry, results=old.results) if old is not None and is_same else entry
    path = FOLDER / f"{entry.package}-{entry.version}.patch"
    if made.patch is None:
        path.unlink(missing_ok=True)
    else:
        path.write_bytes(made.patch)
    told = f"{len(entry.files)} files, closed {list(entry.closed)}, remaining {list(entry.remaining)}"
    why = f"; no patch, as findings of {', '.join(entry.insufficient)} are left" if entry.insufficient else ""
    print(f"{entry.title}: {told}{why}")


if __name__ == "__main__":
    sys.exit(main())
