"""Small programs, each with the number of its schedules where that has a closed form."""

from __future__ import annotations

from collections import defaultdict, deque
from functools import partial
from math import factorial
from typing import Any

from kvlint.explore.operations import WHOLE
from kvlint.explore.primitives import Condition, Event, Lock, Queue, RLock, Semaphore, Waiting

from .models import Body, Make, Model, World


def multinomial(actors: int, steps: int) -> int:
    """The ways to interleave ``actors`` sequences of ``steps`` steps."""
    return int(factorial(actors * steps) // factorial(steps) ** actors)


def writers(actors: int, writes: int) -> Model:
    """All write to one dict."""

    def build(world: World) -> None:
        world.table = {0: 0}

    def writer(world: World) -> None:
        for number in range(writes):
            world.table[0] = number

    return Model(build, *[writer] * actors)


def apart(actors: int, writes: int) -> Model:
    """Each writes to a dict that nobody else writes to, and that another looks at once."""

    def build(world: World) -> None:
        world.tables = [{0: 0} for _ in range(actors)]
        world.mine = list(world.tables)

    def make(number: int) -> Any:
        def writer(world: World) -> None:
            for value in range(writes):
                world.mine[number][0] = value

        return writer

    def reader(world: World) -> None:
        for number in range(actors):
            world.mine[number].get(0)

    return Model(build, *[make(number) for number in range(actors)], reader)


def sections(actors: int) -> Model:
    """Each adds one under a lock: as many schedules as orders of the sections, and of what comes between."""

    def build(world: World) -> None:
        world.lock = Lock(world.control, "lock")
        world.table = {"sum": 0}

    def adder(world: World) -> None:
        with world.lock:
            world.table["sum"] += 1

    return Model(build, *[adder] * actors)


def lost_update() -> Model:
    """Two add one without a lock."""

    def build(world: World) -> None:
        world.table = {"sum": 0}

    def adder(world: World) -> None:
        world.table["sum"] = world.table["sum"] + 1

    return Model(build, adder, adder)


def read_under_lock() -> Model:
    """What was read under a lock decides what is done later."""

    def build(world: World) -> None:
        world.lock, world.table, world.other = Lock(world.control, "lock"), {}, {}

    def reader(world: World) -> None:
        with world.lock:
            found = world.table.get(1)
        world.other.get(1)
        world.other.get(1)
        if found:
            raise ValueError(found)

    def writer(world: World) -> None:
        with world.lock:
            world.table[1] = 5
        world.other[1] = 1

    return Model(build, reader, writer)


def reentrant() -> Model:
    """A lock taken twice is given back once more before others get it."""

    def build(world: World) -> None:
        world.lock, world.table = RLock(world.control, "lock"), {}

    def twice(world: World) -> None:
        with world.lock:
            with world.lock:
                world.table[1] = 1
            world.table[1] = 2
        world.table.get(1)

    def once(world: World) -> None:
        with world.lock:
            world.table[1] = 3

    return Model(build, twice, once)


def handed_over() -> Model:
    """A lock that another actor gives back guards nothing."""

    def build(world: World) -> None:
        world.lock, world.table = Lock(world.control, "lock"), {}

    def taker(world: World) -> None:
        world.lock.acquire()
        world.table[1] = 1
        world.table[1] = 2

    def giver(world: World) -> None:
        if world.lock.locked():
            world.lock.release()
        with world.lock:
            world.table[1] = 3

    return Model(build, taker, giver)


def producers(items: int) -> Model:
    """Two put into a queue that one takes from for ever."""

    def build(world: World) -> None:
        world.queue, world.got = Queue(world.control, "queue"), []

    def worker(world: World) -> None:
        while True:
            world.got.append(world.queue.get())

    def producer(world: World) -> None:
        for number in range(items):
            world.queue.put(number)

    return Model(build, worker, producer, producer)


def full_queue() -> Model:
    """A queue of one that two put into and one takes from."""

    def build(world: World) -> None:
        world.queue = Queue(world.control, "queue", maxsize=1)

    def producer(world: World) -> None:
        world.queue.put(1)

    def consumer(world: World) -> None:
        world.queue.get()
        if world.queue.empty():
            raise LookupError

    return Model(build, producer, producer, consumer)


def notified() -> Model:
    """Two wait for a condition, and one of them is told."""

    def build(world: World) -> None:
        world.condition, world.ready = Condition(world.control, "condition"), []

    def waiter(world: World) -> None:
        with world.condition:
            while not world.ready:
                world.condition.wait()

    def teller(world: World) -> None:
        with world.condition:
            world.ready.append(1)
            world.condition.notify()

    return Model(build, waiter, waiter, teller)


def deadlock() -> Model:
    """Two locks, taken in both orders."""

    def build(world: World) -> None:
        world.one, world.other = Lock(world.control, "one"), Lock(world.control, "other")

    def there(world: World) -> None:
        with world.one, world.other:
            pass

    def back(world: World) -> None:
        with world.other, world.one:
            pass

    return Model(build, there, back)


def outcomes() -> Model:
    """A transfer ends in one of two ways, which a choice of the schedule decides."""

    def build(world: World) -> None:
        world.status = {}
        world.transfer = world.control.resource("transfer")

    def worker(world: World) -> None:
        for _ in range(2):
            ended = world.control.before(world.transfer, "transfer", WHOLE, False, None, 2)
            world.control.after(ended)
            if ended:
                raise OSError
        world.status["room"] = "Success"

    def aborter(world: World) -> None:
        world.status["room"] = "Failed"

    return Model(build, worker, aborter)


def check_then_subscript() -> Model:
    """The entry may go between the check and the use."""

    def build(world: World) -> None:
        world.table = {1: "info"}

    def checker(world: World) -> None:
        if 1 in world.table:
            world.table[1]

    def remover(world: World) -> None:
        world.table.pop(1)

    return Model(build, checker, remover)


def changing_loop() -> Model:
    """A loop over a dict that grows and shrinks meanwhile."""

    def build(world: World) -> None:
        world.table = {1: 1, 2: 2}

    def looper(world: World) -> None:
        for key in world.table:
            world.table.get(key)

    def changer(world: World) -> None:
        world.table[3] = 3
        del world.table[1]

    return Model(build, looper, changer)


def put_back_under_a_loop(kind: Any) -> Model:
    """Whether something changed before or after a loop began is told by nothing but the loop."""

    def build(world: World) -> None:
        world.table = kind()

    def looper(world: World) -> None:
        list(enumerate(world.table))

    def changer(world: World) -> None:
        if isinstance(world.table, dict):
            value = world.table.pop(1)
            world.table[1] = value
            value = world.table.pop(2)
            world.table[2] = value
        else:
            world.table.append(world.table.pop())

    return Model(build, looper, changer)


def worker_loop() -> Model:
    """A worker that is as it was after every item, and two that give it some."""

    def build(world: World) -> None:
        world.queue, world.status = Queue(world.control, "queue"), {}

    def worker(world: World) -> None:
        while True:
            room = world.queue.get()
            if room is None:
                break
            if room in world.status:
                world.status[room] = "Success"

    def listener(world: World) -> None:
        world.queue.put(1)
        world.status.pop(1, None)
        world.queue.put(None)

    def scheduler(world: World) -> None:
        world.status[1] = "Waiting"
        world.status.get(1)

    return Model(build, worker, listener, scheduler)


class Counting:
    """Something with an attribute."""

    count = 0


def _second(count: int) -> None:
    if count == 2:
        raise OverflowError


def _in_table(world: World) -> None:
    while True:
        world.queue.get()
        world.seen.append(1)
        _second(len(world.seen))


def _in_local_list(world: World) -> None:
    seen: list[int] = []
    while True:
        world.queue.get()
        seen.append(1)
        _second(len(seen))


def _in_variable(world: World) -> None:
    count = 0
    while True:
        world.queue.get()
        count += 1
        _second(count)


def _on_stack(world: World) -> None:
    count = 0
    while True:
        count = count + world.queue.get()
        _second(count)


def _in_attribute(world: World) -> None:
    while True:
        world.queue.get()
        world.count += 1
        _second(world.count)


def _in_object(world: World) -> None:
    counter = Counting()
    while True:
        world.queue.get()
        counter.count += 1
        _second(counter.count)


def _in_tuple(world: World) -> None:
    counts: tuple[list[int]] = ([],)
    while True:
        world.queue.get()
        counts[0].append(1)
        _second(len(counts[0]))


def _in_iterator(world: World) -> None:
    numbers = iter(range(1, 9))
    while True:
        world.queue.get()
        _second(next(numbers))


COUNTED: dict[str, Body] = {
    body.__name__.strip("_"): body
    for body in (
        _in_table,
        _in_local_list,
        _in_variable,
        _on_stack,
        _in_attribute,
        _in_object,
        _in_tuple,
        _in_iterator,
    )
}


def counting_worker(where: str) -> Model:
    """A worker that is not as it was: it counts, and fails at the second item, unless another takes one of them."""

    def build(world: World) -> None:
        world.queue, world.seen, world.count = Queue(world.control, "queue"), [], 0

    def giver(world: World) -> None:
        world.queue.put(1)
        world.queue.put(1)

    def thief(world: World) -> None:
        while True:
            world.queue.get()

    return Model(build, COUNTED[where], giver, thief)


def late_sharing() -> Model:
    """The first operation that counts is another one once more is known to be shared."""

    def build(world: World) -> None:
        world.late, world.queue, world.out = {}, Queue(world.control, "queue"), {}

    def worker(world: World) -> None:
        first = world.late.get(1)
        while True:
            if world.queue.get() is None:
                break
        world.out["first"] = first

    def giver(world: World) -> None:
        world.queue.put(1)
        world.late[1] = 1
        world.queue.put(None)

    return Model(build, worker, giver)


def polling() -> Model:
    """One sleeps until something that it read reads differently."""

    def build(world: World) -> None:
        world.table, world.waiting = {}, Waiting(world.control, "waiting")

    def poller(world: World) -> None:
        while 1 not in world.table:
            world.waiting.sleep()
        world.waiting.sleep()

    def writer(world: World) -> None:
        world.table[1] = 1
        world.table[1] = 2

    def remover(world: World) -> None:
        world.table.pop(1, None)

    return Model(build, poller, writer, remover)


def polling_what_goes() -> Model:
    """One sleeps until what it read is gone."""

    def build(world: World) -> None:
        world.table, world.items, world.waiting = {1: 1}, [1], Waiting(world.control, "waiting")

    def poller(world: World) -> None:
        world.table[1]
        world.items[0]
        world.waiting.sleep()

    def remover(world: World) -> None:
        world.table.clear()
        world.items.pop()

    return Model(build, poller, remover)


def polling_pops() -> Model:
    """One polls by taking out, another asks an event and a queue."""

    def build(world: World) -> None:
        world.table, world.waiting = {}, Waiting(world.control, "waiting")
        world.event, world.queue = Event(world.control, "event"), Queue(world.control, "queue")

    def popper(world: World) -> None:
        while world.table.pop(1, None) is None:
            world.waiting.sleep()
        world.event.set()

    def asker(world: World) -> None:
        while world.queue.empty() and not world.event.is_set():
            world.waiting.sleep()

    def writer(world: World) -> None:
        world.table[1] = 1

    return Model(build, popper, asker, writer)


def missing_values() -> Model:
    """Looking into a defaultdict changes it."""

    def build(world: World) -> None:
        world.table = defaultdict(list)

    def looker(world: World) -> None:
        world.table[1]

    def other(world: World) -> None:
        if 1 in world.table:
            raise ValueError
        if world.table:
            raise LookupError

    return Model(build, looker, other)


def semaphores() -> Model:
    """Two places for three."""

    def build(world: World) -> None:
        world.places, world.inside = Semaphore(world.control, "places", 2), []

    def guest(world: World) -> None:
        with world.places:
            world.inside.append(1)
            if len(world.inside) > 1:
                raise ValueError
            world.inside.pop()

    return Model(build, guest, guest)


def events() -> Model:
    """One waits for an event that another sets and clears."""

    def build(world: World) -> None:
        world.event, world.table = Event(world.control, "event"), {}

    def waiter(world: World) -> None:
        world.event.wait()
        world.table[1] = world.event.is_set()

    def setter(world: World) -> None:
        world.event.set()
        world.event.clear()
        world.table.get(1)

    return Model(build, waiter, setter)


def other_name() -> Model:
    """A table is filled by the name that it had before it was stored."""

    def build(world: World) -> None:
        world.rooms = {}

    def opener(world: World) -> None:
        infos: dict[str, int] = {}
        world.rooms["room"] = infos
        infos["peer"] = 1

    def reader(world: World) -> None:
        if "room" in world.rooms and not world.rooms["room"]:
            raise ValueError("no peer yet")

    return Model(build, opener, reader)


def plain_dict() -> dict[int, int]:
    return {1: 1, 2: 2}


def plain_deque() -> deque[int]:
    return deque([1, 2])


#: By name: the program, and the number of its schedules where it has a closed form.
SAMPLES: dict[str, tuple[Make, int | None]] = {
    "one write each": (lambda: writers(2, 1), multinomial(2, 1)),
    "three writes each": (lambda: writers(2, 3), multinomial(2, 3)),
    "five writes each": (lambda: writers(2, 5), multinomial(2, 5)),
    "two writes of three": (lambda: writers(3, 2), multinomial(3, 2)),
    # Two write twice, a third reads each of theirs: 6 steps in all.
    "dicts apart": (lambda: apart(2, 2), factorial(6) // factorial(2) ** 3),
    # A section is two steps, acquire and release; the next comes after it as a whole: n! orders.
    "a section each": (lambda: sections(2), factorial(2)),
    "a section of three": (lambda: sections(3), factorial(3)),
    "lost update": (lost_update, multinomial(2, 2)),
    "read under a lock": (read_under_lock, None),
    "re-entrant lock": (reentrant, None),
    "lock handed over": (handed_over, None),
    "producers": (lambda: producers(2), None),
    "full queue": (full_queue, None),
    "notified": (notified, None),
    "deadlock": (deadlock, 6),
    # Two transfers of the worker: the abort comes at one of 2, 3 and 4 places, in 1, 1 and 1 endings.
    "outcomes": (outcomes, 2 + 3 + 4),
    "check, then subscript": (check_then_subscript, 3),
    "changing loop": (changing_loop, None),
    "put back under a loop": (lambda: put_back_under_a_loop(plain_dict), None),
    "put back into a deque": (lambda: put_back_under_a_loop(plain_deque), None),
    "worker loop": (worker_loop, None),
    **{f"counting {where}": (partial(counting_worker, where), None) for where in COUNTED},
    "late sharing": (late_sharing, None),
    "polling": (polling, None),
    "polling what goes": (polling_what_goes, None),
    "polling by pops": (polling_pops, None),
    "missing values": (missing_values, None),
    "semaphores": (semaphores, None),
    "events": (events, None),
    "another name": (other_name, None),
}
