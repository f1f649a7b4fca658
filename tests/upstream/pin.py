"""Re-create, on released SGLang 0.5.14, the private commit that pinned requests.

The commit is not public.  It made two changes to ``nixl/conn.py``: the worker
skips a chunk whose room has no transfer metadata instead of asserting that it
has some, and the listener answers an ABORT frame.  Both places are found in
the fetched source by its syntax tree; only lines of our own are put in.

``python -m tests.upstream.pin DEST`` writes the whole tree below DEST.
"""

from __future__ import annotations

import ast
import shutil
import sys
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from . import releases

VERSION = "0.5.14"
BACKEND = Path("sglang/srt/disaggregation/nixl/conn.py")

_GUARD = """\
# An abort may have dropped the room between two chunks.
if (
    room not in self.transfer_infos
    or self.check_status(room) == KVPoll.Failed
):
    logger.debug(
        f"Room {room} was aborted, its chunk is dropped"
    )
    continue
"""

_BRANCH = """\

# The decode side gave the request up, and nobody will read the
# pages that are still to be sent.
if {frames}[0] == b"ABORT":
    if len({frames}) < 2:
        logger.warning("ABORT frame that names no room")
        continue
    try:
        aborted = int({frames}[1])
    except ValueError:
        logger.warning(
            f"ABORT frame with a bad room: {{{frames}[1]!r}}"
        )
        continue
    # A transfer that already succeeded stays as it is.
    if aborted in self.request_status and self.check_status(aborted) != KVPoll.Success:
        # The scheduler hands this text to the client.
        self.record_failure(aborted, "Aborted by the decode side")
        self.update_status(aborted, KVPoll.Failed)

    # Chunks still queued find no peers and are dropped by the worker.
    self.transfer_infos.pop(aborted, None)
    self.req_to_decode_prefix_len.pop(aborted, None)
    continue
"""


class AnchorLost(Exception):
    """The source does not have the place that an edit needs."""


def pinned_source(source: str) -> str:
    """The text of ``nixl/conn.py`` after the commit, from the text before it."""
    module = ast.parse(source)
    lines = source.splitlines(keepends=True)
    # From the bottom up, so that the first edit leaves the other's lines alone.
    branch_after, frames = _staging_branch(module)
    lines[branch_after.end_lineno : branch_after.end_lineno] = _indented(
        _BRANCH.format(frames=frames), branch_after.col_offset
    )
    first, last = _entry_checks(module)
    lines[first.lineno - 1 : last.end_lineno] = _indented(_GUARD, last.col_offset)
    return "".join(lines)


def write_tree(destination: Path) -> Path:
    """Copy the release below ``destination``, apply the commit, and return the changed file.

    Raises FileExistsError when ``destination`` already holds the package, and
    whatever ``releases.tree`` raises.
    """
    changed = destination / BACKEND
    if changed.exists():
        raise FileExistsError(f"{changed} exists already")
    shutil.copytree(releases.tree(VERSION), destination, dirs_exist_ok=True)
    changed.write_bytes(pinned_source(changed.read_bytes().decode("utf-8")).encode("utf-8"))
    return changed


def _entry_checks(module: ast.Module) -> tuple[ast.If, ast.Assert]:
    """The worker's test for an aborted room and the assert below it."""
    for body in _bodies(_function(module, "transfer_worker")):
        for before, statement in pairwise(body):
            if not isinstance(statement, ast.Assert) or not isinstance(before, ast.If):
                continue
            if ast.unparse(statement.test) == "room in self.transfer_infos":
                return before, statement
    raise AnchorLost("the worker does not assert that the room has metadata")


def _staging_branch(module: ast.Module) -> tuple[ast.If, str]:
    """The listener's last control-frame branch and the name of the frames in its test."""
    for body in _bodies(_function(module, "bootstrap_thread")):
        for statement in body:
            if isinstance(statement, ast.If) and "'STAGING_RSP'" in ast.unparse(statement.test):
                names = [n.id for n in ast.walk(statement.test) if isinstance(n, ast.Name)]
                return statement, names[0]
    raise AnchorLost("the listener has no branch for staging replies")


def _function(module: ast.Module, name: str) -> ast.FunctionDef:
    found = [n for n in ast.walk(module) if isinstance(n, ast.FunctionDef) and n.name == name]
    if len(found) != 1:
        raise AnchorLost(f"{len(found)} functions are called {name}, one expected")
    return found[0]


def _bodies(function: ast.FunctionDef) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(function):
        if isinstance(node, ast.FunctionDef | ast.While | ast.Try):
            yield node.body


def _indented(text: str, columns: int) -> list[str]:
    return textwrap.indent(text, " " * columns).splitlines(keepends=True)


def main(arguments: list[str]) -> int:
    """Write the tree below the one argument; 0 when done, 2 on a usage error or a lost anchor."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m tests.upstream.pin DEST\n")
        return 2
    try:
        sys.stdout.write(f"{write_tree(Path(arguments[0]))}\n")
    except (AnchorLost, OSError, releases.IndexUnreachable, releases.BadWheel) as problem:
        sys.stderr.write(f"pin: {problem}\n")
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
