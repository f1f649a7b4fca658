"""The questions of semgrep.yml as LibCST rules: what a linter costs that parses every file with LibCST."""

from __future__ import annotations

import libcst as cst
from fixit import LintRule

_LIVE = frozenset({"Bootstrapping", "WaitingForInput", "Transferring"})


class LiveStatusWritten(LintRule):
    """A live status may replace a stored failure."""

    MESSAGE = "A live status may replace a stored failure."

    def visit_Call(self, node: cst.Call) -> None:  # noqa: N802
        """Report ``update_status(room, KVPoll.Transferring)``."""
        match node:
            case cst.Call(
                func=cst.Attribute(attr=cst.Name(value="update_status")),
                args=[_, cst.Arg(value=cst.Attribute(attr=cst.Name(value=member)))],
            ) if member in _LIVE:
                self.report(node, self.MESSAGE)


class _InLoop(LintRule):
    """Knows how many ``while True`` loops are around."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0

    def visit_While(self, node: cst.While) -> None:  # noqa: N802
        """Go in."""
        self._depth += _is_endless(node)

    def leave_While(self, original_node: cst.While) -> None:  # noqa: N802
        """Come out."""
        self._depth -= _is_endless(original_node)


class ItemDropped(_InLoop):
    """A work item is dropped and nothing concludes its room."""

    MESSAGE = "A work item is dropped and nothing concludes its room."

    def visit_If(self, node: cst.If) -> None:  # noqa: N802
        """Report ``if room not in table: …; continue`` in an endless loop."""
        if not self._depth:
            return
        match node:
            case cst.If(
                test=cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.NotIn())]),
                body=cst.IndentedBlock(body=[*_, cst.SimpleStatementLine(body=[*_, cst.Continue()])]),
            ):
                self.report(node, self.MESSAGE)


class RoomRemoved(_InLoop):
    """A room is removed while its transfer may be live."""

    MESSAGE = "A room is removed while its transfer may be live."

    def visit_Call(self, node: cst.Call) -> None:  # noqa: N802
        """Report ``….transfer_infos.pop(room)`` in an endless loop."""
        if not self._depth:
            return
        match node:
            case cst.Call(func=cst.Attribute(value=cst.Attribute(attr=cst.Name(value=table)), attr=cst.Name("pop"))):
                if table.endswith("transfer_infos"):
                    self.report(node, self.MESSAGE)


def _is_endless(node: cst.While) -> bool:
    return isinstance(node.test, cst.Name) and node.test.value == "True"
