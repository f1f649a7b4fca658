"""The other tools: where they are found, which version they are, and how to get one that is not there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

BENCH = Path(__file__).resolve().parent
REQUIREMENTS = BENCH / "requirements.txt"

# semgrep looks for a newer version of itself, and without a network waits for minutes.
_OFFLINE = {"SEMGREP_ENABLE_VERSION_CHECK": "0", "SEMGREP_SEND_METRICS": "off"}


@dataclass(frozen=True, slots=True)
class Tool:
    """An installed tool."""

    name: str
    command: tuple[str, ...]
    version: str


@dataclass(frozen=True, slots=True)
class Missing:
    """A tool that cannot be compared with, and what to do about it."""

    name: str
    advice: str


def find_module(name: str) -> Tool | Missing:
    """A tool that is run as a module of this Python."""
    tool = _asked(name, (sys.executable, "-m", name))
    return tool or Missing(name, f"{sys.executable} -m pip install {name}")


def find_command(name: str, environment: Path | None) -> Tool | Missing:
    """A tool of ``environment``, a virtual environment, or else on the PATH."""
    place = str(environment / "bin") if environment is not None else None
    found = shutil.which(name, path=place)
    tool = None if found is None else _asked(name, (found,))
    return tool or _missing(name, environment)


def _missing(name: str, environment: Path | None) -> Missing:
    made = environment or Path(".venv-bench")
    return Missing(
        name,
        f"python3 -m venv {made} && {made}/bin/pip install -r {REQUIREMENTS}, then --tools {made}",
    )


def find_library(name: str, environment: Path | None) -> Tool | Missing:
    """A library of ``environment`` or else of this Python, whose command of the same name runs a script with it."""
    folder = environment / "bin" if environment is not None else Path(sys.executable).parent
    command, python = folder / name, folder / "python"
    code = f"import {name}, numpy; from importlib.metadata import version; print(version({name!r}))"
    asked = None if not command.exists() else _asked(name, (str(python), "-c", code))
    return _missing(name, environment) if asked is None else Tool(name, (str(command), str(python)), asked.version)


def _asked(name: str, command: tuple[str, ...]) -> Tool | None:
    environment = {**os.environ, **_OFFLINE}
    try:
        done = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, check=True, timeout=120, env=environment
        )
    except (OSError, subprocess.SubprocessError):
        return None
    words = done.stdout.replace(",", " ").split()
    version = next((word for word in words if word[:1].isdigit()), "of unknown version")
    return Tool(name, command, version)
