"""The remedy of every fixture: `fixed.py` is what fixing `bad.py` gives, mends all of it, and keeps everything else.

A folder stands for one rule, and that rule's own fix is tried first: `kvlint fix --select CODE`, with `--unsafe-fixes`
where the rule's fix is unsafe (KVL003, KVL005, KVL006, KVL008).  Without that a KVL003 would never show its own fix:
the safe one of KVL002 closes the finding as well.  Then follows a plain `kvlint fix` for what the other rules find in
the same file, which needs `--unsafe-fixes` only for a lost failure (KVL005), whose fix is always unsafe.  Of the rules
that are off by default only the folder's own takes part.

A case of several files has no committed remedy, because its files would be checked together with it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import kvlint
from kvlint.analysis.facts import facts_of
from kvlint.analysis.infer import Writer
from kvlint.analysis.values import ABSENT
from kvlint.config import Config
from kvlint.diagnostics import Applicability
from kvlint.registry import rule_of, rules
from kvlint.semantics.world import World

RULES = Path(__file__).parent.parent.parent / "fixtures" / "rules"
REMEDY = "fixed.py"


def name_of(path: Path) -> str:
    return path.relative_to(RULES).as_posix()


def own_code(path: Path) -> str:
    return path.relative_to(RULES).parts[0].partition("_")[0].upper()


def asked_in(path: Path) -> Config:
    """The default rules, and the folder's own where that is none."""
    others = tuple(rule.code for rule in rules() if not rule.default and rule.code != own_code(path))
    return Config(extend_select=(own_code(path),), ignore=others)


def single_files() -> list[Path]:
    return sorted(RULES.rglob("bad.py"))


def remedied() -> list[Path]:
    return [bad for bad in single_files() if bad.with_name(REMEDY).exists()]


def folders() -> Iterator[Path]:
    """The cases of several files."""
    for case in sorted(RULES.glob("*/*/")):
        if not (case / "bad.py").exists() and not (case / "good.py").exists() and list(case.rglob("*.py")):
            yield case


def fix(target: Path, case: Path) -> None:
    """Fix ``target``, a copy of ``case``, as the docstring says; nothing may be refused that nothing else mends."""
    code, config = own_code(case), asked_in(case)
    if rule_of(code).fix is not None and rule_of(code).fix.APPLICABILITY is Applicability.UNSAFE:  # type: ignore[union-attr]
        kvlint.fix([target], unsafe=True, config=Config(select=(code,)))
    unsafe = any(finding.code == "KVL005" for finding in kvlint.check([target], config))
    run = kvlint.fix([target], unsafe=unsafe, config=config)
    assert run.refused == ()


def fixed_copy(bad: Path, folder: Path, content: bytes | None = None) -> Path:
    copy = folder / "bad.py"
    copy.write_bytes(bad.read_bytes() if content is None else content)
    fix(copy, bad)
    return copy


def is_without_insertions(before: list[str], after: list[str]) -> bool:
    """Whether ``before`` is left when lines are taken out of ``after``."""
    rest = iter(after)
    return all(line in rest for line in before)


@pytest.mark.parametrize("bad", single_files(), ids=name_of)
def test_there_is_a_remedy_exactly_where_there_is_a_fix(bad: Path) -> None:
    plans = [finding.plan for finding in kvlint.check([bad], asked_in(bad)) if finding.plan is not None]
    assert bad.with_name(REMEDY).exists() == bool(plans)


@pytest.mark.parametrize("bad", remedied(), ids=name_of)
def test_fixing_gives_the_remedy(bad: Path, tmp_path: Path) -> None:
    copy = fixed_copy(bad, tmp_path)
    assert copy.read_bytes() == bad.with_name(REMEDY).read_bytes()
    assert kvlint.check([copy], asked_in(bad)) == []


@pytest.mark.parametrize("bad", remedied(), ids=name_of)
def test_the_remedy_needs_no_remedy(bad: Path, tmp_path: Path) -> None:
    remedy = tmp_path / REMEDY
    shutil.copy(bad.with_name(REMEDY), remedy)
    run = kvlint.fix([remedy], unsafe=True, config=asked_in(bad))
    assert (run.changes, run.report.findings, run.refused) == ((), (), ())
    assert remedy.read_bytes() == bad.with_name(REMEDY).read_bytes()


@pytest.mark.parametrize("bad", remedied(), ids=name_of)
def test_the_remedy_has_the_same_bytes_with_other_line_ends(bad: Path, tmp_path: Path) -> None:
    def respelled(path: Path) -> bytes:
        return b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n")

    copy = fixed_copy(bad, tmp_path, respelled(bad))
    assert copy.read_bytes() == respelled(bad.with_name(REMEDY))


@pytest.mark.parametrize("bad", remedied(), ids=name_of)
def test_safe_fixes_only_insert_lines(bad: Path, tmp_path: Path) -> None:
    copy = tmp_path / "bad.py"
    shutil.copy(bad, copy)
    kvlint.fix([copy], config=Config())
    assert is_without_insertions(bad.read_text().splitlines(), copy.read_text().splitlines())


@pytest.mark.parametrize("bad", remedied(), ids=name_of)
def test_tables_are_the_intended_ones(bad: Path) -> None:
    before, after = writers_of(bad), writers_of(bad.with_name(REMEDY))
    assert before.keys() == after.keys()
    for name, writer in before.items():
        mended = bool(list(writer.table.overwritten()))
        recording = bool(list(writer.table.lost_failures()))
        enum = writer.subject.enum
        for (stored, written), cell in after[name].table.cells.items():
            if mended and enum.is_terminal(stored):
                assert cell.outcomes == {stored}
            elif stored is ABSENT and own_code(bad) == "KVL006":
                assert cell.outcomes in ({ABSENT}, writer.table.cells[stored, written].outcomes)
            elif recording and written in enum.failures and enum.name_of(stored) is not None:
                assert {enum.name_of(outcome) for outcome in cell.outcomes} <= set(enum.terminals)
                assert cell.decided
            else:
                assert cell == writer.table.cells[stored, written]


def writers_of(path: Path) -> dict[str, Writer]:
    facts = facts_of(str(path), World(Config()))
    return {f"{writer.method.owner.name}.{writer.name}": writer for writer in facts.writers}


@pytest.mark.parametrize("case", list(folders()), ids=name_of)
def test_a_case_of_several_files_is_mended(case: Path, tmp_path: Path) -> None:
    copy = tmp_path / case.name
    shutil.copytree(case, copy)
    assert kvlint.check([copy], asked_in(case)) != []
    fix(copy, case)
    assert kvlint.check([copy], asked_in(case)) == []
    mended = {path: path.read_bytes() for path in copy.rglob("*.py")}
    assert kvlint.fix([copy], unsafe=True, config=asked_in(case)).changes == ()
    assert {path: path.read_bytes() for path in copy.rglob("*.py")} == mended
    if rule_of(own_code(case)).fix.APPLICABILITY is Applicability.SAFE:  # type: ignore[union-attr]
        for path in case.rglob("*.py"):
            after = (copy / path.relative_to(case)).read_text()
            assert is_without_insertions(path.read_text().splitlines(), after.splitlines())


def test_there_are_cases() -> None:
    assert len(remedied()) > 40
    assert len(list(folders())) >= 6
