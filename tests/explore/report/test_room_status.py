from __future__ import annotations

import pytest
from msgspec.structs import replace

from kvlint.explore.report.room_status import Change, kind_of, room_changes, status_table
from kvlint.explore.results import Step, Witness

from .explorations import OVERWRITTEN, PINNED, WORKER, long_witness, step


def witness(*steps: Step, **values: object) -> Witness:
    return Witness("pinned-room", "", 0, (WORKER,), steps, {}, "", **values)  # type: ignore[arg-type]


def done(operation: str, observed: str, room: str = "7", label: str = "request_status") -> Step:
    return step(WORKER, (operation, label, room), observed, None)


def test_statuses_of_the_demo() -> None:
    changes = [
        Change(-1, "WaitingForInput"),
        Change(5, "Transferring"),
        Change(15, "Failed"),
        Change(20, "Transferring"),
    ]
    assert room_changes(PINNED) == {"7": changes}
    # Without being told, the first read shows what there was.
    assert room_changes(replace(PINNED, statuses={})) == {"7": changes}


def test_rooms_are_kept_apart_and_removals_seen() -> None:
    steps = (
        done("in", "False", "8"),
        done("[]=", "KVPoll.Bootstrapping", "7"),
        done("[]=", "<KVPoll.Failed: 0>", "8"),
        done("pop", "Failed", "8"),
        done("del", "None", "7"),
        done("setdefault", "Success", "7"),
        done("get", "None", "7"),
        done("get", "None", "9"),
        done("[]=", "1", "7"),
        done("clear", "None", ""),
    )
    assert room_changes(witness(*steps)) == {
        "8": [Change(-1, "absent"), Change(2, "Failed"), Change(3, "absent")],
        "7": [
            Change(1, "Bootstrapping"),
            Change(4, "absent"),
            Change(5, "Success"),
            Change(6, "absent"),
            Change(8, "1"),
            Change(9, "absent"),
        ],
        "9": [Change(-1, "absent")],
    }


@pytest.mark.parametrize(
    "told",
    [
        done("[]", "KeyError(7)"),
        done("in", "True"),
        done("len", "3", ""),
        done("update", "None", ""),
        done("[]=", "Failed", label="failure_records"),
    ],
)
def test_what_tells_no_status(told: Step) -> None:
    assert room_changes(witness(told)) == {}


def test_the_table_is_named_or_told_by_its_name_and_use() -> None:
    assert status_table(OVERWRITTEN) == "request_status"
    assert status_table(witness(done("in", "True", label="rooms"), status_table="rooms")) == "rooms"
    assert status_table(witness(done("in", "True", label="status[…]"), done("in", "True", label="infos"))) == ""
    assert set(room_changes(long_witness(rooms=3))) == {"7", "8", "9"}


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("Failed", "failed"),
        ("TimedOut", "failed"),
        ("Success", "success"),
        ("DONE", "success"),
        ("Transferring", "live"),
        ("3", "live"),
        ("absent", "absent"),
    ],
)
def test_what_statuses_mean(status: str, kind: str) -> None:
    assert kind_of(status) == Change(0, status).kind == kind
