"""A backend in a scenario: its threads and a scheduler as actors, the decode side as scheduled messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from kvlint.explore.adoption import Adopted
from kvlint.explore.backend import Backend, Frames, Sender
from kvlint.explore.control import Actor, Control, Strategy
from kvlint.explore.operations import WHOLE, Violation
from kvlint.explore.primitives import Waiting
from kvlint.explore.properties import Properties
from kvlint.explore.scenarios import Kind, Message, Scenario
from kvlint.explore.substitutes import Clock, substitutes
from kvlint.explore.switching import Switching

Load = Callable[[Mapping[str, ModuleType]], Backend]
SCHEDULER = "scheduler"
LISTENER = "listener"
_LONG = 1e9  # seconds; longer than any deadline


class Program:
    """What a search runs, again and again, from its beginning.

    Without ``scheduler`` the rooms are opened and their chunks queued, and then only the backend's own threads act.
    """

    def __init__(self, load: Load, scenario: Scenario, switching: Switching, *, scheduler: bool = True) -> None:
        self.control = control = Control(switching)
        self.clock = Clock()
        self.scenario = scenario
        self.backend = backend = load(substitutes(control, self.clock))
        self._with_scheduler = scheduler
        self._adopted = Adopted(control, backend.manager, "manager", backend.is_ours)
        self._waiting = Waiting(control, "scheduler step")
        self._start = Waiting(control, "start")
        self._frames = control.resource("messages")
        self._transfer = control.resource("transfer")
        self._transfer.uses.shared = True
        self.properties = Properties(self, self._adopted.tables)
        self._messages = {
            message: self._bytes_of(message)
            for message in {message for order in scenario.orders for message in order} | set(self._opening_messages())
        }
        backend.hooks.receive = self._receive
        backend.hooks.transfer_state = self._transfer_state
        control.actors = [
            Actor(number, name, body)
            for number, (name, body) in enumerate([(SCHEDULER, self._schedule), *self._bodies()])
        ]
        control.keep()

    def run(self, strategy: Strategy) -> None:
        """Run once from the beginning."""
        self._adopted.restore()
        self.lives = dict.fromkeys(self.scenario.rooms, 0)
        self.senders: dict[int, Sender] = {}
        self.clock.now = 1_000_000.0
        self._arrived = 0
        self._handled: Message | None = None
        self._order: tuple[Message, ...] | None = None
        self._opening_left = self._opening_messages()
        self.properties.begin()
        self.control.run(strategy, openers=self._openers)
        if self._adopted.control_changed_attributes():
            self.control.grown = True

    def final(self, control: Control) -> list[Violation]:
        """What a run that came to its end has broken."""
        current, control.current = control.current, None
        try:
            return self.properties.final()
        finally:
            control.current = current

    # The actors.

    def _bodies(self) -> list[tuple[str, Callable[[], None]]]:
        # The listener is second, since it and the scheduler open the rooms before the workers start.
        *workers, listener = self.backend.bodies()
        self._openers = 2
        return [listener, *workers]

    def _schedule(self) -> None:
        if self.scenario.opened:
            for room in self.scenario.rooms:
                self._open(room)
        self._begin_race()
        if not self._with_scheduler:
            return
        if not self.scenario.opened:
            for room in self.scenario.rooms:
                self._open(room)
        if self.scenario.sender_aborts:
            for sender in self.senders.values():
                sender.abort()
        while self.senders:
            concluded = [room for room, sender in list(self.senders.items()) if self._step(room, sender)]
            for room in concluded:
                if self.lives[room] < self.scenario.lives:
                    self._open(room)
            if not concluded:
                self._waiting.sleep()

    def _open(self, room: int) -> None:
        """What prefill.py does with a new request until its last chunk is queued."""
        backend = self.backend
        self.senders[room] = sender = backend.make_sender(room)
        while True:
            status = sender.poll()
            if status == backend.poll.WaitingForInput:
                break
            if status == backend.poll.Failed:
                self._conclude(room, sender, status)
                return
            self._waiting.sleep()
        backend.begin(sender)
        for number in range(self.scenario.chunks):
            backend.send(sender, number, number + 1 == self.scenario.chunks)

    def _step(self, room: int, sender: Sender) -> bool:
        """Poll once, as the inflight queue does; whether the room is done with."""
        status = sender.poll()
        if status not in (self.backend.poll.Failed, self.backend.poll.Success):
            return False
        self._conclude(room, sender, status)
        return True

    def _conclude(self, room: int, sender: Sender, status: Any) -> None:
        """On Failed the scheduler asks for the reason, which clears the room; on Success it clears it."""
        if status == self.backend.poll.Failed:
            self.properties.failed(room, sender)
        else:
            sender.clear()
        self.lives[room] += 1
        del self.senders[room]

    def _begin_race(self) -> None:
        self.control.before(self._start.resource, "start", WHOLE, False, lambda: not self.control.opening)
        self.control.after(None)

    # The outside world.

    def _opening_messages(self) -> list[Message]:
        rooms = self.scenario.rooms
        registration = [Message(Kind.REGISTRATION, rooms[0])]
        return registration + [Message(Kind.METADATA, room) for room in rooms if self.scenario.opened]

    def _bytes_of(self, message: Message) -> list[Frames]:
        backend = self.backend
        if message.kind is Kind.REGISTRATION:
            return backend.registration_frames()
        return (backend.metadata_frames if message.kind is Kind.METADATA else backend.abort_frames)(message.room)

    def _receive(self) -> Frames:
        """The next message, when there is one."""
        control = self.control
        orders = self.scenario.orders
        undecided = len(orders) > 1 and self._order is None and not control.opening and not self._opening_left
        outcomes = len(orders) if undecided else 1
        outcome = control.before(self._frames, "receive", WHOLE, True, self._has_message, outcomes)
        if control.opening or self._opening_left:
            message = self._opening_left.pop(0)
        else:
            if self._order is None:
                self._order = orders[outcome]
            message = self._order[self._arrived]
            self._arrived += 1
        self._handled = message
        control.after(message.kind.value)
        (frames,) = self._messages[message]
        return frames

    def _has_message(self) -> bool:
        if self.control.opening or self._opening_left:
            return bool(self._opening_left)
        order = self._order if self._order is not None else self.scenario.orders[0]
        if self._arrived >= len(order):
            return False
        message = order[self._arrived]
        return self.lives[message.room] >= message.life

    def _transfer_state(self, handle: Any) -> str:
        """How a transfer ended: a choice of the schedule."""
        endings = self.scenario.transfers
        ending = endings[self.control.before(self._transfer, "transfer", WHOLE, False, None, len(endings))]
        self.control.after(ending)
        return ending

    def may_open(self) -> bool:
        """Whether a status that is written now belongs to a new life of its room.

        So it is in the scheduler, which makes senders, and in a listener that
        has got a message about a later life.
        """
        current = self.control.current
        assert current is not None
        if current.name == SCHEDULER:
            return True
        return current.name == LISTENER and self._handled is not None and self._handled.life > 0

    def concluded(self) -> list[int]:
        """Rooms that the scheduler is done with, at the end of a run."""
        return [room for room in self.scenario.rooms if room not in self.senders]

    def past_every_deadline(self) -> None:
        """Let the clock run on."""
        self.clock.now += _LONG
