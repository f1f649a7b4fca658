"""kvlint finds in each release what was verified by hand, and nothing else."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from . import observed

TRUTH = tomllib.loads(Path(__file__).with_name("ground_truth.toml").read_text(encoding="utf-8"))

Release = Callable[[str], Path]


@pytest.mark.parametrize("version", TRUTH["release"])
def test_findings_equal_the_ground_truth(version: str, release: Release) -> None:
    expected = {code: Counter(TRUTH["release"][version].get(code, ())) for code in observed.JUDGED}
    assert observed.findings(release(version)) == expected


@pytest.mark.parametrize("version", TRUTH["release"])
def test_writer_tables_equal_the_ground_truth(version: str, release: Release) -> None:
    expected = {place: TRUTH["table"][name] for place, name in TRUTH["release"][version]["writer"].items()}
    computed = observed.tables(release(version))
    assert {place: computed.get(place) for place in expected} == expected
