from __future__ import annotations

import os

import pytest
from msgspec.structs import replace

from kvlint.explore.report.phrases import headline, phrase, wait, where
from kvlint.explore.results import Place, Step

from .explorations import ABORT, DROP, FIRST_CHUNK, LISTENER, OVERWRITE, PINNED, SCHEDULER, WORKER, step

SPOKEN = [
    (("in", "transfer_infos", "7"), "True", "7 in transfer_infos → True"),
    (("[]", "request_status", "7"), "Failed", "request_status[7] → Failed"),
    (("[]", "request_status", "7"), "KeyError(7)", "request_status[7] → raises KeyError(7)"),
    (("[]", "addresses", ""), "3", "addresses[…] → 3"),
    (("[]=", "request_status", "7"), "Failed", "request_status[7] = Failed"),
    (("[]=", "table", "7"), "TypeError('x')", "table[7] = … → raises TypeError('x')"),
    (("get", "request_status", "7"), "None", "request_status.get(7) → None"),
    (("pop", "transfer_infos", "7"), "dict of 1", "transfer_infos.pop(7) → dict of 1"),
    (("pop", "names", ""), "'a'", "names.pop() → 'a'"),
    (("del", "request_status", "7"), "None", "del request_status[7]"),
    (("setdefault", "transfer_infos", "7"), "{}", "transfer_infos.setdefault(7) → {}"),
    (("update", "table", ""), "None", "table.update()"),
    (("clear", "table", ""), "None", "table.clear()"),
    (("len", "table", ""), "3", "len(table) → 3"),
    (("iter", "table", ""), "end", "iter(table) → end"),
    (("values", "table", ""), "RuntimeError('changed')", "table.values() → raises RuntimeError('changed')"),
    (("items", "table", ""), "(7, 1)", "table.items() → (7, 1)"),
    (("keys", "table", ""), "7", "table.keys() → 7"),
    (("add", "rooms", "7"), "None", "rooms.add(7)"),
    (("discard", "rooms", "7"), "None", "rooms.discard(7)"),
    (("remove", "rooms", "7"), "KeyError(7)", "rooms.remove(7) → raises KeyError(7)"),
    (("append", "chunks", ""), "None", "chunks.append()"),
    (("popleft", "chunks", ""), "Chunk", "chunks.popleft() → Chunk"),
    (("|=", "table", ""), "None", "table |= … → None"),
    (("acquire", "failure_lock", ""), "True", "acquire failure_lock"),
    (("acquire", "failure_lock", ""), "False", "acquire failure_lock → it is not free"),
    (("release", "failure_lock", ""), "RuntimeError('free')", "release failure_lock → raises RuntimeError('free')"),
    (("wait", "ready waiters", ""), "True", "wait for ready"),
    (("notify", "ready waiters", ""), "None", "notify ready"),
    (("take", "chunks", ""), "Chunk", "take from chunks → Chunk"),
    (("take", "chunks", ""), "'empty'", "take from chunks → empty"),
    (("put", "chunks", ""), "Chunk", "put Chunk into chunks"),
    (("put", "chunks", ""), "'full'", "put into chunks → full"),
    (("transfer", "transfer", ""), "'DONE'", "transfer → DONE"),
    (("transfer", "transfer", ""), "ERR", "transfer → ERR"),
    (("receive", "messages", ""), "'abort 7 1'", "receive ABORT of room 7"),
    (("receive", "messages", ""), "metadata 8 2", "receive METADATA of room 8"),
    (("receive", "messages", ""), "something else", "receive something else"),
    (("await change", "scheduler step", ""), "None", "wait for a change"),
    (("read", ".running", ""), "True", "running → True"),
    (("store", "sender 7.conclude_state", ""), "Failed", "sender 7.conclude_state = Failed"),
    (("store", "last", ""), "ValueError('kept')", "last = ValueError('kept')"),
    (("in", "", ""), "False", "… in it → False"),
    (("in", "names", "'a\nb'"), "True", "'a\\nb' in names → True"),
]


@pytest.mark.parametrize(("done", "observed", "words"), SPOKEN, ids=[words for _, _, words in SPOKEN])
def test_a_step_in_words(done: tuple[str, str, str], observed: str, words: str) -> None:
    assert phrase(step(WORKER, done, observed, None)) == words


def test_a_place_is_told_from_the_tree() -> None:
    at = step(WORKER, ("in", "a", "7"), "True", ("/srv/tree/nixl/conn.py", 7, "f"))
    assert where(at) == "/srv/tree/nixl/conn.py:7 (f)"
    assert where(at, "/srv/tree") == where(at, "/srv/tree/") == "nixl/conn.py:7 (f)"
    assert where(at, "/srv/trees") == where(at, "/srv/t") == "/srv/tree/nixl/conn.py:7 (f)"
    inside = replace(at, place=Place(os.path.abspath("a/b.py"), 1, "g"))
    assert where(inside, "a") == "b.py:1 (g)"
    assert where(step("outside", ("in", "a", "7"), "True", None)) == "outside of the tree"


@pytest.mark.parametrize(
    ("broken", "awaited", "words"),
    [
        ("pinned-room", "take chunks", "waits for more in chunks"),
        ("pinned-room", "receive messages", "waits for a message"),
        ("pinned-room", "await change scheduler step", "polls request_status[7] — for ever"),
        ("stuck-until-timeout", "await change scheduler step", "polls request_status[7] — until a timeout"),
        ("overwritten-terminal", "await change scheduler step", "polls request_status[7]"),
        ("thread-death", "acquire failure_lock", "waits for failure_lock — for ever"),
        ("overwritten-terminal", "[] request_status", "next: request_status[…]"),
        ("overwritten-terminal", "pop transfer_infos", "waits for pop transfer_infos"),
        ("leaked-record", "a change of the weather", "waits for a change of the weather"),
        ("pinned-room", "", "has ended"),
    ],
)
def test_what_an_actor_does_at_the_end(broken: str, awaited: str, words: str) -> None:
    assert wait(replace(PINNED, property=broken, waiting={SCHEDULER: awaited}), SCHEDULER) == words


def test_an_end_that_is_not_told() -> None:
    assert wait(replace(PINNED, waiting={}), SCHEDULER) == ""
    assert wait(replace(PINNED, waiting={WORKER: ""}), LISTENER) == "goes on"
    asleep = replace(PINNED, steps=(), waiting={SCHEDULER: "await change scheduler step"})
    assert wait(asleep, SCHEDULER) == "waits for a change — for ever"
    whole = Step(SCHEDULER, "len", "request_status", "", "1", False, None)
    assert wait(replace(asleep, steps=(whole,)), SCHEDULER) == "polls request_status — for ever"


def test_what_is_broken_where() -> None:
    assert headline(PINNED) == "pinned-room, room 7: stays Transferring and nobody is left to end it"
    assert headline(replace(PINNED, detail="worker ends")) == "pinned-room: worker ends"
    assert headline(replace(PINNED, detail="")) == "pinned-room"


def test_the_witness_of_the_demo_in_words() -> None:
    told = [phrase(each) for each in (*FIRST_CHUNK[:2], ABORT[0], OVERWRITE[-1], DROP[-1])]
    assert told == [
        "take from chunks → Chunk(room=7, pages=[0], is_last=False)",
        "7 in transfer_infos → True",
        "receive ABORT of room 7",
        "request_status[7] = Transferring",
        "7 in transfer_infos → False",
    ]
