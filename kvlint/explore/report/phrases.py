"""Steps and waits of a schedule in the words of the program, shared by the text report, the page and the diagram."""

from __future__ import annotations

import os
import re

from kvlint.explore.results import Step, Witness
from kvlint.source.display import one_line, slashed

#: Between what is done and what comes of it.
ARROW = "→"

#: How operations are put that are no plain method of what they are done to.
_WORDS = {
    "in": "{key} in {label}",
    "[]": "{label}[{key}]",
    "[]=": "{label}[{key}] = {observed}",
    "del": "del {label}[{key}]",
    "len": "len({label})",
    "iter": "iter({label})",
    "repr": "repr({label})",
    "acquire": "acquire {label}",
    "release": "release {label}",
    "wait": "wait for {label}",
    "notify": "notify {label}",
    "take": "take from {label}",
    "put": "put {observed} into {label}",
    "transfer": "{label}",
    "receive": "receive {observed}",
    "await change": "wait for a change",
    "read": "{label}",
    "store": "{label} = {observed}",
    "ends with": "ends with {observed}",
}
#: Operations that hand nothing back that is worth a word, unless they fail.
_SILENT = {
    *("[]=", "ends with", "del", "release", "wait", "notify", "receive", "await change", "store", "clear", "set"),
    *("update", "add", "discard", "remove", "append", "appendleft", "insert", "extend", "extendleft", "move_to_end"),
    *("reverse", "rotate", "sort"),
}
#: What a queue answers that neither took nor gave anything.
_REFUSED = {"full", "empty"}
_RAISED = re.compile(
    r"[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Iteration|Warning|Failure|Full|Empty|Timeout)\(.*\)", re.DOTALL
)
_MESSAGE = re.compile(r"(?P<kind>[\w-]+) (?P<room>\S+) \d+")
#: What a thread waits for all day long.
_IDLE = {"take": "waits for more in {label}", "receive": "waits for a message"}
_BLOCKING = {"acquire", "wait"}
#: Properties of an end: nobody can go on, so whoever still waits does it for ever.
_ENDINGS = {"pinned-room": "for ever", "thread-death": "for ever", "stuck-until-timeout": "until a timeout"}


def phrase(step: Step) -> str:
    """What was done and what came of it, in one line: ``7 in transfer_infos → True``."""
    done, came = operation(step), outcome(step)
    return f"{done} {ARROW} {came}" if came else done


def operation(step: Step) -> str:
    """What was done: ``request_status[7] = Failed``, ``acquire failure_lock``."""
    label = step.label.removeprefix(".").removesuffix(" waiters") or "it"
    key = step.key or "…"
    words = _WORDS.get(step.operation)
    if words is None:
        return one_line(_method(step, label))
    if step.operation == "put" and _plain(step.observed) in _REFUSED:
        words = "put into {label}"
    observed = "…" if _has_failed(step) else _received(step.observed) if step.operation == "receive" else step.observed
    return one_line(words.format(label=label, key=key, observed=observed))


def outcome(step: Step) -> str:
    """What came of it, or "" where there is nothing to say: ``True``, ``raises KeyError(7)``."""
    if _has_failed(step):
        return one_line(f"raises {step.observed}")
    observed = _plain(step.observed) if step.operation in {"transfer", "take", "put"} else step.observed
    if step.operation == "put":
        return observed if observed in _REFUSED else ""
    if step.operation == "acquire":
        return {"True": "", "False": "it is not free"}.get(observed, one_line(observed))
    return "" if step.operation in _SILENT else one_line(observed)


def where(step: Step, tree: str = "") -> str:
    """The line that did it, ``path:line (function)``, or what else did; ``tree`` is what the path is told from."""
    if step.place is None:
        return "outside of the tree"
    path = slashed(step.place.path)
    for folder in (tree, os.path.abspath(tree)) if tree else ():
        path = path.removeprefix(slashed(folder).rstrip("/") + "/")
    return one_line(f"{path}:{step.place.line} ({step.place.function})")


def headline(witness: Witness) -> str:
    """What is broken, where: ``pinned-room, room 7: stays Transferring and nobody is left to end it``."""
    between = ", " if witness.detail.startswith("room ") else ": "
    return one_line(f"{witness.property}{between}{witness.detail}" if witness.detail else witness.property)


def wait(witness: Witness, actor: str) -> str:
    """What an actor does after the last step: ``waits for more in chunks``, ``polls request_status[7] — for ever``.

    ``Witness.waiting`` has an operation and what it is done to (``take chunks``, ``acquire failure_lock``,
    ``[] request_status``), or other words for what is waited for (``a change of request_status``).
    """
    awaited = witness.waiting.get(actor)
    if awaited is None:
        return "goes on" if witness.waiting else ""
    if not awaited:
        return "has ended"
    kind, _, label = awaited.partition(" ")
    if kind in _IDLE:
        return one_line(_IDLE[kind].format(label=label))
    if kind in _WORDS and kind not in _BLOCKING and not awaited.startswith("await change"):
        return "next: " + operation(Step(actor, kind, label, "", "…", False, None))
    if awaited.startswith("await change"):
        told = _polling(witness, actor)
    else:
        told = f"waits for {label if kind in _BLOCKING else awaited}"
    ending = _ENDINGS.get(witness.property, "")
    return one_line(told + (f" — {ending}" if ending else ""))


def _polling(witness: Witness, actor: str) -> str:
    """What somebody does who waits for a change of what it has read last."""
    last = next(
        (step for step in reversed(witness.steps) if step.actor == actor and step.label and not step.writes), None
    )
    if last is None or last.operation == "await change":
        return "waits for a change"
    return f"polls {last.label.removeprefix('.')}" + (f"[{last.key}]" if last.key else "")


def _method(step: Step, label: str) -> str:
    if step.operation.isidentifier():
        return f"{label}.{step.operation}({step.key})"
    return f"{label} {step.operation} …"


def _has_failed(step: Step) -> bool:
    return step.operation != "store" and _RAISED.fullmatch(step.observed) is not None


def _received(observed: str) -> str:
    found = _MESSAGE.fullmatch(_plain(observed))
    return f"{found['kind'].upper()} of room {found['room']}" if found else observed


def _plain(observed: str) -> str:
    """``observed`` without the quotes that Python writes around text."""
    quoted = len(observed) > 1 and observed[0] == observed[-1] and observed[0] in "'\""
    return observed[1:-1] if quoted else observed
