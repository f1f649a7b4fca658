"""The words that give a status protocol away: what failures, successes, aborts and receives are called.

Names alone prove nothing; the analysis asks these questions first and then
looks at what the code does.  Every list is closed: a member counts only if its
whole name, case and underscores aside, is in it (``ENCODER_DONE`` is no ``DONE``),
and a word for something still going on (``Failing``, ``Transferring``) is in none.
"""

from __future__ import annotations

import re

#: Terminal members that mean the transfer did not arrive.  The spellings are
#: those met in SGLang's backends and their forks, in its multimodal
#: disaggregation and in other engines' connectors.
FAILURE_WORDS: frozenset[str] = frozenset(
    {
        "failed",
        "fail",
        "failure",
        "error",
        "errored",
        "aborted",
        "cancelled",
        "canceled",
        "timed_out",
        "timeout",
        "expired",
    }
)

#: Terminal members that mean the transfer arrived.
SUCCESS_WORDS: frozenset[str] = frozenset(
    {
        "success",
        "succeeded",
        "successful",
        "done",
        "complete",
        "completed",
        "finished",
        "transferred",
    }
)

#: Words by which a message tag or a handler asks for a transfer to be given up.
ABORT_WORDS: frozenset[str] = frozenset(
    {"abort", "aborts", "aborted", "aborting", "cancel", "cancels", "cancelled", "canceled", "cancellation"}
)

#: Words that turn an abort word into the answer to an abort.
ACKNOWLEDGEMENT_WORDS: frozenset[str] = frozenset(
    {"ack", "acks", "acked", "acknowledge", "acknowledged", "acknowledgement", "reply", "response"}
)

#: Words in the names of calls that wait for a message from outside.
RECEIVE_WORDS: frozenset[str] = frozenset({"recv", "receive", "recvfrom", "recvmsg"})

#: Words in the names of functions that end the whole backend: nobody waits for a room afterwards.
SHUTDOWN_WORDS: frozenset[str] = frozenset(
    {"shutdown", "teardown", "close", "stop", "destroy", "del", "exit", "reset", "terminate"}
)

# A capital starts a word after a small letter, and the last capital of a run
# starts the word that follows it: ``KVAbortReq`` is KV, Abort, Req.
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def normalised(name: str) -> str:
    """``name`` without its case and underscores, the form in which members are compared."""
    return name.replace("_", "").lower()


_FAILURES = frozenset(map(normalised, FAILURE_WORDS))
_SUCCESSES = frozenset(map(normalised, SUCCESS_WORDS))


def is_failure_name(name: str) -> bool:
    """Whether a status member of this name is a terminal failure."""
    return normalised(name) in _FAILURES


def is_success_name(name: str) -> bool:
    """Whether a status member of this name is a terminal success."""
    return normalised(name) in _SUCCESSES


def words_of(identifier: str) -> tuple[str, ...]:
    """The words of a snake_case or CamelCase identifier, in lower case and in order."""
    return tuple(word.lower() for word in _WORD.findall(identifier))


def is_abort_name(identifier: str | bytes) -> bool:
    """Whether a function, class or message tag of this name asks for an abort.

    ``_handle_abort_notification`` and ``b"ABORT"`` do; an acknowledgement
    (``ABORT_ACK``, ``aborted_ack``) answers one and does not.
    """
    text = identifier.decode("latin-1") if isinstance(identifier, bytes) else identifier
    words = frozenset(words_of(text))
    return bool(words & ABORT_WORDS) and not words & ACKNOWLEDGEMENT_WORDS


def is_receive_name(identifier: str) -> bool:
    """Whether a call of this name (``recv_multipart``, ``receive``) waits for a message."""
    return not RECEIVE_WORDS.isdisjoint(words_of(identifier))
