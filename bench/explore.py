"""Measures `kvlint explore`; see bench/README.md. mypy leaves it out: tests/explore has the same name for it."""

import sys

from explorations import main

if __name__ == "__main__":
    sys.exit(main())
