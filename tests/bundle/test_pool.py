"""Releases are worked on side by side, and a process that dies costs at most the release that it worked on."""

from __future__ import annotations

import os
import signal
import tempfile
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest

from kvlint.bundle import fetch, pool
from kvlint.bundle.trees import unpacked
from kvlint.report.audit_model import Failure

from .samples import FolderReleases

FOUR = [("p", version) for version in "1234"]


def die(releases: fetch.Releases, name: str, version: str) -> str:
    signal.raise_signal(signal.SIGKILL)
    return ""


def interrupt(releases: fetch.Releases, name: str, version: str) -> str:
    signal.raise_signal(signal.SIGINT)
    return ""


def lose(releases: fetch.Releases, name: str, version: str) -> str:
    raise OSError(28, "No space left on device", "/tmp/x")


def err(releases: fetch.Releases, name: str, version: str) -> str:
    raise KeyError("files")


def err_without_words(releases: fetch.Releases, name: str, version: str) -> str:
    raise AssertionError


def run_out_of_memory(releases: fetch.Releases, name: str, version: str) -> str:
    raise MemoryError


def give_what_cannot_travel(releases: fetch.Releases, name: str, version: str) -> str:
    return lambda: ""  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (die, "its process died"),
        (interrupt, "interrupted"),
        (lose, r"No space left on device \(/tmp/x\)"),
        (err, r"^p==1: KeyError \('files'\) in test_pool\.py, line \d+; this is a defect in kvlint"),
        (err_without_words, r"^p==1: AssertionError in test_pool\.py, line \d+; this is a defect in kvlint"),
        (run_out_of_memory, "memory ran out"),
        (give_what_cannot_travel, "pickle.* in .*; this is a defect in kvlint"),
    ],
)
def test_work_that_does_not_end_well(work: pool.Work[str], said: str, releases: FolderReleases) -> None:
    (outcome,) = pool.each(work, releases, [("p", "1")], progress=lambda done, total: None)
    assert isinstance(outcome, Failure)
    assert outcome.requirement == "p==1"
    with pytest.raises(AssertionError, match=said):
        raise AssertionError(outcome.message)


def err_at_three(releases: fetch.Releases, name: str, version: str) -> str:
    if version == "3":
        raise ValueError("three")
    return version


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_defect_costs_the_others_nothing(jobs: int, releases: FolderReleases) -> None:
    *well, bad = told(list(pool.each(err_at_three, releases, FOUR, jobs=jobs)))
    assert well == ["1", "2", "4"]
    assert bad.startswith("p==3: ValueError (three) in test_pool.py, line ")


def test_nothing_to_do(releases: FolderReleases) -> None:
    assert list(pool.each(lose, releases, [])) == []


def die_at_three(releases: fetch.Releases, name: str, version: str) -> str:
    if version == "3":
        signal.raise_signal(signal.SIGKILL)
    return version


def die_side_by_side(releases: fetch.Releases, name: str, version: str) -> str:
    """Die once: what a lack of memory looks like."""
    assert isinstance(releases, FolderReleases)
    if (releases.folder / "died").exists():
        return version
    (releases.folder / "died").touch()
    signal.raise_signal(signal.SIGKILL)
    return ""


def told(outcomes: list[str | Failure]) -> list[str]:
    return sorted(one.message if isinstance(one, Failure) else one for one in outcomes)


@pytest.mark.parametrize("jobs", [1, 2, 4])
def test_a_process_that_dies_costs_the_others_nothing(jobs: int, releases: FolderReleases) -> None:
    seen: list[tuple[int, int]] = []
    found = list(
        pool.each(die_at_three, releases, FOUR, jobs=jobs, progress=lambda done, total: seen.append((done, total)))
    )
    reason = "p==3: its process died although no other ran beside it; memory may have run out"
    assert told(found) == ["1", "2", "4", reason]
    assert seen[-1] == (4, 4)


def test_what_is_too_much_at_a_time_is_done_one_by_one(releases: FolderReleases) -> None:
    assert told(list(pool.each(die_side_by_side, releases, FOUR, jobs=2))) == ["1", "2", "3", "4"]


def test_a_pool_that_breaks_while_it_is_filled(releases: FolderReleases, monkeypatch: pytest.MonkeyPatch) -> None:
    submit = ProcessPoolExecutor.submit
    number = 0

    def break_down(self: ProcessPoolExecutor, /, *arguments: Any) -> Future[Any]:
        nonlocal number
        number += 1
        if number == 2:
            raise BrokenProcessPool("a process died")
        return submit(self, *arguments)

    monkeypatch.setattr(ProcessPoolExecutor, "submit", break_down)
    assert told(list(pool.each(die_at_three, releases, FOUR[:2], jobs=2))) == ["1", "2"]


def wait_or_die(releases: fetch.Releases, name: str, version: str) -> str:
    """One process waits in an unpacked release for its end, which the other's death brings; later both are well."""
    assert isinstance(releases, FolderReleases)
    fifo = releases.folder / "unpacked"
    if not fifo.exists():
        return version
    if version == "1.0":
        with unpacked(releases, name, version):
            fifo.write_text("yes", encoding="utf-8")
            signal.pause()
    assert fifo.read_text(encoding="utf-8") == "yes"
    fifo.unlink()
    signal.raise_signal(signal.SIGKILL)
    return ""


def test_what_a_terminated_process_had_unpacked_goes(
    releases: FolderReleases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scratch").mkdir()
    os.mkfifo(releases.folder / "unpacked")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    chosen = [("kvdemo", "1.0"), ("kvdemo", "1.1")]
    assert told(list(pool.each(wait_or_die, releases, chosen, jobs=2))) == ["1.0", "1.1"]
    assert os.listdir(tmp_path / "scratch") == []
