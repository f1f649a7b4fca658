"""Whether a change to the source touches a finding."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from kvlint.diagnostics import Finding, Location
from kvlint.source.anchor import Anchors
from kvlint.source.changed_lines import Changes
from kvlint.source.text import SourceText, UnreadableSource


class Touched:
    """Holds findings against the changed lines.

    A finding is touched if its statement is, or one of the statements that it
    rests on: that a status can be lost *here* may be news because of the writer
    over there.  A definition is touched by any change in it.
    """

    def __init__(self, changes: Changes, read_source: Callable[[str], SourceText]) -> None:
        """``read_source`` takes display paths, from which ``changes`` are found relative to the current folder."""
        self._changes = changes
        self._read_source = read_source
        self._anchors: dict[str, Anchors | None] = {}

    def is_touched(self, finding: Finding) -> bool:
        """Whether ``finding`` may be news; raises RevisionError and GitError."""
        return any(self._is_changed(location) for location in _locations(finding))

    def _is_changed(self, location: Location) -> bool:
        changed = self._changes.of(os.path.abspath(location.path))
        return bool(changed) and changed.touch(self._lines(location))

    def _lines(self, location: Location) -> range:
        span = location.span
        path = location.path
        if path not in self._anchors:
            self._anchors[path] = self._parsed(path)
        anchors = self._anchors[path]
        return range(span.line, span.end_line + 1) if anchors is None else anchors.at(span).lines

    def _parsed(self, path: str) -> Anchors | None:
        try:
            return Anchors(self._read_source(path))
        except UnreadableSource:
            return None


def _locations(finding: Finding) -> Iterator[Location]:
    yield finding.location
    for related in finding.related:
        yield related.location
