"""The diagram of a schedule, as SVG: who did what in which order, and what became of the rooms."""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.explore.report import lanes, rails
from kvlint.explore.report.drawing import BOLD, SANS, Canvas, clean, own_style, svg, wrapped
from kvlint.explore.report.phrases import headline
from kvlint.explore.report.room_status import Change, room_changes
from kvlint.explore.report.turns import turns
from kvlint.explore.results import Witness
from kvlint.source.display import counted

#: The width of the diagram for a narrow screen.
NARROW = 312
#: How high a part of a diagram on a page gets: no part is cut by the end of a printed sheet.
_PART = 200.0
_MARGIN = 10
_EVERYTHING = float("inf")


def swimlane_svg(witness: Witness, *, standalone: bool, width: int) -> str:
    """The diagram in one SVG element that is ``width`` pixels wide.

    Where the lanes of all actors do not fit into that, steps stand below each
    other and the actors have rails beside them.  ``standalone`` makes a file of
    its own, with a title and with its own colours, light and dark; without, it
    takes colours from the page around it (`kvlint.explore.report.drawing.page_style`).
    """
    canvas, height = _drawn(witness, width, is_titled=standalone)
    ((begin, end, shapes),) = canvas.parts(height, _EVERYTHING)
    if not standalone:
        return svg(shapes, width, begin, end, f'role="img" aria-label="{clean(summary(witness))}"')
    head = f'<title id="title">{clean(headline(witness))}</title><desc id="desc">{clean(summary(witness))}</desc>'
    ground = f'<rect class="ground" width="{width}" height="{height:.0f}" rx="8"/>'
    return svg(
        f"{head}<style>{own_style()}</style>{ground}{shapes}",
        width,
        begin,
        end,
        'role="img" aria-labelledby="title desc"',
    )


def swimlane_parts(witness: Witness, width: int) -> Iterator[str]:
    """The diagram for a page, in pieces that follow each other without a gap and can be printed on several sheets."""
    canvas, height = _drawn(witness, width, is_titled=False)
    for begin, end, shapes in canvas.parts(height, _PART):
        # Each part begins one pixel above the end of the last, which hides the seam where they are scaled.
        yield svg(shapes, width, begin, min(end + 1, height), 'aria-hidden="true" focusable="false"')


def comfortable_width(witness: Witness) -> int:
    """How wide the diagram likes to be where there is room."""
    return lanes.comfortable_width(len(actors_of(witness)), len(room_changes(witness)))


def actors_of(witness: Witness) -> tuple[str, ...]:
    """All who act."""
    return tuple(dict.fromkeys([*witness.actors, *(step.actor for step in witness.steps)]))


def summary(witness: Witness) -> str:
    """The diagram in words."""
    preemptions = counted(witness.preemptions, "preemption")
    who = ", ".join(actors_of(witness))
    told = [f"{counted(len(witness.steps), 'step')} of {who} with {preemptions} show {headline(witness)}."]
    told += [f"Room {room} goes through {_ways(changes)}." for room, changes in room_changes(witness).items()]
    return " ".join(told)


def _ways(changes: list[Change]) -> str:
    names = [change.status for change in changes]
    shown = names if len(names) <= 8 else [*names[:4], "…", *names[-3:]]
    return ", ".join(shown)


def _drawn(witness: Witness, width: int, *, is_titled: bool) -> tuple[Canvas, float]:
    canvas = Canvas(width)
    margin = _MARGIN if is_titled else 1
    y = _draw_title(canvas, witness) if is_titled else float(margin)
    changes = room_changes(witness)
    actors = actors_of(witness)
    of_all = turns(witness)
    at = lanes.grid(width, margin, actors, list(changes))
    if at is not None:
        y = lanes.draw(canvas, y, witness, of_all, changes, at)
    else:
        y = rails.draw(canvas, y, witness, actors, of_all, changes)
    y = _draw_verdict(canvas, y + 10, witness, margin)
    return canvas, float(round(y + margin))


def _draw_title(canvas: Canvas, witness: Witness) -> float:
    """What breaks, above a diagram that nothing else introduces."""
    y = 14.0
    for line in wrapped(headline(witness), canvas.width - 2 * _MARGIN - 8, 3, 16, BOLD):
        y += 20
        canvas.text(_MARGIN + 4, y, line, "sans strong", 16)
    about = (
        f"{counted(len(witness.steps), 'step')}, {counted(witness.preemptions, 'preemption')}; bold: changes something"
    )
    y += 2
    for line in wrapped(about, canvas.width - 2 * _MARGIN - 8, 2, 12, SANS):
        y += 16
        canvas.text(_MARGIN + 4, y, line, "sans muted", 12)
    return y + 16


def _draw_verdict(canvas: Canvas, y: float, witness: Witness, margin: int) -> float:
    """The last word, below everything."""
    width = canvas.width - 2 * margin
    lines = wrapped(f"✗ {headline(witness)}", width - 24, 4, 13, BOLD)
    height = len(lines) * 18 + 14
    canvas.box(margin, y, width, height, "box broken")
    for number, line in enumerate(lines):
        canvas.text(margin + 12, y + 21 + number * 18, line, "sans strong bad", 13)
    return y + height
