"""What pip is asked for: which versions exist, and one wheel; its configuration (index, proxies, PIP_*) is the user's.

Only wheels are asked for: pip builds a source distribution to learn its
metadata, and nothing that was downloaded may run.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kvlint.bundle import BundleError
from kvlint.bundle.requirements import version_of
from kvlint.source.display import one_line

if TYPE_CHECKING:
    from packaging.version import Version

_ANY_PYTHON = ("--ignore-requires-python",)
_WHEEL_ALONE = (*_ANY_PYTHON, "--no-deps", "--only-binary=:all:", "--progress-bar=off")
_QUIET = ("--disable-pip-version-check", "--no-input", "--no-color")

# What pip prints when no index answered; its closing line is then the same as
# for a name that does not exist.
_UNREACHABLE = (
    "NewConnectionError",
    "NameResolutionError",
    "ConnectTimeoutError",
    "ReadTimeoutError",
    "ProxyError",
    "ProtocolError",
    "SSLError",
    "Max retries exceeded",
    "connection to the index failed",
)

# Any wheel will do, whatever it was built for.  The usual interpreters, the
# likeliest first; pip takes one Python version at a time and many platforms.
_PYTHONS = ("3.12", "3.11", "3.10", "3.13", "3.14", "3.9")
_MACHINES = ("x86_64", "aarch64")
_GLIBC_MINORS = range(5, 46)
_MACOS_MAJORS = range(11, 27)


class PipFailed(BundleError):
    """Pip did not do what it was asked for."""


class Unreachable(PipFailed):
    """No index answered."""


class NoMatch(PipFailed):
    """The index answered, and has nothing (of the kind asked for)."""


def versions(name: str) -> tuple[Version, ...]:
    """Every version of the distribution ``name`` that the index lists for some interpreter, oldest first.

    Raises Unreachable, NoMatch for an unknown name, PipFailed.
    """
    try:
        answer = _listed(name, ())
    except NoMatch:
        # Nothing for the running interpreter, which need not run what is only read.
        for python in _PYTHONS:
            try:
                answer = _listed(name, ("--only-binary=:all:", *_foreign(python)))
                break
            except NoMatch:
                continue
        else:
            raise
    match = re.search(r"^Available versions: (.+)$", answer, flags=re.MULTILINE)
    listed = match[1].split(",") if match is not None else []
    return tuple(sorted({version for text in listed if (version := version_of(text.strip())) is not None}))


def download_wheel(name: str, version: str, folder: Path) -> Path:
    """A wheel of the release in ``folder``, whatever interpreter and platform it is for.

    Raises NoMatch where the release has none, Unreachable, PipFailed.
    """
    about = f"{name}=={version}"
    refused: NoMatch | None = None
    for target in _targets():
        try:
            _run("download", *_WHEEL_ALONE, *target, "--dest", str(folder), f"{name}=={version}", about=about)
        except NoMatch as error:
            refused = error
            continue
        found = sorted(folder.glob("*.whl"))
        if found:
            return found[0]
    raise refused or NoMatch(f"{about}: pip saved no wheel")


@functools.cache
def settings() -> dict[str, str]:
    """The user's settings of pip, those of the environment over those of files, as ``index-url`` → value.

    Settings that belong to a subcommand of pip's count for ``download`` alone.
    """
    found: dict[str, str] = {}
    origins = ("global", "download", ":env:")
    lines = [line.partition("=") for line in _run("config", "list", about="the configuration of pip").splitlines()]
    for origin in origins:
        for key, _, value in lines:
            section, _, name = key.strip().partition(".")
            if section == origin:
                found[name] = _unquoted(value.strip())
    return found


@functools.cache
def default_index() -> str:
    """The index that pip asks where the user configured none, as its help tells; empty if it does not."""
    match = re.search(r"Index\s+\(default\s+(\S+?)\)", _run("help", "download", about="the help of pip"))
    return "" if match is None else match[1]


def _unquoted(value: str) -> str:
    r"""A setting as ``pip config list`` writes it: the way Python does, line feeds as ``\n``."""
    inner = value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value
    return inner.replace("\\n", " ").replace("\\'", "'").replace("\\\\", "\\").strip()


def _listed(name: str, target: Sequence[str]) -> str:
    return _run("index", "versions", "--pre", *_ANY_PYTHON, *target, name, about=name)


def _targets() -> Iterator[tuple[str, ...]]:
    yield ()
    for python in _PYTHONS:
        yield _foreign(python)


def _foreign(python: str) -> tuple[str, ...]:
    """Options that make pip take a wheel for that version of CPython on any platform."""
    abi = f"cp{python.replace('.', '')}"
    platforms = ["any"]
    for machine in _MACHINES:
        platforms += [f"manylinux_2_{minor}_{machine}" for minor in reversed(_GLIBC_MINORS)]
        platforms += [f"manylinux2014_{machine}", f"linux_{machine}"]
    platforms += [f"macosx_{major}_0_{machine}" for major in _MACOS_MAJORS for machine in ("arm64", "universal2")]
    platforms += ["macosx_10_15_x86_64", "macosx_11_0_x86_64", "win_amd64"]
    options = ["--python-version", python, "--implementation", "cp", "--abi", abi, "--abi", "abi3", "--abi", "none"]
    return (*options, *(f"--platform={platform}" for platform in platforms))


@functools.cache
def _command() -> tuple[str, ...]:
    """How pip is called: the running interpreter's, else one on the search path (it installs nothing here)."""
    own = (sys.executable, "-P", "-m", "pip")
    on_path = [(found,) for name in ("pip", "pip3") if (found := shutil.which(name))]
    python = shutil.which("python3")
    for command in (own, *on_path, *([(python, "-m", "pip")] if python else [])):
        try:
            if subprocess.run([*command, "--version"], capture_output=True, check=False).returncode == 0:
                return command
        except OSError:
            continue
    raise PipFailed(
        f"pip is needed to download releases, and was found neither for {sys.executable} nor on the search path; "
        "install it (`python -m ensurepip`, or your distribution's python3-pip)"
    )


def _run(command: str, *arguments: str, about: str) -> str:
    """Standard output of one pip command; its complaint becomes the exception that fits."""
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8", "PIP_NO_PYTHON_VERSION_WARNING": "1"}
    try:
        done = subprocess.run(
            [*_command(), command, *_QUIET, *arguments],
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            env=environment,
            check=False,
        )
    except OSError as error:
        raise PipFailed(f"{about}: pip cannot be run: {error.strerror or error}") from error
    if done.returncode == 0:
        return done.stdout
    raise _failure(about, done.stderr.strip() or done.stdout)


def _failure(about: str, complaint: str) -> PipFailed:
    if any(sign in complaint for sign in _UNREACHABLE):
        return Unreachable(
            f"{about}: no package index answered; check the network and pip's configuration (`pip config list`), "
            "or repeat a release that is in kvlint's cache"
        )
    if "No matching distribution found" in complaint or "Could not find a version" in complaint:
        return NoMatch(f"{about}: the package index knows nothing of that name and version; check the spelling")
    if "unknown command" in complaint and "index" in complaint:
        return PipFailed(f"{about}: this pip cannot list versions; upgrade it to 21.2 or newer, or name one version")
    lines = [line.removeprefix("ERROR: ") for line in complaint.splitlines() if line.startswith("ERROR: ")]
    said = one_line((lines or complaint.strip().splitlines() or ["nothing"])[-1])
    if "No space left on device" in complaint:
        return PipFailed(f"{about}: the disk is full; free some space, or point TMPDIR and KVLINT_CACHE elsewhere")
    return PipFailed(f"{about}: pip failed: {said}")
