"""The packer's modules are found as they are for its script, which stands beside them."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent.parent / "tools"))
