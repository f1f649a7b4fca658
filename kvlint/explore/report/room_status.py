"""The status of every room along a schedule, as far as its steps tell."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from kvlint.explore.results import Step, Witness
from kvlint.protocol import FAILURE_WORDS, SUCCESS_WORDS

#: What a room has that is not in the table.
ABSENT = "absent"
_REMOVALS = {"pop", "del"}
_READS = {"[]", "get"}
_MEMBER = re.compile(r"<?(?:\w+\.)*(\w+)(?:: [^>]*>)?")


@dataclass(frozen=True, slots=True)
class Change:
    """From step ``step`` on (counted from 0; -1 for the beginning) the room has ``status``."""

    step: int
    status: str

    @property
    def kind(self) -> str:
        """``failed``, ``success``, ``live``, or ``absent``."""
        return kind_of(self.status)


def kind_of(status: str) -> str:
    """What a status means, told by its name."""
    word = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", status).lower()
    if word == ABSENT:
        return "absent"
    return "failed" if word in FAILURE_WORDS else "success" if word in SUCCESS_WORDS else "live"


def status_table(witness: Witness) -> str:
    """The label of the table of statuses: as the witness has it, else the table so named that is used most."""
    if witness.status_table:
        return witness.status_table
    uses = Counter(
        step.label for step in witness.steps if step.key and "status" in step.label and "[" not in step.label
    )
    return max(uses, key=lambda label: (uses[label], label), default="")


def room_changes(witness: Witness) -> dict[str, list[Change]]:
    """By room, its statuses in order; those that nothing is known of are left out."""
    table = status_table(witness)
    found = {room: [Change(-1, _name(status))] for room, status in witness.statuses.items()}
    for number, step in enumerate(witness.steps):
        if step.label != table or not table:
            continue
        if not step.key:
            if step.operation == "clear":
                for changes in found.values():
                    _add(changes, Change(number, ABSENT))
            continue
        status = _status_after(step)
        if status is None:
            continue
        changes = found.setdefault(step.key, [])
        # What is read first was there from the beginning.
        _add(changes, Change(-1 if not changes and not step.writes else number, status))
    return {room: changes for room, changes in found.items() if changes}


def is_change(changes: dict[str, list[Change]], number: int) -> bool:
    """Whether a room has another status after step ``number``."""
    return any(change.step == number for of_room in changes.values() for change in of_room)


def _status_after(step: Step) -> str | None:
    """The status of the step's room after it; None where it does not tell."""
    if step.operation in _REMOVALS:
        return ABSENT
    if "(" in step.observed:
        return None  # it raised
    if step.operation in {"[]=", "setdefault"}:
        return _name(step.observed)
    if step.operation in _READS:
        return ABSENT if step.observed == "None" else _name(step.observed)
    if step.operation == "in" and step.observed == "False":
        return ABSENT
    return None


def _add(changes: list[Change], change: Change) -> None:
    if not changes or changes[-1].status != change.status:
        changes.append(change)


def _name(observed: str) -> str:
    found = _MEMBER.fullmatch(observed)
    return found[1] if found else observed
