"""What makes two findings of two runs the same one: rule, file, function and statement; never a line number.

The only place that decides it: baselines compare identities, formats for
services that follow findings over time print fingerprints.  Neither knows the
message, which names lines of other files and may be worded anew by any release.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kvlint.diagnostics import Finding
from kvlint.report.model import Report
from kvlint.source.anchor import Anchor, Anchors
from kvlint.source.display import printable
from kvlint.source.text import SourceText, UnreadableSource

#: From a finding's path to the text that was checked; raises UnreadableSource.
ReadSource = Callable[[str], SourceText]

_NOWHERE = Anchor("", "", range(0))


@dataclass(frozen=True, slots=True, order=True)
class Identity:
    """A finding without its place: equal for the same finding before and after an edit elsewhere."""

    path: str
    code: str
    function: str
    text: str


def identities(
    findings: Iterable[Finding], read_source: ReadSource, named: Callable[[str], str] = posixpath.normpath
) -> list[Identity]:
    """The identity of each finding; those of equal statements in one function are equal.

    ``named`` makes the path that counts from a finding's; without it ``./a.py`` is
    ``a.py``.  A file that ``read_source`` cannot give counts as empty.
    """
    known: dict[str, Anchors | None] = {}
    found = []
    for finding in findings:
        path = finding.location.path
        if path not in known:
            known[path] = _anchors(path, read_source)
        anchors = known[path]
        anchor = _NOWHERE if anchors is None else anchors.at(finding.location.span)
        where = printable(named(path))
        found.append(Identity(where, finding.code, anchor.function, anchor.text))
    return found


def fingerprints(
    findings: Sequence[Finding], read_source: ReadSource, named: Callable[[str], str] = posixpath.normpath
) -> list[str]:
    """A fingerprint for each finding, 32 hexadecimal digits, unique within ``findings``.

    The second of two equal findings gets another than the first, so their order
    should be that of a report.
    """
    seen: Counter[Identity] = Counter()
    found = []
    for identity in identities(findings, read_source, named):
        seen[identity] += 1
        parts = (identity.code, identity.path, identity.function, identity.text, str(seen[identity]))
        found.append(hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32])
    return found


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """Those of a report's findings and of its suppressed ones, each in the report's order."""

    reported: list[str]
    suppressed: list[str]


def fingerprints_of(
    report: Report, read_source: ReadSource, named: Callable[[str], str] = posixpath.normpath
) -> Fingerprints:
    """The fingerprints of what ``report`` lists, the same however much was left out of it.

    Equal findings are numbered with those that a baseline or unchanged lines
    leave out; suppressed ones come last, since most formats do not list them.
    """
    paths = {named(finding.location.path) for finding in report.findings}
    # A finding is equal to none of another file, and a file without reported findings need not be read.
    others = [finding for finding in report.left_out if named(finding.location.path) in paths]
    everything = (*report.findings, *others)
    order = sorted(range(len(everything)), key=lambda index: everything[index].sort_key)
    prints = fingerprints([*(everything[index] for index in order), *report.suppressed], read_source, named)
    ordered = dict(zip(order, prints, strict=False))
    return Fingerprints([ordered[index] for index in range(len(report.findings))], prints[len(order) :])


def _anchors(path: str, read_source: ReadSource) -> Anchors | None:
    try:
        return Anchors(read_source(path))
    except UnreadableSource:
        return None
