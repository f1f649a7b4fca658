"""Rules as SARIF describes them: everything comes from the rule's own page."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from importlib import metadata
from typing import Any

from kvlint.diagnostics import Severity
from kvlint.registry import Rule
from kvlint.version import __version__

LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}

#: Code scanning takes no longer descriptions.
_LONGEST = 1024

#: Rules about the state of the linted sources rather than about concurrency.
_HOUSEKEEPING = "KVL9"


def driver(rules: Sequence[Rule]) -> dict[str, Any]:
    """The tool component: kvlint itself and all of its ``rules``.

    Addresses are there once the distribution names them (``Homepage``, ``Documentation``).
    """
    addresses = _addresses()
    component: dict[str, Any] = {
        "name": "kvlint",
        "fullName": f"kvlint {__version__}",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [_descriptor(rule, addresses.get("documentation")) for rule in rules],
    }
    if "homepage" in addresses:
        component["informationUri"] = addresses["homepage"]
    return component


def _descriptor(rule: Rule, documentation: str | None) -> dict[str, Any]:
    """It claims no precision and no security severity: nobody has measured either."""
    level = LEVELS[rule.severity]
    descriptor: dict[str, Any] = {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": _short(rule.summary)},
        "fullDescription": {"text": _short(f"{_section(rule, 'What it does')} {_section(rule, 'Why is this bad?')}")},
        "help": {"text": rule.page, "markdown": rule.page},
        "defaultConfiguration": {"enabled": rule.default, "level": level},
        "properties": {
            "tags": ["maintainability"] if rule.code.startswith(_HOUSEKEEPING) else ["concurrency", "reliability"],
            "problem.severity": {"note": "recommendation"}.get(level, level),
        },
    }
    if documentation is not None:
        # As docs/rules.md names its sections (`kvlint.report.pages.markdown`).
        descriptor["helpUri"] = f"{documentation}#{rule.name}-{rule.code.lower()}"
    return descriptor


def _addresses() -> dict[str, str]:
    """The addresses that the installed distribution names, by label in lower case; none where it is not installed."""
    try:
        listed = metadata.metadata("flake8-kvlint").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        return {}
    found = (entry.partition(",") for entry in listed)
    return {label.strip().lower(): address.strip() for label, _, address in found}


def _section(rule: Rule, title: str) -> str:
    section = rule.page.partition(f"## {title}\n")[2].partition("\n## ")[0]
    return " ".join(section.split())


def _short(text: str) -> str:
    return textwrap.shorten(text, _LONGEST, placeholder=" …")
