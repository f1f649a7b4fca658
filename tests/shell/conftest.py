"""A stand-in for the analysis, so that tests of the shell say nothing about what kvlint detects.

Its one rule reports every line with the word LOST (the word itself is the span),
refers to a file ``base.py`` beside the checked one, and crashes on CRASH.  What it
makes of a file for ``kvlint inspect`` is empty; on UNSHOWABLE that crashes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import pytest
from click.testing import CliRunner, Result

from kvlint import file_check, registry
from kvlint.analysis import facts, verification  # noqa: F401  # so that none of them imports the stand-in
from kvlint.cli import cli
from kvlint.diagnostics import Finding, Location, Related, Severity, Span, StickyTerminal
from kvlint.registry import Rule, rule_of
from kvlint.report import inspect_build
from kvlint.report.inspect_model import FileModel

if TYPE_CHECKING:
    from kvlint.semantics.world import World


@dataclass(frozen=True)
class StubFacts:
    path: str
    lines: tuple[str, ...]
    bases_in_doubt: tuple[Any, ...] = ()


def facts_of(path: str, world: World) -> StubFacts:
    return StubFacts(path, tuple(world.module(path).source.text.split("\n")))


def model_of(facts: StubFacts, display: str, names: object) -> FileModel:
    if any("UNSHOWABLE" in line for line in facts.lines):
        raise ZeroDivisionError("the stub cannot show it")
    return FileModel(display, *((),) * 10)


def report_lost(facts: Any) -> Iterator[Finding]:
    base = os.path.join(os.path.dirname(facts.path), "base.py")
    for number, line in enumerate(facts.lines, start=1):
        if "CRASH" in line:
            raise ZeroDivisionError("the stub crashed")
        column = line.find("LOST") + 1
        if column:
            yield LOST.finding(
                Location(facts.path, Span(number, column, number, column + 4)),
                "the failure is lost",
                [Related(Location(base, Span(1, 1, 1, 2)), "by this writer")],
                StickyTerminal(facts.path, number, "update_status", "self.status", ("KVPoll.Failed",)),
            )


LOST = Rule(
    "KVL001", "lost-word", Severity.ERROR, "0.1.0", True, StickyTerminal, "", cast("registry.Check", report_lost)
)


NEVER = Rule("KVL002", "never", Severity.INFO, "0.1.0", False, None, "", lambda facts: iter(()))


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the stand-in in the analysis's place."""
    monkeypatch.setattr(facts, "facts_of", facts_of)
    monkeypatch.setattr(inspect_build, "file_model", model_of)
    rules = {"KVL001": LOST, "KVL002": NEVER, **{code: rule_of(code) for code in ("KVL900", "KVL901")}}
    monkeypatch.setattr(registry, "rule_of", rules.__getitem__)
    monkeypatch.setattr(registry, "known_codes", lambda: tuple(rules))
    monkeypatch.setattr(file_check, "known_codes", lambda: tuple(rules))


@pytest.fixture
def nobodys_git(monkeypatch: pytest.MonkeyPatch) -> None:
    """Git without anybody's settings."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Somebody")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "somebody@example.org")


@pytest.fixture
def kvlint(stub: None, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run the command in an empty folder, with the stand-in for an analysis."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, stdin: bytes | None = None) -> Result:
        return CliRunner().invoke(cli, list(arguments), input=stdin, catch_exceptions=False)

    return run
