"""Parses the files named on the command line, after the first word says how: ast, libcst or libcst-positions."""

from __future__ import annotations

import ast
import sys
from pathlib import Path


def main(how: str, names: list[str]) -> None:
    """Parse and throw away."""
    sources = [Path(name).read_bytes() for name in names]
    if how == "ast":
        for source in sources:
            ast.parse(source)
        return
    import libcst
    from libcst.metadata import MetadataWrapper, PositionProvider

    for source in sources:
        module = libcst.parse_module(source)
        if how == "libcst-positions":
            MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
