"""The atomic-status edits as text: whole writers and single statements under a lock, the lock, single operations."""

from __future__ import annotations

import ast

import pytest

from kvlint.diagnostics import AtomicStatus, LockMaking
from kvlint.fixing.edits import apply_plan
from kvlint.fixing.refusals import EditRefused

from .plans import PATH, place, text

SOURCE = text(
    '''
    """A backend."""
    from __future__ import annotations

    import os
    import zlib
    from typing import Any


    class Manager:
        def __init__(self):
            self.status = {}  # room -> status
            self.other = 1

        def update(self, room, status):
            """Store it."""
            # Ends are final.
            if room in self.status:
                return
            self.status[room] = status
            # That was it.

        def one_line(self, room): self.status[room] = 1

        def clear(self, room):
            if room: self.status.pop(room, None)
            self.status.pop(room, None); self.other = 2
            peers = self.peers[room]
    '''
)
MAKING = LockMaking(*place(SOURCE, "self.status = {}"), "self.lock = threading.RLock()", "import threading")


def applied(plan: AtomicStatus, source: str = SOURCE) -> str:
    after = apply_plan(PATH, source.encode(), plan).decode()
    ast.parse(after)
    return after


def refusal(plan: AtomicStatus, source: str = SOURCE) -> str:
    with pytest.raises(EditRefused) as error:
        apply_plan(PATH, source.encode(), plan)
    return error.value.reason


def writer(function: str = "update", making: LockMaking | None = None, source: str = SOURCE) -> AtomicStatus:
    return AtomicStatus(PATH, *place(source, f"def {function}("), "self.lock", function, making)


def test_a_writer_with_its_lock() -> None:
    after = applied(writer(making=MAKING))
    assert "import os\nimport threading\nimport zlib\n" in after
    assert text(
        """
                self.status = {}  # room -> status
                # Held while a status is decided on and stored.
                self.lock = threading.RLock()
                self.other = 1
        """
    ).replace("\n        ", "\n").lstrip() in after.replace("\n        ", "\n")
    assert after.index('"""Store it."""') < after.index("with self.lock:") < after.index("# Ends are final.")
    assert "            self.status[room] = status\n            # That was it.\n" in after


def test_a_writer_above_the_constructor() -> None:
    source = text(
        """
        class M:
            def update(self, r, s):
                a = 1
                self.t[r] = s

            def __init__(self):
                self.t = {}
        """
    )
    making = LockMaking(7, 9, "self.lock = threading.RLock()", None)
    after = applied(writer(making=making, source=source), source)
    assert after.splitlines()[-2:] == [
        "        # Held while a status is decided on and stored.",
        "        self.lock = threading.RLock()",
    ]


def test_the_lock_alone_at_the_end_of_a_file_without_a_line_end() -> None:
    source = "class M:\n    def __init__(self):\n        self.t = {}"
    making = LockMaking(3, 9, "self.lock = threading.RLock()", "import threading")
    after = applied(AtomicStatus(PATH, 3, 9, making=making), source)
    assert after.startswith("import threading\nclass M:\n")
    assert after.endswith("self.lock = threading.RLock()")


@pytest.mark.parametrize(
    ("head", "wanted"),
    [
        ("import zlib\n", "import threading\nimport zlib\n"),
        ("import os, sys\nfrom a import b\n", "import os, sys\nimport threading\nfrom a import b\n"),
        ('"""Doc."""\nfrom a import b\n', '"""Doc."""\nimport threading\nfrom a import b\n'),
        ("x = 1\nimport zlib\n", "import threading\nx = 1\nimport zlib\n"),
    ],
)
def test_where_the_import_goes(head: str, wanted: str) -> None:
    source = f"{head}class M:\n    def __init__(self):\n        self.t = {{}}\n"
    making = LockMaking(*place(source, "self.t = {}"), "self.lock = threading.RLock()", "import threading")
    assert applied(AtomicStatus(PATH, making.line, making.column, making=making), source).startswith(wanted)


def test_a_body_on_the_line_of_its_def() -> None:
    after = applied(writer("one_line"))
    assert "    def one_line(self, room):\n        with self.lock:\n            self.status[room] = 1\n" in after


def test_a_statement() -> None:
    line, column = place(SOURCE, "self.status.pop(room, None)\n")
    after = applied(AtomicStatus(PATH, line, column, "self.lock"))
    assert "        if room:\n            with self.lock:\n                self.status.pop(room, None)\n" in after


def test_a_single_operation_and_what_follows_it() -> None:
    line, column = place(SOURCE, "self.peers[room]")
    plan = AtomicStatus(
        PATH,
        line,
        column,
        old="self.peers[room]",
        new="self.peers.get(room)",
        after=("if peers is None:", "\treturn"),
    )
    assert applied(plan).endswith(
        "        peers = self.peers.get(room)\n        if peers is None:\n            return\n"
    )
    assert "does not stand at" in refusal(plan, applied(plan))
    assert "does not stand at" in refusal(AtomicStatus(PATH, 99, 1, old="x", new="y"))
    line, column = place(SOURCE, "self.status.pop(room, None)\n")
    several = AtomicStatus(PATH, line, column, old="self.status.pop", new="self.status.get", after=("pass",))
    assert "no assignment stands alone" in refusal(several)


def test_a_second_time_is_refused() -> None:
    after = applied(writer())
    assert refusal(writer(source=after), after) == "the fix is there already"


def test_what_the_plan_does_not_expect() -> None:
    line, _ = place(SOURCE, "def update(")
    assert "no simple one any more" in refusal(AtomicStatus(PATH, line, 5, "self.lock"))
    line, column = place(SOURCE, "self.status.pop(room, None);")
    assert "shares its line" in refusal(AtomicStatus(PATH, line, column, "self.lock"))
    moved = LockMaking(1, 1, "self.lock = threading.RLock()", None)
    assert "no statement starts alone at 2:1" in refusal(
        AtomicStatus(PATH, 2, 1, making=LockMaking(2, 1, "x = 1", None)), "x = 0\n"
    )
    assert applied(AtomicStatus(PATH, 1, 1, making=moved), "x = 0\n").startswith("x = 0\n")
    empty = 'class M:\n    def update(self, r, s):\n        """Nothing."""\n'
    assert "does not start on a line of its own" in refusal(writer(source=empty), empty)
