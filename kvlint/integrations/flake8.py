"""The flake8 plugin: the same findings as the command, line for line and column for column.

flake8 deals with noqa itself, so it is handed the silenced findings as well.  It
imports this module at every start: nothing else of kvlint is loaded until a
file has been parsed, nor the analysis until one speaks of a status protocol.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from kvlint.version import __version__

if TYPE_CHECKING:
    from kvlint.config import Config
    from kvlint.diagnostics import Finding
    from kvlint.file_check import FileCheck


class Plugin:
    """What flake8 makes for each file."""

    name = "kvlint"
    version = __version__

    def __init__(self, tree: ast.AST, filename: str, lines: Sequence[str]) -> None:
        # Asking for a tree makes flake8 call us for files that parse.  The tree itself is of no use: the
        # analysis loads this file as it loads those that the file imports.
        del tree
        self._path = os.path.abspath(filename)
        self._lines = lines

    def run(self) -> Iterator[tuple[int, int, str, type[Plugin]]]:
        """Yield line, column (from 0) and text of each finding, and the plugin."""
        for finding in _findings(self._path, "".join(self._lines)):
            span = finding.location.span
            yield span.line, span.column - 1, f"{finding.code} {finding.message}", type(self)


def _findings(path: str, text: str) -> Iterator[Finding]:
    from kvlint.engine import outcome_of_source
    from kvlint.source.prefilter import is_candidate, may_name_codes
    from kvlint.source.text import encode

    shared = _file_check(os.path.dirname(path))
    data = encode(text)
    if not (is_candidate(data, shared.config.protocol) or may_name_codes(data)):
        return
    file_check = shared if _is_on_disk(path, text) else _with_content(shared, path, data)
    outcome = outcome_of_source(file_check, path, data)
    yield from _unknown(outcome.findings, shared.config, {path: data})
    yield from outcome.silenced


def _unknown(findings: Sequence[Finding], config: Config, overlay: dict[str, bytes]) -> Sequence[Finding]:
    """Those of ``findings`` that the configured baseline does not know."""
    if config.baseline is None or not findings:
        return findings
    from kvlint.baseline import without_known
    from kvlint.report.model import FileCounts, Report

    return without_known(Report(tuple(findings), FileCounts(), overlay=overlay), config).findings


@cache
def _file_check(folder: str) -> FileCheck:
    from kvlint.config import find_config

    return _configured_by(find_config(folder) or find_config(os.curdir))


@cache
def _configured_by(file: str | None) -> FileCheck:
    """One per configuration file and process, so that a base class is looked up once."""
    from kvlint.config import default_config, read_config
    from kvlint.file_check import FileCheck

    return FileCheck(default_config() if file is None else read_config(file))


def _with_content(shared: FileCheck, path: str, data: bytes) -> FileCheck:
    from kvlint.file_check import FileCheck

    return FileCheck(shared.config, {path: data})


def _is_on_disk(path: str, text: str) -> bool:
    """Whether flake8 shows us what stands in the file; standard input has a name, too, but other content."""
    from kvlint.source.text import UnreadableSource, read_source

    if not os.path.isfile(path):
        return False
    try:
        return read_source(path).text == text
    except UnreadableSource:
        # flake8 reads as Latin-1 what does not decode, and takes no note; the finding is that it does not.
        return True
