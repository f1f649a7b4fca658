"""One schedule again: recorded for people, named by a token, confirmed with real threads."""

from __future__ import annotations

import base64
import binascii
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from kvlint.explore.actor import Actor
from kvlint.explore.containers import ABSENT
from kvlint.explore.control import Control
from kvlint.explore.operations import WHOLE, Choice, Operation, Violation
from kvlint.explore.program import Program
from kvlint.explore.results import Place, Step, Witness
from kvlint.properties import THREAD_DEATH

_PREFIX = "kv1-"
_LONGEST = 60
_DIGITS = 12
_BUILT_IN = {(True, False): "dict", (False, True): "list", (False, False): "set"}


class BadToken(ValueError):
    """A token that is none, or one of another scenario; the message says what was wrong."""


class NotAgain(RuntimeError):
    """A schedule did something else than before: the program depends on more than what is controlled."""


class Schedule(msgspec.Struct, frozen=True, array_like=True):
    """What a token holds.

    ``stops`` are the names of the things whose operations are yield points: what
    else is shared was not known when the schedule was found.
    """

    scenario: str
    scheduler: bool
    property: str
    digest: str
    choices: bytes
    stops: tuple[str, ...]


def token(schedule: Schedule) -> str:
    """The token of a schedule."""
    packed = zlib.compress(msgspec.msgpack.encode(schedule), 9)
    return _PREFIX + base64.urlsafe_b64encode(packed).decode().rstrip("=")


def schedule(text: str) -> Schedule:
    """The schedule of a token.

    Raises:
        BadToken: It is none.
    """
    if not text.startswith(_PREFIX):
        raise BadToken(f"a token begins with {_PREFIX}, and this does not: {text[:20]}")
    body = text[len(_PREFIX) :]
    try:
        packed = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
        return msgspec.msgpack.decode(zlib.decompressobj().decompress(packed, 1 << 20), type=Schedule)
    except (binascii.Error, ValueError, zlib.error, msgspec.DecodeError) as error:
        raise BadToken(f"the token is damaged ({error}): it has to be copied whole") from None


def packed(choices: Sequence[Choice]) -> bytes:
    """Choices as bytes: the actor in the low half of each, the outcome in the high one."""
    return bytes(choice.actor | choice.outcome << 4 for choice in choices)


def unpacked(choices: bytes) -> list[Choice]:
    """Choices of packed()."""
    return [Choice(byte & 15, byte >> 4) for byte in choices]


class _Recorder:
    """A strategy that makes given choices and notes what comes of them."""

    def __init__(self, program: Program, choices: Sequence[Choice]) -> None:
        self.script: list[Choice] = []
        self.histories: list[int] = []
        self._program = program
        self._choices = choices
        self.steps: list[Step] = []
        self.violations: list[Violation] = []
        self.preemptions = 0
        self.waiting: dict[str, str] = {}
        self.possible = True
        self.statuses: dict[str, str] = {}
        self._preempts = False
        self._noted = 0

    def choose(self, control: Control) -> Choice | None:
        """The next of the choices."""
        self._note(control.events)
        position = len(self.script)
        if not position:
            self.statuses = self._program.properties.statuses()
        choices, _ = control.choices()
        if position == len(self._choices):
            self._end(control, at_end=not choices)
            return None
        choice = self._choices[position]
        if choice not in choices:
            self.possible = False
            return None
        last = self.script[-1].actor if self.script else choice.actor
        self._preempts = choice.actor != last and any(other.actor == last for other in choices)
        self.preemptions += self._preempts
        self.script.append(choice)
        return choice

    def _note(self, events: list[Violation]) -> None:
        if events and self.steps:
            self.steps[-1] = msgspec.structs.replace(self.steps[-1], breaks=events[0].property)
        self.violations += events

    def _end(self, control: Control, *, at_end: bool) -> None:
        if at_end:
            self.violations += self._program.final(control)
        self._note_deaths(control)
        for actor in control.actors:
            pending = actor.pending
            self.waiting[actor.name] = "" if pending is None else _wait(pending)

    def _note_deaths(self, control: Control) -> None:
        """The lines that ended threads, which are no operations."""
        for actor in control.actors:
            if actor.died is not None:
                trace = actor.died.__traceback__
                place = None
                while trace is not None:
                    place = _place_of(trace.tb_frame, trace.tb_lineno, self._program.root) or place
                    trace = trace.tb_next
                told = f"{type(actor.died).__name__}: {actor.died}"
                self.steps.append(
                    Step(actor.name, "ends with", "", "", told, writes=False, place=place, breaks=THREAD_DEATH)
                )

    def record(self, actor: Actor, operation: Operation, observed: Any) -> None:
        """Note a step."""
        program = self._program
        label = operation.resource.uses.label
        self.steps.append(
            Step(
                actor=actor.name,
                operation=operation.kind,
                label=label,
                key="" if operation.key is WHOLE else _words(operation.key),
                observed=program.properties.status_name(observed)
                if label == program.status_label
                else _words(observed),
                writes=operation.writes,
                place=_place(sys._getframe(1), program.root),
                preempts=self._preempts,
            )
        )
        self._preempts = False


def replay(program: Program, choices: Sequence[Choice], stops: Sequence[str] | None = None) -> _Recorder:
    """Run a schedule; what came of it.

    Args:
        program: Any program of the scenario, with threads or greenlets.
        choices: The schedule's.
        stops: Names of what is shared, where the program has not been searched.
    """
    if stops is not None:
        program.prepare(stops)
    recorder = _Recorder(program, choices)
    program.control.record = recorder.record
    try:
        program.run(recorder)
    finally:
        program.control.record = None
    return recorder


def witness(program: Program, wanted: Violation, choices: Sequence[Choice]) -> Witness:
    """The schedule that shows a violation, for people.

    Raises:
        NotAgain: Running it again did not show the violation.
    """
    seen = replay(program, choices)
    if not seen.possible or wanted not in seen.violations:
        raise NotAgain(f"the schedule that broke {wanted.property} did not break it again: {wanted.detail}")
    made = Schedule(
        scenario=program.scenario.name,
        scheduler=program.with_scheduler,
        property=wanted.property,
        digest=program.backend.digest[:_DIGITS],
        choices=packed(choices),
        stops=tuple(program.control.sharing.stops()),
    )
    return _shown(program, seen, wanted.property, _sentence(wanted), token(made))


def again(program: Program, made: Schedule) -> tuple[Witness, bool]:
    """Run the schedule of a token on a program that was not searched; and whether it breaks the property again."""
    seen = replay(program, unpacked(made.choices), made.stops)
    shown = [violation for violation in seen.violations if violation.property == made.property]
    confirmed = seen.possible and bool(shown)
    if confirmed:
        detail = _sentence(shown[0])
    elif program.backend.digest[:_DIGITS] != made.digest:
        detail = "the tree is not the one that the schedule was found in, and does not do what it did there"
    else:
        detail = "the schedule did not break the property again"
    return _shown(program, seen, made.property, detail, token(made)), confirmed


def _shown(program: Program, seen: _Recorder, name: str, detail: str, text: str) -> Witness:
    return Witness(
        property=name,
        detail=detail,
        preemptions=seen.preemptions,
        actors=tuple(actor.name for actor in program.control.actors),
        steps=tuple(seen.steps),
        waiting=seen.waiting,
        token=text,
        status_table=program.status_label,
        statuses=seen.statuses,
    )


def _sentence(violation: Violation) -> str:
    return violation.detail if violation.room is None else f"room {violation.room}: {violation.detail}"


def _wait(operation: Operation) -> str:
    return f"{operation.kind} {operation.resource.uses.label}"


def _words(value: Any) -> str:
    if value is ABSENT:
        return "absent"
    if isinstance(value, BaseException):
        return f"{type(value).__name__}({', '.join(map(_words, value.args))})"
    kind = type(value)
    if kind in (int, str, bytes, bool, float, type(None)) or (kind is tuple and len(value) < 4):
        text = repr(value)
    elif isinstance(value, dict | list | set):
        text = f"{_BUILT_IN[isinstance(value, dict), isinstance(value, list)]} of {len(value)}"
    else:
        text = kind.__name__
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _place(frame: FrameType | None, root: Path | None) -> Place | None:
    """The innermost line of the tree's code."""
    while frame is not None:
        place = _place_of(frame, frame.f_lineno, root)
        if place is not None:
            return place
        frame = frame.f_back
    return None


def _place_of(frame: FrameType, line: int, root: Path | None) -> Place | None:
    code = frame.f_code
    is_of_tree = root is not None and code.co_filename.startswith(str(root))
    return Place(code.co_filename, line, code.co_qualname) if is_of_tree else None
