"""Whether an edited writer does what its edit promised, told from its re-computed transition table."""

from __future__ import annotations

from collections.abc import Mapping

from kvlint.analysis.facts import facts_of
from kvlint.analysis.infer import Writer
from kvlint.analysis.values import ABSENT
from kvlint.config import Config
from kvlint.diagnostics import AtomicStatus, FixPlan, OpeningStatus, RecordFailure, StickyTerminal
from kvlint.semantics.world import World
from kvlint.source.text import UnreadableSource

_WriterPlan = StickyTerminal | RecordFailure | OpeningStatus | AtomicStatus
_OfWriters = (StickyTerminal, RecordFailure, OpeningStatus, AtomicStatus)


def unintended(plan: FixPlan, before: Mapping[str, bytes], after: Mapping[str, bytes], config: Config) -> str | None:
    """Why the table after a writer's edit is not the intended one, None where it is (or no writer was edited).

    ``before`` and ``after`` hold contents by absolute path, laid over the disk.
    A sticky writer must keep every terminal row and leave the others alone, one
    that records failures must lose none, one that asks for an opening status
    must differ for absent rooms only, and a lock must change nothing.
    """
    if not isinstance(plan, _OfWriters) or not plan.function:
        return None
    old, new = _writer(plan, before, config), _writer(plan, after, config)
    if old is None or new is None:
        return f"{plan.function} is no status writer any more"
    if isinstance(plan, RecordFailure):
        lost = list(new.table.lost_failures())
        return f"{plan.function} still loses failures: {new.table.notation}" if lost else None
    enum = new.subject.enum
    for (stored, written), cell in new.table.cells.items():
        same = cell == old.table.cells[(stored, written)]
        row = enum.name_of(stored) or "an absent room"
        match plan:
            case StickyTerminal() if enum.is_terminal(stored):
                if not cell.decided or cell.outcomes != {stored}:
                    return f"{plan.function} would not keep {row}: {new.table.notation}"
            case OpeningStatus() if stored is ABSENT and not _is_opening(plan, written):
                if not cell.decided or cell.outcomes != {ABSENT}:
                    return f"{plan.function} would still create a room from {written}: {new.table.notation}"
            case _:
                if not same:
                    return f"{plan.function} would treat {row} differently: {new.table.notation}"
    return None


def _is_opening(plan: OpeningStatus, member: str) -> bool:
    return any(text.rpartition(".")[2] == member for text in plan.opening)


def _writer(plan: _WriterPlan, overlay: Mapping[str, bytes], config: Config) -> Writer | None:
    try:
        facts = facts_of(plan.path, World(config, overlay))
    except (UnreadableSource, RecursionError):
        return None
    named = [writer for writer in facts.writers if writer.name == plan.function]
    # Other edits of the round may have moved the definition by a few lines.
    return min(named, key=lambda writer: abs(writer.method.node.lineno - plan.line), default=None)
