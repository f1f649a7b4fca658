"""What one run of the interpreter is about: the status of one room, and where it is kept."""

from __future__ import annotations

from functools import cached_property

from msgspec import Struct

from kvlint.analysis.values import ABSENT, Mark, Stored
from kvlint.protocol import is_failure_name, is_success_name
from kvlint.semantics.constants import Constant, EnumInfo, Member


class StatusEnum(Struct, frozen=True, eq=False, dict=True):
    """A status enum and the roles of its members (names)."""

    info: EnumInfo
    failures: tuple[str, ...]
    successes: tuple[str, ...]

    @property
    def terminals(self) -> tuple[str, ...]:
        """Failure and success members."""
        return (*self.failures, *self.successes)

    @cached_property
    def members(self) -> tuple[str, ...]:
        """All members in order of definition, aliases left out."""
        return tuple(name for value, name in self.info.by_value.items())

    def value(self, name: str) -> Constant:
        """The constant that the member is."""
        return self.info.values[name]

    def name_of(self, value: Stored) -> str | None:
        """The member's name, None where ``value`` is no member."""
        if isinstance(value, Mark):
            return None
        return self.info.by_value.get(value) or self._plain.get(value)

    @cached_property
    def _plain(self) -> dict[Constant, str]:
        """Member name by the int or str that a member of an IntEnum or StrEnum equals (``status.value`` was stored)."""
        members = ((name, value) for value, name in self.info.by_value.items() if isinstance(value, Member))
        return {value.value: name for name, value in members if value.mixed}  # type: ignore[misc]

    def is_terminal(self, value: Stored) -> bool:
        """Whether ``value`` is a terminal member."""
        return self.name_of(value) in self.terminals

    def is_failure(self, value: Stored) -> bool:
        """Whether ``value`` is a failure member."""
        return self.name_of(value) in self.failures

    def letters(self) -> dict[str, str]:
        """A letter for each member: its first, or the first that is free."""
        taken: dict[str, str] = {}
        for name in self.members:
            candidates = [*name.upper(), *"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"]
            taken[name] = next(letter for letter in candidates if letter.isalnum() and letter not in taken.values())
        return taken


def status_enum(
    info: EnumInfo, failures: tuple[str, ...] | None = None, successes: tuple[str, ...] | None = None
) -> StatusEnum | None:
    """``info`` as a status enum: roles from configuration, else from the members' names.

    None where no member is a success or none is live: such an enum is no status protocol.  One without a failure
    member is kept, since a reader should be told, but nothing can be said against its writers.
    """
    names = tuple(info.by_value.values())
    failed = failures if failures is not None else tuple(name for name in names if is_failure_name(name))
    succeeded = successes if successes is not None else tuple(name for name in names if is_success_name(name))
    terminal = {*failed, *succeeded}
    if not succeeded or not [name for name in names if name not in terminal]:
        return None
    return StatusEnum(info, failed, succeeded)


class Subject(Struct, frozen=True, eq=False, dict=True):
    """A status enum and the place that holds a room's status.

    ``kind`` is ``table`` (``owner.<attribute>[room]``) or ``attribute``
    (``record.<attribute>``, no room can be absent).
    """

    enum: StatusEnum
    kind: str
    attribute: str
    writers: frozenset[str] = frozenset()

    @cached_property
    def stored_values(self) -> tuple[Stored, ...]:
        """Everything that can be stored: ABSENT (tables only), then every member."""
        members: tuple[Stored, ...] = tuple(self.enum.value(name) for name in self.enum.members)
        return (ABSENT, *members) if self.kind == "table" else members

    def is_live(self, stored: Stored) -> bool:
        """Whether ``stored`` is a member that is not terminal: somebody still waits for an end."""
        return self.enum.name_of(stored) is not None and not self.enum.is_terminal(stored)
