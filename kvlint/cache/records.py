"""The stored form of an outcome and of what it rests on: MessagePack with a schema, so that reading runs no code."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_args

import msgspec

from kvlint.diagnostics import Finding, FixPlan, Flow, Location, Related, Severity
from kvlint.file_check import Outcome
from kvlint.semantics.disk import Asked

_PLANS: dict[str, type[FixPlan]] = {kind.NAME: kind for kind in get_args(FixPlan)}


class Kept(msgspec.Struct, frozen=True, array_like=True):
    """An outcome and its grounds: the digests of files (None: could not be read), and the disk's answers."""

    contents: dict[str, bytes | None]
    finds: tuple[tuple[str, str, str | None], ...]
    stands: dict[str, str | None]
    neighbours: tuple[tuple[str, frozenset[str], tuple[str, ...]], ...]
    outcome: _Outcome

    def asked(self) -> Asked:
        """The questions, with the answers on which the outcome rests."""
        return Asked(
            {(folder, dotted): stem for folder, dotted, stem in self.finds},
            self.stands,
            {(path, names): found for path, names, found in self.neighbours},
        )


class _Outcome(msgspec.Struct, frozen=True, array_like=True):
    findings: tuple[_Finding, ...]
    silenced: tuple[_Finding, ...]
    parsed: bool
    failed: bool
    warning: str | None


class _Finding(msgspec.Struct, frozen=True, array_like=True):
    code: str
    name: str
    severity: Severity
    message: str
    location: Location
    related: tuple[Related, ...]
    plan: tuple[str, dict[str, Any]] | None
    flows: tuple[Flow, ...]


class Unstorable(Exception):
    """Something that has no stored form, such as a path that is not UTF-8."""


def encode(outcome: Outcome, contents: dict[str, bytes | None], asked: Asked) -> bytes:
    """The stored form; raises Unstorable."""
    kept = Kept(
        contents,
        tuple((folder, dotted, stem) for (folder, dotted), stem in asked.finds.items()),
        asked.stands,
        tuple((path, names, found) for (path, names), found in asked.neighbours.items()),
        _Outcome(
            tuple(map(_stored, outcome.findings)),
            tuple(map(_stored, outcome.silenced)),
            outcome.parsed,
            outcome.failed,
            outcome.warning,
        ),
    )
    try:
        return msgspec.msgpack.encode(kept)
    except UnicodeEncodeError as error:
        raise Unstorable(str(error)) from error


def decode(blob: bytes) -> Kept:
    """What `encode` made ``blob`` of; raises Unstorable for anything else."""
    try:
        return msgspec.msgpack.decode(blob, type=Kept)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unstorable(str(error)) from error


def outcome_of(path: str, kept: Kept) -> Outcome:
    """The outcome for the file at ``path``; raises Unstorable."""
    stored = kept.outcome
    try:
        findings = tuple(map(_finding, stored.findings))
        silenced = tuple(map(_finding, stored.silenced))
    except (KeyError, msgspec.ValidationError) as error:
        raise Unstorable(str(error)) from error
    return Outcome(path, findings, silenced, stored.parsed, stored.failed, stored.warning)


def _stored(finding: Finding) -> _Finding:
    plan = finding.plan
    return _Finding(
        finding.code,
        finding.name,
        finding.severity,
        finding.message,
        finding.location,
        finding.related,
        None if plan is None else (plan.NAME, {field.name: getattr(plan, field.name) for field in fields(plan)}),
        finding.flows,
    )


def _finding(stored: _Finding) -> Finding:
    plan = None
    if stored.plan is not None:
        name, values = stored.plan
        plan = msgspec.convert(values, _PLANS[name])
    return Finding(
        stored.code, stored.name, stored.severity, stored.message, stored.location, stored.related, plan, stored.flows
    )
