import pytest

from kvlint.protocol import is_abort_name, is_failure_name, is_receive_name, is_success_name, words_of


@pytest.mark.parametrize(
    "name", ["Failed", "FAILED", "failed", "Failure", "ERROR", "Aborted", "Cancelled", "TimedOut", "TIMED_OUT"]
)
def test_failures(name: str) -> None:
    assert is_failure_name(name)
    assert not is_success_name(name)


@pytest.mark.parametrize("name", ["Success", "SUCCESS", "Done", "COMPLETED", "Finished", "TRANSFERRED"])
def test_successes(name: str) -> None:
    assert is_success_name(name)
    assert not is_failure_name(name)


@pytest.mark.parametrize("name", ["ENCODER_DONE", "Failing", "Transferring", "WaitingForInput", "FailedOver", ""])
def test_a_whole_name_is_compared_and_nothing_still_going_on_is_terminal(name: str) -> None:
    assert not is_failure_name(name)
    assert not is_success_name(name)


@pytest.mark.parametrize(
    "name", ["ABORT", b"ABORT", "_handle_abort_notification", "KVAbortReq", "cancel_transfer", "on_abort"]
)
def test_aborts(name: str | bytes) -> None:
    assert is_abort_name(name)


@pytest.mark.parametrize("name", ["ABORT_ACK", "aborted_ack", b"ABORT_ACK", "AbortResponse", "laboratory", "", b"\xff"])
def test_acknowledgements_and_lookalikes_are_no_aborts(name: str | bytes) -> None:
    assert not is_abort_name(name)


def test_receives() -> None:
    assert is_receive_name("recv_multipart")
    assert is_receive_name("receive")
    assert not is_receive_name("receiver_table")


def test_words() -> None:
    assert words_of("KVAbortReq_v2_done") == ("kv", "abort", "req", "v", "done")
