"""A schedule as a table: one column per actor, or one line per step where the terminal is too narrow for that."""

from __future__ import annotations

import os
from collections.abc import Iterator
from textwrap import wrap

from kvlint.explore.report.phrases import phrase, wait, where
from kvlint.explore.results import Step, Witness
from kvlint.report.colour import BOLD, DIM, RED, YELLOW, paint
from kvlint.source.display import one_line, slashed

_GUTTER = 7  # the number of the step and its mark
_NARROWEST_COLUMN = 18
_WIDEST_COLUMN = 36
_LEAST_TEXT = 24
_MARK_PREEMPTS = "»"
_MARK_BREAKS = "✗"


def witness_lines(witness: Witness, tree: str, width: int, colour: bool) -> Iterator[str]:
    """The steps, and what every actor waits for after them; places are relative to ``tree``."""
    actors = [one_line(actor) for actor in witness.actors]
    column = min(_WIDEST_COLUMN, (width - _GUTTER) // max(1, len(actors)))
    if column < _NARROWEST_COLUMN:
        yield from _stacked(witness, tree, width, colour)
    else:
        yield from _table(witness, tree, width, column, colour)
    yield from _end(witness, width)
    if any(step.preempts for step in witness.steps):
        yield paint(f"{_MARK_PREEMPTS} takes the turn from a thread that could have gone on", DIM, colour)


def relative(path: str, tree: str) -> str:
    """A path as it is found from the folder ``tree``; one that is not in there stays as it is."""
    below = os.path.relpath(path, tree)
    return slashed(path if below.startswith(os.pardir) or below == os.curdir else below)


def _place(step: Step, tree: str, width: int, start: int, colour: bool) -> Iterator[str]:
    """Where it was done: on one line, further to the left if need be; else the function on a line of its own."""
    parts = [where(step)]
    if step.place is not None:
        parts[0] = parts[0].removeprefix(one_line(slashed(step.place.path)))
        line, _, function = parts[0].replace("<locals>.", "").partition(" ")
        parts = [f"{one_line(relative(step.place.path, tree))}{line} {function}"]
        if len(parts[0]) > width - _GUTTER:
            parts = [parts[0].removesuffix(f" {function}"), function]
    for part in parts:
        indent = max(0, min(start, max(_GUTTER, width - len(part))))
        # Never broken: terminals make links of them, and people copy them.
        yield paint(" " * indent + part, DIM, colour)


def _gutter(number: int, step: Step) -> str:
    mark = _MARK_BREAKS if step.breaks else _MARK_PREEMPTS if step.preempts else ""
    return f"{number:4} {mark:1} "


def _style(step: Step) -> str:
    return RED if step.breaks else YELLOW if step.preempts else ""


def _painted(text: str, style: str, colour: bool) -> str:
    return paint(text, style, colour) if style else text


def _table(witness: Witness, tree: str, width: int, column: int, colour: bool) -> Iterator[str]:
    starts = {actor: _GUTTER + number * column for number, actor in enumerate(witness.actors)}
    header = "".join(f"{one_line(actor)[: column - 2]:{column}}" for actor in witness.actors)
    yield paint((" " * _GUTTER + header).rstrip(), BOLD, colour)
    for number, step in enumerate(witness.steps, start=1):
        start = starts.get(step.actor, _GUTTER)
        first, *rest = _fitted(phrase(step), width, start)
        text = _gutter(number, step) + _rails(starts, start) + first[len(" " * start) :]
        yield _painted(text, _style(step), colour)
        yield from (_painted(line, _style(step), colour) for line in rest)
        yield from _place(step, tree, width, start + 2, colour)
        if step.breaks:
            words = f"{_MARK_BREAKS} this breaks {step.breaks}"
            yield from (paint(line, RED, colour) for line in _fitted(words, width, start))


def _rails(starts: dict[str, int], start: int) -> str:
    """The columns of the actors to the left of the one that acts."""
    return "".join(f"{'·':{starts_at_next - starts_at}}" for starts_at, starts_at_next in _gaps(starts, start))


def _gaps(starts: dict[str, int], start: int) -> Iterator[tuple[int, int]]:
    before = [begin for begin in starts.values() if begin < start]
    yield from zip(before, [*before[1:], start], strict=False)


def _fitted(text: str, width: int, start: int) -> list[str]:
    """``text`` from column ``start`` on; what would get too narrow begins further to the left."""
    wanted = min(len(text), max(_LEAST_TEXT, width - start))
    indent = " " * max(0, min(start, width - wanted))
    return wrap(
        text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False, break_long_words=True
    ) or [indent]


def _stacked(witness: Witness, tree: str, width: int, colour: bool) -> Iterator[str]:
    for number, step in enumerate(witness.steps, start=1):
        text = f"{one_line(step.actor)}: {phrase(step)}"
        first, *rest = _fitted(text, width, _GUTTER)
        yield _painted(_gutter(number, step) + first[_GUTTER:], _style(step), colour)
        yield from (_painted(line, _style(step), colour) for line in rest)
        yield from _place(step, tree, width, _GUTTER + 2, colour)
        if step.breaks:
            words = f"{_MARK_BREAKS} this breaks {step.breaks}"
            yield from (paint(line, RED, colour) for line in _fitted(words, width, _GUTTER))


def _end(witness: Witness, width: int) -> Iterator[str]:
    ends = [(one_line(actor), wait(witness, actor)) for actor in witness.actors]
    told = [(actor, words) for actor, words in ends if words]
    if told:
        yield "at the end"
    longest = max((len(actor) for actor, _ in told), default=0)
    for actor, words in told:
        first, *rest = wrap(words, max(_LEAST_TEXT, width - longest - 4), break_on_hyphens=False)
        yield f"  {actor:{longest}}  {first}"
        yield from (f"  {'':{longest}}  {line}" for line in rest)
