"""What must not happen, noticed while a program runs and when nobody can go on."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from kvlint.explore.containers import ABSENT
from kvlint.explore.opening import Unsupported
from kvlint.explore.operations import Violation
from kvlint.properties import (
    LEAKED_RECORD,
    LOST_FAILURE,
    OVERWRITTEN_TERMINAL,
    PINNED_ROOM,
    RESURRECTED_ROOM,
    STUCK_UNTIL_TIMEOUT,
    THREAD_DEATH,
)
from kvlint.properties import (
    PROPERTIES as PROPERTIES,
)

if TYPE_CHECKING:
    from kvlint.explore.backend import Sender
    from kvlint.explore.program import Program

_UNUSED_ROOM = 918_273_645


class Properties:
    """Watches the status table of a program and judges its ends."""

    def __init__(self, program: Program, tables: dict[str, Any]) -> None:
        self._program = program
        self._tables = tables
        self.status_table = self._find_status_table()
        self._names = _names(program.backend.poll)
        self.status_table.watch = self._status_written
        self._reason_for_nothing = self._ask_about_nothing()
        self.begin()

    def begin(self) -> None:
        """A new run."""
        self._removed: set[Hashable] = set()

    def statuses(self) -> dict[str, str]:
        """The status of every room, in words."""
        return {repr(room): self.status_name(status) for room, status in dict.items(self.status_table)}

    def noted(self) -> Hashable:
        """What later judgements of this run depend on."""
        return frozenset(self._removed)

    # While it runs.

    def failed(self, room: int, sender: Sender) -> None:
        """The scheduler has polled Failed and asks for the reason."""
        try:
            sender.failure_exception()
        except Exception as reason:
            if self._says_nothing(room, reason):
                self._violated(LOST_FAILURE, room, f"the client hears only: {reason}")
            return
        self._violated(LOST_FAILURE, room, "failure_exception() raised nothing")

    def _status_written(self, room: Hashable, old: Any, new: Any) -> None:
        poll = self._program.backend.poll
        if new is ABSENT:
            self._removed.add(room)
        elif old is ABSENT:
            if room in self._removed and not self._program.may_open():
                self._violated(RESURRECTED_ROOM, room, f"{self.status_name(new)} is written after clear()")
        elif (old == poll.Failed and new != poll.Failed) or (
            old == poll.Success and new not in (poll.Success, poll.Failed)
        ):
            self._violated(
                OVERWRITTEN_TERMINAL, room, f"{self.status_name(old)} is replaced by {self.status_name(new)}"
            )

    # At the end.

    def final(self) -> list[Violation]:
        """What the end of a run breaks; called with nothing controlled."""
        return [*self._deaths(), *self._unended(), *self._leaks()]

    def _deaths(self) -> list[Violation]:
        found = []
        for actor in self._program.control.actors:
            if actor.died is not None:
                reason = f"{type(actor.died).__name__}: {actor.died}"
                found.append(Violation(THREAD_DEATH, None, f"{actor.name} ends with {reason}"))
            elif actor.pending is not None and actor.pending.kind == "acquire":
                found.append(
                    Violation(THREAD_DEATH, None, f"{actor.name} waits for {actor.pending.resource.uses.label}")
                )
        return found

    def _unended(self) -> list[Violation]:
        program = self._program
        poll = program.backend.poll
        found = []
        for room, sender in program.senders.items():
            status = dict.get(self.status_table, room, ABSENT)
            if status in (poll.Failed, poll.Success):
                continue
            left = self.status_name(status)
            if self._ends_by_timeout(sender):
                found.append(Violation(STUCK_UNTIL_TIMEOUT, room, f"stays {left} until the scheduler's timeout"))
            else:
                found.append(Violation(PINNED_ROOM, room, f"stays {left} and nobody is left to end it"))
        return found

    def _ends_by_timeout(self, sender: Sender) -> bool:
        self._program.past_every_deadline()
        try:
            return bool(sender.poll() == self._program.backend.poll.Failed)
        except Exception:
            return False

    def _leaks(self) -> list[Violation]:
        return [
            Violation(LEAKED_RECORD, room, f"{label} still has it")
            for room in self._program.concluded()
            for label, table in self._tables.items()
            if table is not self.status_table and _has(table, room)
        ]

    # Words and tables.

    def _violated(self, broken: str, room: Hashable, detail: str) -> None:
        self._program.control.violated(broken, room, detail)

    def status_name(self, value: Any) -> str:
        """A status as people call it; other values as Python writes them."""
        if value is ABSENT:
            return "absent"
        if type(value) is bool or not isinstance(value, Hashable):
            return repr(value)
        return self._names.get(value, repr(value))

    def _find_status_table(self) -> Any:
        """The table that ``check_status`` looks a room up in."""
        manager = self._program.backend.manager
        room, status = _UNUSED_ROOM, object()
        for table in self._tables.values():
            if isinstance(table, dict):
                dict.__setitem__(table, room, status)
                try:
                    if manager.check_status(room) is status:
                        return table
                except Exception:
                    continue
                finally:
                    dict.pop(table, room, None)
        raise Unsupported("check_status() of the manager reads none of the manager's tables")

    def _ask_about_nothing(self) -> str:
        """What failure_exception() says of a room of which nothing was recorded."""
        sender = self._program.backend.make_sender(_UNUSED_ROOM)
        try:
            sender.failure_exception()
        except Exception as reason:
            return _without_room(reason, _UNUSED_ROOM)
        return ""

    def _says_nothing(self, room: int, reason: Exception) -> bool:
        return _without_room(reason, room) == self._reason_for_nothing


def _without_room(reason: Exception, room: int) -> str:
    return str(reason).replace(str(room), "…")


def _has(table: Any, room: Hashable) -> bool:
    held = table.held()
    return room in dict(held) if isinstance(table, dict) else room in list(held)


def _names(poll: Any) -> dict[Any, str]:
    return {value: name for name, value in vars(poll).items() if not name.startswith("_")}
