"""Inputs that grow, and the power of their size with which a run's time grows."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

_DEFINED = re.compile(r"^class (\w+)", re.MULTILINE)


def copies(package: Path, number: int, folder: Path) -> Path:
    """A tree below ``folder`` with the Python files of ``package`` ``number`` times, in folders of different names."""
    folder.mkdir(parents=True)
    for index in range(number):
        shutil.copytree(package, folder / f"copy_{index:02}" / package.name, ignore=_no_python)
    return folder


def _no_python(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if not name.endswith(".py") and not Path(folder, name).is_dir()]


def repeated(source: str, lines: int) -> str:
    """``source`` again and again, with other class names each time, until there are about ``lines`` lines."""
    names = sorted(set(_DEFINED.findall(source)))
    pattern = re.compile(r"\b(" + "|".join(names) + r")\b")
    number = max(1, round(lines / source.count("\n")))
    return "\n\n".join(pattern.sub(rf"\g<1>{index}", source) for index in range(number))


def exponent(points: Iterable[Sequence[float]]) -> float:
    """The slope of the least-squares line through the logarithms of (size, time): 1 is linear, 2 quadratic."""
    logs = [(math.log(size), math.log(time)) for size, time in points]
    mean_x = sum(x for x, _ in logs) / len(logs)
    mean_y = sum(y for _, y in logs) / len(logs)
    spread = sum((x - mean_x) ** 2 for x, _ in logs)
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / spread
