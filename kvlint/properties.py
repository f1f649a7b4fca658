"""The properties that ``kvlint explore`` checks, and which rule finds in the source what breaks them in a schedule."""

from __future__ import annotations

PINNED_ROOM = "pinned-room"
STUCK_UNTIL_TIMEOUT = "stuck-until-timeout"
OVERWRITTEN_TERMINAL = "overwritten-terminal"
THREAD_DEATH = "thread-death"
RESURRECTED_ROOM = "resurrected-room"
LOST_FAILURE = "lost-failure"
LEAKED_RECORD = "leaked-record"

#: What each of them says, in the order in which they are listed.
PROPERTIES = {
    PINNED_ROOM: "no dispatched room is left without an end",
    STUCK_UNTIL_TIMEOUT: "no room waits for a timeout of the scheduler to end it",
    OVERWRITTEN_TERMINAL: "a stored Failed stays, and a stored Success is not replaced by a status that goes on",
    THREAD_DEATH: "no exception ends a worker or the listener, and none waits for a lock for ever",
    RESURRECTED_ROOM: "a cleared room stays away",
    LOST_FAILURE: "whoever polls Failed finds a reason for the client",
    LEAKED_RECORD: "nothing is kept of a cleared room",
}

#: The gravest first: what hangs a request before what ends it late or wrongly.
BY_GRAVITY = (
    PINNED_ROOM,
    THREAD_DEATH,
    STUCK_UNTIL_TIMEOUT,
    LOST_FAILURE,
    OVERWRITTEN_TERMINAL,
    RESURRECTED_ROOM,
    LEAKED_RECORD,
)

#: Rule → the properties that its findings break, the likeliest first. A code may be that of a rule still to come.
_BROKEN_BY = {
    "KVL001": (OVERWRITTEN_TERMINAL, PINNED_ROOM),
    "KVL002": (PINNED_ROOM,),
    "KVL003": (PINNED_ROOM,),
    "KVL004": (OVERWRITTEN_TERMINAL,),
    "KVL005": (PINNED_ROOM, STUCK_UNTIL_TIMEOUT),
    "KVL006": (RESURRECTED_ROOM,),
    "KVL007": (THREAD_DEATH,),
    "KVL008": (OVERWRITTEN_TERMINAL,),
}


#: The title of the section of a rule's page that names them.
SECTION = "What kvlint explore shows"
_LAST_SECTION = "\n## References\n"


def broken_by(code: str) -> tuple[str, ...]:
    """The properties that a finding of the rule ``code`` breaks in some schedule; none for other rules."""
    return _BROKEN_BY.get(code, ())


def rules_of(name: str) -> tuple[str, ...]:
    """The codes of the rules whose findings break the property ``name``, in order."""
    return tuple(code for code, properties in _BROKEN_BY.items() if name in properties)


def with_properties(page: str, code: str) -> str:
    """The page of the rule ``code`` with a section on what its findings break, before the references."""
    names = broken_by(code)
    if not names:
        return page
    entries = "".join(f"* `{name}`: {PROPERTIES[name]}.\n" for name in names)
    which = "this property" if len(names) == 1 else "these properties"
    text = (
        f"\n## {SECTION}\n\n`kvlint explore` runs a backend under every schedule. What this rule finds can break "
        f"{which} there:\n\n{entries}"
    )
    before, title, references = page.partition(_LAST_SECTION)
    return f"{before}{text}{title}{references}"
