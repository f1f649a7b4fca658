"""What an expression came to is recalled only where it would come to the same again."""

from __future__ import annotations

import os
import textwrap
from collections import Counter
from pathlib import Path

import pytest

import kvlint
from kvlint.analysis import ir
from kvlint.analysis.evaluate import Evaluator
from kvlint.analysis.facts import facts_of
from kvlint.analysis.frames import Frame
from kvlint.analysis.memory import Outcomes
from kvlint.analysis.recall import Recaller
from kvlint.analysis.states import State
from kvlint.config import Config
from kvlint.semantics.world import World

from .small_backends import PROTOCOL

RULES = Path(__file__).parents[2] / "fixtures" / "rules"


def test_recalling_changes_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    recalled = kvlint.check([str(RULES)], jobs=1)
    monkeypatch.setattr(Recaller, "evaluated", Evaluator.evaluate)
    assert recalled
    assert kvlint.check([str(RULES)], jobs=1) == recalled


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
                changed = self.request_status.pop(chunk.room, None)
                if not known:
                    continue
                self.update_status(chunk.room, Poll.Done)
        """,
        tmp_path,
        monkeypatch,
    )
    states = len(ENDS)
    assert evaluated["unread(chunk.size)"] == states
    assert evaluated["chunk.room in self.infos"] == states
    # A call that changes the state is made from each, with the room known and unknown.
    assert evaluated["self.request_status.pop(chunk.room, None)"] == 2 * states


#: A round starts from each status, from none, and from one that is no member.
ENDS = ("Failed", "Waiting", "Transferring", "Done", "absent", "undecided")


def evaluations(body: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each expression of ``worker`` was evaluated, by its text."""
    text = PROTOCOL + textwrap.indent(textwrap.dedent(body), "    ")
    path = folder / "backend.py"
    path.write_text(text, encoding="utf-8")
    counted: Counter[str] = Counter()
    evaluate = Evaluator.evaluate

    def counting(self: Evaluator, expression: ir.Expression, state: State, frame: Frame) -> Outcomes:
        if getattr(frame.node, "name", None) == "worker":
            counted[_text_at(text, expression)] += 1
        return evaluate(self, expression, state, frame)

    monkeypatch.setattr(Evaluator, "evaluate", counting)
    assert facts_of(os.path.abspath(path), World(Config(folder=str(folder)))).workers
    return counted


def _text_at(text: str, expression: ir.Expression) -> str:
    import ast

    return ast.get_source_segment(text, expression.at) or ""
