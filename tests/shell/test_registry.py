from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, cast

import pytest

from kvlint import registry
from kvlint.config import Config
from kvlint.diagnostics import Applicability, Finding, Location, Related, Severity, Span, StickyTerminal
from kvlint.registry import Rule, known_codes, rule, rule_of, rules, selected
from kvlint.report import pages

if TYPE_CHECKING:
    from kvlint.analysis.facts import Facts

PAGE = """# some-rule (KVL777)

## What it does
Reports something. And more of it,
on two lines.

## Why is this bad?
It is.

```python
# a comment, no heading
```
"""

RULE = Rule("KVL777", "some-rule", Severity.INFO, "0.1.0", False, StickyTerminal, PAGE, lambda facts: iter(()))


def test_codes_come_from_file_names_and_rules_from_their_modules() -> None:
    assert known_codes() == tuple(sorted(known_codes()))
    assert {"KVL900", "KVL901"} <= set(known_codes())
    assert [found.code for found in rules()] == list(known_codes())
    with pytest.raises(KeyError):
        rule_of("KVL777")


def test_selected_rules() -> None:
    assert [found.code for found in selected(Config(select=("KVL9",)))] == ["KVL900", "KVL901"]
    assert [found.code for found in selected(Config(select=("KVL9",), ignore=("KVL900",)))] == ["KVL901"]


@pytest.mark.parametrize("code", ["KVL900", "KVL901"])
def test_the_engines_rules_report_nothing_of_their_own(code: str) -> None:
    check = rule_of(code).check
    assert list(check(cast("Facts", None))) == []


def test_a_module_declares_its_rule_and_its_docstring_is_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "some_rule", ModuleType("some_rule", PAGE))

    def check(facts: Facts) -> Iterator[Finding]:
        yield declared.finding(Location("a.py", Span(1, 1, 1, 2)), "message")

    check.__module__ = "some_rule"
    declare = rule(code="KVL777", name="some-rule", severity=Severity.INFO, since="0.1.0", default=False, fix=None)
    declared = declare(check)
    assert declared.page == PAGE
    assert declared.summary == "Reports something."
    (finding,) = declared.check(cast("Facts", None))
    assert (finding.code, finding.name, finding.severity) == ("KVL777", "some-rule", Severity.INFO)


def test_findings_keep_their_evidence() -> None:
    location = Location("a.py", Span(1, 1, 1, 2))
    plan = StickyTerminal("a.py", 1, "f", "self.status", ())
    finding = RULE.finding(location, "message", iter([Related(location, "here")]), plan)
    assert finding.related == (Related(location, "here"),)
    assert finding.plan is plan


def test_other_modules_in_the_package_are_no_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "some_rules"
    package.mkdir()
    for name in ("__init__", "kvl001_first", "kvl002_second", "shared", "kvl3_short"):
        (package / f"{name}.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "_PACKAGE", "some_rules")
    registry._modules.cache_clear()
    try:
        assert known_codes() == ("KVL001", "KVL002")
    finally:
        registry._modules.cache_clear()


def test_listing() -> None:
    line = pages.listing([RULE])
    assert line == "KVL777  some-rule  info     off  sticky-terminal (safe)  Reports something.\n"
    assert pages.listing([]) == ""


def test_markdown_puts_pages_one_level_down() -> None:
    document = pages.markdown([RULE])
    row = "| [KVL777](#some-rule-kvl777) | some-rule | info | off | sticky-terminal (safe) | 0.1.0 |"
    assert row in document
    assert "\n## some-rule (KVL777)\n\n### What it does\n" in document
    assert "\n# a comment, no heading\n" in document
    assert document.endswith("```\n")


def test_applicability_of_a_kind_is_that_of_its_plans() -> None:
    assert StickyTerminal.APPLICABILITY is Applicability.SAFE
