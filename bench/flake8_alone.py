"""flake8 as it would run if kvlint were not installed: same environment, same plugins but one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flake8.main.cli import main
from flake8.plugins import finder

_find = finder._find_importlib_plugins


def _others() -> Iterator[Any]:
    return (plugin for plugin in _find() if plugin.package != "flake8-kvlint")


if __name__ == "__main__":
    finder._find_importlib_plugins = _others
    raise SystemExit(main())
