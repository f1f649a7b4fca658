"""Results as an exploration could have them."""

from __future__ import annotations

from kvlint.explore.request import Request
from kvlint.explore.results import (
    Exploration,
    Place,
    PropertyResult,
    ScenarioResult,
    Step,
    Verdict,
    Witness,
)
from kvlint.explore.scenarios import scenario as known
from kvlint.explore.search.verdicts import worst
from kvlint.properties import PROPERTIES

_CONN = "tree/sglang/srt/disaggregation/nixl/conn.py"


def _step(
    actor: str, operation: str, label: str, key: str, observed: str, line: int, function: str, **more: object
) -> Step:
    writes = operation in {"[]=", "pop", "acquire"}
    return Step(actor, operation, label, key, observed, writes, Place(_CONN, line, function), **more)  # type: ignore[arg-type]


WORKER = "NixlKVManager.transfer_worker"
LISTENER = "NixlKVManager._start_bootstrap_thread.<locals>.bootstrap_thread"
WITNESS = Witness(
    property="pinned-room",
    detail="room 7 stays Transferring and nobody is left to end it",
    preemptions=1,
    actors=("worker", "listener", "scheduler"),
    steps=(
        _step("worker", "in", "transfer_infos", "7", "True", 1310, WORKER),
        _step("worker", "[]=", "request_status", "7", "Transferring", 1322, WORKER),
        Step("listener", "receive", "messages", "", "abort 7 1", True, None, preempts=True),
        _step("listener", "[]=", "request_status", "7", "Failed", 1402, LISTENER),
        _step("listener", "pop", "transfer_infos", "7", "{'decode-0': TransferInfo(…)}", 1404, LISTENER),
        _step("worker", "transfer", "transfer", "", "DONE", 1340, WORKER),
        _step("worker", "[]=", "request_status", "7", "Transferring", 1352, WORKER, breaks="overwritten-terminal"),
        _step("scheduler", "get", "request_status", "7", "Transferring", 655, "CommonKVManager.check_status"),
        _step("worker", "in", "transfer_infos", "7", "False", 1310, WORKER),
    ),
    waiting={"worker": "take queue", "listener": "receive messages", "scheduler": "await change"},
    token="1.abort.0-0-1-1",
)


def scenario(name: str, request: Request | None = None) -> ScenarioResult:
    """A scenario that holds, or of which nothing more is known where no complete search was asked for."""
    verdict = Verdict.HOLDS if request is None or request.complete else Verdict.INCONCLUSIVE
    return ScenarioResult(
        scenario=name,
        summary=known(name).summary,
        verdict=verdict,
        schedules=6_662_462 if verdict is Verdict.HOLDS else None,
        states=1_234,
        runs=567,
        seconds=0.25,
        quick_seconds=None,
        reason="" if verdict is Verdict.HOLDS else "only up to 2 preemptions were looked at",
        shared=("request_status", "transfer_infos"),
        properties=tuple(PropertyResult(entry, verdict, 0, (), None) for entry in PROPERTIES),
    )


def violated(name: str = "abort") -> ScenarioResult:
    """A scenario with two violated properties."""
    broken = {
        "pinned-room": PropertyResult("pinned-room", Verdict.VIOLATED, 51_021, (WITNESS.detail,), WITNESS),
        "overwritten-terminal": PropertyResult(
            "overwritten-terminal",
            Verdict.VIOLATED,
            3,
            tuple(f"Failed is replaced by Transferring, {number}" for number in range(6)),
            Witness("overwritten-terminal", "Failed is replaced", 0, ("worker",), (), {}, "1.abort.0"),
        ),
        "leaked-record": PropertyResult(
            "leaked-record", Verdict.VIOLATED, None, ("failure_records still has it",), None
        ),
    }
    held = scenario(name)
    return ScenarioResult(
        scenario=name,
        summary=held.summary,
        verdict=Verdict.VIOLATED,
        schedules=held.schedules,
        states=held.states,
        runs=held.runs,
        seconds=held.seconds,
        quick_seconds=0.02,
        reason="",
        shared=held.shared,
        properties=tuple(broken.get(entry.property, entry) for entry in held.properties),
    )


def exploration(*scenarios: ScenarioResult, scheduler: bool = True) -> Exploration:
    """A whole one, of the folder `tree`."""
    return Exploration(
        tree="tree",
        version="0.5.14",
        digest="0123456789abcdef" * 4,
        loaded=("sglang.srt.disaggregation.common.conn", "sglang.srt.disaggregation.nixl.conn"),
        stubbed=("RDMA transfers: a NIXL agent that moves nothing", "ZMQ"),
        scheduler=scheduler,
        verdict=worst(result.verdict for result in scenarios),
        scenarios=scenarios,
    )
