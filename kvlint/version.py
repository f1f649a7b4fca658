"""The version, apart from everything else so that reports and front ends can name it."""

from __future__ import annotations

__version__ = "0.1.0"
