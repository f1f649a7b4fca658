"""Defer-abort-cleanup: the statement goes, every comment and every other statement stays."""

from __future__ import annotations

import pytest

from kvlint.fixing.edits import apply_plan
from kvlint.fixing.refusals import EditRefused

from .plans import PATH, drop, edited, place, text

CASES = {
    "comments move to the statement below": (
        """
        def abort(self, room):
            self.fail(room)

            # tidy
            @self.infos.pop(room, None)  # at once
            self.wake()
        """,
        """
        def abort(self, room):
            self.fail(room)

            # tidy
            # at once
            self.wake()
        """,
    ),
    "comments move to the end of the block": (
        """
        def abort(self, room):
            if room in self.infos:
                self.fail(room)
                # tidy
                @self.infos.pop(
                    room,
                    None,
                )
                # later
            self.wake()
        """,
        """
        def abort(self, room):
            if room in self.infos:
                self.fail(room)
                # tidy
                # later
            self.wake()
        """,
    ),
    "the block must not become empty": (
        """
        def abort(self, room):
            if room in self.infos:
                # tidy
                @del self.infos[room]  # at once
            self.wake()
        """,
        """
        def abort(self, room):
            if room in self.infos:
                # tidy
                pass  # at once
            self.wake()
        """,
    ),
    "one-line block": (
        """
        def abort(self, room):
            if room in self.infos: @self.infos.pop(room)  # tidy
        """,
        """
        def abort(self, room):
            if room in self.infos: pass  # tidy
        """,
    ),
    "last of its line": (
        """
        def abort(self, room):
            self.fail(room); @self.rooms.discard(room)  # tidy
        """,
        """
        def abort(self, room):
            self.fail(room)  # tidy
        """,
    ),
    "first of its line": (
        """
        def abort(self, room):
            if room in self.infos: @self.rooms.remove(room); self.fail(room)
        """,
        """
        def abort(self, room):
            if room in self.infos: self.fail(room)
        """,
    ),
    "above a compound statement": (
        """
        def abort(rooms):
            # tidy
            @rooms.clear()
            # then
            if rooms:
                pass
        """,
        """
        def abort(rooms):
            # tidy
            # then
            if rooms:
                pass
        """,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_removal_goes(name: str) -> None:
    before, after = CASES[name]
    marked = text(before)
    assert edited(marked.replace("@", ""), drop(*place(marked, "@"))) == text(after)


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("info = self.infos.pop(room)", "more than remove"),
        ("return self.infos.pop(room)", "more than remove"),
        ("log(self.infos.pop(room))", "more than remove"),
        ("if self.infos.pop(room): pass", "more than remove"),
        ("del self.infos[room], self.lens[room]", "more than one"),
        ("pass", "no removal"),
    ],
)
def test_anything_but_a_plain_removal_is_refused(statement: str, reason: str) -> None:
    with pytest.raises(EditRefused, match=reason):
        apply_plan(PATH, f"def abort(self, room):\n    {statement}\n".encode(), drop(2, 5))


@pytest.mark.parametrize(
    "loop",
    [
        "while self.infos:\n        @self.infos.popitem()",
        "while len(self.infos) > 3:\n        if old:\n            @del self.infos[oldest(self)]",
        "while infos: @infos.popitem()",
        "while True:\n        if not self.infos: break\n        @self.infos.popitem()",
    ],
)
def test_a_loop_that_waits_for_the_removal_is_refused(loop: str) -> None:
    marked = f"def abort(self, infos):\n    {loop}\n"
    with pytest.raises(EditRefused, match="would never end"):
        apply_plan(PATH, marked.replace("@", "").encode(), drop(*place(marked, "@")))


@pytest.mark.parametrize("loop", ["while self.running:", "while True:", "for room in list(self.infos):"])
def test_a_loop_with_another_end_is_none_that_waits(loop: str) -> None:
    marked = f"def abort(self):\n    {loop}\n        room = self.next()\n        @self.infos.pop(room, None)\n"
    after = edited(marked.replace("@", ""), drop(*place(marked, "@")))
    assert after == f"def abort(self):\n    {loop}\n        room = self.next()\n"
