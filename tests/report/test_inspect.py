"""``kvlint inspect`` on the demo's backend, whose every line can be checked by reading it, and on odd little files."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

import kvlint
from kvlint.cli import cli
from kvlint.report.inspect_json import schema

STATUSES = """\
class Poll:
    Failed = 0
    Waiting = 1
    Done = 2
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    demo = Path(kvlint.__file__).with_name("demo_backend")
    (tmp_path / "demo").mkdir()
    for name in ("base.py", "backend.py"):
        (tmp_path / "demo" / name).write_bytes((demo / name).read_bytes())
    return tmp_path


def inspect(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["inspect", "--isolated", *arguments], catch_exceptions=False)


def text_of(*arguments: str) -> str:
    result = inspect(*arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def document_of(*arguments: str) -> Any:
    document = json.loads(text_of("--output-format", "json", *arguments))
    jsonschema.validate(document, schema(), cls=jsonschema.Draft202012Validator)
    return document


def line_of(path: Path, fragment: str) -> int:
    (number,) = [number for number, line in enumerate(path.read_text().splitlines(), 1) if fragment in line]
    return number


def section(text: str, title: str) -> list[str]:
    """The lines below a title, without their indentation and with single spaces."""
    block = text.split(f"\n  {title}", 1)[1].split("\n\n", 1)[0]
    return [re.sub(" +", " ", line.strip()) for line in block.splitlines()[1:]]


def write(path: Path, source: str) -> Path:
    path.write_text(textwrap.dedent(source))
    return path


# -- the demo's backend -----------------------------------------------------------


def test_the_enum_and_the_class_that_keeps_it(folder: Path) -> None:
    base = folder / "demo" / "base.py"
    text = text_of("demo/base.py")
    assert text.startswith("demo/base.py\n\n  Status enum Poll  :14\n")
    assert section(text, "Status enum Poll") == [
        "F Failed 0 failure",
        "B Bootstrapping 1 opening",
        "W WaitingForInput 2 live",
        "T Transferring 3 live",
        "S Success 4 success",
    ]
    assert f"  CommonManager  :{line_of(base, 'class CommonManager')}  keeps Poll per room in request_status\n" in text
    assert section(text, "CommonManager  :") == [
        f"writer update_status :{line_of(base, 'def update_status')} table below",
        f"reader check_status :{line_of(base, 'def check_status')}",
        f"recorder record_failure :{line_of(base, 'def record_failure')}",
    ]


def test_the_table(folder: Path) -> None:
    assert section(text_of("demo/base.py"), "Writer CommonManager.update_status") == [
        "-:-BWTS F:FBWTS B:FBWTS W:FWWTS T:FTTTS S:FSSSS",
        "stored F B W T S (written)",
        "- nothing - B W T S created by B W T S",
        "F Failed F B W T S replaced by B W T S",
        "B Bootstrapping F B W T S",
        "W WaitingForInput F W W T S",
        "T Transferring F T T T S",
        "S Success F S S S S",
    ]


def test_the_letters_stand_below_each_other(folder: Path) -> None:
    lines = text_of("demo/base.py").splitlines()
    first = next(index for index, line in enumerate(lines) if line.strip().startswith("stored "))
    header, *rows = (
        line[: line.find("  ", 36)] if line.find("  ", 36) > 0 else line for line in lines[first : first + 7]
    )
    columns = [position for position, letter in enumerate(header) if letter in "FBWTS"]
    assert len(columns) == 5
    assert all(row[column] in "-FBWTS" for row in rows for column in columns)


def test_threads_and_what_they_write(folder: Path) -> None:
    backend = folder / "demo" / "backend.py"
    text = text_of("demo/backend.py")
    starts = [
        line_of(backend, f"threading.Thread(target=self.{name}") for name in ("bootstrap_listener", "transfer_worker")
    ]
    assert section(text, "Threads") == [
        (
            f"listener RdmaManager.bootstrap_listener :{line_of(backend, 'def bootstrap_listener')} "
            f"receives messages, started :{starts[0]}"
        ),
        (
            f"worker RdmaManager.transfer_worker :{line_of(backend, 'def transfer_worker')} "
            f"takes items in a loop and concludes them, started :{starts[1]}"
        ),
    ]
    written = section(text, "Writes to request_status, by thread")
    assert [re.sub(":[0-9]+", ":N", line) for line in written] == [
        "listener Failed :N",
        "WaitingForInput :N",
        "worker Transferring :N :N",
        "Success :N",
        "Failed :N",
    ]
    assert section(text, "Abort handlers") == [
        (
            f":{line_of(backend, 'frames[0] == ABORT') + 1}-{line_of(backend, 'frames[0] != PEER') - 1} "
            "RdmaManager.bootstrap_listener it runs on the message tag ABORT"
        )
    ]


def test_the_inherited_writer_is_cited_with_its_table(folder: Path) -> None:
    line = line_of(folder / "demo" / "base.py", "def update_status")
    assert (
        f"writer CommonManager.update_status demo/base.py:{line} -:-BWTS F:FBWTS B:FBWTS W:FWWTS T:FTTTS S:FSSSS"
        in section(text_of("demo/backend.py"), "RdmaManager  :")
    )


def test_every_removal_has_a_verdict(folder: Path) -> None:
    document = document_of("demo")
    (backend,) = [file for file in document["files"] if file["path"] == "demo/backend.py"]
    sites = {
        (catalogue["table"], site["spot"]["path"], site["function"], site["verdict"], site["abort"] is not None)
        for catalogue in backend["removals"]
        for site in catalogue["sites"]
    }
    worker, listener = "RdmaManager.transfer_worker", "RdmaManager.bootstrap_listener"
    for table in ("transfer_infos", "req_to_decode_prefix_len"):
        assert (table, "demo/backend.py", worker, "safe", False) in sites
        assert (table, "demo/backend.py", listener, "unsafe", True) in sites
        assert any(site[:3] == (table, "demo/base.py", "CommonSender.clear") for site in sites)
    assert len(sites) == 7
    assert all(site["reason"] for catalogue in backend["removals"] for site in catalogue["sites"])
    text = text_of("demo/backend.py")
    assert "RdmaManager.bootstrap_listener (abort handler)" in text


def test_which_thread_touches_which_dict(folder: Path) -> None:
    assert section(text_of("demo/backend.py"), "Dicts of RdmaManager") == [
        "scheduler listener worker",
        "request_status rwd rw- rw-",
        "req_to_decode_prefix_len --d -wd --d",
        "transfer_infos --d -wd r-d",
    ]


def test_the_drop_is_not_excused(folder: Path) -> None:
    (backend,) = document_of("demo/backend.py")["files"]
    (drop,) = backend["drops"]
    path = folder / "demo" / "backend.py"
    assert drop["worker"] == "RdmaManager.transfer_worker"
    assert drop["spot"]["line"] == line_of(path, "its chunk is dropped") + 1
    assert drop["statuses"] == ["Bootstrapping", "WaitingForInput", "Transferring"]
    assert "transfer_infos" in drop["causes"]
    assert not drop["excused"]
    pop = line_of(path, "# The decode side frees its pages") + 1
    assert f"demo/backend.py:{pop}" in drop["why"]
    assert "not excused: a removal does not imply that the room has ended: " in text_of("demo/backend.py")


def test_writers_stand_at_the_top_of_the_document(folder: Path) -> None:
    document = document_of("demo")
    (writer,) = document["writers"]
    line = line_of(folder / "demo" / "base.py", "def update_status")
    assert {key: value for key, value in writer.items() if key != "cells"} == {
        "path": "demo/base.py",
        "line": line,
        "class": "CommonManager",
        "name": "update_status",
        "enum": "Poll",
        "attribute": "request_status",
        "judged": True,
        "table": "-:-BWTS F:FBWTS B:FBWTS W:FWWTS T:FTTTS S:FSSSS",
        "undecided": 0,
    }
    assert writer["cells"]["-"]["Failed"] == {"outcomes": ["-"], "raises": False}
    assert writer["cells"]["Failed"]["Transferring"] == {"outcomes": ["Transferring"], "raises": False}
    assert document["version"] == 1
    assert document["tool"] == {"name": "kvlint", "version": kvlint.__version__}
    assert [file["path"] for file in document["files"]] == ["demo/backend.py", "demo/base.py"]


# -- what is not known ----------------------------------------------------------------


def test_a_base_that_cannot_be_found(folder: Path) -> None:
    (folder / "demo" / "base.py").unlink()
    text = text_of("demo/backend.py")
    (told,) = [line for line in section(text, "Not decided") if "CommonManager" in line]
    line = line_of(folder / "demo" / "backend.py", "class RdmaManager")
    assert told.startswith(f"base :{line} ")
    assert told.endswith("base of RdmaManager, was not found: its methods are unknown, nothing is guessed")
    assert "Removals" not in text
    (file,) = document_of("demo/backend.py")["files"]
    assert {item["kind"] for item in file["undecided"]} == {"base"}
    assert file["classes"] == []


def test_cells_and_writes_that_cannot_be_told(folder: Path) -> None:
    write(
        folder / "a.py",
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


def test_an_enum_without_a_failure(folder: Path) -> None:
    write(
        folder / "a.py",
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


def test_a_writer_that_is_sticky_raises_or_loses_a_failure(folder: Path) -> None:
    write(
        folder / "a.py",
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


def test_a_status_kept_in_a_record(folder: Path) -> None:
    write(
        folder / "a.py",
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


def test_helpers_that_conclude_and_hand_on(folder: Path) -> None:
    write(
        folder / "a.py",
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


def test_files_without_a_protocol(folder: Path) -> None:
    write(folder / "plain.py", "print()\n")
    write(folder / "word.py", "def update_status(room, status):\n    failed = success = status\n")
    assert text_of("plain.py", "word.py") == "plain.py: no status protocol\nword.py: no status protocol\n"
    document = document_of("plain.py", "demo")
    assert document["without_protocol"] == ["plain.py"]
    assert [file["path"] for file in document["files"]] == ["demo/backend.py", "demo/base.py"]
    assert "plain.py" not in text_of(".")


def test_a_folder_without_a_protocol(folder: Path) -> None:
    (folder / "empty").mkdir()
    write(folder / "empty" / "a.py", "print()\n")
    result = inspect("empty")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "No file speaks of a status protocol.\n"
    assert document_of("empty")["files"] == []


def test_a_file_that_only_mentions_statuses(folder: Path) -> None:
    write(
        folder / "demo" / "poll.py",
        "from .base import Poll\n\ndef ended(s):\n    return s in (Poll.Failed, Poll.Success)\n",
    )
    assert text_of("demo/poll.py") == "demo/poll.py: mentions Poll, keeps and writes no status\n"


def test_a_file_that_cannot_be_parsed_is_a_warning(folder: Path) -> None:
    write(folder / "demo" / "bad.py", STATUSES + "update_status(\n")
    result = inspect("demo/bad.py")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "warning: demo/bad.py: cannot be parsed" in result.stderr


def test_a_path_that_does_not_exist(folder: Path) -> None:
    assert inspect("nowhere").exit_code == 2


def test_the_schema_is_one_and_closed() -> None:
    document = schema()
    jsonschema.Draft202012Validator.check_schema(document)
    for name, part in document["$defs"].items():
        if "properties" in part:
            assert part["additionalProperties"] is False, name
            assert sorted(part["required"]) == sorted(part["properties"]), name


def test_colour_changes_no_text(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = text_of("demo")
    monkeypatch.setenv("FORCE_COLOR", "1")
    painted = text_of("demo")
    assert "\x1b[1;31munsafe\x1b[0m" in painted
    assert re.sub("\x1b\\[[0-9;]*m", "", painted) == plain
