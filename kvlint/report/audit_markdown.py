"""The audit as Markdown: a table with a row per release and backend."""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.report.audit_model import CODES, Audit, Release, counted, loops_of, removals_of, verdict, writers_of
from kvlint.source.display import one_line

#: The head of the table, ended by a line feed.
HEAD = (
    f"| release | backend | writer and its table | {' | '.join(CODES)} | loop ends | pop sites | verdict |\n"
    f"|---|---|---|{'---|' * len(CODES)}---|---|---|\n"
)


def render(audit: Audit) -> str:
    """The table, then what could not be audited."""
    table = HEAD + "".join(row for release in audit.releases for row in rows(release)) if audit.releases else ""
    failures = "".join(f"- **not audited**: {_cell(failure.message)}\n" for failure in audit.failures)
    return table + ("\n" if table and failures else "") + failures


def rows(release: Release) -> Iterator[str]:
    """The rows of one release, each ended by a line feed; the first has its verdict."""
    told = verdict(release)
    name = f"{release.package} {release.version}"
    if not release.backends:
        yield _row(name, *("-" for _ in range(4 + len(CODES))), told)
    for backend in release.backends:
        codes = (counted(backend, code) for code in CODES)
        yield _row(name, backend.name, writers_of(backend), *codes, loops_of(backend), removals_of(backend), told)
        told = ""


def _row(*cells: str) -> str:
    return "| " + " | ".join(_cell(cell) for cell in cells).rstrip() + " |\n"


def _cell(text: str) -> str:
    return one_line(text).replace("\\", "\\\\").replace("|", "\\|")
