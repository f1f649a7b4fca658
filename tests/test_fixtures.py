"""Every fixture says on its own lines what kvlint must find there, and nothing else may be found.

A case is a folder: its files are checked together, so that cross-file bases
are found.  A rule that is off by default is asked for in its own folder only.
``fixed.py`` is the generated remedy of ``bad.py`` beside it and has no findings;
the comments it inherits are not expectations.
"""

from __future__ import annotations

import re
import runpy
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import kvlint
from kvlint.config import Config

FIXTURES = Path(__file__).parent.parent / "fixtures"
RULES = FIXTURES / "rules"
TABLES = FIXTURES / "tables"
JUDGED = ("KVL001", "KVL002", "KVL003", "KVL004", "KVL005", "KVL006", "KVL008")
REMEDY = "fixed.py"

SGLANG_LETTERS = {
    "F": "Failed",
    "B": "Bootstrapping",
    "W": "WaitingForInput",
    "T": "Transferring",
    "S": "Success",
}
ABSENT = "-"
UNDECIDED = frozenset("?")


@dataclass(frozen=True, slots=True, order=True)
class Expected:
    """One ``# expect:`` entry; an empty ``text`` accepts every message."""

    path: str
    line: int
    code: str
    text: str


def cases() -> Iterator[Path]:
    """Rule folders and the folders of further cases in them."""
    for rule in sorted(RULES.iterdir()):
        yield rule
        yield from (case for case in sorted(rule.iterdir()) if case.is_dir() and files_of(case))


def files_of(case: Path) -> list[Path]:
    """The files of a case: those of a rule folder itself, else everything below the folder."""
    found = case.glob("*.py") if case.parent == RULES else case.rglob("*.py")
    return sorted(found)


def expectations(path: Path) -> Iterator[Expected]:
    """Read the ``# expect: CODE text; CODE text`` comments of a file."""
    with path.open("rb") as stream:
        for token in tokenize.tokenize(stream.readline):
            if token.type == tokenize.COMMENT and token.string.startswith("# expect: "):
                for entry in token.string.removeprefix("# expect: ").split("; "):
                    code, _, text = entry.partition(" ")
                    yield Expected(path.as_posix(), token.start[0], code, text)


def name_of(path: Path) -> str:
    return path.relative_to(FIXTURES).as_posix()


@pytest.mark.parametrize("case", list(cases()), ids=name_of)
def test_findings_are_exactly_the_expected_ones(case: Path) -> None:
    files = files_of(case)
    targets = files if case.parent == RULES else [case]
    config = Config(extend_select=(case.relative_to(RULES).parts[0].partition("_")[0].upper(),))
    findings = sorted((f for f in kvlint.check(targets, config) if f.code in JUDGED), key=lambda one: one.sort_key)
    expected = sorted(entry for path in files if path.name != REMEDY for entry in expectations(path))
    found = [(f.location.path, f.location.span.line, f.code) for f in findings]
    assert sorted(found) == [(e.path, e.line, e.code) for e in expected]
    messages = {(f.location.path, f.location.span.line, f.code): f.message for f in findings}
    for entry in expected:
        assert entry.text in messages[entry.path, entry.line, entry.code]


@pytest.mark.parametrize("case", list(cases()), ids=name_of)
def test_good_is_silent_and_bad_is_not(case: Path) -> None:
    """A guard on the fixtures themselves: the file's name and its expectations agree."""
    for path in files_of(case):
        if path.name in ("good.py", "bad.py"):
            assert any(expectations(path)) == (path.name == "bad.py"), name_of(path)


# Stored and written member to the outcomes that can be: a member's name or
# ABSENT, followed by "!" when the writer raises.  "?" stands for a cell that the
# analysis must not claim to know.
Table = dict[tuple[str, str], frozenset[str]]


def expected_table(path: Path) -> Table:
    """Read the ``# table:`` and ``# letters:`` lines that open a fixture."""
    first, second, *_ = path.read_text(encoding="utf-8").splitlines()
    letters = SGLANG_LETTERS
    if second.startswith("# letters: "):
        pairs = second.removeprefix("# letters: ").split(",")
        letters = dict(pair.split("=") for pair in pairs)
    names = {**letters, ABSENT: ABSENT, "?": "?"}
    rows = dict(row.split(":") for row in first.removeprefix("# table: ").split())
    columns = [letter for letter in rows if letter != ABSENT]
    cells: Table = {}
    for stored, row in rows.items():
        outcomes = re.findall(r"\{[^}]*\}|[^{}!]!?", row)
        for written, cell in zip(columns, outcomes, strict=True):
            each = re.findall(r"[^{}!]!?", cell)
            cells[names[stored], names[written]] = frozenset(names[o[0]] + o[1:] for o in each)
    return cells


def computed_table(path: Path) -> Table:
    """The table that the analysis computes for the writer ``update`` of a file's last class that has one."""
    from kvlint.analysis.infer import managers_in, own_writers  # collecting the tests needs no interpreter
    from kvlint.semantics.world import World

    world = World(Config())
    classes = managers_in(world, world.module(str(path)))
    writer = [w for cls in classes for w in own_writers(cls) if w.name == "update"][-1]
    enum = writer.subject.enum
    return {
        (enum.name_of(stored) or ABSENT, written): frozenset(
            (enum.name_of(outcome) or ABSENT) + "!" * cell.raises for outcome in cell.outcomes
        )
        if cell.decided
        else UNDECIDED
        for (stored, written), cell in writer.table.cells.items()
    }


@pytest.mark.parametrize("path", sorted(TABLES.glob("*.py")), ids=name_of)
def test_transition_table_is_computed(path: Path) -> None:
    assert computed_table(path) == expected_table(path)


@pytest.mark.parametrize("path", sorted(TABLES.glob("*.py")), ids=name_of)
def test_transition_table_is_what_the_writer_does(path: Path) -> None:
    """The expectation itself: running the writer gives one of the outcomes of every cell."""
    namespace = runpy.run_path(str(path))
    for (stored, written), outcomes in expected_table(path).items():
        assert outcomes == UNDECIDED or run_writer(namespace, stored, written) in outcomes


def run_writer(namespace: dict[str, Any], stored: str, written: str) -> str:
    """Call a fixture's writer once on a fresh object and name what it left behind."""
    owner, enum = _owner_and_enum(namespace, written)
    by_attribute = hasattr(owner, "status")
    if by_attribute:
        owner.status = getattr(enum, stored)
    elif stored != ABSENT:
        owner.statuses["room"] = getattr(enum, stored)
    raised = ""
    try:
        owner.update(*([] if by_attribute else ["room"]), getattr(enum, written))
    except Exception:
        raised = "!"
    left = owner.status if by_attribute else owner.statuses.get("room")
    if left is None:
        return ABSENT + raised
    members = {name: value for name, value in vars(enum).items() if not name.startswith("_")}
    return next(name for name, value in members.items() if value == left) + raised


def _owner_and_enum(namespace: dict[str, Any], member: str) -> tuple[Any, type]:
    classes = [value for value in namespace.values() if isinstance(value, type)]
    enum = next(c for c in classes if hasattr(c, member))
    owner = next(c for c in reversed(classes) if hasattr(c, "update") and not hasattr(c, member))
    return owner(), enum
