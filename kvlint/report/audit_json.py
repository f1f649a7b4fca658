"""The audit for programs: version 1 of the format that ``schemas/audit-v1.schema.json`` describes."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import msgspec

from kvlint.report.audit_model import Audit, Backend, Release, verdict
from kvlint.source.display import printable
from kvlint.version import __version__

VERSION = 1


def render(audit: Audit) -> str:
    """The whole audit as one JSON document."""
    document = {
        "version": VERSION,
        "tool": {"name": "kvlint", "version": __version__},
        "releases": [_release(release) for release in audit.releases],
        "errors": [{"requirement": failure.requirement, "message": failure.message} for failure in audit.failures],
        "notes": list(audit.notes),
    }
    return printable(json.dumps(document, indent=2, ensure_ascii=False)) + "\n"


def schema() -> dict[str, Any]:
    """The JSON schema of the format."""
    text = files("kvlint.report").joinpath("schemas/audit-v1.schema.json").read_text("utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


def _release(release: Release) -> dict[str, Any]:
    return {
        "package": release.package,
        "version": release.version,
        "archive": release.archive,
        "sha256": release.sha256,
        "affected": release.affected,
        "verdict": verdict(release),
        "fixed_in": release.fixed_in,
        "findings": release.findings,
        "backends": [_backend(backend) for backend in release.backends],
        "incomplete": list(release.incomplete),
    }


def _backend(backend: Backend) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(backend)
    document["loop_ends"] = None if backend.loop_fate is None else backend.loop_fate.value
    return document
