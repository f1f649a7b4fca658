"""Writes docs/rules.md from the rules' docstrings; with --check, tells whether it is up to date."""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

from kvlint.registry import rules
from kvlint.report.pages import markdown

PAGE = Path(__file__).resolve().parent.parent / "docs" / "rules.md"


def main(arguments: list[str] | None = None) -> int:
    """Run the command; the exit status is 1 if --check finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, print what would change")
    wanted = markdown(rules())
    if not parser.parse_args(arguments).check:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(wanted, encoding="utf-8")
        return 0
    found = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    if found == wanted:
        return 0
    changes = difflib.unified_diff(found.splitlines(True), wanted.splitlines(True), str(PAGE), "generated")
    sys.stdout.writelines(changes)
    print("run `python tools/generate_docs.py`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
