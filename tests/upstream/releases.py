"""Fetch released SGLang wheels, check them against their pins, and unpack their Python files.

Owns the folder ``upstream`` among kvlint's caches.  What a release contains is
the business of the tests; nothing here imports a downloaded file.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from kvlint.cache.location import caches_folder

PINS = Path(__file__).with_name("releases.toml")
PACKAGE = "sglang"

# About twice what the largest release read so far (0.5.23) needs.
MAX_FILES = 10_000
MAX_FILE_BYTES = 1 << 20
MAX_TREE_BYTES = 160 << 20

_DOWNLOAD_SECONDS = 300

# What pip prints when no index answered.  Its closing line is the same as for a
# version that does not exist, so that line cannot be the test.
_UNREACHABLE = (
    "NewConnectionError",
    "NameResolutionError",
    "ConnectTimeoutError",
    "ReadTimeoutError",
    "ProxyError",
    "ProtocolError",
    "SSLError",
    "Max retries exceeded",
)


class IndexUnreachable(Exception):
    """No package index answered: the only reason for which an upstream test may be skipped."""


class BadWheel(Exception):
    """A wheel that is not the pinned one, or that must not be unpacked."""


@dataclass(frozen=True, slots=True)
class Pin:
    """One release: its version, the wheel's file name and the SHA-256 of its bytes."""

    version: str
    wheel: str
    sha256: str

    @property
    def tags(self) -> tuple[str, str, str]:
        """Python, ABI and platform tag of the wheel."""
        python, abi, platform = self.wheel.removesuffix(".whl").split("-")[-3:]
        return python, abi, platform


def load_pins() -> dict[str, Pin]:
    """Every pinned release by version."""
    table = tomllib.loads(PINS.read_text(encoding="utf-8"))["release"]
    return {version: Pin(version, **entry) for version, entry in table.items()}


def cache_root() -> Path:
    """The folder under which releases are kept, made on first use."""
    folder = caches_folder(os.environ)
    assert folder is not None, "there is no home folder; set KVLINT_CACHE"
    root = Path(folder).resolve() / "upstream"
    root.mkdir(parents=True, exist_ok=True)
    return root


def tree(version: str) -> Path:
    """The folder that holds ``sglang/`` of a pinned release, downloaded and unpacked if need be.

    Safe to call from several processes at once.  Raises KeyError for a version
    without a pin, IndexUnreachable when no index answered, BadWheel when the
    bytes are not the pinned ones.
    """
    pin = load_pins()[version]
    home = cache_root() / f"{version}-{pin.sha256[:12]}"
    if home.is_dir():
        return home
    with _locked(home.with_name(home.name + ".lock")):
        if home.is_dir():
            return home
        scratch = Path(tempfile.mkdtemp(prefix=f"{version}-", dir=home.parent))
        try:
            wheel = _download(pin, scratch)
            _verify(pin, wheel)
            unpacked = scratch / "tree"
            extract(wheel, unpacked)
            unpacked.rename(home)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return home


def extract(wheel: Path, destination: Path) -> None:
    """Unpack the ``.py`` members of ``wheel`` below ``destination``, which must not exist yet.

    Raises BadWheel for a member that would leave the folder, is a link, or
    makes the tree larger than a release can be.
    """
    destination.mkdir(parents=True)
    total = 0
    with zipfile.ZipFile(wheel) as archive:
        members = [m for m in archive.infolist() if m.filename.endswith(".py")]
        if len(members) > MAX_FILES:
            raise BadWheel(f"{wheel.name}: {len(members)} Python files, at most {MAX_FILES} expected")
        for member in members:
            target = destination / _safe_name(member)
            total += member.file_size
            if member.file_size > MAX_FILE_BYTES or total > MAX_TREE_BYTES:
                raise BadWheel(f"{wheel.name}: {member.filename} is too large to be a source file")
            target.parent.mkdir(parents=True, exist_ok=True)
            # zipfile stops at the declared size, so a member cannot outgrow it.
            with archive.open(member) as source, target.open("xb") as sink:
                shutil.copyfileobj(source, sink)


def _safe_name(member: zipfile.ZipInfo) -> PurePosixPath:
    name = PurePosixPath(member.filename)
    kind = stat.S_IFMT(member.external_attr >> 16)
    if name.is_absolute() or ".." in name.parts or any(c in member.filename for c in "\\:\0"):
        raise BadWheel(f"unsafe path in the wheel: {member.filename!r}")
    if kind not in (0, stat.S_IFREG):
        raise BadWheel(f"not a regular file in the wheel: {member.filename!r}")
    return name


def _verify(pin: Pin, wheel: Path) -> None:
    with wheel.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != pin.sha256:
        raise BadWheel(f"{wheel.name}: SHA-256 is {found}, pinned is {pin.sha256}")


def _download(pin: Pin, folder: Path) -> Path:
    """Let pip fetch the pinned wheel, whatever interpreter and machine run this."""
    python, _, platform = pin.tags
    digits = python.removeprefix("cp")
    foreign = ["--platform", platform]
    if digits != python:
        foreign += ["--python-version", digits, "--implementation", "cp", "--abi", python]
    complaints = []
    for options in (foreign, []):
        done = _pip_download(pin, folder, options)
        wheel = folder / pin.wheel
        if done.returncode == 0 and wheel.is_file():
            return wheel
        complaints.append(done.stderr)
    last = complaints[-1].strip()
    if any(sign in text for text in complaints for sign in _UNREACHABLE):
        raise IndexUnreachable(f"{PACKAGE}=={pin.version}: no package index answered")
    raise BadWheel(f"pip did not bring {pin.wheel}: {last[-400:]}")


def _pip_download(pin: Pin, folder: Path, options: list[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir"]
    command += ["--only-binary=:all:", "--disable-pip-version-check", "--no-input", "--retries=2"]
    command += [*options, "--dest", str(folder), f"{PACKAGE}=={pin.version}"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=_DOWNLOAD_SECONDS, check=False)
    except subprocess.TimeoutExpired as late:
        raise IndexUnreachable(f"{PACKAGE}=={pin.version}: no answer within {_DOWNLOAD_SECONDS} s") from late


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an advisory lock; the kernel drops it if this process dies."""
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
