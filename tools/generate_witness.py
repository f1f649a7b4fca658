"""Draws docs/images/witness.svg, a schedule that pins a room of the demo's backend.

With --check, tells whether it is up to date.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import kvlint
from kvlint.explore.embedded import explore_embedded
from kvlint.explore.report.swimlane import swimlane_svg
from kvlint.explore.results import Exploration, Witness
from kvlint.properties import PINNED_ROOM

BACKEND = Path(kvlint.__file__).with_name("demo_backend")
PICTURE = Path(__file__).resolve().parent.parent / "docs" / "images" / "witness.svg"
#: What GitHub leaves for a picture in a README, in pixels.
WIDTH = 900


def main(arguments: list[str] | None = None) -> int:
    """Run the command; the exit status is 1 if --check finds a difference, 2 if nothing pins a room."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, tell whether the picture would change")
    options = parser.parse_args(arguments)
    witness = next(_pinning(explore_embedded(BACKEND)), None)
    if witness is None:
        print(f"error: no schedule of the demo's backend breaks {PINNED_ROOM}", file=sys.stderr)
        return 2
    wanted = swimlane_svg(witness, standalone=True, width=WIDTH)
    if not options.check:
        PICTURE.parent.mkdir(parents=True, exist_ok=True)
        PICTURE.write_text(wanted, encoding="utf-8")
        return 0
    if PICTURE.exists() and PICTURE.read_text(encoding="utf-8") == wanted:
        return 0
    print(f"{PICTURE} shows another schedule: run `python tools/generate_witness.py`", file=sys.stderr)
    return 1


def _pinning(exploration: Exploration) -> Iterator[Witness]:
    for scenario in exploration.scenarios:
        for judged in scenario.properties:
            if judged.property == PINNED_ROOM and judged.witness is not None:
                yield judged.witness


if __name__ == "__main__":
    sys.exit(main())
