"""Properties, the rules that find what breaks them, and the page that tells of both."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from kvlint.cli import cli
from kvlint.explore.report.html import render_html
from kvlint.explore.report.pointers import rules_that_find
from kvlint.explore.scenarios import SCENARIOS
from kvlint.properties import BY_GRAVITY, PROPERTIES, SECTION, broken_by, rules_of, with_properties

from . import results
from .trees import ROOT

PAGE = (ROOT / "docs" / "explore.md").read_text(encoding="utf-8")


def rows(title: str) -> list[list[str]]:
    """The cells of the table in a section of the page, without its heading."""
    section = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    return found[2:]


def test_the_page_has_every_property_and_its_rules() -> None:
    told = [(name.strip("`"), rules) for name, _, rules in rows("Properties")]
    assert told == [(name, ", ".join(rules_that_find(name))) for name in BY_GRAVITY]


def test_the_page_has_every_scenario() -> None:
    assert rows("Scenarios") == [[f"`{entry.name}`", entry.summary] for entry in SCENARIOS]


def test_the_page_has_the_defaults_of_the_options() -> None:
    defaults = {option.opts[0]: option.default for option in cli.commands["explore"].params}
    told = {cells[1].split("`")[1]: float(cells[2].replace(",", "")) for cells in rows("Limits") if cells[1][:1]}
    assert len(told) == 4
    assert told == {name: defaults[name] for name in told}


def test_both_directions_agree() -> None:
    for name in PROPERTIES:
        assert all(name in broken_by(code) for code in rules_of(name))
    assert broken_by("KVL900") == ()
    assert rules_of("no-such-property") == ()


def test_rules_that_are_still_to_come_are_not_named() -> None:
    assert rules_of("thread-death") == ("KVL007",)
    assert set(rules_that_find("thread-death")) <= {"KVL007"}
    assert rules_that_find("overwritten-terminal")[:2] == ["KVL001", "KVL004"]


def test_the_section_stands_before_the_references() -> None:
    page = "# name (KVL004)\n\n## Fix\n\nNone.\n\n## References\n\nNone.\n"
    made = with_properties(page, "KVL004")
    assert re.findall("^## (.+)$", made, flags=re.MULTILINE) == ["Fix", SECTION, "References"]
    assert "can break this property there:\n\n* `overwritten-terminal`: " in made
    assert with_properties("# name\n", "KVL001").endswith(
        "* `pinned-room`: no dispatched room is left without an end.\n"
    )
    assert with_properties(page, "KVL900") == page


@pytest.mark.parametrize("output_format", ["text", "json"])
def test_the_page_of_a_rule_names_its_property(output_format: str) -> None:
    result = CliRunner().invoke(cli, ["rule", "KVL002", "--output-format", output_format])
    assert "What kvlint explore shows" in result.stdout
    assert "`pinned-room`: no dispatched room is left without an end" in result.stdout
    if output_format == "json":
        assert '"properties": [\n      "pinned-room"\n    ]' in result.stdout


def test_the_page_of_an_exploration_names_the_rules() -> None:
    page = render_html(results.exploration(results.violated()))
    assert "; what breaks it is found in the source by KVL001, KVL004, KVL008</dd>" in page
