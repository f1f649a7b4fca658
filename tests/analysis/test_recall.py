"""What an expression came to is recalled only where it would come to the same again."""

from __future__ import annotations

import ast
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from kvlint import engine
from kvlint.analysis import ir
from kvlint.analysis.evaluate import Evaluator
from kvlint.analysis.facts import facts_of
from kvlint.analysis.frames import Frame
from kvlint.analysis.memory import Outcomes
from kvlint.analysis.recall import Recaller
from kvlint.analysis.states import State
from kvlint.config import Config
from kvlint.diagnostics import Finding
from kvlint.semantics.world import World

from .small_backends import behind_the_protocol

if TYPE_CHECKING:
    import pytest

RULES = Path(__file__).parents[2] / "fixtures" / "rules"


def test_recalling_changes_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    recalled = findings()
    monkeypatch.setattr(Recaller, "evaluated", Evaluator.evaluate)
    assert recalled
    assert findings() == recalled


def findings() -> tuple[Finding, ...]:
    return engine.check([str(RULES)], Config(), jobs=1).findings


def test_one_evaluation_is_enough_for_states_that_differ_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluated = evaluations(
        """
        def worker(self):
            while True:
                chunk = self.chunks.get()
                known = chunk.room in self.infos
                unread(chunk.size)
                self.infos.pop(chunk.room, None)
                if not known:
                    continue
                self.update_status(chunk.room, Poll.Done)
        """,
        tmp_path,
        monkeypatch,
    )
    statuses = 5  # a round starts from each of the four members, and from none
    assert evaluated["chunk.room in self.infos"] == statuses
    # From here on there are twice as many states: the room is known or not.
    assert evaluated["unread(chunk.size)"] == statuses
    assert evaluated["not known"] == 2 * statuses
    # What changes the state cannot be recalled.
    assert evaluated["self.infos.pop(chunk.room, None)"] == 2 * statuses


def evaluations(body: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each expression of ``worker`` was evaluated, by its text."""
    text = behind_the_protocol(body)
    path = folder / "backend.py"
    path.write_text(text, encoding="utf-8")
    counted: Counter[str] = Counter()
    evaluate = Evaluator.evaluate

    def counting(self: Evaluator, expression: ir.Expression, state: State, frame: Frame) -> Outcomes:
        if getattr(frame.node, "name", None) == "worker":
            counted[_text_at(text, expression)] += 1
        return evaluate(self, expression, state, frame)

    monkeypatch.setattr(Evaluator, "evaluate", counting)
    assert facts_of(os.path.abspath(path), World(Config(folder=str(folder)))).drops
    return counted


def _text_at(text: str, expression: ir.Expression) -> str:
    return ast.get_source_segment(text, expression.at) or ""
