"""The sticky-terminal edit: a status writer that ignores every write once a terminal status is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvlint.diagnostics import StickyTerminal
from kvlint.fixing.phrases import Membership, guard
from kvlint.fixing.region import Region
from kvlint.fixing.writers import early_return, find_head, put_at_head

if TYPE_CHECKING:
    import libcst as cst

_WHY = "# A stored terminal status is final."


def make_sticky(region: Region, plan: StickyTerminal) -> cst.Module:
    """The region's module with an early return at the writer's head.

    Raises:
        EditRefused: the writer is not there, or is sticky already.
        ValueError: a text of the plan is no Python.
    """
    place = region.function(plan.line, plan.function)
    head = find_head(place)
    test = Membership(plan.stored, plan.terminals, inside=True)
    return put_at_head(region, head, guard(test, [early_return(place.node)], head.margin, _WHY))
