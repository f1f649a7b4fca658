"""The complete search: every reachable state once, and the number of schedules that the graph of states stands for."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

from kvlint.explore.control import Control
from kvlint.explore.operations import Access, Choice, Violation
from kvlint.explore.search.depth_first import DepthFirst, Final, Run
from kvlint.explore.search.limits import Limits

_ROOT = 0
_UNKNOWN = -1
_REPORT_EVERY = 256
_DEAR = 1 << 60
_PREEMPTION = 1 << 20
_OPEN, _DONE = 1, 2


@dataclass(slots=True)
class Node:
    """A state: what can be next, where that leads, and what is broken on the way."""

    choices: list[Choice]
    accesses: list[Access]
    children: list[int]
    events: list[tuple[Violation, ...]]
    final: tuple[Violation, ...] = ()

    def open_branch(self) -> int | None:
        """The first branch that nobody has gone along."""
        try:
            return self.children.index(_UNKNOWN)
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class Shortest:
    """A schedule that breaks something with the fewest preemptions."""

    violation: Violation
    choices: list[Choice]
    preemptions: int


class StateGraph(DepthFirst):
    """Every reachable state once.

    ``seen`` is told now and then how many states and runs there were, and the seconds since the beginning.
    """

    def __init__(
        self, run: Run, final: Final, limits: Limits, seen: Callable[[int, int, float], None] | None = None
    ) -> None:
        self._seen = seen
        super().__init__(run, final, limits)

    def _begin(self) -> None:
        self.nodes: list[Node] = []
        self._numbers: dict[tuple[Hashable, ...], int] = {}
        self._path: list[int] = []
        self._initial: tuple[Violation, ...] = ()
        self._unsupported: set[str] = set()
        self._circular = False
        self.script = []
        self.histories = []

    def _why_not_all(self) -> str:
        """What may happen although every state was seen, or ""."""
        for _ in self._children_first():
            if self._circular:
                return "a schedule can go on for ever without an end"
        return "; ".join(sorted(self._unsupported))

    def _limit(self) -> str:
        if self._seen is not None and not self.runs % _REPORT_EVERY:
            self._seen(len(self.nodes), self.runs, self._passed())
        return super()._limit()

    def _back(self) -> bool:
        """Go back to the last state that has a branch left, and take it."""
        path = self._path
        while path:
            self.script.pop()
            if self._take(path[-1]):
                del self.histories[len(path) - 1 :]
                return True
            path.pop()
        return False

    def _take(self, number: int) -> bool:
        """Go along the next branch of a state."""
        node = self.nodes[number]
        branch = node.open_branch()
        if branch is None:
            return False
        self._branch = branch
        self.script.append(node.choices[branch])
        return True

    def choose(self, control: Control) -> Choice | None:
        """The next branch; None in a state that was seen."""
        path = self._path
        self._sharing = control.sharing
        if control.sharing.grown:
            return None
        key = control.state()
        number = self._numbers.get(key)
        known = number is not None
        if number is None:
            self._check_limits()
            if self.reason:
                return None
            number = self._add(key, control)
        if not path and not known:
            self._initial = tuple(control.events)
            self._unsupported = control.limits
        if path:
            parent = self.nodes[path[-1]]
            parent.children[self._branch] = number
            parent.events[self._branch] = tuple(control.events)
            if not known:
                self._close_diamonds(parent, self._branch, self.nodes[number])
        if known or not self._take(number):
            return None
        path.append(number)
        return self.script[-1]

    def _add(self, key: tuple[Hashable, ...], control: Control) -> int:
        number = len(self.nodes)
        self._numbers[key] = number
        choices, accesses = control.choices()
        node = Node(choices, accesses, [_UNKNOWN] * len(choices), [()] * len(choices))
        if not choices:
            node.final = tuple(self._final(control))
        self.nodes.append(node)
        return number

    def _close_diamonds(self, parent: Node, branch: int, node: Node) -> None:
        """Find children of a new state without a run.

        Where two operations commute, doing them in either order ends in the
        same state; where one order was run, the other one is known.
        """
        done, access = parent.choices[branch], parent.accesses[branch]
        for position, choice in enumerate(node.choices):
            if choice.actor == done.actor or choice not in parent.choices:
                continue
            earlier = parent.choices.index(choice)
            between = parent.children[earlier]
            if between == _UNKNOWN or not access.commutes(parent.accesses[earlier]):
                continue
            there = self.nodes[between]
            if done in there.choices:
                node.children[position] = there.children[there.choices.index(done)]
                node.events[position] = parent.events[earlier]

    def _check_limits(self) -> None:
        # Called on an actor's stack, where an exception would look like the actor's own.
        if len(self.nodes) >= self._limits.states:
            self.reason = f"{len(self.nodes)} states were seen"
        elif len(self._path) >= self._limits.steps:
            self.reason = f"a schedule had {self._limits.steps} steps"

    # What the graph says.

    def schedules(self, broken: str | None = None) -> int:
        """The number of schedules, or of those that break ``broken``."""
        total = self._paths(None)
        if broken is None or _breaks(self._initial, broken):
            return total
        return total - self._paths(broken)

    def _paths(self, avoided: str | None) -> int:
        """Paths to an end that do not break ``avoided``."""
        counts: list[int | None] = [None] * len(self.nodes)
        for number in self._children_first():
            node = self.nodes[number]
            if not node.choices:
                counts[number] = 0 if _breaks(node.final, avoided) else 1
                continue
            counts[number] = sum(
                counts[child] or 0
                for child, events in zip(node.children, node.events, strict=True)
                if child != _UNKNOWN and not _breaks(events, avoided)
            )
        return counts[_ROOT] or 0

    def _children_first(self) -> Iterator[int]:
        entered = bytearray(len(self.nodes))
        stack = [(_ROOT, 0)]
        entered[_ROOT] = _OPEN
        while stack:
            number, position = stack.pop()
            children = self.nodes[number].children
            while position < len(children) and (children[position] == _UNKNOWN or entered[children[position]]):
                if children[position] != _UNKNOWN and entered[children[position]] == _OPEN:
                    self._circular = True
                position += 1
            if position == len(children):
                entered[number] = _DONE
                yield number
                continue
            stack.append((number, position + 1))
            stack.append((children[position], 0))
            entered[children[position]] = _OPEN

    def violations(self) -> set[Violation]:
        """Everything that some schedule breaks."""
        found = set(self._initial)
        for node in self.nodes:
            found.update(node.final)
            for events in node.events:
                found.update(events)
        return found

    def fewest_preemptions(self, wanted: Callable[[Violation], bool]) -> Shortest | None:
        """A schedule that breaks what is wanted with the fewest preemptions.

        A preemption takes the turn from an actor that could have gone on.
        """
        for violation in filter(wanted, self._initial):
            return Shortest(violation, [], 0)
        start = (_ROOT, -1)
        came: dict[tuple[int, int], tuple[tuple[int, int], Choice] | None] = {start: None}
        cost = {start: 0}
        broken: dict[tuple[int, int], Violation] = {}
        todo = [(0, 0, start)]
        pushed = 0
        while todo:
            price, _, here = heappop(todo)
            if price > cost[here]:
                continue
            number, last = here
            if number >= 0:
                broken.update((here, violation) for violation in self.nodes[number].final if wanted(violation))
            if here in broken:
                return Shortest(broken[here], _way(came, here), price // _PREEMPTION)
            for branch, choice, child in self._known_branches(number):
                there = (child, choice.actor)
                shown = next(filter(wanted, self.nodes[number].events[branch]), None)
                if shown is not None:
                    # An end of its own: the price of a schedule that does not go on.
                    there = (-2 - child, choice.actor)
                    broken[there] = shown
                dearer = price + self._price(number, last, choice)
                if dearer < cost.get(there, _DEAR):
                    cost[there] = dearer
                    came[there] = (here, choice)
                    pushed += 1
                    heappush(todo, (dearer, pushed, there))
        return None

    def _known_branches(self, number: int) -> list[tuple[int, Choice, int]]:
        node = self.nodes[number]
        branches = enumerate(zip(node.choices, node.children, strict=True))
        return [(branch, choice, child) for branch, (choice, child) in branches if child != _UNKNOWN]

    def _price(self, number: int, last: int, choice: Choice) -> int:
        """What it costs to go on with ``choice`` after ``last``.

        Of two schedules with as many preemptions, the one whose preemptions
        stand where an actor waits for the world is easier to believe: a
        transfer takes milliseconds, the gap between two operations does not.
        """
        node = self.nodes[number]
        if choice.actor == last:
            return 0
        running = [access for other, access in zip(node.choices, node.accesses, strict=True) if other.actor == last]
        if not running:
            return 0
        return _PREEMPTION + (not running[0].waits)


def _breaks(events: tuple[Violation, ...], name: str | None) -> bool:
    return name is not None and any(event.property == name for event in events)


def _way(came: dict[tuple[int, int], tuple[tuple[int, int], Choice] | None], end: tuple[int, int]) -> list[Choice]:
    way = []
    step = came[end]
    while step is not None:
        here, choice = step
        way.append(choice)
        step = came[here]
    return way[::-1]
