import pytest

from kvlint.config import ProtocolOverride
from kvlint.source.prefilter import is_candidate, may_name_codes


@pytest.mark.parametrize(
    "data",
    [
        b"self.update_status(room, KVPoll.Failed)",
        b"if status == kv.TransferState.TIMED_OUT:",
        b"return TransferPoll.timed_out",
        b"case Status.TimedOut: pass",
        b"x=State.CANCELLED",
        b"return poll == KVPoll.Success",
        b"self.update_status(room, KVPoll.Transferring)",
        b"set_poll(\n    int(message[1]), KVPoll.WaitingForInput\n)",
        b"self.mark_status(room=room, status=pkg.TransferState.Sending)",
        b"self.request_status[bootstrap_room] = max(a, b)",
        b"self.request_status[room]=status",
        b"self._poll_by_room[room.id] = status",
        b"self.states[request_id] = new",
        b"x" * 1_000_000 + b"\nKVPoll.FAILED",
    ],
)
def test_candidates(data: bytes) -> None:
    assert is_candidate(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"logger.error('no')",
        b"self.failed = True",
        b"KVPoll.Failing",
        b"KVPoll.FailedOver",
        b"KVPoll.Transferring",
        b"KVPoll.Successor",
        b"Success",
        b"poll.success",
        b"self.update_status(room, status)",
        b"self.advance(room, KVPoll.Transferring)",
        b"self.update_status(room, KVPoll.transferring)",
        b"self.update_status(room)\nx = KVPoll.Transferring",
        b"status_of(" + b"x" * 101 + b" KVPoll.Transferring)",
        b"hidden_states[index] = content",
        b"conv_states[state_indices] = x",
        b"state['finished'] = True",
        b"status_map['a'] = 1",
        b"self.request_status[room] == status",
        b"self.table[room] = status",
        "KVPoll.Failed".encode("utf-16"),
    ],
)
def test_others(data: bytes) -> None:
    assert not is_candidate(data)


@pytest.mark.parametrize(
    ("override", "data"),
    [
        (ProtocolOverride(status_enum="pkg.Phase"), b"from pkg import Phase"),
        (ProtocolOverride(failure=("Phase.BROKEN",)), b"x = Phase.BROKEN"),
        (ProtocolOverride(success=("ARRIVED",)), b"x = Phase.ARRIVED"),
        (ProtocolOverride(opening=("NEW",)), b"x = Phase.NEW"),
        (ProtocolOverride(table="rooms"), b"self.rooms[x] = 1"),
        (ProtocolOverride(writer="set_phase"), b"self.set_phase(1)"),
        (ProtocolOverride(reader="phase_of"), b"self.phase_of(1)"),
        (ProtocolOverride(terminal_helpers=("give_up",)), b"self.give_up()"),
        (ProtocolOverride(room_tables=("peers",)), b"self.peers.pop(room)"),
        (ProtocolOverride(failure_recorder="note_failure"), b"self.note_failure(room)"),
    ],
)
def test_configured_names(override: ProtocolOverride, data: bytes) -> None:
    assert not is_candidate(data)
    assert is_candidate(data, (override,))
    assert not is_candidate(b"something_else", (override,))


def test_an_empty_override_changes_nothing() -> None:
    assert not is_candidate(b"x = 1", (ProtocolOverride(),))


def test_codes() -> None:
    assert may_name_codes(b"x = 1  # noqa: KVL001")
    assert not may_name_codes(b"KVLayout")
