"""The stored form of outcomes: whatever a run finds has one, and nothing else is taken for one."""

from __future__ import annotations

import msgspec
import pytest

from kvlint.cache import records
from kvlint.diagnostics import (
    AtomicStatus,
    DeferAbortCleanup,
    Finding,
    FixPlan,
    Location,
    LockMaking,
    OpeningStatus,
    RecordFailure,
    Related,
    Severity,
    SkipGuard,
    Span,
    StickyTerminal,
)
from kvlint.file_check import Outcome
from kvlint.semantics.disk import Asked

SPAN = Location("/a.py", Span(1, 2, 3, 4))
PLANS: list[FixPlan | None] = [
    None,
    StickyTerminal("/a.py", 1, "update", "self.status", ("KVPoll.Failed",)),
    SkipGuard("/a.py", 1, 2, True, "self.status", ("None",), None, "self.end()", in_body=False),
    DeferAbortCleanup("/a.py", 1, 2),
    RecordFailure("/a.py", 1, "update", "status", "self.status", (), "KVPoll.Failed", "store"),
    OpeningStatus("/a.py", 1, "update", "status", "self.status", ("KVPoll.Opening",)),
    AtomicStatus("/a.py", 1, 2, "self.lock", "update", LockMaking(1, 2, "self.lock = RLock()", None)),
    AtomicStatus("/a.py", 1, 2, old="d[k]", new="d.get(k)", after=("pass",)),
]


def finding(plan: FixPlan | None) -> Finding:
    return Finding("KVL001", "name", Severity.ERROR, "é ☃", SPAN, (Related(SPAN, "there"),), plan)


def test_every_outcome_has_a_stored_form() -> None:
    outcome = Outcome("/a.py", tuple(map(finding, PLANS)), (finding(None),), True, True, "warning")
    asked = Asked(
        {("/f", "a.b"): None, ("/f", "c"): "/f/c"}, {"/f/c": "", "/g": None}, {("/a.py", frozenset("xy")): ("/b",)}
    )
    kept = records.decode(records.encode(outcome, {"/b.py": b"digest", "/c.py": None}, asked))
    assert records.outcome_of("/a.py", kept) == outcome
    assert kept.asked() == asked
    assert kept.contents == {"/b.py": b"digest", "/c.py": None}


@pytest.mark.parametrize(
    "blob", [b"", b"\xff", msgspec.msgpack.encode([]), msgspec.msgpack.encode([{}] * 5), b"\xa1\xff"]
)
def test_what_has_no_such_form_is_refused(blob: bytes) -> None:
    with pytest.raises(records.Unstorable):
        records.decode(blob)


def test_a_plan_of_another_version_is_refused() -> None:
    outcome = Outcome("/a.py", (finding(PLANS[1]),))
    kept = records.decode(records.encode(outcome, {}, Asked()))
    (stored,) = kept.outcome.findings
    for plan in [("new-plan", {}), ("sticky-terminal", {"path": 1})]:
        changed = msgspec.structs.replace(stored, plan=plan)
        damaged = msgspec.structs.replace(kept, outcome=msgspec.structs.replace(kept.outcome, findings=(changed,)))
        with pytest.raises(records.Unstorable):
            records.outcome_of("/a.py", damaged)
