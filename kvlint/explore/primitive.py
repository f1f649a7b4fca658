"""What all locks, queues and waits have in common: a resource whose content is a few numbers."""

from __future__ import annotations

from collections.abc import Hashable
from copy import copy
from typing import Any, NoReturn

from kvlint.explore.control import Control
from kvlint.explore.identities import Identified
from kvlint.explore.operations import Resource

#: The holder of what nobody holds.
FREE = -1


class Primitive(Identified):
    """A resource whose content is a few numbers: the attributes in ``parts``."""

    def __init__(self, control: Control, label: str) -> None:
        self.control = control
        self.resource: Resource = control.resource(label)
        self.identity = self.resource.identity
        self.renewed()

    def content(self) -> Hashable:
        """What it holds, as a key."""
        raise NotImplementedError

    def renewed(self) -> None:
        """What it holds may have changed."""
        self.control.changed(self)

    def entry(self, key: Hashable) -> Any:  # noqa: ARG002
        """What it holds, as a number."""
        return self.control.content_of(self)

    #: Attributes that change.
    parts: tuple[str, ...] = ()

    def saved(self) -> dict[str, Any]:
        """The attributes that change, copied."""
        return {name: copy(getattr(self, name)) for name in self.parts}

    def put_back(self, saved: dict[str, Any]) -> None:
        """Undo what happened since ``saved`` was taken."""
        for name, value in saved.items():
            setattr(self, name, copy(value))

    def _actor(self) -> int:
        current = self.control.current
        return FREE - 1 if current is None else current.number

    def _fails(self, problem: Exception) -> NoReturn:
        """End the operation with an exception."""
        self.control.after(problem)
        raise problem

    def _nobody_comes(self) -> NoReturn:
        """Refuse to wait outside of a run, or at its end."""
        raise RuntimeError(f"{self.resource.uses.label} would wait for ever")
