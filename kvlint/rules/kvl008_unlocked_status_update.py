"""# unlocked-status-update (KVL008)

## What it does
Reports decisions on shared state that another thread can overtake before they are acted on. These are:

* a status writer, or code that stores a status past it, that reads the status table and then stores into it;
* a removal from the status table, or a store past the writer, without the lock that the writer takes;
* a key that is tested (`if room in d`, `if room not in d: return`, `assert room in d`) and then used in a way that raises if
  it is gone: `d[room]`, `d.pop(room)`, `del d[room]`, `s.remove(room)`, a reader that subscripts;
* a `remove` of what an abort handler may have removed already.

In each case no lock is held over both steps while another thread writes or removes. Which function runs on which thread is
told from what starts threads, takes items and receives messages. Single operations (`get`, `pop` with a default,
`setdefault`, `discard`) are atomic and not reported, nor is what one thread has to itself, nor a `KeyError` that is
caught by the function or all its callers, nor what tasks of one event loop do without an `await` in between.

## Why is this bad?
Between the writer's read and its store another thread stores a failure; the store then replaces it, and the abort is lost or
the request polled for ever. Between the test and the subscript `clear()` removes the room: the `KeyError` ends the worker's
or listener's thread, and every later request hangs.

## Example
```python
import threading


class KVPoll:
    Failed = 0
    Bootstrapping = 1
    Success = 4


class Manager:
    def __init__(self):
        self.request_status = {}
        threading.Thread(target=self.worker).start()
        threading.Thread(target=self.listener).start()

    def update_status(self, room, status: KVPoll):
        if self.request_status.get(room) not in (KVPoll.Failed, KVPoll.Success):
            self.request_status[room] = status

    def worker(self):
        while True:
            chunk = self.queue.get()
            self.send(chunk)
            self.update_status(chunk.room, KVPoll.Success)

    def listener(self):
        while True:
            room = self.socket.recv()
            self.update_status(room, KVPoll.Failed)
```

## Use instead
```python
import threading


class KVPoll:
    Failed = 0
    Bootstrapping = 1
    Success = 4


class Manager:
    def __init__(self):
        self.request_status = {}
        self._status_lock = threading.RLock()
        threading.Thread(target=self.worker).start()
        threading.Thread(target=self.listener).start()

    def update_status(self, room, status: KVPoll):
        with self._status_lock:
            if self.request_status.get(room) not in (KVPoll.Failed, KVPoll.Success):
                self.request_status[room] = status

    def worker(self):
        while True:
            chunk = self.queue.get()
            self.send(chunk)
            self.update_status(chunk.room, KVPoll.Success)

    def listener(self):
        while True:
            room = self.socket.recv()
            self.update_status(room, KVPoll.Failed)
```

## Fix
`atomic-status` (unsafe) makes a re-entrant lock beside the status table and takes it around the whole of its writers,
overrides included, and around every removal and every store past them, in all files that are given. It does so only where
nothing under the lock can wait or take another lock, as far as the code called there is known: a writer that also sends a
message has to be changed by hand.

A test and a use are mended where one operation says the same: `d.pop(k, None)` and `s.discard(k)`; `x = d.get(k)` for an
`x = d[k]` that comes right behind `if k not in d: return`; and in `k in d and d[k] != M` a `get` with the default that makes
a key which is gone come out as one that was not there. Elsewhere it is not clear what should happen to the rest of the
block, and there is no automatic fix.

## References
- SGLang 0.5.14, `srt/disaggregation/common/conn.py` line 214: read at 215, stored at 228
- SGLang 0.5.14, `mooncake/conn.py` line 1423: tested in the listener and subscripted by `check_status`
- SGLang 0.5.23, `common/conn.py` line 653: a writer that sends a message as well
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvlint.analysis.facts import Facts
from kvlint.analysis.threads import Thread
from kvlint.analysis.writes import Write
from kvlint.diagnostics import AtomicStatus, Finding, Related, Severity
from kvlint.registry import rule

if TYPE_CHECKING:
    from kvlint.analysis.atomicity import OpenStep, Outside
    from kvlint.analysis.sharing import Race


@rule(
    code="KVL008",
    name="unlocked-status-update",
    severity=Severity.WARNING,
    since="0.1.0",
    default=False,
    fix=AtomicStatus,
)
def check(facts: Facts) -> Iterator[Finding]:
    """Report each window in the module between a decision and what is done on it."""
    # Imported here: most runs leave this rule off and must not pay for it.
    from kvlint.analysis.atomicity import open_steps, open_stores, outside_accesses
    from kvlint.analysis.lock_plans import lock_access, lock_writer, single_operation
    from kvlint.analysis.sharing import races

    for step in open_steps(facts):
        plan = lock_writer(facts, step)
        yield check.finding(
            facts.location(step.writer.method.node), _of_writer(facts, step), _around(facts, step), plan
        )
    for outside in outside_accesses(facts):
        yield check.finding(facts.location(outside.node), _of_outside(facts, outside), (), lock_access(facts, outside))
    for write, test, thread, other in open_stores(facts):
        yield check.finding(facts.location(write.node), _of_store(write, test, thread, other))
    for race in races(facts):
        removed = Related(facts.location(race.removal.node, race.removal.place.module), "the key is removed here")
        yield check.finding(
            facts.location(race.use.node), _of_race(facts, race), (removed,), single_operation(facts, race)
        )


def _of_writer(facts: Facts, step: OpenStep) -> str:
    writer, rival = step.writer, step.rival
    where = f"{rival.place.qualified}, {facts.cited(rival.node, rival.place.module)}"
    if not isinstance(rival, Write):
        event, harm = "remove the room", "the store brings it back, or a subscript raises KeyError"
    elif set(rival.members) & set(writer.subject.enum.failures):
        event, harm = (
            f"write {_failure(rival)}",
            "the store replaces it: the abort is lost, or the request polled for ever",
        )
    else:
        event, harm = "write another status", "one of the two is lost"
    return (
        f"{writer.method.owner.name}.{writer.name} reads {writer.subject.attribute} (line {_line(step.read)}) and stores into "
        f"it (line {_line(step.store)}) with no lock over both: after the {step.thread} has read, the {step.other} ({where}) "
        f"can {event}, and then {harm}"
    )


def _failure(write: Write) -> str:
    return next(name for name in write.members if name in write.subject.enum.failures)


def _around(facts: Facts, step: OpenStep) -> Iterator[Related]:
    from kvlint.analysis.lock_plans import obstacle

    module = step.writer.method.owner.module
    yield Related(facts.location(step.read, module), "the status is read here")
    yield Related(facts.location(step.store, module), "and stored here")
    yield Related(facts.location(step.rival.node, step.rival.place.module), f"the {step.other} comes in between")
    if (call := obstacle(facts, step)) is not None:
        yield Related(facts.location(call, module), "no lock should be held over this: it may wait or take another one")


def _of_outside(facts: Facts, outside: Outside) -> str:
    method = outside.writer.method
    does = "removes a room from" if outside.removes else "stores a status into"
    harm = "is undone" if outside.removes else "is replaced"
    return (
        f"{outside.place.qualified} {does} {outside.writer.subject.attribute} on the {outside.other} without {outside.lock}, "
        f"which {method.owner.name}.{outside.writer.name} ({facts.cited(method.node, method.owner.module)}) holds while it "
        f"decides and stores: what is done between the two by the {outside.thread} {harm}"
    )


def _of_store(write: Write, test: ast.expr, thread: Thread, other: Thread) -> str:
    return (
        f"{write.place.qualified} tests the stored status (line {_line(test)}) and stores into {write.subject.attribute} past "
        f"its writer with no lock over both: a status that the {other} stores in between is replaced by the {thread}'s"
    )


def _of_race(facts: Facts, race: Race) -> str:
    from kvlint.analysis.presence import Act

    use, removal = race.use, race.removal
    remover = f"{removal.place.qualified} ({facts.cited(removal.node, removal.place.module)})"
    harm = f"the exception ends the {race.thread}"
    if race.thread is not Thread.SCHEDULER:
        harm += ", and every later request hangs"
    if use.seen is None:
        return f"{race.table}.remove raises if the abort handler {remover} has removed the same before: {harm}"
    what = {Act.SUBSCRIPT: "its subscript", Act.CALL: "the reader's subscript"}.get(use.act, f"its `{use.act}`")
    return (
        f"{race.place.qualified} finds a key in {race.table} (line {_line(use.seen.test)}), and {what} of it (line "
        f"{_line(use.node)}) raises if the {race.other} has removed the key in between, in {remover}, since no lock is held over "
        f"both: {harm}"
    )


def _line(node: ast.AST) -> int:
    return node.lineno  # type: ignore[attr-defined, no-any-return]
