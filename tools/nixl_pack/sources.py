"""Where wheels come from: a package index, asked through pip, or a folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from nixl_pack import PackError
from nixl_pack.target import Target
from nixl_pack.wheels import Wheel

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_OPTIONS = ("--disable-pip-version-check", "--no-input", "--no-color", "--progress-bar=off", "--quiet")


class Source(Protocol):
    """Gives wheels for what is required."""

    def get(self, requirements: Sequence[Requirement]) -> list[Wheel]:
        """A wheel for each, the newest that fits the target. Raises PackError where there is none."""
        ...


class FolderSource:
    """Wheels that somebody has downloaded."""

    def __init__(self, folder: Path, target: Target) -> None:
        """Raises PackError if the folder cannot be read or holds no wheels."""
        self._folder = folder
        self._target = target
        self._ranks = {tag: rank for rank, tag in enumerate(target.tags())}
        try:
            self._files = sorted(path for path in folder.iterdir() if path.name.endswith(".whl"))
        except OSError as error:
            raise PackError(f"{folder}: cannot be read: {error.strerror or error}") from error
        if not self._files:
            raise PackError(f"{folder}: holds no wheels; fill it with --keep {folder} where an index can be reached")

    def get(self, requirements: Sequence[Requirement]) -> list[Wheel]:
        """A wheel for each. Raises PackError where the folder has none that fits."""
        return [self._get(requirement) for requirement in requirements]

    def _get(self, requirement: Requirement) -> Wheel:
        wanted = canonicalize_name(requirement.name)
        fitting = []
        for path in self._files:
            try:
                name, version, build, tags = parse_wheel_filename(path.name)
            except InvalidWheelFilename as error:
                raise PackError(f"{path}: is not named as a wheel is: {error}") from error
            ranks = [self._ranks[tag] for tag in tags if tag in self._ranks]
            if name == wanted and ranks and requirement.specifier.contains(version, prereleases=True):
                fitting.append((version, -min(ranks), build, path))
        if not fitting:
            raise PackError(
                f"{self._folder}: holds no wheel of {requirement} for {self._target}; download it with --keep "
                f"{self._folder}, without --from, where an index can be reached"
            )
        return Wheel.open(max(fitting)[-1])


class PipSource:
    """Wheels of the package index that pip is configured for, saved in a folder."""

    def __init__(self, folder: Path, target: Target) -> None:
        self._folder = folder
        self._target = target

    def get(self, requirements: Sequence[Requirement]) -> list[Wheel]:
        """A wheel for each, newly downloaded where the folder has not got it. Raises PackError if pip fails."""
        named = [f"{requirement.name}{requirement.specifier}" for requirement in requirements]
        self._run([*self._target.pip_options(), "--dest", str(self._folder), "--", *named], ", ".join(named))
        return FolderSource(self._folder, self._target).get(requirements)

    def _run(self, arguments: Sequence[str], about: str) -> None:
        command = [sys.executable, "-P", "-m", "pip", "download", *_OPTIONS, "--no-deps", "--only-binary=:all:"]
        environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
        try:
            done = subprocess.run(
                [*command, *arguments],
                capture_output=True,
                text=True,
                encoding="utf-8",
                errors="replace",
                env=environment,
                check=False,
            )
        except OSError as error:
            raise PackError(f"pip cannot be run: {error.strerror or error}") from error
        if done.returncode != 0:
            said = [line for line in done.stderr.splitlines() if line.startswith("ERROR: ")] or done.stderr.splitlines()
            why = said[-1].removeprefix("ERROR: ") if said else f"exit status {done.returncode}"
            raise PackError(
                f"pip downloaded no wheels of {about} for {self._target}: {why}; check the versions and the target, "
                "and pip's configuration (`pip config list`)"
            )
