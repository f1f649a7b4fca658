"""Whether a stream gets colour, and the few styles that are used (https://no-color.org, https://force-color.org)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

BOLD = "1"
RED = "1;31"
YELLOW = "1;33"
CYAN = "1;36"
DIM = "2"


def wants_colour(stream: IO[Any], environment: Mapping[str, str]) -> bool:
    """NO_COLOR decides, then FORCE_COLOR, then whether ``stream`` is a terminal that knows colours."""
    if environment.get("NO_COLOR"):
        return False
    if force := environment.get("FORCE_COLOR"):
        return force != "0"
    return stream.isatty() and environment.get("TERM") != "dumb"


def paint(text: str, style: str, colour: bool) -> str:
    """``text`` in ``style`` if ``colour``."""
    return f"\x1b[{style}m{text}\x1b[0m" if colour else text
