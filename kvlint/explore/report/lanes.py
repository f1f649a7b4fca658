"""The wide diagram: a lane per actor, time downwards, and a strip with each room's status beside them."""

from __future__ import annotations

from dataclasses import dataclass

from kvlint.explore.report.boxes import step_box
from kvlint.explore.report.drawing import BOLD, SANS, Canvas, fitted, size_that_fits, wrapped
from kvlint.explore.report.phrases import wait
from kvlint.explore.report.room_status import Change
from kvlint.explore.report.turns import Turn
from kvlint.explore.results import Witness

_NUMBERS = 22  # width of the column of step numbers
_STRIP = 112
_MANY_STRIPS = 96
_NARROWEST = 190
_WIDEST = 300
_MARGIN = 6  # at each side of a box in its lane
_HEAD = 30
_HANDOVER, _PREEMPTION = 24, 34
_LABEL = 11
_STATUS = (10.5, 9.5, 9)
_NUMBER = (11, 9, 7.5)


@dataclass(frozen=True, slots=True)
class Grid:
    """Where the columns are."""

    numbers: float
    strips: dict[str, float]
    strip: float
    lanes: dict[str, float]
    lane: float

    def centre(self, actor: str) -> float:
        """The middle of an actor's lane."""
        return self.lanes[actor] + self.lane / 2


def comfortable_width(actors: int, rooms: int) -> int:
    """How wide the diagram likes to be."""
    return max(640, min(1200, _NUMBERS + rooms * _STRIP + actors * 272))


def grid(width: float, margin: float, actors: tuple[str, ...], rooms: list[str]) -> Grid | None:
    """The columns, or None where the lanes would get too narrow to read."""
    strip = _STRIP if len(rooms) < 3 else _MANY_STRIPS
    left = margin + _NUMBERS + strip * len(rooms)
    lane = min(_WIDEST, (width - margin - left) / max(1, len(actors)))
    if lane < _NARROWEST:
        return None
    strips = {room: margin + _NUMBERS + strip * position for position, room in enumerate(rooms)}
    lanes = {actor: left + lane * position for position, actor in enumerate(actors)}
    return Grid(margin + _NUMBERS - 5, strips, strip, lanes, lane)


def draw(
    canvas: Canvas, top: float, witness: Witness, turns: list[Turn], changes: dict[str, list[Change]], at: Grid
) -> float:
    """Draw everything from ``top`` down; the height that was reached."""
    y = canvas.head = _draw_head(canvas, top, at)
    lanes = Canvas(canvas.width)
    starts: dict[int, tuple[float, float]] = {}
    previous: str | None = None
    y += 12
    for turn in turns:
        y = _draw_handover(lanes, y, previous, turn, at)
        y = _draw_turn(lanes, y, turn, starts, at)
        previous = turn.actor
    y += 14
    for actor in at.lanes:
        canvas.line(at.centre(actor), top + _HEAD, at.centre(actor), y, "lane")
    _draw_strips(canvas, top + _HEAD + 4, y, changes, starts, at)
    canvas.pieces += lanes.pieces
    canvas.cuts += lanes.cuts
    return _draw_caps(canvas, y, witness, at)


def _draw_head(canvas: Canvas, y: float, at: Grid) -> float:
    for room, x in at.strips.items():
        canvas.text(x + 4, y + 19, fitted(f"room {room}", at.strip - 12, _LABEL, SANS), "sans muted", _LABEL)
    for actor, x in at.lanes.items():
        canvas.box(x + _MARGIN, y, at.lane - 2 * _MARGIN, _HEAD, "head")
        name = fitted(actor, at.lane - 4 * _MARGIN, 14, BOLD)
        canvas.text(at.centre(actor), y + 20, name, "sans strong middle", 14)
    return y + _HEAD


def _draw_handover(canvas: Canvas, y: float, previous: str | None, turn: Turn, at: Grid) -> float:
    """The arrow from the last actor's box to the next one's."""
    there = at.centre(turn.actor)
    if previous is None:
        return y
    here = at.centre(previous)
    if not turn.preempts:
        middle = y + 9
        canvas.arrow([(here, y), (here, middle), (there, middle), (there, y + _HANDOVER)])
        return y + _HANDOVER
    middle = y + 14
    canvas.arrow([(here, y), (here, middle), (there, middle), (there, y + _PREEMPTION)], " jump")
    text = "preempts"
    width = len(text) * _LABEL * BOLD + 14
    x = (here + there) / 2
    canvas.box(x - width / 2, middle - 9, width, 18, "pill", 9, f"{turn.actor} takes the turn from {turn.preempts}")
    canvas.text(x, middle + 4, text, "sans strong middle jump", _LABEL)
    return y + _PREEMPTION


def _draw_turn(canvas: Canvas, y: float, turn: Turn, starts: dict[int, tuple[float, float]], at: Grid) -> float:
    x, width = at.lanes[turn.actor] + _MARGIN, at.lane - 2 * _MARGIN
    for row in turn.rows:
        box = step_box(row, width)
        if not row.is_folded:
            size = size_that_fits(row.numbers, _NUMBERS, _NUMBER)
            canvas.text(at.numbers, y + 16, row.numbers, "mono muted end", size)
        box.draw(canvas, x, y, width)
        for number in range(row.number, row.number + len(row.steps)):
            starts[number] = (y, x)
        y += box.height + 3
        canvas.cut(y - 2)
    return y - 3


def _draw_strips(
    canvas: Canvas,
    top: float,
    bottom: float,
    changes: dict[str, list[Change]],
    starts: dict[int, tuple[float, float]],
    at: Grid,
) -> None:
    """A column per room, in a colour and with a name for each of its statuses."""
    for room, x in at.strips.items():
        heights = [top if change.step < 0 else starts[change.step][0] for change in changes[room]]
        for change, begin, end in zip(changes[room], heights, [*heights[1:], bottom], strict=True):
            canvas.box(x, begin, at.strip - 10, end - begin - 1, change.kind, 3, f"room {room}: {change.status}")
            size = size_that_fits(change.status, at.strip - 18, _STATUS, BOLD)
            name = fitted(change.status, at.strip - 18, size, BOLD)
            canvas.text(x + 4, begin + 15, name, f"sans strong {change.kind}", size)
            if change.step >= 0:
                height, reach = starts[change.step]
                canvas.line(x + at.strip - 10, height + 11, reach, height + 11, f"tie {change.kind}")


def _draw_caps(canvas: Canvas, y: float, witness: Witness, at: Grid) -> float:
    """What every actor waits for after the last step."""
    told = {actor: wait(witness, actor) for actor in at.lanes}
    inner = at.lane - 2 * _MARGIN - 16
    lines = {
        actor: wrapped(text, inner, 4, 12, BOLD if " — " in text else SANS) for actor, text in told.items() if text
    }
    height = max((len(of_actor) for of_actor in lines.values()), default=0) * 16 + 12
    for actor, of_actor in lines.items():
        x = at.lanes[actor] + _MARGIN
        kind = "box stuck" if " — " in told[actor] else "box cap"
        canvas.box(x, y, at.lane - 2 * _MARGIN, height, kind, 8, told[actor])
        for number, line in enumerate(of_actor):
            canvas.text(x + 8, y + 18 + number * 16, line, "sans" + " strong jump" * (" — " in told[actor]), 12)
    return y + height if lines else y
