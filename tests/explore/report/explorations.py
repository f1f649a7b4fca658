"""Explorations written by hand: the demo's backend as it would be seen, and odder ones."""

from __future__ import annotations

from kvlint.explore.results import Exploration, Place, PropertyResult, ScenarioResult, Step, Verdict, Witness
from kvlint.properties import PROPERTIES

WORKER, LISTENER, SCHEDULER = "worker", "listener", "scheduler"
_FILES = {"base": "demo_backend/base.py", "backend": "demo_backend/backend.py"}
_TAKE = ("take", "chunks", "")
_POLL = ("base", 63, "check_status")
_UPDATE = "update_status"


def step(
    actor: str, done: tuple[str, str, str], observed: str, place: tuple[str, int, str] | None, **more: object
) -> Step:
    """A step; ``done`` is operation, label and key."""
    at = None if place is None else Place(_FILES.get(place[0], place[0]), place[1], place[2])
    writes = done[0] in {"[]=", "pop", "del", "take", "put", "acquire", "release", "receive", "store", "clear", "add"}
    return Step(actor, *done, observed, bool(more.pop("writes", writes)), at, **more)  # type: ignore[arg-type]


def _on(label: str, operation: str) -> tuple[str, str, str]:
    return (operation, label, "7")


STATUS, INFOS = "request_status", "transfer_infos"

FIRST_CHUNK = (
    step(WORKER, _TAKE, "Chunk(room=7, pages=[0], is_last=False)", ("backend", 54, "transfer_worker")),
    step(WORKER, _on(INFOS, "in"), "True", ("backend", 58, "transfer_worker")),
    step(WORKER, _on(STATUS, "[]"), "WaitingForInput", _POLL),
    step(WORKER, _on(STATUS, "in"), "True", ("base", 66, _UPDATE)),
    step(WORKER, _on(STATUS, "[]"), "WaitingForInput", ("base", 74, _UPDATE)),
    step(WORKER, _on(STATUS, "[]="), "Transferring", ("base", 74, _UPDATE)),
    step(WORKER, _on(INFOS, "[]"), "{'decode-0': [4096]}", ("backend", 63, "transfer_worker")),
    step(WORKER, ("transfer", "transfer", ""), "DONE", ("backend", 66, "<genexpr>")),
)
ABORT = (
    step(LISTENER, ("receive", "messages", ""), "abort 7 1", ("backend", 82, "bootstrap_listener"), preempts=True),
    step(LISTENER, _on(STATUS, "in"), "True", ("backend", 85, "bootstrap_listener")),
    step(LISTENER, _on(STATUS, "[]"), "Transferring", _POLL),
    step(LISTENER, ("acquire", "failure_lock", ""), "True", ("base", 77, "record_failure")),
    step(LISTENER, ("[]=", "failure_records", "7"), "'aborted by the decode side'", ("base", 78, "record_failure")),
    step(LISTENER, ("release", "failure_lock", ""), "None", ("base", 77, "record_failure")),
    step(LISTENER, _on(STATUS, "in"), "True", ("base", 66, _UPDATE)),
    step(LISTENER, _on(STATUS, "[]="), "Failed", ("base", 71, _UPDATE)),
    step(LISTENER, _on(INFOS, "pop"), "{'decode-0': [4096]}", ("backend", 89, "bootstrap_listener")),
    step(LISTENER, ("pop", "req_to_decode_prefix_len", "7"), "None", ("backend", 90, "bootstrap_listener")),
)
OVERWRITE = (
    step(WORKER, _on(STATUS, "in"), "True", ("base", 66, _UPDATE)),
    step(WORKER, _on(STATUS, "[]"), "Failed", ("base", 74, _UPDATE)),
    step(WORKER, _on(STATUS, "[]="), "Transferring", ("base", 74, _UPDATE), breaks="overwritten-terminal"),
)
DROP = (
    step(WORKER, _TAKE, "Chunk(room=7, pages=[1], is_last=True)", ("backend", 54, "transfer_worker")),
    step(WORKER, _on(INFOS, "in"), "False", ("backend", 58, "transfer_worker")),
)
LAST_POLL = (step(SCHEDULER, _on(STATUS, "[]"), "Transferring", _POLL),)

PINNED = Witness(
    property="pinned-room",
    detail="room 7: stays Transferring and nobody is left to end it",
    preemptions=1,
    actors=(WORKER, LISTENER, SCHEDULER),
    steps=(*FIRST_CHUNK, *ABORT, *OVERWRITE, *DROP, *LAST_POLL),
    waiting={WORKER: "take chunks", LISTENER: "receive messages", SCHEDULER: "await change scheduler step"},
    token="abort.Jx2k-0000000011111111112220",
    status_table=STATUS,
    statuses={"7": "WaitingForInput"},
)
OVERWRITTEN = Witness(
    property="overwritten-terminal",
    detail="room 7: Failed is replaced by Transferring",
    preemptions=1,
    actors=(WORKER, LISTENER, SCHEDULER),
    steps=(*FIRST_CHUNK, *ABORT, *OVERWRITE),
    waiting={WORKER: "take chunks", LISTENER: "receive messages", SCHEDULER: "[] request_status"},
    token="abort.Jx2k-00000000111111111100",
)


def properties(**broken: PropertyResult) -> tuple[PropertyResult, ...]:
    """All properties, of which those named (with underscores) are as given and the others hold."""
    given = {name.replace("_", "-"): result for name, result in broken.items()}
    return tuple(given.get(name, PropertyResult(name, Verdict.HOLDS, 0, (), None)) for name in PROPERTIES)


def scenario(name: str = "abort", **values: object) -> ScenarioResult:
    """A scenario that holds, but for what is given."""
    plain: dict[str, object] = {
        "scenario": name,
        "summary": "one room, two chunks, and an ABORT from the decode side",
        "verdict": Verdict.HOLDS,
        "schedules": 1234,
        "states": 321,
        "runs": 98,
        "seconds": 0.041,
        "quick_seconds": None,
        "reason": "",
        "shared": ("failure_lock", STATUS, INFOS),
        "properties": properties(),
    }
    return ScenarioResult(**{**plain, **values})  # type: ignore[arg-type]


ABORT_SCENARIO = scenario(
    verdict=Verdict.VIOLATED,
    schedules=6_662_462,
    states=2_118,
    runs=904,
    seconds=0.174,
    quick_seconds=0.0042,
    properties=properties(
        pinned_room=PropertyResult("pinned-room", Verdict.VIOLATED, 51_021, (PINNED.detail,), PINNED),
        overwritten_terminal=PropertyResult(
            "overwritten-terminal",
            Verdict.VIOLATED,
            1_204_117,
            (OVERWRITTEN.detail, "room 7: Success is replaced by Transferring"),
            OVERWRITTEN,
        ),
    ),
)
CUT_SHORT = scenario(
    "two-rooms",
    summary="two rooms on one worker, one of them aborted",
    verdict=Verdict.INCONCLUSIVE,
    schedules=None,
    reason="60 s were over",
    seconds=60.02,
    properties=tuple(PropertyResult(name, Verdict.INCONCLUSIVE, None, (), None) for name in PROPERTIES),
)
DEMO = Exploration(
    tree="kvlint/demo_backend",
    version=None,
    digest="4a44dc15364204a80fe80e9039455cc1608281820fe2b24f1e5233ade6af1dd5",
    loaded=("base", "backend"),
    stubbed=("transfers", "the message socket"),
    scheduler=True,
    verdict=Verdict.VIOLATED,
    scenarios=(ABORT_SCENARIO, scenario("scheduler-abort", schedules=244), CUT_SHORT),
)

# -- odd ones ------------------------------------------------------------------------------

EVIL = "</text></svg><script>alert(1)</script>&\"'\x00\x1b[31m\u202e\ud800\n\tend"


def hostile() -> Exploration:
    """Everything that the explored code can name is an attack."""
    long = "x" * 5000
    steps = (
        Step(EVIL, "[]=", EVIL, EVIL, EVIL, True, Place(EVIL, 1, EVIL), preempts=True, breaks=EVIL),
        Step("b", EVIL, long, long, long, False, Place(long, 10**9, long)),
        Step(long, "in", "status", "7", "True", False, None),
        Step(long, "[]=", "status", EVIL, EVIL, True, None),
        Step("b", "receive", "messages", "", EVIL, True, Place("C:\\a b\\c.py", 3, "f")),
    )
    witness = Witness(EVIL, EVIL, 3, (EVIL, "b"), steps, {EVIL: EVIL, "b": "", long: long}, EVIL)
    broken = PropertyResult(EVIL, Verdict.VIOLATED, 1, (EVIL, long), witness)
    named = scenario(EVIL, summary=EVIL, verdict=Verdict.VIOLATED, reason=EVIL, shared=(EVIL,), properties=(broken,))
    return Exploration(EVIL, EVIL, EVIL, (EVIL, *map(str, range(9))), (EVIL,), False, Verdict.VIOLATED, (named,))


def long_witness(steps: int = 200, actors: int = 5, rooms: int = 2) -> Witness:
    """Many steps of many actors on several rooms."""
    names = [f"worker {number}" if number < actors - 1 else LISTENER for number in range(actors)]
    kinds = ("in", "[]", "[]=", "in", "get", "[]", "[]")
    values = {"in": "True", "[]": "Transferring", "get": "WaitingForInput"}
    made = []
    for number in range(steps):
        kind = kinds[number % len(kinds)]
        label = STATUS if kind == "[]=" or number % 3 else INFOS
        value = values.get(kind) or ("Bootstrapping", "WaitingForInput", "Transferring", "Failed")[number // 7 % 4]
        made.append(
            Step(
                names[number // 12 % actors],
                kind,
                label,
                str(7 + number // 5 % rooms),
                value,
                kind == "[]=",
                Place("sglang/srt/disaggregation/nixl/conn.py", 1100 + number, "transfer_worker"),
                preempts=number % 24 == 0 and number > 0,
                breaks="overwritten-terminal" if number == steps - 1 else "",
            )
        )
    waiting = dict.fromkeys(names, "acquire status_lock")
    return Witness("thread-death", "worker 0 waits for status_lock", 8, tuple(names), tuple(made), waiting, "t" * 300)


def long_exploration() -> Exploration:
    """One violation that takes 200 steps of five actors on two rooms."""
    broken = PropertyResult("thread-death", Verdict.VIOLATED, None, (), long_witness())
    found = scenario(
        "two-rooms", verdict=Verdict.VIOLATED, schedules=None, reason="60 s were over", properties=(broken,)
    )
    return Exploration(
        "/srv/my tree", "0.5.14", "0" * 64, tuple(f"nixl.m{n}" for n in range(9)), (), False, Verdict.VIOLATED, (found,)
    )
