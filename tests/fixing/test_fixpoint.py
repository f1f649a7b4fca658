"""The fixpoint: order, rounds, refusals, and that nothing outside the targets is touched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvlint.diagnostics import (
    DeferAbortCleanup,
    Finding,
    FixPlan,
    Location,
    RecordFailure,
    Severity,
    SkipGuard,
    Span,
    StickyTerminal,
)
from kvlint.fixing.fixpoint import Change, FixOutcome, fix_files
from kvlint.fixing.refusals import Refusal

if TYPE_CHECKING:
    import pytest

SOURCE = b"""\
class Manager:
    def update(self, room, status):
        self.status[room] = status

    def work(self):
        for room in self.rooms:
            if room not in self.infos:
                continue
            if room in self.done: continue

    def abort(self, room):
        self.infos.pop(room)
"""
TERMINALS = ("Poll.Failed", "Poll.Success")
STORED = "self.status.get(room)"


def _finding(plan: FixPlan | None, path: str = "a.py") -> Finding:
    return Finding("KVL000", "name", Severity.ERROR, "message", Location(path, Span(1, 1, 1, 1)), plan=plan)


def _sticky(path: str = "a.py", line: int = 2) -> StickyTerminal:
    return StickyTerminal(path, line, "update", STORED, TERMINALS)


def _skip(line: int, column: int, path: str = "a.py") -> SkipGuard:
    return SkipGuard(path, line, column, False, STORED, ("None", *TERMINALS), None, "self.fail(room)")


def _line_of(text: bytes, part: bytes, number: int = 0) -> tuple[int, int]:
    """Line and column of occurrence ``number`` of ``part``."""
    at = [i for i in range(len(text)) if text.startswith(part, i)][number]
    return text[:at].count(b"\n") + 1, at - text.rfind(b"\n", 0, at)


def _everything(path: str = "a.py", source: bytes = SOURCE) -> Callable[[Mapping[str, bytes]], list[Finding]]:
    """A diagnosis that asks for each edit of `SOURCE` until it is there."""

    def diagnose(overlay: Mapping[str, bytes]) -> list[Finding]:
        text = overlay.get(path, source)
        plans: list[FixPlan] = []
        for number in range(text.count(b"continue")):
            line, column = _line_of(text, b"continue", number)
            if b"self.fail(room)" not in text.splitlines()[line - 2]:
                plans.append(_skip(line, column, path))
        line, _ = _line_of(text, b"def update")
        if b"final" not in text:
            plans += [_sticky(path, line)] * 2
        if b"status == Poll.Failed" not in text:
            store = "self.status[room] = Poll.Failed"
            plans.append(
                RecordFailure(path, line, "update", "status", STORED, ("None", *TERMINALS), "Poll.Failed", store)
            )
        if b"pop" in text:
            plans.append(DeferAbortCleanup(path, *_line_of(text, b"self.infos.pop")))
        return [_finding(plan, path) for plan in plans]

    return diagnose


def _fix(diagnose: Callable[[Mapping[str, bytes]], list[Finding]], **options: Any) -> FixOutcome:
    return fix_files(["a.py"], diagnose, read=lambda _: SOURCE, **{"unsafe": True, **options})


def test_every_kind_is_applied_in_order_and_a_second_run_changes_nothing() -> None:
    outcome = _fix(_everything())
    (change,) = outcome.changes
    assert change == Change("a.py", SOURCE, change.after, change.titles)
    assert change.titles == (
        StickyTerminal.TITLE,
        RecordFailure.TITLE,
        SkipGuard.TITLE,
        SkipGuard.TITLE,
        DeferAbortCleanup.TITLE,
    )
    assert (outcome.remaining, outcome.refused) == ((), ())
    again = fix_files(["a.py"], _everything(source=change.after), unsafe=True, read=lambda _: change.after)
    assert again.changes == ()


def test_unsafe_plans_need_a_word() -> None:
    outcome = _fix(_everything(), unsafe=False)
    assert outcome.changes[0].titles == (StickyTerminal.TITLE, SkipGuard.TITLE, SkipGuard.TITLE)
    kinds = [type(finding.plan) for finding in outcome.remaining]
    assert kinds == [RecordFailure, DeferAbortCleanup]
    assert outcome.refused == ()


def test_later_kinds_are_asked_for_again_before_they_are_applied() -> None:
    def diagnose(overlay: Mapping[str, bytes]) -> list[Finding]:
        # Once the writer is sticky nobody needs the guard.
        return [_finding(plan) for plan in ((_sticky(), _skip(8, 17)) if not overlay else ())]

    outcome = _fix(diagnose)
    assert outcome.changes[0].titles == (StickyTerminal.TITLE,)


def test_plans_for_one_place_are_applied_one_at_a_time() -> None:
    rounds: list[bytes] = []

    def diagnose(overlay: Mapping[str, bytes]) -> list[Finding]:
        rounds.append(overlay.get("a.py", SOURCE))
        other = SkipGuard("a.py", 8, 17, False, STORED, ("None",), None, "self.fail(room)")
        return [_finding(_skip(8, 17)), _finding(other)] if len(rounds) == 1 else []

    outcome = _fix(diagnose)
    assert outcome.changes[0].titles == (SkipGuard.TITLE,)
    assert len(rounds) == 2


def test_file_outside_the_targets_is_left_alone_and_named() -> None:
    outcome = _fix(lambda _: [_finding(_sticky("common/conn.py")), _finding(None)])
    assert outcome.changes == ()
    assert outcome.refused == (
        Refusal("common/conn.py", "the fix is in this file, which is not among the paths given"),
    )
    assert len(outcome.remaining) == 2


def test_plan_that_names_a_target_by_another_spelling_is_applied_to_it() -> None:
    diagnose = _everything("./b/../a.py")
    outcome = fix_files(
        ["a.py"], lambda overlay: diagnose({}) if not overlay else [], unsafe=False, read=lambda _: SOURCE
    )
    assert [change.path for change in outcome.changes] == ["a.py"]


def test_edit_that_misses_its_aim_is_dropped_and_reported_and_the_rest_stays() -> None:
    def verify(plan: FixPlan, before: Mapping[str, bytes], after: Mapping[str, bytes]) -> str | None:
        assert after["a.py"] not in (SOURCE, before.get("a.py"))
        return "the table is not the intended one" if isinstance(plan, StickyTerminal) else None

    outcome = _fix(_everything(), unsafe=False, verify=verify)
    (change,) = outcome.changes
    assert change.titles == (SkipGuard.TITLE, SkipGuard.TITLE)
    assert b"final" not in change.after
    assert outcome.refused == (Refusal("a.py", "the table is not the intended one"),)


def test_only_the_refusals_that_still_matter_are_told() -> None:
    def diagnose(overlay: Mapping[str, bytes]) -> list[Finding]:
        return [] if overlay else [_finding(_sticky(line=3)), _finding(_skip(8, 17))]

    outcome = _fix(diagnose)
    assert len(outcome.changes) == 1
    assert outcome.refused == ()


def test_plan_that_does_not_fit_the_text_is_refused_and_ends_the_run() -> None:
    outcome = _fix(lambda _: [_finding(_sticky(line=3))])
    assert outcome.changes == ()
    assert outcome.refused == (Refusal("a.py", "no definition of update stands at line 3 any more"),)


def test_fixes_that_never_settle_are_reported() -> None:
    def diagnose(overlay: Mapping[str, bytes]) -> list[Finding]:
        return [_finding(_skip(*_line_of(overlay.get("a.py", SOURCE), b"continue", 0)))]

    def forgetful(overlay: Mapping[str, bytes]) -> list[Finding]:
        line, column = _line_of(overlay.get("a.py", SOURCE), b"continue", 0)
        conclude = f"self.fail({line})"
        return [_finding(SkipGuard("a.py", line, column, False, STORED, ("None",), None, conclude))]

    assert _fix(diagnose).refused == (Refusal("a.py", "the fix is there already"),)
    outcome = _fix(forgetful, max_rounds=3)
    assert [refusal.path for refusal in outcome.refused] == ["a.py"]
    assert "did not settle within 3 rounds" in outcome.refused[0].reason
    assert outcome.changes[0].titles == (SkipGuard.TITLE,) * 3
    assert len(outcome.remaining) == 1


def test_unreadable_target_is_refused() -> None:
    def read(_: str) -> bytes:
        raise PermissionError(13, "Permission denied")

    outcome = fix_files(["a.py"], lambda _: [_finding(_sticky())], unsafe=False, read=read)
    assert outcome.refused == (Refusal("a.py", "cannot be read: Permission denied"),)


def test_round_whose_text_does_not_parse_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvlint.fixing.edits.apply_plan", lambda _path, source, _plan: source + b"(")
    outcome = _fix(lambda _: [_finding(_sticky())])
    assert outcome.changes == ()
    assert "does not parse" in outcome.refused[0].reason


def test_targets_are_read_from_disk_by_default(tmp_path: Path) -> None:
    path = str(tmp_path / "a.py")
    (tmp_path / "a.py").write_bytes(SOURCE)
    outcome = fix_files([path], _everything(path), unsafe=False)
    assert [change.before for change in outcome.changes] == [SOURCE]
    assert (tmp_path / "a.py").read_bytes() == SOURCE
