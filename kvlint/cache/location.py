"""Where kvlint's caches lie: a folder of the user's own, never one of the checked project.

A checkout that brought its own cache could bring findings, or their absence,
with it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

#: Names the folder of all caches: of results, and of the archives of releases.
FOLDER_VARIABLE = "KVLINT_CACHE"

#: Switches the cache off for the command and for flake8, unless it is empty or 0.
OFF_VARIABLE = "KVLINT_NO_CACHE"


def caches_folder(environment: Mapping[str, str], platform: str = sys.platform) -> str | None:
    """The folder that ``environment`` names, else ours among the user's caches; None where there is no such place.

    ``$XDG_CACHE_HOME`` counts only if absolute, as its specification demands
    (https://specifications.freedesktop.org/basedir-spec/latest/).
    """
    if named := environment.get(FOLDER_VARIABLE):
        return os.path.abspath(os.path.expanduser(named))
    base = environment.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        home = os.path.expanduser("~")
        if not os.path.isabs(home):
            return None
        base = os.path.join(home, "Library", "Caches") if platform == "darwin" else os.path.join(home, ".cache")
    return os.path.join(base, "kvlint")


def results_folder(environment: Mapping[str, str], platform: str = sys.platform) -> str | None:
    """Where results of earlier runs are kept unless an option says otherwise; None where there is no such place."""
    folder = caches_folder(environment, platform)
    return None if folder is None else os.path.join(folder, "results")


def is_off(environment: Mapping[str, str]) -> bool:
    """Whether ``environment`` asks for no cache."""
    return environment.get(OFF_VARIABLE, "") not in ("", "0")
