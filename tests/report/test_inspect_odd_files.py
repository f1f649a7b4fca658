"""``kvlint inspect`` on odd little files: what is not known, and files that have little or nothing to say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema

from kvlint.report.inspect_json import schema

from .inspecting import STATUSES, document_of, inspect, line_of, section, text_of, write

if TYPE_CHECKING:
    import pytest

# -- what is not known ----------------------------------------------------------------


def test_a_base_that_cannot_be_found(demo_folder: Path) -> None:
    (demo_folder / "demo" / "base.py").unlink()
    text = text_of("demo/backend.py")
    (told,) = [line for line in section(text, "Not decided") if "CommonManager" in line]
    line = line_of(demo_folder / "demo" / "backend.py", "class RdmaManager")
    assert told.startswith(f"base :{line} ")
    assert told.endswith("base of RdmaManager, was not found: its methods are unknown, nothing is guessed")
    assert "Removals" not in text
    (file,) = document_of("demo/backend.py")["files"]
    assert {item["kind"] for item in file["undecided"]} == {"base"}
    assert file["classes"] == []


def test_cells_and_writes_that_cannot_be_told(demo_folder: Path) -> None:
    write(
        demo_folder / "a.py",
        STATUSES
        + """
import elsewhere

class Manager:
    def __init__(self):
        self.request_status = {}

    def update_status(self, room, status: Poll):
        if status == Poll.Waiting and elsewhere.mix(self.request_status):
            status = elsewhere.choose(self.request_status.get(room), status)
        self.request_status[room] = status

    def guess(self, room):
        self.update_status(room, elsewhere.guess())
""",
    )
    document = document_of("a.py")
    (writer,) = document["writers"]
    assert writer["undecided"] > 0
    assert writer["table"].count("?") == writer["undecided"]
    unknown = [cell for row in writer["cells"].values() for cell in row.values() if cell["outcomes"] is None]
    assert len(unknown) == writer["undecided"]
    text = text_of("a.py")
    told = section(text, "Not decided")
    assert any(line.startswith("table ") and "of 12 cells of Manager.update_status" in line for line in told)
    assert any(line.startswith("write ") and "Manager.guess" in line for line in told)
    assert "scheduler not known :" in "\n".join(section(text, "Writes to request_status"))


def test_an_enum_without_a_failure(demo_folder: Path) -> None:
    write(
        demo_folder / "a.py",
        """\
        from enum import Enum

        class TransferStatus(Enum):
            WAITING = "waiting"
            DONE = "done"

        class Manager:
            def __init__(self):
                self.request_status = {}

            def update_status(self, room, status: TransferStatus):
                self.request_status[room] = status
        """,
    )
    assert section(text_of("a.py"), "Status enum TransferStatus") == [
        "W WAITING 'waiting' live",
        "D DONE 'done' success",
        "no member is a failure: nothing can be said of failures that get lost",
    ]


def test_a_writer_that_is_sticky_raises_or_loses_a_failure(demo_folder: Path) -> None:
    write(
        demo_folder / "a.py",
        STATUSES
        + """
class Manager:
    def __init__(self):
        self.request_status = {}

    def update_status(self, room, status: Poll):
        current = self.request_status.get(room)
        if current in (Poll.Failed, Poll.Done):
            return
        if current is None and status == Poll.Failed:
            raise ValueError(room)
        self.request_status[room] = max(current or Poll.Failed, status)
""",
    )
    rows = section(text_of("a.py"), "Writer Manager.update_status")
    assert rows[0] == "-:-!WD F:FFF W:WWD D:DDD"
    assert rows[2:] == [
        "- nothing -! W D created by W D; may raise on F",
        "F Failed F F F final",
        "W Waiting W W D loses F",
        "D Done D D D final",
    ]


def test_a_status_kept_in_a_record(demo_folder: Path) -> None:
    write(
        demo_folder / "a.py",
        STATUSES
        + """
class Session:
    def __init__(self):
        self.status = Poll.Waiting

def finish(session, ok):
    if ok:
        session.status = Poll.Done
    else:
        session.status = Poll.Failed
""",
    )
    text = text_of("a.py")
    assert [re.sub(":[0-9]+", ":N", line) for line in section(text, "Writes to the attribute status of records")] == [
        "scheduler Waiting :N",
        "Done :N",
        "Failed :N",
    ]
    (file,) = document_of("a.py")["files"]
    assert {write["kind"] for write in file["writes"]} == {"attribute"}


def test_helpers_that_conclude_and_hand_on(demo_folder: Path) -> None:
    write(
        demo_folder / "a.py",
        STATUSES
        + """
class Manager:
    def __init__(self):
        self.request_status = {}

    def check_status(self, room):
        status = self.request_status.get(room)
        return status

    def is_failed(self, room):
        return self.request_status.get(room) == Poll.Failed

    def update_status(self, room, status: Poll):
        self.request_status[room] = status

    def conclude(self, room, status: Poll):
        self.update_status(room, status)

    def fail(self, room):
        self.conclude(room, Poll.Failed)

    def give_up(self, room):
        self.fail(room)

    def reopen(self, room):
        self.update_status(room, Poll.Waiting)
        self.fail(room)
""",
    )
    lines = section(text_of("a.py"), "Manager  :")
    assert [line.split(" :")[0] for line in lines] == [
        "writer update_status",
        "hands on conclude",
        "reader check_status",
        "concludes fail",
        "concludes give_up",
    ]
    assert lines[-1].endswith("writes Failed")
    (file,) = document_of("a.py")["files"]
    (passed,) = [write for write in file["writes"] if write["passed_on"]]
    assert passed["function"] == "Manager.conclude"


# -- files that have little or nothing to say --------------------------------------------


def test_files_without_a_protocol(demo_folder: Path) -> None:
    write(demo_folder / "plain.py", "print()\n")
    write(demo_folder / "word.py", "def update_status(room, status):\n    failed = success = status\n")
    assert text_of("plain.py", "word.py") == "plain.py: no status protocol\nword.py: no status protocol\n"
    document = document_of("plain.py", "demo")
    assert document["without_protocol"] == ["plain.py"]
    assert [file["path"] for file in document["files"]] == ["demo/backend.py", "demo/base.py"]
    assert "plain.py" not in text_of(".")


def test_a_folder_without_a_protocol(demo_folder: Path) -> None:
    (demo_folder / "empty").mkdir()
    write(demo_folder / "empty" / "a.py", "print()\n")
    result = inspect("empty")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "No file speaks of a status protocol.\n"
    assert document_of("empty")["files"] == []


def test_a_file_that_only_mentions_statuses(demo_folder: Path) -> None:
    write(
        demo_folder / "demo" / "poll.py",
        "from .base import Poll\n\ndef ended(s):\n    return s in (Poll.Failed, Poll.Success)\n",
    )
    assert text_of("demo/poll.py") == "demo/poll.py: mentions Poll, keeps and writes no status\n"


def test_a_file_that_cannot_be_parsed_is_a_warning(demo_folder: Path) -> None:
    write(demo_folder / "demo" / "bad.py", STATUSES + "update_status(\n")
    result = inspect("demo/bad.py")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "warning: demo/bad.py: cannot be parsed" in result.stderr


def test_a_path_that_does_not_exist(demo_folder: Path) -> None:
    assert inspect("nowhere").exit_code == 2


def test_the_schema_is_one_and_closed() -> None:
    document = schema()
    jsonschema.Draft202012Validator.check_schema(document)
    for name, part in document["$defs"].items():
        if "properties" in part:
            assert part["additionalProperties"] is False, name
            assert sorted(part["required"]) == sorted(part["properties"]), name


def test_colour_changes_no_text(demo_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = text_of("demo")
    monkeypatch.setenv("FORCE_COLOR", "1")
    painted = text_of("demo")
    assert "\x1b[1;31munsafe\x1b[0m" in painted
    assert re.sub("\x1b\\[[0-9;]*m", "", painted) == plain
