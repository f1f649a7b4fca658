"""A status writer's transition table: what is stored after each write over each stored status."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct

from kvlint.analysis.conclusions import Reach
from kvlint.analysis.frames import Frame, GaveUp
from kvlint.analysis.interpreter import Interpreter
from kvlint.analysis.lower import lowered
from kvlint.analysis.states import Env, State
from kvlint.analysis.subject import Subject
from kvlint.analysis.values import ABSENT, STATUS, UNDECIDED, Key, Known, Object, Something, Stored, Value
from kvlint.semantics.hierarchy import ClassInfo, Method
from kvlint.semantics.world import World


class Cell(Struct, frozen=True):
    """What one write over one stored status may leave stored.

    More than one outcome where a condition on unrelated state decides;
    ``raises`` where the writer may leave by an exception.  Nothing is known of
    an undecided cell.
    """

    outcomes: frozenset[Stored]
    raises: bool
    decided: bool


class TransitionTable(Struct, frozen=True, eq=False, dict=True):
    """All cells of a writer, by stored status and written member's name."""

    subject: Subject
    cells: dict[tuple[Stored, str], Cell]

    def changes(self, stored: Stored, written: str) -> frozenset[Stored]:
        """What a decided write may turn ``stored`` into, other than itself; empty where unknown."""
        cell = self.cells[(stored, written)]
        return cell.outcomes - {stored} if cell.decided else frozenset()

    def overwritten(self) -> Iterator[tuple[str, str, Stored]]:
        """Each (stored, written, outcome) by which a failure becomes anything else or a success non-terminal."""
        enum = self.subject.enum
        for name in enum.terminals:
            stored = enum.value(name)
            for written in enum.members:
                for outcome in sorted(self.changes(stored, written), key=repr):
                    if (
                        outcome is ABSENT
                        or enum.is_failure(outcome)
                        or (name in enum.successes and enum.is_terminal(outcome))
                    ):
                        continue
                    yield name, written, outcome

    def lost_failures(self) -> Iterator[tuple[str, str]]:
        """Each (stored live member, written failure member) after which no terminal status may be stored."""
        enum = self.subject.enum
        for stored in enum.members:
            if enum.is_terminal(enum.value(stored)):
                continue
            for written in enum.failures:
                cell = self.cells[(enum.value(stored), written)]
                if cell.decided and not cell.raises and any(self.subject.is_live(o) for o in cell.outcomes):
                    yield stored, written

    @cached_property
    def notation(self) -> str:
        """``-:FBWTS F:FBWTS …``: a row for each stored status, a letter for each written one; ``?`` undecided."""
        letters = self.subject.enum.letters()
        return " ".join(f"{self._letter(stored, letters)}:{''.join(cells)}" for stored, cells in self.rows)

    @property
    def rows(self) -> Iterator[tuple[Stored, tuple[str, ...]]]:
        """Each stored status with a symbol for every written one, as in `notation`."""
        letters = self.subject.enum.letters()
        for stored in self.subject.stored_values:
            yield stored, tuple(self._symbol(self.cells[(stored, name)], letters) for name in letters)

    def _letter(self, stored: Stored, letters: dict[str, str]) -> str:
        if stored is ABSENT:
            return "-"
        name = self.subject.enum.name_of(stored)
        return "~" if name is None else letters[name]

    def _symbol(self, cell: Cell, letters: dict[str, str]) -> str:
        if not cell.decided:
            return "?"
        found = sorted(self._letter(stored, letters) for stored in cell.outcomes)
        symbol = found[0] if len(found) == 1 else "{" + "".join(found) + "}"
        return symbol + "!" if cell.raises else symbol


class Signature(Struct, frozen=True, eq=False, dict=True):
    """Which parameters of a writer are its object, the room (None: the object's own status) and the status."""

    receiver: str
    room: str | None
    status: str


def transition_table(
    world: World, subject: Subject, cls: ClassInfo, method: Method, signature: Signature
) -> TransitionTable:
    """The table of ``method`` run on an instance of ``cls``."""
    key = ("table", method.node, cls, subject)
    known = world.memo.get(key)
    if not isinstance(known, TransitionTable):
        interpreter = Interpreter(world, subject, in_worker=False, reach=_reach(world))
        cells = {
            (stored, written): _cell(interpreter, cls, method, signature, stored, written)
            for stored in subject.stored_values
            for written in subject.enum.members
        }
        known = world.memo[key] = TransitionTable(subject, cells)
    return known


def _cell(
    interpreter: Interpreter,
    cls: ClassInfo,
    method: Method,
    signature: Signature,
    stored: Stored,
    written: str,
) -> Cell:
    if method.kind == "wrapped":
        return Cell(frozenset(), False, False)
    interpreter.ask_anew()
    subject = interpreter.subject
    function = lowered(interpreter.world, method.node)
    bound: dict[str, Value] = {name: Something() for name in function.parameters}
    bound[signature.receiver] = Object(cls)
    if signature.room is not None:
        bound[signature.room] = Key()
    bound[signature.status] = Known(subject.enum.value(written), frozenset({STATUS}))
    frame = Frame(method.owner.module, method.owner, method.node, 0, receiver=signature.receiver)
    try:
        ends = interpreter.run_body(function, State(stored, Env(bound)), frame)
    except GaveUp:
        return Cell(frozenset(), False, False)
    states = [state for _, state in ends]
    # What any call might raise is left out: outside of a ``try`` it would not be thought of either.
    raised = [thrown for thrown in interpreter.escaped if thrown.name != "?"]
    everything = [*states, *(thrown.state for thrown in raised)]
    outcomes = frozenset(state.stored for state in everything)
    decided = bool(everything) and not any(state.stored is UNDECIDED or state.trace.uncertain for state in everything)
    return Cell(outcomes, bool(raised), decided and not function.is_generator)


def _reach(world: World) -> Reach:
    known = world.memo.get("reach")
    if not isinstance(known, Reach):
        known = world.memo["reach"] = Reach(world)
    return known
