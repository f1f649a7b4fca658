"""SVG by hand: shapes at their heights, text that fits its width, and colours that are the page's own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib.resources import files

from kvlint.source.display import one_line

#: The advance of a character in em: exact for monospaced fonts, generous for labels without serifs, bold ones too.
MONO, SANS, BOLD = 0.602, 0.58, 0.67
_ELLIPSIS = "…"
_BREAKS = re.compile(r"(?<=[^=→]\s)|(?<=[.,/-])")

#: What is drawn how: selector, property, and a colour of the page's palette, or a value that is none.
_RULES = (
    ("text", "fill", "--text"),
    (".mono", "font-family", "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"),
    (".sans", "font-family", "system-ui, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif"),
    (".strong", "font-weight", "600"),
    (".end", "text-anchor", "end"),
    (".middle", "text-anchor", "middle"),
    ("text.muted", "fill", "--muted"),
    (".ground", "fill", "--page"),
    (".lane", "stroke", "--line"),
    (".lane", "stroke-dasharray", "2 4"),
    (".active", "stroke", "--muted"),
    (".active", "stroke-width", "3"),
    (".dot", "fill", "--muted"),
    (".head", "fill", "--grey-ground"),
    (".box", "fill", "--raised"),
    (".box", "stroke", "--line"),
    (".box.write", "stroke", "--muted"),
    (".box.fold", "fill", "--page"),
    (".box.fold", "stroke-dasharray", "4 3"),
    (".box.broken", "fill", "--red-ground"),
    (".box.broken", "stroke", "--red"),
    (".box.broken", "stroke-width", "2"),
    (".box.cap", "fill", "--page"),
    (".box.cap", "stroke", "--muted"),
    (".box.stuck", "stroke", "--amber"),
    (".box.stuck", "fill", "--amber-ground"),
    (".flow", "fill", "none"),
    (".flow", "stroke", "--muted"),
    (".flow", "stroke-width", "1.25"),
    (".tip", "fill", "--muted"),
    (".flow.jump", "stroke", "--amber"),
    (".flow.jump", "stroke-width", "2"),
    (".tip.jump", "fill", "--amber"),
    (".pill", "fill", "--amber-ground"),
    (".pill", "stroke", "--amber"),
    ("text.jump", "fill", "--amber"),
    ("text.bad", "fill", "--red"),
    (".failed", "fill", "--red-ground"),
    (".failed", "stroke", "--red"),
    (".success", "fill", "--green-ground"),
    (".success", "stroke", "--green"),
    (".live", "fill", "--blue-ground"),
    (".live", "stroke", "--blue"),
    (".absent", "fill", "--page"),
    (".absent", "stroke", "--muted"),
    (".absent", "stroke-dasharray", "3 3"),
    ("text.failed", "fill", "--red"),
    ("text.success", "fill", "--green"),
    ("text.live", "fill", "--blue"),
    ("text.absent", "fill", "--muted"),
    ("text.failed, text.success, text.live, text.absent", "stroke", "none"),
    (".tie", "stroke-width", "1"),
    (".tie", "stroke-dasharray", "1 3"),
)


@dataclass
class Canvas:
    """What is drawn, each piece with the heights between which it lies.

    The picture may be cut at ``cuts``; what is above ``head`` is a part of its own.
    """

    width: int
    pieces: list[tuple[float, float, str]] = field(default_factory=list)
    cuts: list[float] = field(default_factory=list)
    head: float = 0.0

    def box(self, x: float, y: float, width: float, height: float, kind: str, radius: int = 5, title: str = "") -> None:
        """A rectangle; ``title`` is what a pointer over it shows."""
        shape = f'<rect class="{kind}" x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" rx="{radius}"'
        shape += f"><title>{clean(title)}</title></rect>" if title else "/>"
        self._add(y - 1, y + height + 1, shape)

    def text(self, x: float, y: float, text: str, kind: str, size: float = 12) -> None:
        """One line of text; ``y`` is its base line."""
        if text:
            piece = f'<text class="{kind}" x="{_n(x)}" y="{_n(y)}" font-size="{_n(size)}">{clean(text)}</text>'
            self._add(y - size, y + size / 3, piece)

    def line(self, x: float, y: float, to_x: float, to_y: float, kind: str) -> None:
        """A straight line."""
        self._add(y, to_y, f'<path class="{kind}" d="M{_n(x)} {_n(y)}L{_n(to_x)} {_n(to_y)}"/>')

    def arrow(self, points: Sequence[tuple[float, float]], kind: str = "") -> None:
        """A line with corners and a tip that points downwards at its end."""
        x, y = points[-1]
        way = "L".join(f"{_n(at)} {_n(down)}" for at, down in [*points[:-1], (x, y - 4)])
        self._add(points[0][1], y, f'<path class="flow{kind}" d="M{way}"/>')
        self._add(y - 7, y, f'<path class="tip{kind}" d="M{_n(x)} {_n(y)}l-4 -7h8z"/>')

    def dot(self, x: float, y: float, kind: str, radius: float = 4) -> None:
        """A filled circle."""
        self._add(y - radius, y + radius, f'<circle class="{kind}" cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}"/>')

    def cut(self, y: float) -> None:
        """Here the picture may be cut in two."""
        self.cuts.append(round(y))

    def parts(self, height: float, most: float) -> Iterator[tuple[float, float, str]]:
        """The picture in parts of at most ``most``, where it can be cut: begin, end and shapes of each."""
        begin = 0.0
        while begin < height:
            fitting = [cut for cut in self.cuts if begin < cut <= begin + most]
            end = height if height - begin <= most or not fitting else fitting[-1]
            if begin < self.head < height and most < height:
                end = self.head
            yield begin, end, "".join(shape for top, bottom, shape in self.pieces if top < end and bottom > begin)
            begin = end

    def _add(self, top: float, bottom: float, shape: str) -> None:
        self.pieces.append((top, bottom, shape))


def clean(text: str) -> str:
    """``text`` for XML: escaped, and characters that hide, reorder, or are not allowed at all, spelled."""
    return escape(one_line(text))


def fitted(text: str, width: float, size: float = 12, advance: float = MONO) -> str:
    """``text``, cut off where ``width`` ends."""
    text = one_line(text)
    room = max(1, int(width / (size * advance)))
    return text if len(text) <= room else text[: room - 1] + _ELLIPSIS


def size_that_fits(text: str, width: float, sizes: tuple[float, ...], advance: float = MONO) -> float:
    """The first of ``sizes`` in which ``text`` fits, or the last."""
    return next((size for size in sizes if len(text) * size * advance <= width), sizes[-1])


def wrapped(text: str, width: float, most: int, size: float = 12, advance: float = MONO) -> list[str]:
    """``text`` in at most ``most`` lines that are no wider than ``width``."""
    text = one_line(text)
    room = max(2, int(width / (size * advance)))
    lines: list[str] = []
    while text and len(lines) < most - 1 and len(text) > room:
        breaks = [found.start() for found in _BREAKS.finditer(text[: room + 1]) if found.start() <= room]
        end = breaks[-1] if breaks and breaks[-1] > room // 3 else room
        lines.append(text[:end].rstrip())
        text = text[end:].lstrip()
    return [*lines, fitted(text, width, size, advance)]


def svg(shapes: str, width: float, top: float, bottom: float, attributes: str) -> str:
    """An SVG element that shows what lies between two heights."""
    height = bottom - top
    size = f'width="{_n(width)}" height="{_n(height)}" viewBox="0 {_n(top)} {_n(width)} {_n(height)}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {attributes}>{shapes}</svg>\n'


@cache
def page_style() -> str:
    """The style of diagrams on a page that has the palette; they stand in elements of the class ``swimlane``."""
    return "".join(
        f".swimlane :is({selector}) {{ {name}: {f'var({value})' if value.startswith('--') else value}; }}\n"
        for selector, name, value in _RULES
    )


@cache
def own_style() -> str:
    """The style of a diagram that stands alone, with the palette written out, for light and for dark."""
    return _with_colours(0, True) + "@media (prefers-color-scheme:dark){" + _with_colours(1, False) + "}"


def _with_colours(scheme: int, is_all: bool) -> str:
    colours = palette()
    return "".join(
        f"{selector}{{{name}:{colours[value][scheme] if value in colours else value}}}"
        for selector, name, value in _RULES
        if is_all or value in colours
    )


@cache
def palette() -> dict[str, tuple[str, str]]:
    """The colours of kvlint's pages, for light and for dark, by name."""
    text = files("kvlint.report").joinpath("assets", "report.css").read_text("utf-8")
    return {name: (light, dark) for name, light, dark in re.findall(r"(--[\w-]+): light-dark\((#\w+), (#\w+)\)", text)}


def _n(value: float) -> str:
    """A number, as short as it gets."""
    return f"{value:.1f}".removesuffix(".0")
