"""Results that are made by hand."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from kvlint.drill.messages import DecodeReport, Flip, PrefillReport, Ready, StuckRoom
from kvlint.drill.results import Comparison, DrillResult, StormResult, Throughput, TreeResult, storm_result
from kvlint.drill.statistics import Interval
from kvlint.drill.storm import Storm
from kvlint.drill.threads import DeadThread

MIB = 1 << 20
READY = Ready(
    address="127.0.0.1:1",
    version="0.5.14",
    digest="0123456789abcdef" * 4,
    nixl="1.5.1",
    torch="2.13.0",
    took="cpu",
    device="host memory",
    workers=4,
)
STORM = Storm(rooms=10, live=2)
DEAD = DeadThread("worker", "Thread-1", "RuntimeError: no", "Traceback:\n  worker()\nRuntimeError: no\n")


def prefill_report(**changes: Any) -> PrefillReport:
    clean = PrefillReport(
        succeeded=(1, 2, 3, 4, 5, 6),
        failed=(7, 8, 9, 10),
        stuck=(),
        settled=True,
        flips=(),
        zombies={},
        orphan_records=(),
        orphan_exceptions=(),
        orphan_metadata=(),
        errors=(),
        dead_threads=(),
        transfers=80,
        log=(),
        peak_bytes=500 * MIB,
    )
    return replace(clean, **changes)


def decode_report(**changes: Any) -> DecodeReport:
    clean = DecodeReport(
        succeeded=(1, 2, 3, 4, 5),
        failed=(),
        aborted=(6, 7, 8, 9, 10),
        early=(10,),
        waiting=(),
        compared=5,
        wrong={},
        seconds=1.5,
        errors=(),
        dead_threads=(),
        log=(),
        peak_bytes=400 * MIB,
    )
    return replace(clean, **changes)


def clean_storm() -> StormResult:
    return storm_result(STORM, prefill_report(), decode_report())


def broken_storm() -> StormResult:
    """A storm in which everything goes wrong that can."""
    prefill = prefill_report(
        succeeded=(1, 2, 3, 4, 5),
        failed=(9, 10),
        stuck=(
            StuckRoom(6, "Transferring", False, "inflight"),
            StuckRoom(7, "Transferring", True, "inflight"),
            StuckRoom(8, "absent", False, "bootstrap"),
        ),
        settled=False,
        flips=(Flip(6, "Transferring"), Flip(9, "Success"), Flip(7, "Transferring")),
        zombies={9: "Success"},
        orphan_records=(9, 10),
        orphan_exceptions=(9,),
        orphan_metadata=(9,),
        errors=("Traceback:\n  poll()\nKeyError: 9\n",),
        dead_threads=(DEAD,),
        log=("room 6: \x1b[31mno\x1b[0m",),
    )
    decode = decode_report(compared=3, wrong={2: 8, 3: 1}, waiting=(6,), dead_threads=(), log=("second",))
    return storm_result(replace(STORM, transfer=0.005, chunks=1), prefill, decode)


def throughput(*seconds: float, failed: int = 0, wrong_bytes: int = 0) -> Throughput:
    storm = Storm(rooms=24, step=0.0005, abort_probability=0.0, checked=False, first=1_000_000)
    return Throughput(storm, seconds, failed, wrong_bytes)


def result(
    storm: StormResult | None = None, measured: Throughput | None = None, root: str = "tree", **changes: Any
) -> DrillResult:
    tree = TreeResult(root, READY, storm, measured)
    return replace(DrillResult(device="cpu", processes=2, trees=(tree,), comparison=None), **changes)


def comparison(*ratios: float, interval: Interval | None = None) -> DrillResult:
    trees = (
        TreeResult("before", READY, None, throughput(2.0, 1.0, 4.0)),
        TreeResult("after", replace(READY, version=None, nixl=None), None, throughput(1.0, failed=1, wrong_bytes=9)),
    )
    found = Comparison(ratios, sorted(ratios)[len(ratios) // 2], interval)
    return DrillResult(device="auto", processes=1, trees=trees, comparison=found)
