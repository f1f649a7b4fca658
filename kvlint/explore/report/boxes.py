"""What stands in the box of a step, whichever way the boxes are laid out."""

from __future__ import annotations

from dataclasses import dataclass

from kvlint.explore.report.drawing import MONO, SANS, Canvas, fitted, wrapped
from kvlint.explore.report.phrases import ARROW, operation, outcome, phrase, where
from kvlint.explore.report.turns import Row
from kvlint.explore.results import Place, Step
from kvlint.source.display import counted, slashed

PADDING = 8
_TEXT, _SMALL = 12, 10.5
_LEADING = 15.5
_MOST_LINES = 3


@dataclass(frozen=True, slots=True)
class StepBox:
    """A box that is ready to be drawn: its lines as (text, classes, size), its height, and its whole text."""

    lines: tuple[tuple[str, str, float], ...]
    kind: str
    title: str

    @property
    def height(self) -> float:
        """In pixels."""
        return len(self.lines) * _LEADING + 8

    def draw(self, canvas: Canvas, x: float, y: float, width: float) -> None:
        """Draw it with its upper left corner at ``x``, ``y``."""
        canvas.box(x, y, width, self.height, self.kind, title=self.title)
        for number, (text, kind, size) in enumerate(self.lines):
            canvas.text(x + PADDING, y + 16 + number * _LEADING, text, kind, size)


def step_box(row: Row, width: float) -> StepBox:
    """The box of a row that is ``width`` wide."""
    inner = width - 2 * PADDING
    if row.is_folded:
        text = f"⋮ {counted(len(row.steps), 'step')} more"
        title = "\n".join(f"{row.number + nth}: {phrase(step)}" for nth, step in enumerate(row.steps, 1))
        return StepBox(((fitted(text, inner, _TEXT, SANS), "sans muted", _TEXT),), "box fold", _shortened(title))
    step = row.step
    weight = " strong" if step.writes else ""
    lines = [(line, f"mono{weight}", float(_TEXT)) for line in _told(step, inner)]
    lines.append((short_place(step.place, inner), "mono muted", _SMALL))
    kind = "box write" if step.writes else "box"
    if step.breaks:
        kind = "box broken"
        for line in wrapped(f"✗ breaks {step.breaks}", inner, 2, _TEXT, SANS):
            lines.append((line, "sans strong bad", _TEXT))
    return StepBox(tuple(lines), kind, _shortened(f"{row.number + 1}: {phrase(step)}\n{where(step)}"))


def short_place(place: Place | None, width: float) -> str:
    """As much of a place as fits: less of its path first, then less of its function."""
    if place is None:
        return "outside of the tree"
    parts = slashed(place.path).split("/")
    function = f" ({place.function})" if place.function else ""
    choices = ["/".join(parts[-kept:]) + f":{place.line}{function}" for kept in (2, 1)]
    room = int(width / (_SMALL * MONO))
    return next((choice for choice in choices if len(choice) <= room), fitted(choices[-1], width, _SMALL))


def _told(step: Step, width: float) -> list[str]:
    """What was done and what came of it, on one line where that fits."""
    whole = phrase(step)
    if len(whole) * _TEXT * MONO <= width:
        return [whole]
    came = outcome(step)
    done = wrapped(operation(step), width, _MOST_LINES)
    return [*done, *wrapped(f"{ARROW} {came}", width, 2)] if came else done


def _shortened(title: str) -> str:
    return title if len(title) <= 600 else title[:599] + "…"
