"""``python -m kvlint``."""

from kvlint.cli import main

main()
