"""What README, CHANGELOG, CI and pre-commit say agrees with one another and with the code."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from kvlint.baseline import read_baseline, rendered
from kvlint.cli import cli
from kvlint.registry import known_codes, rules
from kvlint.report import FORMATS

ROOT = Path(__file__).parent.parent.parent
PAGES = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "docs/ci.md",
    "docs/design.md",
    "docs/drill.md",
    "docs/explore.md",
    "docs/formats.md",
    "docs/pack_nixl.md",
    "bench/README.md",
    "bench/results/README.md",
)
README = (ROOT / "README.md").read_text(encoding="utf-8")
CI = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
ENVIRONMENT = ".venv/bin/"


def one_liners() -> list[list[str]]:
    """The commands of README's code blocks that make an environment, each split at ``&&``."""
    blocks = re.findall(r"^```sh\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
    lines = [block.strip() for block in blocks if "-m venv" in block]
    assert all("\n" not in line for line in lines)
    return [line.split(" && ") for line in lines]


def steps() -> list[str]:
    """What CI runs."""
    return re.findall(r"^step (.+)$", CI, flags=re.MULTILINE)


def test_readme_has_a_line_for_the_demo_and_one_for_the_tests() -> None:
    endings = [commands[-1].removeprefix(ENVIRONMENT) for commands in one_liners()]
    assert endings == ["kvlint demo", "python -m pytest -n 2 --cov"]


@pytest.mark.parametrize("commands", one_liners(), ids=["demo", "tests"])
def test_ci_runs_what_readme_says(commands: list[str]) -> None:
    assert commands[-1].removeprefix(ENVIRONMENT) in steps()
    assert commands[0].replace(" .venv", ' "$environment"') in CI


def test_ci_installs_what_readme_installs() -> None:
    wanted = one_liners()[1][1].replace(".venv/", '"$environment/').replace("/bin/python ", '/bin/python" ')
    assert wanted.replace("install -q", "install --quiet") in steps()


def test_tests_and_what_they_cover_come_last_in_ci() -> None:
    *_, tests, covered = steps()
    assert tests == one_liners()[1][-1].removeprefix(ENVIRONMENT)
    assert covered.startswith("python -m coverage report ")
    subprocess.run(["bash", "-n", str(ROOT / ".ci" / "run")], check=True)


def test_pre_commit_runs_what_ci_runs() -> None:
    entries = re.findall(r"entry: (.+)", (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    ours = [step for step in steps() if not re.search(r"\bpip\b|kvlint|pytest", step)]
    assert [entry.replace(" --force-exclude", "") for entry in entries] == [step.removesuffix(" .") for step in ours]


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.code)
def test_every_rule_is_in_changelog_and_readme(rule: object) -> None:
    code, name = rule.code, rule.name  # type: ignore[attr-defined]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n- {code} {name}\n" in changelog
    assert f"\n| {code} | {name} | " in README


def test_readme_names_no_rule_that_is_not_there() -> None:
    assert set(re.findall(r"KVL\d{3}", README)) == set(known_codes())


def test_readme_tells_which_fixes_are_safe() -> None:
    for rule in rules():
        told = "" if rule.fix is None else f"`{rule.fix.NAME}`, {rule.fix.APPLICABILITY.value} "
        row = next(line for line in README.splitlines() if line.startswith(f"| {rule.code} |"))
        assert row.split("|")[4].strip() == told.strip()


@pytest.mark.parametrize("page", ["README.md", "docs/formats.md"])
def test_pages_list_every_report_format(page: str) -> None:
    told = re.findall(r"^\| `(\w+)` \|", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert [name for name in told if name in FORMATS] == list(FORMATS)


def test_readme_shows_commands_that_exist() -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
    shown = {command for block in blocks for command in re.findall(r"^kvlint (\w+)", block, flags=re.MULTILINE)}
    assert {"check", "fix", "inspect", "rule"} <= shown <= set(cli.commands)


def test_pages_show_options_that_exist() -> None:
    known = {option for command in cli.commands.values() for parameter in command.params for option in parameter.opts}
    for page in ("README.md", "docs/ci.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        shown = {
            option for line in re.findall(r"kvlint (?:check|fix).*", text) for option in re.findall(r"--[\w-]+", line)
        }
        assert {"--baseline", "--diff-base"} <= shown <= known


def test_the_page_on_drills_tells_what_the_command_does() -> None:
    text = (ROOT / "docs" / "drill.md").read_text(encoding="utf-8")
    options = {option: parameter for parameter in cli.commands["drill"].params for option in parameter.opts}
    shown = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", text))
    assert {"--compare", "--half-aborts", "--one-process", "--settle", "--transfer-ms"} <= shown <= set(options)
    assert f"steps of {options['--step-ms'].default:g} ms" in text
    (report,) = re.findall(r"^```text\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    titles = set(re.findall(r"^  (\w[\w ]*?)  ", report, flags=re.MULTILINE)) - {"aborted", "not aborted"}
    assert {"pinned", "zombies", "bytes"} <= titles
    assert titles <= set(re.findall(r"^\| (\w[\w ]*) \|", text, flags=re.MULTILINE))


def test_snippets_for_ci_can_be_parsed() -> None:
    text = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(yaml|toml|json)\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    read: dict[str, Callable[[str], object]] = {"yaml": yaml.safe_load, "toml": tomllib.loads, "json": json.loads}
    assert [bool(read[kind](block)) for kind, block in blocks] == [True] * 7


def test_the_baseline_on_the_page_is_one(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```json\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "known.json").write_text(block)
    assert rendered(read_baseline(str(tmp_path / "known.json"))) == block


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    file = ROOT / page
    for target in re.findall(r"\]\(([^)#]+)", file.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (file.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES)
def test_nobody_is_sent_to_the_other_project(page: str) -> None:
    assert not re.search(r"pip install[^\n`]*[\s'\"]kvlint\b", (ROOT / page).read_text(encoding="utf-8"))
