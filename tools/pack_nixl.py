"""Makes an archive of kvlint and NIXL for a GPU host without a package index; docs/pack_nixl.md tells how to use it."""

from __future__ import annotations

import sys


def main(arguments: list[str] | None = None) -> int:
    """Run the command; the exit status is 2 if no bundle could be made."""
    try:
        from nixl_pack.command import run
    except ModuleNotFoundError as error:
        print(f"error: {error.name} is needed: run `pip install -e '.[pack]'`", file=sys.stderr)
        return 2
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
