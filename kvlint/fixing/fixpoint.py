"""Applying plans round after round until a diagnosis asks for nothing more; knows no disk and no edit by itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from kvlint.diagnostics import (
    Applicability,
    AtomicStatus,
    DeferAbortCleanup,
    Finding,
    FixPlan,
    LockMaking,
    OpeningStatus,
    RecordFailure,
    SkipGuard,
    StickyTerminal,
)
from kvlint.fixing.refusals import EditRefused, Refusal

Diagnose = Callable[[Mapping[str, bytes]], list[Finding]]
Verify = Callable[[FixPlan, Mapping[str, bytes], Mapping[str, bytes]], str | None]
Read = Callable[[str], bytes]

# One kind a round: mending a writer often ends the need for an edit at the places that call it, so a later kind is
# asked for again, over the mended text, before any of it is applied.  Locks come last: they go around what is there.
_ORDER: tuple[type[FixPlan], ...] = (
    StickyTerminal,
    RecordFailure,
    SkipGuard,
    DeferAbortCleanup,
    OpeningStatus,
    AtomicStatus,
)

MAX_ROUNDS = 32


@dataclass(frozen=True, slots=True)
class Change:
    """The new text of one file; ``titles`` names the edits, in the order in which they were applied."""

    path: str
    before: bytes
    after: bytes
    titles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FixOutcome:
    """What fixing came to: nothing has been written yet.

    ``remaining`` is the diagnosis of the changed texts; ``refused`` tells, for
    plans that are still asked for, why they were not carried out.
    """

    changes: tuple[Change, ...]
    remaining: tuple[Finding, ...]
    refused: tuple[Refusal, ...]


def read_file(path: str) -> bytes:
    """The bytes of a file on disk."""
    with open(path, "rb") as file:
        return file.read()


def fix_files(
    targets: Sequence[str],
    diagnose: Diagnose,
    *,
    unsafe: bool,
    verify: Verify | None = None,
    read: Read = read_file,
    max_rounds: int = MAX_ROUNDS,
) -> FixOutcome:
    """Apply, in memory, every applicable plan of ``diagnose`` to ``targets`` until none is left.

    Args:
        targets: the files that may change, as the user named them.
        diagnose: findings over the disk with the given texts (path to bytes) laid over it.
        unsafe: whether plans that need a reader's judgement are applied too.
        verify: asked after each edit with the plan and the texts before and after it; a reason drops that edit.
        read: the current bytes of a target.
        max_rounds: how many rounds may change something before fixing gives up.
    """
    texts = _Texts(targets, read)
    refused: list[Refusal] = []
    for _ in range(max_rounds):
        findings = diagnose(texts.changed())
        # Only the last round's refusals are told: an earlier one may have been mended by another edit since.
        refused = []
        if not _run_round(texts, _applicable(findings, unsafe), verify, refused):
            break
    else:
        findings = diagnose(texts.changed())
        reason = f"the fixes did not settle within {max_rounds} rounds; what stands is the last of them"
        refused.extend(Refusal(path, reason) for path in sorted(texts.changed()))
    return FixOutcome(texts.changes(), tuple(findings), tuple(dict.fromkeys(refused)))


@dataclass(slots=True)
class _Texts:
    """The texts of the targets: as read, as changed so far, and what changed them."""

    targets: Sequence[str]
    read: Read
    originals: dict[str, bytes] = field(default_factory=dict)
    current: dict[str, bytes] = field(default_factory=dict)
    titles: dict[str, list[str]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for target in self.targets:
            self.names.setdefault(os.path.realpath(target), target)

    def name(self, path: str) -> str | None:
        """The target that ``path`` is, as the user spelled it; None for any other file."""
        return self.names.get(os.path.realpath(path))

    def text(self, target: str) -> bytes:
        if target not in self.current:
            self.originals[target] = self.current[target] = self.read(target)
        return self.current[target]

    def changed(self) -> dict[str, bytes]:
        return {path: text for path, text in self.current.items() if text != self.originals[path]}

    def changes(self) -> tuple[Change, ...]:
        return tuple(
            Change(path, self.originals[path], text, tuple(self.titles[path]))
            for path, text in sorted(self.changed().items())
        )


def _applicable(findings: Iterable[Finding], unsafe: bool) -> list[FixPlan]:
    """The plans to try, each once (two findings often ask for the same edit)."""
    plans = (finding.plan for finding in findings)
    allowed = (plan for plan in plans if plan is not None and (unsafe or plan.APPLICABILITY is Applicability.SAFE))
    return list(dict.fromkeys(allowed))


def _run_round(texts: _Texts, plans: list[FixPlan], verify: Verify | None, refused: list[Refusal]) -> bool:
    """Apply the first kind of plan of which any can be; whether a text changed."""
    inside: list[tuple[str, FixPlan]] = []
    for plan in plans:
        target = texts.name(plan.path)
        if target is None:
            refused.append(Refusal(plan.path, "the fix is in this file, which is not among the paths given"))
        else:
            inside.append((target, plan))
    for kind in _ORDER:
        of_kind = sorted(((target, plan) for target, plan in inside if isinstance(plan, kind)), key=_bottom_up)
        changed = False
        for target, group in groupby(of_kind, key=lambda pair: pair[0]):
            changed |= _edit_file(texts, target, [plan for _, plan in group], verify, refused)
        if changed:
            return True
    return False


def _position(plan: FixPlan) -> tuple[int, int]:
    match plan:
        case StickyTerminal() | RecordFailure() | OpeningStatus():
            return (plan.line, 0)
        case AtomicStatus(making=LockMaking()):
            return (0, 0)  # it adds lines above its own, so that nothing may come after it in the same round
        case SkipGuard() | DeferAbortCleanup() | AtomicStatus():
            return (plan.line, plan.column)


def _bottom_up(pair: tuple[str, FixPlan]) -> tuple[str, int, int, str]:
    """Sort key: an edit changes nothing above its own position, so the lowest goes first."""
    target, plan = pair
    line, column = _position(plan)
    return (target, -line, -column, repr(plan))


def _one_per_position(plans: Iterable[FixPlan]) -> Iterator[FixPlan]:
    """Plans for one place differ in content: the second is left to the next round, which may not ask for it."""
    seen: set[tuple[int, int]] = set()
    for plan in plans:
        if _position(plan) not in seen:
            seen.add(_position(plan))
            yield plan


def _edit_file(texts: _Texts, target: str, plans: list[FixPlan], verify: Verify | None, refused: list[Refusal]) -> bool:
    # Imported here: a run without a plan must not pay for LibCST.
    from kvlint.fixing.edits import apply_plan, require_parses

    try:
        before = texts.text(target)
    except OSError as error:
        refused.append(Refusal(target, f"cannot be read: {error.strerror or error}"))
        return False
    titles: list[str] = []
    for plan in _one_per_position(plans):
        previous, standing = texts.current[target], texts.changed()
        try:
            texts.current[target] = apply_plan(target, previous, plan)
            reason = verify(plan, standing, texts.changed()) if verify is not None else None
        except EditRefused as error:
            reason = error.reason
        if reason is None:
            titles.append(plan.TITLE)
        else:
            texts.current[target] = previous
            refused.append(Refusal(target, reason))
    try:
        require_parses(target, texts.current[target])
    except EditRefused as error:
        texts.current[target] = before
        refused.append(Refusal(target, error.reason))
        return False
    texts.titles.setdefault(target, []).extend(titles)
    return texts.current[target] != before
