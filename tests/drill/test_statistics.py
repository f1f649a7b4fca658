"""The interval of a median."""

from __future__ import annotations

import pytest

from kvlint.drill.statistics import Interval, median_interval


@pytest.mark.parametrize("count", range(6))
def test_too_few_numbers_have_none(count: int) -> None:
    assert median_interval([1.0] * count) is None


# Conover's table A3 by hand: 1 - 2 * P(X <= cut) of a binomial distribution with one half.
@pytest.mark.parametrize(
    ("count", "low", "high", "coverage"),
    [
        (6, 0, 5, 1 - 2 / 64),
        (8, 0, 7, 1 - 2 / 256),
        (9, 1, 7, 1 - 2 * 10 / 512),
        (10, 1, 8, 1 - 2 * 11 / 1024),
        (12, 2, 9, 1 - 2 * 79 / 4096),
        (20, 5, 14, 1 - 2 * 21700 / 2**20),
    ],
)
def test_it_is_the_narrowest_that_covers_enough(count: int, low: int, high: int, coverage: float) -> None:
    numbers = [float(number) for number in reversed(range(count))]
    found = median_interval(numbers)
    assert isinstance(found, Interval)
    assert (found.low, found.high) == (low, high)
    assert found.coverage == pytest.approx(coverage)
