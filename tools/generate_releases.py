"""Writes docs/releases.md, the audit of every SGLang release in the patch bundle; with --check, tells what differs.

With versions, --check audits these alone and compares their rows; without
--check it always audits all of them, since what fixed a release stands in its
row.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from kvlint.bundle.audit import Run
from kvlint.bundle.fetch import Releases, configured_releases
from kvlint.bundle.manifest import affected_releases, load
from kvlint.bundle.requirements import parse
from kvlint.report.audit_markdown import HEAD, rows
from kvlint.report.audit_model import Audit

PAGE = Path(__file__).resolve().parent.parent / "docs" / "releases.md"
PACKAGE = "sglang"

INTRODUCTION = """\
<!-- Made by tools/generate_releases.py; do not edit. -->

# Releases of SGLang

What `kvlint audit` says of every release of SGLang with a NIXL backend, pre-releases included. A row is a file with
status writers or workers; numbers are findings, `-` is none.

- **writer and its table**: the method that calls in this file reach, which may be inherited, and its transition table.
- **KVL001** to **KVL005**: findings of the [rules](rules.md).
- **loop ends**: whether an exception can end the loop of a worker or listener, and at which lines: *yes* where a
  statement of the body visibly raises and nothing in the loop catches it, *no* where all work stands in a `try` that
  catches `Exception`, else *unknown*.
- **pop sites**: removals of rooms from tables, as safe/unsafe/undecided. An unsafe one is a finding only where a worker
  then drops the room's work.
- **verdict**: what the findings mean. *Nothing found by these rules* is no proof of anything.

The tables, with a row per stored status (`-`: no such room) and a letter per written one (Failed, Bootstrapping,
WaitingForInput, Transferring, Success):

| table | contents | in words |
|---|---|---|
| M1 | `-:FBWTS F:FBWTS B:BBWTS W:WWWTS T:TTTTS S:SSSSS` | a failure is lost, and a stored one overwritten |
| M2 | `-:FBWTS F:FBWTS B:FBWTS W:FWWTS T:FTTTS S:FSSSS` | a failure is stored, and can be overwritten |
| M3 | `-:-BWTS F:FBWTS B:FBWTS W:FWWTS T:FTTTS S:FSSSS` | as M2, and no room is opened by a failure |
| M4 | `-:-BWTS F:FFFFF B:FBWTS W:FWWTS T:FTTTS S:FSSSS` | a stored failure stays |
| M5 | `-:-BW-- F:FFFFF B:FBWTS W:FWWTS T:FTTTS S:FSSSS` | as M4, and a late write opens no room |

"""


def main(arguments: list[str] | None = None) -> int:
    """Run the command; the exit status is 1 if --check finds a difference, 2 if a release could not be audited."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", nargs="*", metavar="VERSION", help=f"with --check: a release of {PACKAGE}")
    parser.add_argument("--check", action="store_true", help="write nothing, print rows that differ")
    parser.add_argument("--jobs", type=int, help="how many releases are audited at a time")
    options = parser.parse_args(arguments)
    if options.versions and not options.check:
        parser.error("the page is always written as a whole; leave the versions out, or add --check")
    known = [entry.version for entry in load().releases if entry.package == PACKAGE]
    audit = audited(configured_releases(), options.versions or known, options.jobs)
    for failure in audit.failures:
        print(f"error: {failure.message}", file=sys.stderr)
    if audit.failures:
        return 2
    if options.check:
        return 1 if print_differences(audit, whole=not options.versions) else 0
    PAGE.write_text(page(audit), encoding="utf-8")
    return 0


def audited(releases: Releases, versions: Sequence[str], jobs: int | None = None) -> Audit:
    """The audit of these releases."""
    wanted = [parse(f"{PACKAGE}=={version}") for version in versions]
    return Run(releases, jobs=jobs, known=affected_releases)(wanted)


def page(audit: Audit) -> str:
    """The whole page."""
    return INTRODUCTION + HEAD + "".join(row for release in audit.releases for row in rows(release))


def print_differences(audit: Audit, *, whole: bool) -> bool:
    """Print the rows that are not as they stand in the page; ``whole`` if the page has no others."""
    text = PAGE.read_text(encoding="utf-8")
    differ = whole and text != page(audit)
    if differ and not text.startswith(INTRODUCTION + HEAD):
        print("the introduction differs")
    for release in audit.releases:
        start = re.escape(f"| {PACKAGE} {release.version} |")
        found = re.findall(rf"^{start}.*\n", text, flags=re.MULTILINE)
        made = list(rows(release))
        if found != made:
            differ = True
            sys.stdout.writelines([*(f"-{row}" for row in found), *(f"+{row}" for row in made)])
    return differ


if __name__ == "__main__":
    sys.exit(main())
