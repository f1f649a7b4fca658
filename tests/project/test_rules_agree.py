"""A rule is one thing under five names (module, code, fixtures, page, changelog line), and its page tells no lies."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import kvlint
from kvlint.config import Config
from kvlint.properties import PROPERTIES, SECTION, broken_by
from kvlint.registry import Rule, known_codes, rules

ROOT = Path(__file__).parent.parent.parent
FIXTURES = ROOT / "fixtures" / "rules"
SECTIONS = ["What it does", "Why is this bad?", "Example", "Use instead", "Fix", SECTION, "References"]

# Made by the engine, not found in a protocol: their cases are files that no editor should show as Python.
WITHOUT_FIXTURES = {"KVL900", "KVL901"}

each_rule = pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.code)


def described(rule: Rule) -> str:
    """Code and name as file names spell them."""
    return f"{rule.code.lower()}_{rule.name.replace('-', '_')}"


def section(rule: Rule, title: str) -> str:
    return rule.page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def block(rule: Rule, title: str) -> str:
    """The only code block of a section."""
    (code,) = re.findall(r"^```python\n(.*?)^```$", section(rule, title), flags=re.MULTILINE | re.DOTALL)
    return str(code)


def codes_in(path: Path, config: Config) -> list[str]:
    return [finding.code for finding in kvlint.check([path], config)]


def asked(rule: Rule) -> Config:
    """The default rules and this one."""
    return Config(extend_select=(rule.code,))


def test_codes_and_modules_agree() -> None:
    modules = {path.stem for path in (ROOT / "kvlint" / "rules").glob("*.py")} - {"__init__"}
    assert modules == {described(rule) for rule in rules()}
    assert [rule.code for rule in rules()] == list(known_codes())


def test_codes_and_fixtures_agree() -> None:
    folders = {path.name for path in FIXTURES.iterdir()}
    assert folders == {described(rule) for rule in rules() if rule.code not in WITHOUT_FIXTURES}
    for folder in folders:
        assert (FIXTURES / folder / "bad.py").exists()
        assert (FIXTURES / folder / "good.py").exists()


@each_rule
def test_the_folder_of_a_rule_has_its_findings(rule: Rule) -> None:
    if rule.code not in WITHOUT_FIXTURES:
        assert rule.code in codes_in(FIXTURES / described(rule) / "bad.py", asked(rule))


def test_codes_and_pages_agree() -> None:
    document = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", document, flags=re.MULTILINE) == [f"{rule.name} ({rule.code})" for rule in rules()]
    rows = re.findall(r"^\| \[(KVL\d+)\]\(#(\S+)\) \| (\S+) \|", document, flags=re.MULTILINE)
    assert rows == [(rule.code, f"{rule.name}-{rule.code.lower()}", rule.name) for rule in rules()]


def test_codes_and_changelog_agree() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- (KVL\d+) (\S+)$", changelog, flags=re.MULTILINE)
    assert listed == [(rule.code, rule.name) for rule in rules()]


@each_rule
def test_a_rule_came_with_a_version_of_the_changelog(rule: Rule) -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    news = changelog.partition(f"\n## {rule.since}")[2].partition("\n## ")[0]
    assert f"\n- {rule.code} {rule.name}\n" in news


@each_rule
def test_a_page_has_the_fixed_sections(rule: Rule) -> None:
    assert rule.page.startswith(f"# {rule.name} ({rule.code})\n\n## ")
    outside_code = re.sub(r"^```.*?^```$", "", rule.page, flags=re.MULTILINE | re.DOTALL)
    sections = [title for title in SECTIONS if title != SECTION or broken_by(rule.code)]
    assert re.findall(r"^#+ (.+)$", outside_code, flags=re.MULTILINE)[1:] == sections
    for title in sections:
        assert section(rule, title).strip(), title
    assert rule.summary.endswith(".")


@each_rule
def test_a_page_names_the_properties_that_its_findings_break(rule: Rule) -> None:
    named = re.findall(r"^\* `([a-z-]+)`: (.+)\.$", section(rule, SECTION), flags=re.MULTILINE)
    assert named == [(name, PROPERTIES[name]) for name in broken_by(rule.code)]
    assert bool(named) == (rule.code not in WITHOUT_FIXTURES)


@each_rule
def test_the_fix_of_a_page_is_the_fix_of_the_rule(rule: Rule) -> None:
    told = re.findall(r"`([a-z]+(?:-[a-z]+)+)` \((safe|unsafe)\)", section(rule, "Fix"))
    assert told == ([] if rule.fix is None else [(rule.fix.NAME, rule.fix.APPLICABILITY.value)])


@each_rule
def test_the_example_of_a_page_has_a_finding(rule: Rule, tmp_path: Path) -> None:
    path = tmp_path / "example.py"
    path.write_text(block(rule, "Example"), encoding="utf-8")
    assert rule.code in codes_in(path, asked(rule))


@each_rule
def test_the_remedy_of_a_page_has_none(rule: Rule, tmp_path: Path) -> None:
    path = tmp_path / "remedy.py"
    path.write_text(block(rule, "Use instead"), encoding="utf-8")
    assert codes_in(path, Config()) == []
    assert codes_in(path, Config(select=("KVL",))) == []


@pytest.mark.parametrize("rule", [rule for rule in rules() if rule.fix is not None], ids=lambda rule: rule.code)
def test_the_fix_of_a_rule_mends_the_example_of_its_page(rule: Rule, tmp_path: Path) -> None:
    path = tmp_path / "example.py"
    path.write_text(block(rule, "Example"), encoding="utf-8")
    (change,) = kvlint.fix([path], unsafe=True, config=Config(select=(rule.code,))).changes
    assert rule.fix is not None
    assert set(change.change.titles) == {rule.fix.TITLE}
    assert rule.code not in codes_in(path, asked(rule))
    kvlint.fix([path], unsafe=True, config=Config())
    assert codes_in(path, asked(rule)) == []
