"""What several actors share, learned while they run: operations on it, and on nothing else, are yield points."""

from __future__ import annotations

from collections.abc import Collection

from kvlint.explore.actor import Actor
from kvlint.explore.operations import Resource, Uses


class Sharing:
    """Who uses what, over all runs; ``grown`` when that became more in a run, so that a search has to begin again."""

    def __init__(self) -> None:
        self.grown = False
        self._known: dict[str, Uses] = {}
        self._guards: dict[int, frozenset[int]] = {}

    def uses(self, label: str) -> Uses:
        """Who uses the resources of one label."""
        found = self._known.get(label)
        if found is None:
            found = self._known[label] = Uses(label)
        return found

    def stops(self) -> list[str]:
        """The names of what several actors use, so that operations on it are chosen for."""
        return [uses.label for uses in self._known.values() if uses.shared and uses.exposed]

    def stop_at(self, labels: Collection[str]) -> None:
        """Operations on what has one of these names are chosen for, and no others."""
        for label in labels:
            self.uses(label)
        for label, uses in self._known.items():
            uses.shared = uses.exposed = label in labels

    def always_stop(self, resource: Resource) -> None:
        """Every operation on ``resource`` is one to be chosen for, whoever uses it."""
        resource.uses.shared = resource.uses.exposed = True

    def expose(self, resource: Resource) -> None:
        """No lock makes the operations on ``resource`` needless to choose for: it is one itself."""
        resource.uses.exposed = True

    def note(self, uses: Uses, actor: Actor, writes: bool) -> None:
        """Note that ``actor`` uses what ``uses`` is about."""
        uses.actors |= actor.bit
        if writes:
            uses.writers |= actor.bit
        if uses.writers and uses.actors & (uses.actors - 1) and not uses.shared:
            uses.shared = True
            self.grown = True

    def note_guards(self, resource: Resource, actor: Actor) -> None:
        """Note which locks are held wherever a resource is used: with one, its operations need no stop of their own."""
        known = self._guards.get(resource.identity)
        held = frozenset(actor.held)
        common = held if known is None else known & held
        if common != known:
            self._guards[resource.identity] = common
        if not common and not resource.uses.exposed:
            resource.uses.exposed = True
            self.grown = True
