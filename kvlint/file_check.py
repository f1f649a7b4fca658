"""One file: its facts, the rules over them, and the comments that silence what they report.

Paths are absolute here, and nothing is shared between two `FileCheck`s, so that
files can be checked in any process and in any order.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from kvlint.config import Config
from kvlint.diagnostics import Finding, Location, Span
from kvlint.registry import Rule, known_codes, rule_of, selected
from kvlint.report.model import Crash
from kvlint.source.ignore import Patterns
from kvlint.source.suppressions import NamedCode, Suppressions
from kvlint.source.text import SourceText, UnreadableSource, decode, read_source

if TYPE_CHECKING:
    from kvlint.analysis.facts import Facts
    from kvlint.semantics.world import World

_UNREADABLE = "KVL900"
_UNUSED_NOQA = "KVL901"
#: Bytes of source.  What is known of a module takes thirty times the memory of its text; this is above what the
#: largest release of SGLang needs, so that one process loads nothing twice there.
MAX_LOADED = 16_000_000

_TOO_DEEP = "cannot be analysed: nested too deeply"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one file came to; ``silenced`` are the findings that a comment suppresses."""

    path: str
    findings: tuple[Finding, ...] = ()
    silenced: tuple[Finding, ...] = ()
    parsed: bool = False
    failed: bool = False
    warning: str | None = None
    crash: Crash | None = None


class FileCheck:
    """Checks files one by one, sharing what was learnt of the modules they import, up to ``max_loaded`` bytes."""

    def __init__(
        self, config: Config, overlay: Mapping[str, bytes] | None = None, max_loaded: int = MAX_LOADED
    ) -> None:
        self.config = config
        self.max_loaded = max_loaded
        self.overlay = dict(overlay or {})
        self._exempt = tuple((Patterns((glob,)), codes) for glob, codes in config.per_file_ignores.items())

    @cached_property
    def world(self) -> World:
        """The modules seen so far; made on first use, so that a run without candidates never loads the analysis."""
        from kvlint.semantics.world import World

        return World(self.config, self.overlay)

    @cached_property
    def _rules(self) -> tuple[Rule, ...]:
        return selected(self.config)

    def facts(self, path: str) -> Facts:
        """The facts of the file at ``path``; raises UnreadableSource."""
        from kvlint.analysis.facts import facts_of

        try:
            return facts_of(path, self.world)
        except RecursionError as error:
            raise UnreadableSource(path, _TOO_DEEP) from error

    def check(self, path: str) -> Outcome:
        """Check a candidate."""
        self._bound_memory()
        try:
            rules = self._rules_for(path)
            facts = self.facts(path)
            findings = _unique(finding for rule in rules for finding in rule.check(facts))
            for finding in findings:
                if finding.location.path != path:
                    raise RuntimeError(f"{finding.code} reports in another file, {finding.location.path}")
            outcome = self._silence(self.world.module(path).source, findings, rules, parsed=True)
            return replace(outcome, warning=_doubts(facts))
        except UnreadableSource as failure:
            if failure.path != path:
                # What another file is like is no reason to give this one up.
                return Outcome(path, failed=True, crash=Crash.of(path, failure))
            return self.unreadable(path, failure)
        except RecursionError:
            return self.unreadable(path, UnreadableSource(path, _TOO_DEEP))
        except Exception as error:
            # A defect of ours must cost neither the other files nor the user's trust: it is reported, never skipped.
            return Outcome(path, failed=True, crash=Crash.of(path, error))

    def _bound_memory(self) -> None:
        """Start over with an empty world where the present one has grown large, as on a tree of many packages."""
        if "world" in self.__dict__ and self.world.size > self.max_loaded:
            del self.world
            # Modules and classes know each other, and the collector may have been told to come rarely.
            gc.collect()

    def check_comments(self, path: str, data: bytes) -> Outcome:
        """Look at the noqa comments of the file at ``path`` with content ``data``, in which no rule can report."""
        try:
            return self._silence(decode(path, data), (), self._rules_for(path), parsed=False)
        except UnreadableSource:
            # No candidate, so nobody promised to read it.
            return Outcome(path)

    def unreadable(self, path: str, failure: UnreadableSource) -> Outcome:
        """The finding that the file at ``path`` could not be read, or a warning where that rule does not run."""
        line = failure.line or 1
        if all(rule.code != _UNREADABLE for rule in self._rules_for(path)):
            return Outcome(path, failed=True, warning=f"not checked: {failure.reason}")
        finding = rule_of(_UNREADABLE).finding(
            Location(path, Span(line, 1, line, 1)), f"{failure.reason}; nothing in this file was checked"
        )
        try:
            outcome = self._silence(read_source(path, self.overlay), (finding,), (), parsed=False)
        except UnreadableSource:
            # Without text there are no comments either.
            outcome = Outcome(path, (finding,))
        return replace(outcome, failed=True)

    def _rules_for(self, path: str) -> tuple[Rule, ...]:
        if not self._exempt:
            return self._rules
        relative = os.path.relpath(path, self.config.folder).replace(os.sep, "/")
        exempt = tuple(code for patterns, codes in self._exempt if patterns.covers(relative) for code in codes)
        return tuple(rule for rule in self._rules if not exempt or not rule.code.startswith(exempt))

    def _silence(
        self, source: SourceText, findings: tuple[Finding, ...], rules: tuple[Rule, ...], *, parsed: bool
    ) -> Outcome:
        suppressions = Suppressions(source)
        if any(rule.code == _UNUSED_NOQA for rule in rules):
            ran = tuple(rule.code for rule in rules)
            findings += tuple(_unused(source.path, suppressions, findings, ran))
        kept: list[Finding] = []
        silenced: list[Finding] = []
        for finding in findings:
            (silenced if suppressions.silences(finding.location.span.line, finding.code) else kept).append(finding)
        return Outcome(source.path, tuple(kept), tuple(silenced), parsed)


def _doubts(facts: Facts) -> str | None:
    """What keeps classes that deal with a status from being judged, None where nothing does."""
    classes = [cls.name for cls in facts.bases_in_doubt]
    if not classes:
        return None
    missing = facts.bases_in_doubt[0].missing_bases[0]
    more = f" and {len(classes) - 3} more" if len(classes) > 3 else ""
    return (
        f"little is said of {', '.join(classes[:3])}{more}: {missing} and the like, their bases, were not found; "
        "if they are in another folder, `roots` in the configuration names where imports start"
    )


def _unique(findings: Iterator[Finding]) -> tuple[Finding, ...]:
    return tuple(dict.fromkeys(findings))


def _unused(
    path: str, suppressions: Suppressions, findings: tuple[Finding, ...], ran: tuple[str, ...]
) -> Iterator[Finding]:
    """Findings for the codes in noqa comments that exist nowhere or silenced nothing."""
    for named in suppressions.named_codes():
        if not named.code.upper().startswith("KVL"):
            continue
        message = _complaint(named, findings, ran)
        if message is not None:
            end = named.column + len(named.code)
            location = Location(path, Span(named.line, named.column, named.line, end))
            yield rule_of(_UNUSED_NOQA).finding(location, message)


def _complaint(named: NamedCode, findings: tuple[Finding, ...], ran: tuple[str, ...]) -> str | None:
    if not any(code.startswith(named.code) for code in known_codes()):
        if named.code.upper() in known_codes():
            return f"noqa names {named.code}, which suppresses nothing: codes are written in upper case"
        return f"noqa names {named.code}, which is no code of kvlint's and suppresses nothing"
    # What the engine itself reports cannot be called unused before it is reported.
    judged = [code for code in ran if code.startswith(named.code) and code not in (_UNREADABLE, _UNUSED_NOQA)]
    if not judged:
        return None
    if any(finding.code.startswith(named.code) and finding.location.span.line in named.lines for finding in findings):
        return None
    return f"noqa names {named.code}, but nothing of that code is reported here"
