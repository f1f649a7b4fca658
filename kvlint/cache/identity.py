"""Digests that tell whether two runs would conclude the same from the same files."""

from __future__ import annotations

import hashlib
import os
import sys
from functools import cache

import msgspec

from kvlint.config import Config
from kvlint.version import __version__

# Settings that say which files are looked at, not what is found in them.
_IRRELEVANT = frozenset({"exclude", "file", "folder"})


def identity(config: Config) -> bytes:
    """A digest of kvlint, of the Python that runs it, and of the settings that findings depend on; raises OSError."""
    settings = [getattr(config, name) for name in Config.__struct_fields__ if name not in _IRRELEVANT]
    if config.roots or config.per_file_ignores:
        # Only these are relative to the folder, which is the current one where nothing is configured.
        settings.append(config.folder)
    return hashlib.sha256(_of_program() + msgspec.msgpack.encode(settings)).digest()


@cache
def _of_program() -> bytes:
    """Of kvlint's own source, too: in a checkout the version says nothing about which rules it has today."""
    digest = hashlib.sha256(f"{__version__}\n{sys.version}\n{sys.implementation.cache_tag}\n".encode())
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(files):
            with open(os.path.join(folder, name), "rb") as stream:
                content = stream.read()
            relative = os.path.relpath(os.path.join(folder, name), root)
            digest.update(f"{relative}\n{len(content)}\n".encode(errors="surrogateescape") + content)
    return digest.digest()
