"""A backend in a scenario: its threads and a scheduler as actors, the decode side as scheduled messages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from kvlint.explore.actor import Actor
from kvlint.explore.adoption import Adopted
from kvlint.explore.backend import Backend, Frames, Sender
from kvlint.explore.control import Control, Strategy
from kvlint.explore.elsewhere import Elsewhere
from kvlint.explore.opening import Unsupported, hand_over, open_room
from kvlint.explore.operations import TRANSFER, WHOLE, Choice, Violation
from kvlint.explore.primitives import Waiting
from kvlint.explore.properties import Properties
from kvlint.explore.scenarios import Kind, Message, Scenario
from kvlint.explore.substitutes import Clock, substitutes
from kvlint.explore.switching import Switching

Load = Callable[[Mapping[str, ModuleType]], Backend]
SCHEDULER = "scheduler"
LISTENER = "listener"
_MOST_GROWTHS = 20
_MOST_STEPS = 5_000
_LONG = 1e9  # seconds; longer than any deadline


class _Sequential:
    """Whoever comes first goes on until it waits."""

    def __init__(self) -> None:
        self.script: list[Choice] = []
        self.histories: list[int] = []

    def choose(self, control: Control) -> Choice | None:
        """The first choice there is."""
        choices, _ = control.choices()
        if not choices or len(self.script) > _MOST_STEPS:
            return None
        self.script.append(choices[0])
        return choices[0]


class Program:
    """What a search runs, again and again, from its beginning.

    Without ``scheduler`` the rooms are opened and their chunks queued, and then only the backend's own threads act.

    Raises:
        Unsupported: The tree's backend cannot be explored in this scenario.
    """

    def __init__(self, load: Load, scenario: Scenario, switching: Switching, *, scheduler: bool = True) -> None:
        self.control = control = Control(switching)
        self.clock = Clock()
        self.scenario = scenario
        self.backend = backend = load(substitutes(control, self.clock))
        self.with_scheduler = scheduler
        self.root: Path = backend.root
        self._messages = self._all_messages()
        opened = self._open_all()
        self._adopted = Adopted(
            control,
            {"": backend.manager, **{f"sender {room}": sender for room, sender in opened.items()}},
            backend.is_ours,
        )
        self._opened = opened
        self._waiting = Waiting(control, "scheduler step")
        self._inbox = control.resource("messages")
        self._inbox.uses.waits_for_anything = True
        if any(message.life for order in scenario.orders for message in order):
            # Whether it has come depends on what others did: receiving it is a step of its own.
            control.sharing.always_stop(self._inbox)
        self._transfer = control.resource("transfer")
        control.sharing.always_stop(self._transfer)
        self.properties = Properties(self, self._adopted.tables)
        backend.hooks.receive = self._receive
        backend.hooks.transfer_state = self._transfer_state
        if scenario.sender_aborts and not all(hasattr(sender, "abort") for sender in opened.values()):
            raise Unsupported("the senders of this release have no abort()")
        bodies = backend.bodies()
        if scheduler:
            bodies.append((SCHEDULER, self._schedule))
        control.actors = [
            Actor(number, name, body, is_foreign=name != SCHEDULER) for number, (name, body) in enumerate(bodies)
        ]
        control.outside = self._outside
        control.limits.update(backend.left_out())
        self._elsewhere = Elsewhere(backend.elsewhere())
        backend.hooks.started = self._thread_started
        control.keep()

    def run(self, strategy: Strategy) -> None:
        """Run once from the beginning."""
        self._adopted.restore()
        self.lives = dict.fromkeys(self.scenario.rooms, 0)
        self.senders: dict[int, Sender] = dict(self._opened)
        self.clock.now = self.clock.start
        self._arrived = 0
        self._handled: Message | None = None
        self._order: tuple[Message, ...] | None = None
        self.properties.begin()
        self.control.run(strategy)
        self.control.limits.update(f"{name} changes, which is not seen" for name in self._elsewhere.changed())
        if self._adopted.control_changed_attributes():
            self.control.sharing.grown = True

    @property
    def status_label(self) -> str:
        """The name of the status table."""
        label: str = self.properties.status_table.resource.uses.label
        return label

    def prepare(self, stops: Collection[str]) -> None:
        """Make ready for a schedule that was found in another process, with yield points at ``stops``."""
        for _ in range(_MOST_GROWTHS):
            self.run(_Sequential())
            if not self.control.sharing.grown:
                break
        self.control.sharing.stop_at(stops)

    def final(self, control: Control) -> list[Violation]:
        """What a run that came to its end has broken."""
        current, control.current = control.current, None
        try:
            return self.properties.final()
        finally:
            control.current = current

    # Before threads race.

    def _all_messages(self) -> dict[Message, Frames]:
        wanted = {message for order in self.scenario.orders for message in order}
        if self.scenario.opened:
            wanted |= {Message(Kind.METADATA, room) for room in self.scenario.rooms}
        found = {}
        for message in wanted:
            make = self.backend.metadata_frames if message.kind is Kind.METADATA else self.backend.abort_frames
            frames = make(message.room)
            if not frames:
                raise Unsupported(f"the decode side of this release sends no {message.kind.value} message")
            if len(frames) != 1:
                raise Unsupported(
                    f"the decode side sends {len(frames)} messages of the kind {message.kind.value}, not 1"
                )
            found[message] = frames[0]
        return found

    def _open_all(self) -> dict[int, Sender]:
        hand_over(self.backend, self.backend.registration_frames())
        if not self.scenario.opened:
            return {}
        return {
            room: open_room(self.backend, room, self.scenario.chunks, [self._messages[Message(Kind.METADATA, room)]])
            for room in self.scenario.rooms
        }

    # The scheduler.

    def _schedule(self) -> None:
        if not self.scenario.opened:
            for room in self.scenario.rooms:
                self._open(room)
        if self.scenario.sender_aborts:
            for sender in self.senders.values():
                sender.abort()
        while self.senders:
            self._forget("step")
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
            self._forget("bootstrap")
            status = sender.poll()
            if status == backend.poll.WaitingForInput:
                break
            if status == backend.poll.Failed:
                self._conclude(room, sender, status)
                return
            self._waiting.sleep()
        self._forget("bootstrapped")
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
        self._forget(f"conclude {room}")
        if status == self.backend.poll.Failed:
            self.properties.failed(room, sender)
        else:
            sender.clear()
        self.lives[room] += 1
        del self.senders[room]

    def _forget(self, where: str) -> None:
        """What the scheduler does from here depends on its senders alone, not on what it saw before."""
        control = self.control
        frozen, moment = control.identities.frozen, control.moment()
        senders = [
            (room, self.lives[room], *[(name, frozen(value, moment)) for name, value in vars(sender).items()])
            for room, sender in self.senders.items()
        ]
        control.forget((where, tuple(senders), tuple(self.lives.values())))

    # The outside world.

    def _receive(self) -> Frames:
        """The next message, when there is one."""
        control = self.control
        orders = self.scenario.orders
        outcomes = len(orders) if self._order is None else 1
        outcome = control.before(self._inbox, "receive", WHOLE, True, self._has_message, outcomes)
        if self._order is None:
            self._order = orders[outcome]
        message = self._order[self._arrived]
        self._arrived += 1
        self._handled = message
        control.after(f"{message.kind.value} {message.room} {self._arrived}")
        return self._messages[message]

    def _thread_started(self, thread: Any) -> None:
        self.control.limits.add(f"the thread {thread.name}, which is started in a run, takes no part")

    def _has_message(self) -> bool:
        order = self._order if self._order is not None else self.scenario.orders[0]
        if self._arrived >= len(order):
            return False
        message = order[self._arrived]
        return self.lives[message.room] >= message.life

    def _transfer_state(self, _handle: Any) -> str:
        """How a transfer ended: a choice of the schedule."""
        endings = self.scenario.transfers
        ending = endings[self.control.before(self._transfer, TRANSFER, WHOLE, False, None, len(endings))]
        self.control.after(ending)
        return ending

    def _outside(self) -> Hashable:
        """What the rest of a run depends on beside the program: which messages have come."""
        return (self._arrived, self._order, self.properties.noted())

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
