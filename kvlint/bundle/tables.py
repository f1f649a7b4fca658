"""Names for the transition tables that occur in released backends, given by comparing contents."""

from __future__ import annotations

#: Notation by name: a row per stored status (``-``: no such room), a letter per written one (Failed, Bootstrapping,
#: WaitingForInput, Transferring, Success).  M1 loses failures, M2 and M3 let them be overwritten (M3 opens no room by
#: one), M4 keeps them, M5 lets no late write open a room besides.
KNOWN_TABLES = {
    "M1": "-:FBWTS F:FBWTS B:BBWTS W:WWWTS T:TTTTS S:SSSSS",
    "M2": "-:FBWTS F:FBWTS B:FBWTS W:FWWTS T:FTTTS S:FSSSS",
    "M3": "-:-BWTS F:FBWTS B:FBWTS W:FWWTS T:FTTTS S:FSSSS",
    "M4": "-:-BWTS F:FFFFF B:FBWTS W:FWWTS T:FTTTS S:FSSSS",
    "M5": "-:-BW-- F:FFFFF B:FBWTS W:FWWTS T:FTTTS S:FSSSS",
}
_NAMES = {notation: name for name, notation in KNOWN_TABLES.items()}


def name_of(notation: str) -> str | None:
    """``M3`` for the notation of a table that has a name, None for others."""
    return _NAMES.get(notation)
