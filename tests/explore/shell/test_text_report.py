"""The exploration as people read it."""

from __future__ import annotations

import re
from dataclasses import replace

import msgspec
import pytest

from kvlint.explore.events import Replayed
from kvlint.explore.parent import Printed
from kvlint.explore.report.pointers import replay_command
from kvlint.explore.report.text import render
from kvlint.explore.report.text_witness import relative, witness_lines
from kvlint.explore.results import PropertyResult, ScenarioResult, Verdict
from kvlint.explore.run import Outcome
from kvlint.properties import BY_GRAVITY, PROPERTIES

from . import results


def outcome(*scenarios: ScenarioResult, scheduler: bool = True) -> Outcome:
    return Outcome(results.exploration(*scenarios, scheduler=scheduler), None, None, Printed())


def changed(result: ScenarioResult, **fields: object) -> ScenarioResult:
    return msgspec.structs.replace(result, **fields)


VIOLATED = """\
tree  (release 0.5.14)
  really run  2 modules; SHA-256 0123456789ab…: common.conn, nixl.conn
  stand-ins   RDMA transfers: a NIXL agent that moves nothing
              ZMQ

VIOLATED      abort: one room, two chunks, and an ABORT from the decode side
  6,662,462 schedules, 1,234 states, 567 runs, 0.25 s, the first witness after 0.02 s
  shared: request_status, transfer_infos
  pinned-room in 51,021 schedules, first with 1 preemption (see KVL001, KVL002, KVL003, KVL005)
    room 7 stays Transferring and nobody is left to end it
  overwritten-terminal in 3 schedules, first with 0 preemptions (see KVL001, KVL004, KVL008)
    Failed is replaced by Transferring, 0
    Failed is replaced by Transferring, 1
    Failed is replaced by Transferring, 2
    Failed is replaced by Transferring, 3
    and 2 more ways
  leaked-record
    failure_records still has it
  holds: stuck-until-timeout, thread-death, resurrected-room, lost-failure

  pinned-room, with 1 preemption: room 7 stays Transferring and nobody is left to end it
         worker                        listener                      scheduler
     1   7 in transfer_infos → True
           sglang/srt/disaggregation/nixl/conn.py:1310 (NixlKVManager.transfer_worker)
     2   request_status[7] = Transferring
           sglang/srt/disaggregation/nixl/conn.py:1322 (NixlKVManager.transfer_worker)
     3 » ·                             receive ABORT of room 7
                                         outside of the tree
     4   ·                             request_status[7] = Failed
                                         sglang/srt/disaggregation/nixl/conn.py:1402
                                         (NixlKVManager._start_bootstrap_thread.bootstrap_thread)
"""
END = """\
     7 ✗ request_status[7] = Transferring
           sglang/srt/disaggregation/nixl/conn.py:1352 (NixlKVManager.transfer_worker)
         ✗ this breaks overwritten-terminal
     8   ·                             ·                             request_status.get(7) →
                                                                     Transferring
                           sglang/srt/disaggregation/nixl/conn.py:655 (CommonKVManager.check_status)
"""
TAIL = """\
  » takes the turn from a thread that could have gone on
  run it again:
    kvlint explore --replay 1.abort.0-0-1-1 tree

  a schedule for overwritten-terminal, to be shown by
    kvlint explore --replay 1.abort.0 tree

HOLDS         two-rooms: two rooms on one worker, one of them aborted
  6,662,462 schedules, 1,234 states, 567 runs, 0.25 s
  shared: request_status, transfer_infos
  holds: pinned-room, stuck-until-timeout, overwritten-terminal, thread-death, resurrected-room,
    lost-failure, leaked-record

VIOLATED: pinned-room, overwritten-terminal, leaked-record
"""


def test_a_violation_is_shown_with_its_schedule() -> None:
    text = render(outcome(results.violated(), results.scenario("two-rooms")))
    assert text.startswith(VIOLATED)
    assert END in text
    assert text.endswith(TAIL)
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("width", [1, 40, 60, 80, 100, 140, 300])
def test_nothing_but_places_and_commands_is_wider_than_the_terminal(width: int) -> None:
    text = render(outcome(results.violated()), width=width)
    wide = [line for line in text.splitlines() if len(line) > max(40, width)]
    assert all(re.match(r" *(sglang/.*:\d+$|sglang/.*\)$|\(.*\)$|kvlint explore )", line) for line in wide)
    for step in results.WITNESS.steps:
        assert step.place is None or f"conn.py:{step.place.line}" in text


def test_narrow_terminals_get_a_line_per_step() -> None:
    text = render(outcome(results.violated()), width=60)
    assert "\n     3 » listener: receive ABORT of room 7\n           outside of the tree\n" in text
    assert "\n     7 ✗ worker: request_status[7] = Transferring\n" in text
    assert "\n         ✗ this breaks overwritten-terminal\n" in text
    assert "         worker          " not in text


def test_colour_adds_escapes_and_nothing_else() -> None:
    shown = outcome(results.violated(), results.scenario("two-rooms"))
    painted = render(shown, colour=True)
    assert "\x1b[1;31mVIOLATED" in painted
    assert re.sub(r"\x1b\[[\d;]+m", "", painted) == render(shown)


def test_what_holds_says_for_what() -> None:
    text = render(outcome(results.scenario("abort"), scheduler=False))
    assert text.endswith("\n\nHOLDS: in these scenarios no schedule breaks any property\n")
    assert "  left out    the scheduler: rooms are opened" in text


def test_a_cut_says_why() -> None:
    cut = changed(
        results.scenario("abort"),
        verdict=Verdict.INCONCLUSIVE,
        schedules=None,
        reason="60 s were over",
        properties=tuple(PropertyResult(name, Verdict.INCONCLUSIVE, None, (), None) for name in PROPERTIES),
        shared=(),
    )
    text = render(outcome(cut))
    assert "\nINCONCLUSIVE  abort: one room" in text
    assert (
        "\n  schedules not counted, 1,234 states, 567 runs, 0.25 s\n  60 s were over\n  not decided: pinned-room,"
        in text
    )
    assert text.endswith("INCONCLUSIVE: nothing was found to be broken, and not everything was searched\n")


def test_a_tree_that_was_not_loaded_has_a_name_only() -> None:
    bare = msgspec.structs.replace(results.exploration(), version=None, digest="", loaded=(), stubbed=())
    assert render(Outcome(bare, None, None, Printed())) == "tree\n"


@pytest.mark.parametrize(
    ("confirmed", "threads", "words"),
    [
        (True, False, "confirmed: the schedule was run again and broke its property"),
        (True, True, "confirmed: the schedule was run on real threads and broke its property"),
        (False, False, "not confirmed: the schedule was run again and did not break its property"),
    ],
)
def test_a_replay_is_shown(confirmed: bool, threads: bool, words: str) -> None:
    replayed = Replayed(results.WITNESS, confirmed, threads)
    shown = replace(outcome(), replayed=replayed)
    text = render(shown)
    assert f"\n\n{words}\n\n  pinned-room, with 1 preemption" in text
    assert shown.verdict is (Verdict.VIOLATED if confirmed else Verdict.INCONCLUSIVE)


def test_what_a_tree_names_cannot_move_the_cursor() -> None:
    odd = msgspec.structs.replace(results.WITNESS, detail="\x1b[2Jgone", actors=("wor\nker", "listener", "scheduler"))
    broken = PropertyResult("pinned-room", Verdict.VIOLATED, 1, ("\x1b[2Jgone",), odd)
    text = render(outcome(changed(results.violated(), properties=(broken,), summary="a\x07b", reason="c\x1bd")))
    assert re.search(r"[\x00-\x09\x0b-\x1f]", text) is None
    assert "\\x1b[2Jgone" in text


def test_a_schedule_without_steps_and_many_actors() -> None:
    empty = msgspec.structs.replace(results.WITNESS, steps=(), waiting={})
    assert next(witness_lines(empty, "tree", 98, colour=False)).split() == ["worker", "listener", "scheduler"]
    crowd = msgspec.structs.replace(results.WITNESS, actors=tuple(f"worker {number}" for number in range(8)))
    assert any("listener: receive" in line for line in witness_lines(crowd, "tree", 98, colour=False))


def test_paths_are_relative_to_the_tree() -> None:
    assert relative("tree/sglang/a.py", "tree") == "sglang/a.py"
    assert relative("/x/tree/sglang/a.py", "/x/tree/sglang/srt") == "/x/tree/sglang/a.py"
    assert relative("sglang/a.py", ".") == "sglang/a.py"
    assert relative("conn.py", "conn.py") == "conn.py"


@pytest.mark.parametrize(
    ("tree", "scheduler", "command"),
    [
        ("tree", True, "kvlint explore --replay 1.a tree"),
        ("my tree", False, "kvlint explore --no-scheduler --replay 1.a 'my tree'"),
        ("-tree", True, "kvlint explore --replay 1.a -- -tree"),
    ],
)
def test_the_command_can_be_pasted(tree: str, scheduler: bool, command: str) -> None:
    assert replay_command(tree, scheduler, "1.a") == command


def test_the_gravest_comes_first() -> None:
    assert set(BY_GRAVITY) == set(PROPERTIES)
    properties = tuple(PropertyResult(name, Verdict.VIOLATED, 1, (), None) for name in PROPERTIES)
    text = render(outcome(changed(results.violated(), properties=properties)))
    assert re.findall(r"^  ([a-z-]+) in 1 schedule", text, flags=re.MULTILINE) == list(BY_GRAVITY)
    unknown = (PropertyResult("new", Verdict.VIOLATED, 1, (), None), properties[0])
    text = render(outcome(changed(results.violated(), properties=unknown)))
    assert re.findall(r"^  ([a-z-]+) in 1 schedule", text, flags=re.MULTILINE) == ["pinned-room", "new"]


@pytest.mark.parametrize(
    ("states", "runs", "words"),
    [
        (3, 2, "6,662,462 schedules, 3 states, 2 runs, 0.25 s"),
        (0, 2, "6,662,462 schedules, 2 runs, 0.25 s"),
        (0, 0, "6,662,462 schedules"),
    ],
)
def test_what_was_not_counted_is_not_told(states: int, runs: int, words: str) -> None:
    text = render(outcome(changed(results.scenario("abort"), states=states, runs=runs)))
    assert f"\n  {words}\n" in text
