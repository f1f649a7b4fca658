"""The narrow diagram: steps one below the other, with a rail per actor and a bar per room at their left."""

from __future__ import annotations

from itertools import pairwise

from kvlint.explore.report.boxes import step_box
from kvlint.explore.report.drawing import BOLD, SANS, Canvas, fitted, wrapped
from kvlint.explore.report.phrases import wait
from kvlint.explore.report.room_status import Change
from kvlint.explore.report.turns import Row, Turn
from kvlint.explore.results import Witness

_BAR, _RAIL = 12, 15
_GAP = 8
_NARROWEST_TEXT = 160
_LINE = 16


class Rails:
    """Where rails and text are, and how far down the drawing is."""

    def __init__(self, canvas: Canvas, top: float, actors: tuple[str, ...], changes: dict[str, list[Change]]) -> None:
        self.canvas = canvas
        self.top = self.y = top
        self.changes = changes
        self.bars = {room: 1 + _BAR * position for position, room in enumerate(changes)}
        left = _BAR * len(changes) + 4
        # Many actors leave less for each of their rails, never for the text.
        step = min(_RAIL, (canvas.width - _NARROWEST_TEXT - left) / max(1, len(actors)))
        self.rails = {actor: left + step * (position + 0.5) for position, actor in enumerate(actors)}
        self.text = left + step * len(actors) + _GAP
        self.width = canvas.width - self.text - 1
        self.starts: dict[int, float] = {}

    def heading(self, actor: str, preempts: str) -> None:
        """Who goes on."""
        self.y += 8
        canvas, y = self.canvas, self.y
        name = fitted(actor, self.width * (0.45 if preempts else 1), 14, BOLD)
        canvas.text(self.text, y + 13, name, "sans strong", 14)
        if preempts:
            x = self.text + len(name) * 14 * BOLD + 8
            text = fitted(f"preempts {preempts}", canvas.width - x - 16, 11, BOLD)
            canvas.box(x, y, len(text) * 11 * BOLD + 14, 18, "pill", 9)
            canvas.text(x + 7, y + 13, text, "sans strong jump", 11)
        self.y += 21

    def row(self, row: Row) -> None:
        """A step's box, and what becomes of rooms with it."""
        numbers = "" if row.is_folded else row.numbers
        box = step_box(row, self.width, len(numbers) * 6 + 4)
        box.draw(self.canvas, self.text, self.y, self.width)
        self.canvas.text(self.canvas.width - 6, self.y + box.height - 7, numbers, "mono muted end", 10)
        for number in range(row.number, row.number + len(row.steps)):
            self.starts[number] = self.y
        self.y += box.height + 3
        for number in range(row.number, row.number + len(row.steps)):
            self.status(number)

    def status(self, step: int) -> None:
        """The line that names a room's status from this step on."""
        for room, changes in self.changes.items():
            for change in changes:
                if change.step == step:
                    text = fitted(f"room {room}: {change.status}", self.width - 14, 11, BOLD)
                    self.canvas.box(self.text, self.y, len(text) * 11 * BOLD + 14, 18, change.kind, 9)
                    self.canvas.text(self.text + 7, self.y + 13, text, f"sans strong {change.kind}", 11)
                    self.y += 21

    def paragraph(self, text: str, kind: str, weight: str) -> None:
        """A box of plain text."""
        lines = wrapped(text, self.width - 16, 4, 12, BOLD if weight else SANS)
        height = len(lines) * _LINE + 10
        self.canvas.box(self.text, self.y, self.width, height, kind)
        for number, line in enumerate(lines):
            self.canvas.text(self.text + 8, self.y + 17 + number * _LINE, line, f"sans {weight}", 12)
        self.y += height + 4

    def finish(self, active: list[tuple[str, float, float, bool]], bottom: float) -> None:
        """Rails, turns on them, and bars of the rooms."""
        canvas = self.canvas
        for x in self.rails.values():
            canvas.line(x, self.top, x, bottom, "lane")
        for (actor, _, end, _), (then, begin, _, is_jump) in pairwise(active):
            points = [(self.rails[actor], end), (self.rails[then], begin)]
            canvas.arrow(points, " jump" if is_jump else "")
        for actor, begin, end, _ in active:
            canvas.line(self.rails[actor], begin, self.rails[actor], end, "active")
            canvas.dot(self.rails[actor], begin, "dot")
        for room, x in self.bars.items():
            heights = [self.top if change.step < 0 else self.starts[change.step] for change in self.changes[room]]
            for change, begin, end in zip(self.changes[room], heights, [*heights[1:], bottom], strict=True):
                canvas.box(x, begin, _BAR - 4, end - begin - 1, change.kind, 2, f"room {room}: {change.status}")


def draw(
    canvas: Canvas,
    top: float,
    witness: Witness,
    actors: tuple[str, ...],
    turns: list[Turn],
    changes: dict[str, list[Change]],
) -> float:
    """Draw everything from ``top`` down; the height that was reached."""
    rails = Rails(canvas, top, actors, changes)
    rails.status(-1)
    active = []
    for turn in turns:
        rails.heading(turn.actor, turn.preempts)
        begin = rails.y + 4
        for row in turn.rows:
            rails.row(row)
            canvas.cut(rails.y - 2)
        active.append((turn.actor, begin, rails.y - 3, bool(turn.preempts)))
    rails.y += 8
    bottom = rails.y
    for actor in actors:
        text = wait(witness, actor)
        if text:
            is_stuck = " — " in text
            rails.paragraph(
                f"{actor} {text}", f"box {'stuck' if is_stuck else 'cap'}", "strong jump" if is_stuck else ""
            )
    rails.finish(active, bottom)
    return rails.y
