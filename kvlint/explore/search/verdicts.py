"""What may be concluded from a search; nothing else in kvlint says that a property holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from kvlint.explore.results import Verdict


class Search(Protocol):
    """A search that came to its end or was cut short."""

    @property
    def complete(self) -> bool:
        """Whether every schedule was seen."""


def of_property(search: Search | None, *, violated: bool, limits: Iterable[str]) -> Verdict:
    """The verdict on one property.

    Args:
        search: The complete search; None where only some schedules were looked for.
        violated: Whether a schedule breaks the property.
        limits: What the explorer could not see or do in this program, in words.
    """
    if violated:
        return Verdict.VIOLATED
    if search is not None and search.complete and not any(limits):
        return Verdict.HOLDS
    return Verdict.INCONCLUSIVE


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """VIOLATED before INCONCLUSIVE before HOLDS; nothing looked at is inconclusive."""
    found = set(verdicts)
    for verdict in (Verdict.VIOLATED, Verdict.INCONCLUSIVE, Verdict.HOLDS):
        if verdict in found:
            return verdict
    return Verdict.INCONCLUSIVE
