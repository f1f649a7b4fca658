"""A fixing run: find, edit in memory until nothing more can be fixed, then replace the files on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kvlint.config import Config
from kvlint.diagnostics import Finding
from kvlint.engine import diagnoser
from kvlint.fixing.fixpoint import Change, fix_files
from kvlint.fixing.refusals import Refusal, WriteRefused
from kvlint.fixing.write import write_atomically
from kvlint.source.discovery import discover
from kvlint.source.display import DisplayPaths, Target
from kvlint.source.text import read_bytes


@dataclass(frozen=True, slots=True)
class FixRun:
    """What was changed (or would be), with absolute paths, what remains, and what was refused and why."""

    changes: tuple[Change, ...]
    remaining: tuple[Finding, ...]
    refused: tuple[Refusal, ...]
    warnings: tuple[str, ...] = ()


def fix(paths: Sequence[str], config: Config, *, unsafe: bool, write: bool) -> FixRun:
    """Fix the Python files that ``paths`` name or contain; raises PathError and AnalysisCrashed."""
    found = discover(paths, config)
    run = fix_targets(found.targets, config, unsafe=unsafe, write=write)
    return replace(run, warnings=found.warnings)


def fix_targets(targets: Sequence[Target], config: Config, *, unsafe: bool, write: bool) -> FixRun:
    """As `fix`, for files that were found already."""
    diagnose = diagnoser(targets, config)
    outcome = fix_files([target.path for target in targets], diagnose, unsafe=unsafe, read=read_bytes)
    changes, remaining, refused = outcome.changes, outcome.remaining, outcome.refused
    if write and changes:
        changes, unwritten = _write(changes)
        if unwritten:
            refused += unwritten
            # Not what was hoped for stands on disk now, so that is what has to be judged.
            remaining = tuple(diagnose({}))
    names = DisplayPaths(targets)
    shown = tuple(replace(refusal, path=names.of(refusal.path)) for refusal in refused)
    return FixRun(changes, remaining, shown)


def fix_source(path: str, data: bytes, config: Config, *, unsafe: bool) -> tuple[bytes, FixRun]:
    """The fixed content of ``data``, which stands for the file at absolute ``path``; nothing is written."""
    target = Target(path, path)
    outcome = fix_files(
        [path], diagnoser((target,), config, {path: data}), unsafe=unsafe, read=lambda _: data
    )
    after = outcome.changes[0].after if outcome.changes else data
    return after, FixRun(outcome.changes, outcome.remaining, outcome.refused)


def _write(changes: tuple[Change, ...]) -> tuple[tuple[Change, ...], tuple[Refusal, ...]]:
    written, refused = [], []
    for change in changes:
        try:
            write_atomically(change.path, change.before, change.after)
        except WriteRefused as error:
            refused.append(Refusal(error.path, error.reason))
        else:
            written.append(change)
    return tuple(written), tuple(refused)
