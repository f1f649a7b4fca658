"""The opening-status edit as text: an early return for late writes, under the writer's lock if it has one."""

from __future__ import annotations

from kvlint.diagnostics import OpeningStatus

from .plans import PATH, STORED, edited, text


def opening(line: int, *members: str) -> OpeningStatus:
    return OpeningStatus(PATH, line, "update", "status", STORED, members)


def test_one_opening_status() -> None:
    source = "class M:\n    def update(self, room, status):\n        self.status[room] = status\n"
    assert edited(source, opening(2, "Poll.Opening")) == text(
        """
        class M:
            def update(self, room, status):
                # Only an opening status may create a room: a cleared one must not come back.
                if status != Poll.Opening and self.status.get(room) is None:
                    return
                self.status[room] = status
        """
    )


def test_several_under_a_lock_in_a_writer_that_answers() -> None:
    source = text(
        """
        class M:
            def update(self, room, status):
                with self.lock:
                    if room in self.status:
                        return False
                    self.status[room] = status
                    return True
        """
    )
    assert edited(source, opening(2, "Poll.Opening", "Poll.Ready")) == text(
        """
        class M:
            def update(self, room, status):
                with self.lock:
                    # Only an opening status may create a room: a cleared one must not come back.
                    if (
                        status not in (Poll.Opening, Poll.Ready)
                        and self.status.get(room) is None
                    ):
                        return False
                    if room in self.status:
                        return False
                    self.status[room] = status
                    return True
        """
    )
