"""The use of a stand-in that nobody foresaw."""

from __future__ import annotations


class UnforeseenUse(BaseException):
    """A stand-in was used in a way that it does not know.

    It is no Exception, since the code of a backend catches those and goes on. Code that catches BaseException
    still cannot hide it: it is also kept in Backend.faults.

    Args:
        name: What was used, as `module.attribute`.
        use: What was done with it.
        place: Where in the tree, as `path:line`, or None if no code of a tree was running.
    """

    def __init__(self, name: str, use: str, place: str | None) -> None:
        super().__init__(name, use, place)
        self.name = name
        self.use = use
        self.place = place

    def __str__(self) -> str:
        at = f"{self.place}: " if self.place else ""
        return f"{at}{self.name} is a stand-in that does not know this use: {self.use}"
