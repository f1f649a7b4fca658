"""The rules' documentation: their list, and their pages in one document (docs/rules.md)."""

from __future__ import annotations

import json
from collections.abc import Sequence

from kvlint.properties import broken_by
from kvlint.registry import Rule

_INTRODUCTION = """\
<!-- Generated from the rules' docstrings by tools/generate_docs.py; edit those. -->

# Rules

"""


def listing(rules: Sequence[Rule]) -> str:
    """One line per rule."""
    width = max((len(rule.name) for rule in rules), default=0)
    return "".join(
        f"{rule.code}  {rule.name:{width}}  {rule.severity.value:7}  {_state(rule)}  {rule.summary}\n" for rule in rules
    )


def markdown(rules: Sequence[Rule]) -> str:
    """A table of the rules, then their pages."""
    rows = ["| code | name | severity | by default | fix | since |", "|---|---|---|---|---|---|"]
    for rule in rules:
        link = f"[{rule.code}](#{rule.name}-{rule.code.lower()})"
        state = "on" if rule.default else "off"
        rows.append(f"| {link} | {rule.name} | {rule.severity.value} | {state} | {_fix(rule)} | {rule.since} |")
    pages = "".join("\n" + _deeper(rule.page) for rule in rules)
    return _INTRODUCTION + "\n".join(rows) + "\n" + pages


def as_json(rules: Sequence[Rule]) -> str:
    """Everything about the rules, for programs."""
    document = [
        {
            "code": rule.code,
            "name": rule.name,
            "severity": rule.severity.value,
            "since": rule.since,
            "default": rule.default,
            "fix": None if rule.fix is None else {"name": rule.fix.NAME, "applicability": rule.fix.APPLICABILITY.value},
            "summary": rule.summary,
            "properties": list(broken_by(rule.code)),
            "page": rule.page,
        }
        for rule in rules
    ]
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _state(rule: Rule) -> str:
    return f"{'on' if rule.default else 'off':3}  {_fix(rule):17}"


def _fix(rule: Rule) -> str:
    return "none" if rule.fix is None else f"{rule.fix.NAME} ({rule.fix.APPLICABILITY.value})"


def _deeper(page: str) -> str:
    """``page`` with its headings one level down, those in code blocks (comments) left alone."""
    lines, in_code = [], False
    for line in page.splitlines():
        in_code ^= line.startswith("```")
        lines.append("#" + line if line.startswith("#") and not in_code else line)
    return "\n".join(lines) + "\n"
