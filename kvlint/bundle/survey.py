"""One tree of sources, release or installed: its backends and what the rules say of each."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvlint.bundle import CLEARED, released_config
from kvlint.bundle.loops import Ending, ending_of
from kvlint.bundle.tables import name_of
from kvlint.report.audit_model import Backend, LoopRow, RemovalCounts, WriterRow
from kvlint.report.model import Inspected
from kvlint.source.display import Target, one_line

if TYPE_CHECKING:
    from kvlint.analysis.places import Place


@dataclass(frozen=True, slots=True)
class Survey:
    """The backends of a tree, and the files that could not be judged, each with the reason."""

    backends: tuple[Backend, ...]
    incomplete: tuple[str, ...]


def survey(targets: Sequence[Target], folder: str) -> Survey:
    """Judge ``targets``, files below ``folder``; a file that cannot be read or judged does not end it."""
    from kvlint import engine

    report, inspection = engine.examine(targets, released_config(folder))
    findings: dict[str, Counter[str]] = {}
    for finding in report.findings:
        findings.setdefault(finding.location.path, Counter())[finding.code] += 1
    rows = [row for item in inspection.files if (row := _backend(item, findings.get(item.display, Counter())))]
    crashed = {crash.path: crash.reason for crash in (*report.crashes, *inspection.crashes)}
    incomplete = [f"{one_line(path)}: kvlint failed on this file: {reason}" for path, reason in crashed.items()]
    # Both say of the same file that it cannot be read.
    incomplete += {text.replace(": not checked: ", ": ", 1) for text in (*report.warnings, *inspection.warnings)}
    return Survey(tuple(_named(rows)), tuple(sorted(incomplete)))


def faults_below(folder: str) -> tuple[str, ...]:
    """``path:line: code`` of what a patch would mend in the package at ``folder``, whatever release it is called."""
    from kvlint import engine

    report = engine.check([folder], released_config(folder))
    found = (finding for finding in report.findings if finding.code in CLEARED)
    return tuple(f"{one_line(each.location.path)}:{each.location.span.line}: {each.code}" for each in found)


def targets_below(folder: str, paths: Iterable[str]) -> tuple[Target, ...]:
    """The files at ``paths``, relative to ``folder`` and shown so."""
    return tuple(Target(path, os.path.join(folder, path)) for path in sorted(paths))


def _backend(item: Inspected, findings: Counter[str]) -> Backend | None:
    """The row of a file, None for one without writers, workers and findings."""
    facts = item.facts
    writers = tuple(dict.fromkeys(_writers(item)))
    workers = {worker.place for worker in facts.workers}
    if not writers and not workers and not findings:
        return None
    return Backend(
        path=item.display,
        name=item.display,
        writers=writers,
        findings=dict(sorted(findings.items())),
        loops=tuple(_loops(item)),
        removals=_removals(item),
    )


def _writers(item: Inspected) -> Iterator[WriterRow]:
    from kvlint.analysis.infer import subject_of, writer_of
    from kvlint.analysis.roles import effective_methods

    for cls in item.facts.managers:
        subject = subject_of(cls)
        if subject is None:
            continue
        for method in effective_methods(cls):
            writer = writer_of(cls, method, subject) if method.node.name in subject.writers else None
            if writer is None or not writer.primary:
                continue
            if subject.kind != "table" and writer not in item.facts.judged_writers:
                continue
            notation = writer.table.notation
            path = item.names.of(method.owner.module.path, item.facts.path)
            yield WriterRow(method.owner.name, method.node.name, path, method.node.lineno, notation, name_of(notation))


def _loops(item: Inspected) -> Iterator[LoopRow]:
    from kvlint.analysis.handlers import thread_roots
    from kvlint.analysis.threads import Thread

    facts = item.facts
    workers = {worker.place for worker in facts.workers}
    roots = thread_roots(facts.world, facts.module)
    # A function that no thread gets to ends with its caller, whatever it loops over.
    on_threads = _reached(root.place for root in roots if root.starts) | workers
    for root in roots:
        is_worker = root.place in workers or root.thread is Thread.WORKER
        if root.place.module is not facts.module or not (is_worker or root.thread is Thread.LISTENER):
            continue
        ending: Ending | None = ending_of(root) if root.place in on_threads else None
        if ending is not None:
            thread = Thread.WORKER if is_worker else root.thread
            yield LoopRow(root.place.qualified, thread.value, ending.line, ending.fate, ending.reason)


def _reached(places: Iterable[Place]) -> set[Place]:
    """``places`` and every function that they call, directly or not."""
    from kvlint.analysis.places import callees

    pending = list(places)
    seen: set[Place] = set()
    while pending:
        place = pending.pop()
        if place not in seen:
            seen.add(place)
            pending.extend(target for _, target in callees(place))
    return seen


def _removals(item: Inspected) -> RemovalCounts:
    """The pop-site catalogue in numbers: each site once, as its worst verdict."""
    from kvlint.analysis.infer import subject_of
    from kvlint.analysis.removals import Verdict

    facts = item.facts
    rank = {Verdict.SAFE: 0, Verdict.UNKNOWN: 1, Verdict.UNSAFE: 2}
    worst: dict[tuple[str, object], Verdict] = {}
    keepers = [cls for cls in facts.managers if (subject := subject_of(cls)) is not None and subject.kind == "table"]
    for cls in keepers:
        for table in sorted(facts.tables):
            for site in facts.removals(table, cls):
                key = (table, site.node)
                worst[key] = max(worst.get(key, Verdict.SAFE), site.verdict, key=rank.__getitem__)
    counts = Counter(worst.values())
    return RemovalCounts(counts[Verdict.SAFE], counts[Verdict.UNSAFE], counts[Verdict.UNKNOWN])


def _named(rows: Sequence[Backend]) -> Iterator[Backend]:
    """``rows`` with the shortest names that tell them apart: ``nixl/conn.py``."""
    from msgspec.structs import replace

    paths = [row.path for row in rows]
    for row in rows:
        parts = row.path.split("/")
        for length in range(min(2, len(parts)), len(parts) + 1):
            name = "/".join(parts[-length:])
            if sum(path == name or path.endswith(f"/{name}") for path in paths) == 1:
                yield replace(row, name=name)
                break
        else:
            yield row
