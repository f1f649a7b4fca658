"""Where results are kept if nobody says."""

from __future__ import annotations

import os

import pytest

from kvlint.cache.location import caches_folder, is_off, results_folder


@pytest.mark.parametrize(
    ("environment", "platform", "expected"),
    [
        ({}, "linux", "/home/u/.cache/kvlint/results"),
        ({}, "darwin", "/home/u/Library/Caches/kvlint/results"),
        ({"XDG_CACHE_HOME": "/x"}, "linux", "/x/kvlint/results"),
        ({"XDG_CACHE_HOME": "/x"}, "darwin", "/x/kvlint/results"),
        ({"XDG_CACHE_HOME": "x"}, "linux", "/home/u/.cache/kvlint/results"),
        ({"XDG_CACHE_HOME": ""}, "linux", "/home/u/.cache/kvlint/results"),
        ({"KVLINT_CACHE": "/y", "XDG_CACHE_HOME": "/x"}, "linux", "/y/results"),
        ({"KVLINT_CACHE": "/y"}, "darwin", "/y/results"),
        ({"KVLINT_CACHE": "~/y"}, "linux", "/home/u/y/results"),
        ({"KVLINT_CACHE": ""}, "linux", "/home/u/.cache/kvlint/results"),
    ],
)
def test_the_folder(environment: dict[str, str], platform: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/u")
    assert results_folder(environment, platform) == expected
    assert caches_folder(environment, platform) == os.path.dirname(expected)


def test_a_relative_folder_is_that_below_the_current_one() -> None:
    assert caches_folder({"KVLINT_CACHE": "y"}) == os.path.join(os.getcwd(), "y")


def test_without_a_home_there_is_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert caches_folder({}) is None
    assert results_folder({}) is None


@pytest.mark.parametrize(("value", "expected"), [("1", True), ("yes", True), ("0", False), ("", False), (None, False)])
def test_switching_it_off(value: str | None, expected: bool) -> None:
    assert is_off({} if value is None else {"KVLINT_NO_CACHE": value}) is expected
