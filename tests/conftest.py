"""What holds for every test: none uses or fills the cache of whoever runs it."""

from __future__ import annotations

import os

from kvlint.cache.location import OFF_VARIABLE

# Set for good, not by a fixture: subprocesses and fixtures of wider scope must not use it either.
os.environ[OFF_VARIABLE] = "1"
