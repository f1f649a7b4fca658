"""The opening-status edit: a status writer that lets only opening statuses create a room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvlint.diagnostics import OpeningStatus
from kvlint.fixing.phrases import Membership, guard
from kvlint.fixing.region import Region
from kvlint.fixing.writers import early_return, find_head, put_at_head

if TYPE_CHECKING:
    import libcst as cst

_WHY = "# Only an opening status may create a room: a cleared one must not come back."


def require_opening(region: Region, plan: OpeningStatus) -> cst.Module:
    """The region's module with an early return for late writes at the writer's head.

    Raises:
        EditRefused: the writer is not there, or has the guard already.
        ValueError: a text of the plan is no Python.
    """
    place = region.function(plan.line, plan.function)
    head = find_head(place)
    other = Membership(plan.status, plan.opening, inside=False)
    test = Membership(plan.stored, ("None",), inside=True, also=f"{other.stored} {other.operator()} {other.right()}")
    return put_at_head(region, head, guard(test, [early_return(place.node)], head.margin, _WHY))
