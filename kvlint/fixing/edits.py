"""One plan carried out on one text: plan and bytes in, bytes out, nothing else touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvlint.diagnostics import (
    AtomicStatus,
    DeferAbortCleanup,
    FixPlan,
    OpeningStatus,
    RecordFailure,
    SkipGuard,
    StickyTerminal,
)
from kvlint.fixing.atomic_status import make_atomic
from kvlint.fixing.defer_abort_cleanup import drop_removal
from kvlint.fixing.document import encode, read_document
from kvlint.fixing.opening_status import require_opening
from kvlint.fixing.record_failure import record_failure
from kvlint.fixing.refusals import EditRefused
from kvlint.fixing.region import Region, close_region, open_region, parse
from kvlint.fixing.skip_guard import guard_skip
from kvlint.fixing.sticky_terminal import make_sticky

if TYPE_CHECKING:
    import libcst as cst


def apply_plan(path: str, source: bytes, plan: FixPlan) -> bytes:
    """``source`` with ``plan`` carried out; the lines that the plan does not change keep their very bytes.

    ``path`` only names the text in errors.

    Raises:
        EditRefused: the text is not what the plan expects, or the edited definition would not parse.
    """
    document = read_document(path, source)
    try:
        if isinstance(plan, AtomicStatus):
            lines = make_atomic(document, plan)
        else:
            region = open_region(document, plan.line)
            lines = close_region(region, _edit(region, plan))
    except ValueError as error:
        raise EditRefused(path, str(error)) from error
    except RecursionError as error:
        raise EditRefused(path, "nests too deeply to be edited") from error
    return encode(document, lines)


def require_parses(path: str, source: bytes) -> None:
    """Parse the whole text once more.

    Raises:
        EditRefused: it does not parse.
    """
    parse(path, read_document(path, source).text)


def _edit(
    region: Region, plan: StickyTerminal | RecordFailure | OpeningStatus | SkipGuard | DeferAbortCleanup
) -> cst.Module:
    match plan:
        case StickyTerminal():
            return make_sticky(region, plan)
        case RecordFailure():
            return record_failure(region, plan)
        case OpeningStatus():
            return require_opening(region, plan)
        case SkipGuard():
            return guard_skip(region, plan)
        case DeferAbortCleanup():
            return drop_removal(region, plan)
