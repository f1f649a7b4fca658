"""Parts of tools/pack_nixl.py, which makes an archive of NIXL, UCX and kvlint for a host without a package index."""


class PackError(Exception):
    """The bundle cannot be made; the message says why, and what to do."""
