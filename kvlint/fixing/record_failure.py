"""The record-failure edit: a status writer that stores a failure written to a live room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvlint.diagnostics import RecordFailure
from kvlint.fixing.phrases import Membership, guard
from kvlint.fixing.region import Region
from kvlint.fixing.writers import early_return, find_head, put_at_head

if TYPE_CHECKING:
    import libcst as cst


def record_failure(region: Region, plan: RecordFailure) -> cst.Module:
    """The region's module with a store of the failure at the writer's head.

    Raises:
        EditRefused: the writer is not there, or has the store already.
        ValueError: a text of the plan is no Python.
    """
    place = region.function(plan.line, plan.function)
    head = find_head(place)
    test = Membership(plan.stored, plan.calm, inside=False, also=f"{plan.status} == {plan.failure}")
    # A writer that answers "was it accepted?" must answer yes here, where a refused write answers no.
    leave = early_return(place.node).replace("False", "True")
    return put_at_head(region, head, guard(test, [plan.store, leave], head.margin))
