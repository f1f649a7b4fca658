"""Sticky-terminal: where the early return goes, what it looks like, and when it is refused."""

from __future__ import annotations

import pytest

from kvlint.fixing.edits import apply_plan
from kvlint.fixing.refusals import EditRefused

from .plans import PATH, edited, sticky, text

CASES = {
    "plain body": (
        2,
        """
        class Manager:
            def update(self, room, status):
                self.status[room] = status
        """,
        """
        class Manager:
            def update(self, room, status):
                # A stored terminal status is final.
                if self.status.get(room) in (Poll.Failed, Poll.Success):
                    return
                self.status[room] = status
        """,
    ),
    "docstring, then a comment": (
        1,
        '''
        def update(self, room, status):
            """Write.

            Twice.
            """

            # why
            self.status[room] = status
        ''',
        '''
        def update(self, room, status):
            """Write.

            Twice.
            """
            # A stored terminal status is final.
            if self.status.get(room) in (Poll.Failed, Poll.Success):
                return

            # why
            self.status[room] = status
        ''',
    ),
    "docstring only": (
        1,
        '''
        def update(self, room, status):
            """Write."""
        ''',
        '''
        def update(self, room, status):
            """Write."""
            # A stored terminal status is final.
            if self.status.get(room) in (Poll.Failed, Poll.Success):
                return
        ''',
    ),
    "only super": (
        1,
        """
        def update(self, room, status):
            super().update(room, status)
        """,
        """
        def update(self, room, status):
            # A stored terminal status is final.
            if self.status.get(room) in (Poll.Failed, Poll.Success):
                return
            super().update(room, status)
        """,
    ),
    "the lock is the whole body": (
        1,
        '''
        def update(self, room, status):
            """Write."""
            with self.lock:
                # why
                self.status[room] = status
        ''',
        '''
        def update(self, room, status):
            """Write."""
            with self.lock:
                # A stored terminal status is final.
                if self.status.get(room) in (Poll.Failed, Poll.Success):
                    return
                # why
                self.status[room] = status
        ''',
    ),
    "more than a lock": (
        1,
        """
        def update(self, room, status):
            with self.lock:
                self.status[room] = status
            self.wake()
        """,
        """
        def update(self, room, status):
            # A stored terminal status is final.
            if self.status.get(room) in (Poll.Failed, Poll.Success):
                return
            with self.lock:
                self.status[room] = status
            self.wake()
        """,
    ),
    "one-line lock inside a lock": (
        1,
        """
        async def update(self, room, status):
          async with self.order:
            with self.lock: self.status[room] = status  # both
        """,
        """
        async def update(self, room, status):
          async with self.order:
            with self.lock:
              # A stored terminal status is final.
              if self.status.get(room) in (Poll.Failed, Poll.Success):
                return
              self.status[room] = status  # both
        """,
    ),
    "async, decorated, answers with a truth value": (
        3,
        """
        class Manager:
            @traced(
                "update"
            )
            async def update(self, room, status) -> bool:
                def same(one):
                    return one is status
                self.status[room] = status
                return True
        """,
        """
        class Manager:
            @traced(
                "update"
            )
            async def update(self, room, status) -> bool:
                # A stored terminal status is final.
                if self.status.get(room) in (Poll.Failed, Poll.Success):
                    return False
                def same(one):
                    return one is status
                self.status[room] = status
                return True
        """,
    ),
    "answers with other values": (
        1,
        """
        def update(self, room, status):
            if not room: return False
            self.status[room] = status
            return status
        """,
        """
        def update(self, room, status):
            # A stored terminal status is final.
            if self.status.get(room) in (Poll.Failed, Poll.Success):
                return
            if not room: return False
            self.status[room] = status
            return status
        """,
    ),
    "one line, tabs": (
        2,
        """
        class Manager:
        \tdef update(self, room, status): self.status[room] = status  # tiny
        """,
        """
        class Manager:
        \tdef update(self, room, status):
        \t\t# A stored terminal status is final.
        \t\tif self.status.get(room) in (Poll.Failed, Poll.Success):
        \t\t\treturn
        \t\tself.status[room] = status  # tiny
        """,
    ),
    "one line with a docstring": (
        1,
        """
        def update(self, room, status): "Write."; self.status[room] = status; self.wake()
        """,
        """
        def update(self, room, status):
            "Write."
            # A stored terminal status is final.
            if self.status.get(room) in (Poll.Failed, Poll.Success):
                return
            self.status[room] = status; self.wake()
        """,
    ),
    "scope declarations stay first": (
        1,
        """
        def update(self, room, status):
            global writes
            self.status[room] = status
        """,
        """
        def update(self, room, status):
            global writes
            # A stored terminal status is final.
            if self.status.get(room) in (Poll.Failed, Poll.Success):
                return
            self.status[room] = status
        """,
    ),
    "nested, in blocks of several widths": (
        5,
        """
        if True:
          class Manager:
              def build(self):
                if self.on:
                    def update(room, status):
                       self.status[room] = status
        """,
        """
        if True:
          class Manager:
              def build(self):
                if self.on:
                    def update(room, status):
                       # A stored terminal status is final.
                       if self.status.get(room) in (Poll.Failed, Poll.Success):
                          return
                       self.status[room] = status
        """,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_early_return(name: str) -> None:
    line, before, after = CASES[name]
    assert edited(text(before), sticky(line)) == text(after)


def test_definition_is_found_by_its_decorators_and_its_qualified_name() -> None:
    source = "class M:\n    @one\n    @two\n    def update(self, room, status):\n        self.s = status\n"
    edits = {edited(source, sticky(line, "M.update")) for line in (2, 3, 4)}
    assert len(edits) == 1


def test_one_terminal_needs_no_tuple() -> None:
    source = "def update(self, room, status):\n    self.s = status\n"
    after = edited(source, sticky(1, stored="self.s", terminals=("Poll.Failed",)))
    assert "    if self.s == Poll.Failed:\n        return\n" in after


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("x = 1\n", "no definition of update"),
        ("", "no statement stands at line 1"),
        ("def other(self):\n    pass\n", "no definition of update"),
        ("def update(:\n    pass\n", "does not parse"),
        ("def update(self):\n    pass\0\n", "does not parse"),
    ],
)
def test_text_that_changed_meanwhile_is_refused(source: str, reason: str) -> None:
    with pytest.raises(EditRefused, match=reason) as refusal:
        apply_plan(PATH, source.encode(), sticky(1))
    assert refusal.value.path == PATH


@pytest.mark.parametrize("stored", ["self.(", "x: pass\nif y", "a\nb"])
def test_text_that_is_no_expression_is_refused(stored: str) -> None:
    with pytest.raises(EditRefused, match="plan's text"):
        apply_plan(PATH, b"def update(self):\n    pass\n", sticky(1, stored=stored))
