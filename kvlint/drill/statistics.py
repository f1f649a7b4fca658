"""An interval for a median that asks nothing of how the numbers are distributed."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import msgspec

_WANTED = 0.95


class Interval(msgspec.Struct, frozen=True):
    """An interval for a median.

    Attributes:
        low: Its lower end.
        high: Its upper end.
        coverage: How often an interval that is made so contains the true median, from 0 to 1.
    """

    low: float
    high: float
    coverage: float


def median_interval(numbers: Sequence[float]) -> Interval | None:
    """The narrowest interval between two of the numbers, as far from both ends, that covers at least 95 %.

    The number of values below the true median has a binomial distribution, whatever else they follow (Conover,
    Practical Nonparametric Statistics, 3rd edition, section 3.2).

    Returns:
        None if there are fewer than six numbers: even the widest interval covers less, then.
    """
    ordered, count = sorted(numbers), len(numbers)
    for cut in range((count - 1) // 2, -1, -1):
        coverage = 1 - 2 * sum(comb(count, below) for below in range(cut + 1)) / 2**count
        if coverage >= _WANTED:
            return Interval(ordered[cut], ordered[count - 1 - cut], coverage)
    return None
