"""``kvlint inspect`` on the demo's backend, whose every line can be checked by reading it."""

from __future__ import annotations

import re
from pathlib import Path

import kvlint

from .inspecting import document_of, line_of, section, text_of


def test_the_enum_and_the_class_that_keeps_it(demo_folder: Path) -> None:
    base = demo_folder / "demo" / "base.py"
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


def test_the_table(demo_folder: Path) -> None:
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


def test_the_letters_stand_below_each_other(demo_folder: Path) -> None:
    lines = text_of("demo/base.py").splitlines()
    first = next(index for index, line in enumerate(lines) if line.strip().startswith("stored "))
    header, *rows = (
        line[: line.find("  ", 36)] if line.find("  ", 36) > 0 else line for line in lines[first : first + 7]
    )
    columns = [position for position, letter in enumerate(header) if letter in "FBWTS"]
    assert len(columns) == 5
    assert all(row[column] in "-FBWTS" for row in rows for column in columns)


def test_threads_and_what_they_write(demo_folder: Path) -> None:
    backend = demo_folder / "demo" / "backend.py"
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


def test_the_inherited_writer_is_cited_with_its_table(demo_folder: Path) -> None:
    line = line_of(demo_folder / "demo" / "base.py", "def update_status")
    assert (
        f"writer CommonManager.update_status demo/base.py:{line} -:-BWTS F:FBWTS B:FBWTS W:FWWTS T:FTTTS S:FSSSS"
        in section(text_of("demo/backend.py"), "RdmaManager  :")
    )


def test_every_removal_has_a_verdict(demo_folder: Path) -> None:
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


def test_which_thread_touches_which_dict(demo_folder: Path) -> None:
    assert section(text_of("demo/backend.py"), "Dicts of RdmaManager") == [
        "scheduler listener worker",
        "request_status rwd rw- rw-",
        "req_to_decode_prefix_len --d -wd --d",
        "transfer_infos --d -wd r-d",
    ]


def test_the_drop_is_not_excused(demo_folder: Path) -> None:
    (backend,) = document_of("demo/backend.py")["files"]
    (drop,) = backend["drops"]
    path = demo_folder / "demo" / "backend.py"
    assert drop["worker"] == "RdmaManager.transfer_worker"
    assert drop["spot"]["line"] == line_of(path, "its chunk is dropped") + 1
    assert drop["statuses"] == ["Bootstrapping", "WaitingForInput", "Transferring"]
    assert "transfer_infos" in drop["causes"]
    assert not drop["excused"]
    pop = line_of(path, "# The decode side frees its pages") + 1
    assert f"demo/backend.py:{pop}" in drop["why"]
    assert "not excused: a removal does not imply that the room has ended: " in text_of("demo/backend.py")


def test_writers_stand_at_the_top_of_the_document(demo_folder: Path) -> None:
    document = document_of("demo")
    (writer,) = document["writers"]
    line = line_of(demo_folder / "demo" / "base.py", "def update_status")
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
