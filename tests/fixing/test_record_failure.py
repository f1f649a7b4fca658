"""Record-failure: the store at the writer's head, alone and together with the early return."""

from __future__ import annotations

import pytest

from kvlint.fixing.edits import apply_plan
from kvlint.fixing.refusals import EditRefused

from .plans import PATH, edited, record, sticky, text


def test_failure_of_a_live_room_is_stored() -> None:
    before = """
        def update(self, room, status):
            with self.lock:
                self.status[room] = max(self.status[room], status)
        """
    after = """
        def update(self, room, status):
            with self.lock:
                if status == Poll.Failed and self.status.get(room) not in (
                    None,
                    Poll.Failed,
                    Poll.Success,
                ):
                    self.status[room] = Poll.Failed
                    return
                self.status[room] = max(self.status[room], status)
        """
    assert edited(text(before), record(1)) == text(after)


def test_writer_that_answers_says_that_the_failure_was_taken() -> None:
    source = (
        "def update(self, room, status):\n    if room: return False\n    self.status[room] = status\n    return True\n"
    )
    assert "        self.status[room] = Poll.Failed\n        return True\n" in edited(source, record(1))


def test_both_writer_edits_stand_together_and_neither_is_put_twice() -> None:
    source = b"def update(self, room, status):\n    self.status[room] = max(self.status[room], status)\n"
    both = apply_plan(PATH, apply_plan(PATH, source, sticky(1)), record(1))
    assert both.count(b"if ") == 2
    for plan in (sticky(1), record(1)):
        with pytest.raises(EditRefused, match="there already"):
            apply_plan(PATH, both, plan)
