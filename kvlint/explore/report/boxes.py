"""What stands in the box of a step, whichever way the boxes are laid out."""

from __future__ import annotations

from dataclasses import dataclass

from kvlint.explore.report.drawing import BOLD, MONO, SANS, Canvas, fitted, wrapped
from kvlint.explore.report.phrases import ARROW, operation, outcome, phrase
from kvlint.explore.report.turns import Row
from kvlint.explore.results import Place, Step
from kvlint.source.display import counted, one_line, slashed

PADDING = 7
_TEXT, _SMALL, _BREAKS = 11.5, 10.5, 11.0
_LEADING = 15
_MOST_LINES = 3


@dataclass(frozen=True, slots=True)
class StepBox:
    """A box that is ready to be drawn: its lines as (text, classes, size), and what a pointer over it shows."""

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


def step_box(row: Row, width: float, reserved: float = 0) -> StepBox:
    """The box of a row that is ``width`` wide, with ``reserved`` at the end of its last line left empty."""
    inner = width - 2 * PADDING
    if row.is_folded:
        text = f"⋮ {counted(len(row.steps), 'step')} more: {row.numbers}"
        title = "; ".join(f"{row.number + nth}: {phrase(step)}" for nth, step in enumerate(row.steps, 1))
        return StepBox(
            ((fitted(text, inner - reserved, _TEXT, SANS), "sans muted", _TEXT),), "box fold", _shortened(title)
        )
    step = row.step
    weight = " strong" if step.writes else ""
    lines = [(line, f"mono{weight}", _TEXT) for line in _told(step, inner)]
    place = short_place(step.place, inner - (0 if step.breaks else reserved))
    lines.append((place, "mono muted", _SMALL))
    kind = "box write" if step.writes else "box"
    if step.breaks:
        kind = "box broken"
        told = wrapped(f"✗ breaks {step.breaks}", inner - reserved, 2, _BREAKS, BOLD)
        lines += [(line, "sans strong bad", _BREAKS) for line in told]
    return StepBox(tuple(lines), kind, _shortened(f"{row.number + 1}: {phrase(step)}"))


def short_place(place: Place | None, width: float) -> str:
    """As much of a place as fits: less of its path first, then less of its function's name."""
    if place is None:
        return "outside of the tree"
    parts = slashed(place.path).split("/")
    paths = [f"{'/'.join(parts[-kept:])}:{place.line}" for kept in (2, 1)]
    named = [part for part in place.function.split(".") if not part.startswith("<")]
    choices = [one_line(f"{path} ({function})") for function in (place.function, *named[-1:]) for path in paths]
    room = int(width / (_SMALL * MONO))
    return next((choice for choice in choices if len(choice) <= room), fitted(choices[-1], width, _SMALL))


def _told(step: Step, width: float) -> list[str]:
    """What was done and what came of it, on one line or with a line of its own, where that fits."""
    whole, done, came = phrase(step), operation(step), outcome(step)
    if came and len(whole) * _TEXT * MONO > width >= len(done) * _TEXT * MONO:
        return [done, *wrapped(f"{ARROW} {came}", width, _MOST_LINES - 1, _TEXT)]
    return wrapped(whole, width, _MOST_LINES, _TEXT)


def _shortened(title: str) -> str:
    return title if len(title) <= 600 else title[:599] + "…"
