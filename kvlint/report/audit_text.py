"""The audit for people: a table as wide as it has to be, and the verdicts below it."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from kvlint.report.audit_model import CODES, Audit, Release, counted, loops_of, removals_of, verdict, writers_of
from kvlint.source.display import one_line

if TYPE_CHECKING:
    from rich.table import Table

# Where no terminal sets the width: lines are for grep then, and never broken.
_WIDEST = 1000
# Narrower than this the table would lose columns; the terminal may break its lines instead.
_NARROWEST = 130


def render(audit: Audit, *, colour: bool = False, width: int | None = None) -> str:
    """The table and the verdicts; ``width`` in columns is that of the terminal, None for as wide as needed."""
    if not audit.releases:
        return ""
    from rich.console import Console

    stream = io.StringIO()
    console = Console(
        file=stream,
        width=_WIDEST if width is None else max(width, _NARROWEST),
        force_terminal=colour,
        color_system="standard" if colour else None,
        highlight=False,
        markup=False,
        emoji=False,
    )
    console.print(_table(audit))
    console.print()
    for release in audit.releases:
        # That nothing was found is no reason for green.
        style = "red" if release.affected else None
        console.print(f"{release.package} {release.version}: {one_line(verdict(release))}", style=style, soft_wrap=True)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()).strip("\n") + "\n"


def _table(audit: Audit) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for title in ("release", "backend", "writer and its table"):
        table.add_column(title, overflow="fold", min_width=14)
    for code in CODES:
        table.add_column(code, justify="right", no_wrap=True)
    table.add_column("exception ends a loop", overflow="fold", min_width=10)
    table.add_column("pop sites", no_wrap=True)
    for release in audit.releases:
        for row in _rows(release):
            table.add_row(*row)
    return table


def _rows(release: Release) -> list[tuple[str, ...]]:
    name = f"{release.package} {release.version}"
    if not release.backends:
        return [(name, *("-" for _ in range(4 + len(CODES))))]
    return [
        (
            name if number == 0 else "",
            one_line(backend.name),
            one_line(writers_of(backend)),
            *(counted(backend, code) for code in CODES),
            loops_of(backend),
            removals_of(backend),
        )
        for number, backend in enumerate(release.backends)
    ]
