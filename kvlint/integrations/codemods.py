"""The fixes as LibCST codemod commands: one command per fix, each the same code as ``kvlint fix``.

Run one with ``python -m libcst.tool codemod --no-format -x
kvlint.integrations.codemods.StickyTerminalCommand PATH``.  ``-x`` takes the name
as it stands; without it, list ``kvlint.integrations`` under ``modules`` in
``.libcst.codemod.yaml`` and say ``codemods.StickyTerminalCommand``.  A command
edits only the file it is given: run on a folder, it edits each file that needs it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

import libcst as cst
from libcst.codemod import CodemodCommand, CodemodContext, SkipFile

from kvlint.diagnostics import (
    AtomicStatus,
    DeferAbortCleanup,
    Finding,
    FixPlan,
    OpeningStatus,
    RecordFailure,
    SkipGuard,
    StickyTerminal,
)
from kvlint.fixing.fixpoint import Verify, fix_files, read_file

_Diagnose = Callable[[Mapping[str, bytes]], list[Finding]]


class StickyTerminalCommand(CodemodCommand):
    """Make status writers ignore every write once a terminal status is stored (safe)."""

    DESCRIPTION = "Make KV-transfer status writers ignore every write once a terminal status is stored."

    def transform_module_impl(self, tree: cst.Module) -> cst.Module:
        """The file's tree with this fix wherever kvlint asks for it."""
        return _fixed(self.context, tree, StickyTerminal)


class SkipGuardCommand(CodemodCommand):
    """Fail a live room before a worker drops its work item (safe)."""

    DESCRIPTION = "Fail a live room before a KV-transfer worker drops its work item."

    def transform_module_impl(self, tree: cst.Module) -> cst.Module:
        """The file's tree with this fix wherever kvlint asks for it."""
        return _fixed(self.context, tree, SkipGuard)


class DeferAbortCleanupCommand(CodemodCommand):
    """Leave the removal of an aborted room to clear() or to the worker (unsafe: read each edit)."""

    DESCRIPTION = "Drop removals of live rooms from abort handlers (needs a reader's judgement)."

    def transform_module_impl(self, tree: cst.Module) -> cst.Module:
        """The file's tree with this fix wherever kvlint asks for it."""
        return _fixed(self.context, tree, DeferAbortCleanup)


class RecordFailureCommand(CodemodCommand):
    """Make status writers store a failure that is written to a live room (unsafe: read each edit)."""

    DESCRIPTION = "Make KV-transfer status writers store a failure written to a live room (needs a reader's judgement)."

    def transform_module_impl(self, tree: cst.Module) -> cst.Module:
        """The file's tree with this fix wherever kvlint asks for it."""
        return _fixed(self.context, tree, RecordFailure)


class OpeningStatusCommand(CodemodCommand):
    """Let only opening statuses create a room (unsafe: read each edit)."""

    DESCRIPTION = "Let only opening statuses create a KV-transfer room (needs a reader's judgement)."

    def transform_module_impl(self, tree: cst.Module) -> cst.Module:
        """The file's tree with this fix wherever kvlint asks for it."""
        return _fixed(self.context, tree, OpeningStatus)


class AtomicStatusCommand(CodemodCommand):
    """Decide on a status and store it in one step (unsafe: read each edit).

    What stands in other files than the one that makes the lock is edited once the
    lock is on disk: run it again until it changes nothing.
    """

    DESCRIPTION = "Put KV-transfer status writers and removals under one lock (needs a reader's judgement)."

    def transform_module_impl(self, tree: cst.Module) -> cst.Module:
        """The file's tree with this fix wherever kvlint asks for it."""
        return _fixed(self.context, tree, AtomicStatus)


def _fixed(context: CodemodContext, tree: cst.Module, kind: type[FixPlan]) -> cst.Module:
    path = os.path.abspath(context.filename or "<stdin>")
    before = tree.bytes
    if context.filename is not None and os.path.exists(path) and read_file(path) != before:
        raise SkipFile("LibCST would change other lines of this file (lone carriage returns?); use `kvlint fix`")
    diagnose = _diagnoser(path, before)

    def of_kind(overlay: Mapping[str, bytes]) -> list[Finding]:
        return [finding for finding in diagnose(overlay) if isinstance(finding.plan, kind)]

    # Who names the command has asked for its fix: unsafe ones need no second switch.
    outcome = fix_files([path], of_kind, unsafe=True, verify=_verifier(path, before), read=lambda _: before)
    for refusal in outcome.refused:
        context.warnings.append(f"{refusal.path}: {refusal.reason}")
    if not outcome.changes:
        return tree
    return cst.parse_module(outcome.changes[0].after)


def _diagnoser(path: str, data: bytes) -> _Diagnose:
    # Imported late: LibCST imports every command of a package just to list them.
    from kvlint.config import load_config
    from kvlint.engine import diagnoser, findings_or_raise
    from kvlint.registry import selected_for_fixing
    from kvlint.source.display import Target

    config = selected_for_fixing(load_config(path), unsafe=True)
    report = diagnoser((Target(path, path),), config, base={path: data}, jobs=1)
    return lambda overlay: findings_or_raise(report(overlay))


def _verifier(path: str, data: bytes) -> Verify:
    from kvlint.analysis.verification import unintended
    from kvlint.config import load_config

    base, config = {path: data}, load_config(path)
    return lambda plan, before, after: unintended(plan, {**base, **before}, {**base, **after}, config)
