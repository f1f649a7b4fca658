"""The plan of a storm."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlint.drill.storm import EARLY, PlannedRoom, Storm, permutation, planned


def test_the_plan_is_what_it_always_was() -> None:
    """A seed that is written down somewhere has to mean the same storm in every release and every Python."""
    plan = {entry.room: entry for entry in planned(Storm())}
    assert plan[1] == PlannedRoom(1, 0.07500760404371376)
    assert plan[3] == PlannedRoom(3, None)
    assert plan[34] == PlannedRoom(34, 0.0765608936555443, True, True)
    assert [room for room, entry in plan.items() if entry.is_early] == [34, 38, 42, 51, 80]
    assert sum(entry.abort_after is not None for entry in plan.values()) == 59


def test_a_permutation_is_what_it_always_was() -> None:
    assert [permutation(room, 6) for room in (1, 2, 3)] == [[0, 3, 5, 4, 2, 1], [2, 3, 5, 4, 1, 0], [5, 0, 2, 1, 3, 4]]


@given(st.integers(0, 2**63 - 1), st.integers(0, 300))
def test_a_permutation_has_every_page_once(room: int, pages: int) -> None:
    assert sorted(permutation(room, pages)) == list(range(pages))


STORMS = st.builds(
    Storm,
    seed=st.integers(0, 2**63 - 1),
    rooms=st.integers(1, 40),
    chunks=st.integers(1, 20),
    step=st.floats(0, 10),
    transfer=st.floats(0, 10),
    abort_probability=st.floats(0, 1),
    early_reaches_prefill=st.booleans(),
    first=st.integers(0, 10**7),
)


@given(STORMS)
def test_a_plan_follows_from_the_storm_alone(storm: Storm) -> None:
    plan = planned(storm)
    assert plan == planned(storm)
    assert [entry.room for entry in plan] == list(range(storm.first, storm.first + storm.rooms))
    for entry in plan:
        if entry.abort_after is None:
            assert (entry.is_early, entry.tells_prefill) == (False, False)
        elif entry.is_early:
            assert 0.0 <= entry.abort_after <= storm.sending
            assert entry.tells_prefill is storm.early_reaches_prefill
        else:
            first = 3 * (storm.step + 0.001)
            assert first <= entry.abort_after <= max(first, storm.sending)
            assert not entry.tells_prefill


@pytest.mark.parametrize(("probability", "aborted"), [(0.0, 0), (1.0, 2000)])
def test_the_probability_is_kept_at_its_ends(probability: float, aborted: int) -> None:
    plan = planned(Storm(rooms=2000, abort_probability=probability))
    assert sum(entry.abort_after is not None for entry in plan) == aborted


def test_about_a_tenth_of_the_aborts_is_early() -> None:
    plan = planned(Storm(rooms=2000, abort_probability=1.0))
    assert sum(entry.is_early for entry in plan) == pytest.approx(2000 * EARLY, rel=0.2)


def test_half_an_abort_changes_nothing_else() -> None:
    whole, half = planned(Storm()), planned(Storm(early_reaches_prefill=False))
    assert [(entry.room, entry.abort_after, entry.is_early) for entry in whole] == [
        (entry.room, entry.abort_after, entry.is_early) for entry in half
    ]
    assert any(entry.tells_prefill for entry in whole)
    assert not any(entry.tells_prefill for entry in half)


def test_measures() -> None:
    storm = Storm(chunks=4, chunk_bytes=100, step=0.01, transfer=0.1)
    assert storm.room_bytes == 400
    assert storm.sending == pytest.approx(0.444)
    assert storm.duration == pytest.approx(0.477)
