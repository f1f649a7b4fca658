"""Released packages: which of them are affected (`audit`), and the patches that mend them without a checkout.

``requirements`` and ``pip`` say which releases exist, ``fetch`` brings their
archives, ``archives`` reads them, ``audit`` judges them.  ``generate`` makes
the patch of a release, ``manifest`` describes it, ``installation`` puts it on
and takes it off.  Nothing downloaded is ever installed, built or run.
"""

from __future__ import annotations

from kvlint.config import Config, KvlintError

#: The rules whose findings decide about a release.
JUDGED = ("KVL001", "KVL002", "KVL003", "KVL004", "KVL005")

#: The rules of which a patched release has no finding; a release that the safe fixes do not get there has no patch.
CLEARED = ("KVL001", "KVL002", "KVL004")

#: From what age on a temporary file is no running command's any more, but what a killed one left.
STALE_SECONDS = 24 * 3600


class BundleError(KvlintError):
    """A release that cannot be had or used: what was wrong, where, and what to do."""


def released_config(folder: str) -> Config:
    """The configuration under which released sources below ``folder`` are judged: the project's own does not apply."""
    return Config(select=JUDGED, folder=folder)
