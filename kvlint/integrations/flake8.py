"""The flake8 plugin: the same findings as the command, line for line and column for column.

flake8 deals with noqa itself, so it is handed the silenced findings as well.  It
imports this module at every start: of kvlint's own, only the text test is loaded
for a file, and the analysis not before one speaks of a status protocol and no
earlier run has left its result.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from kvlint.version import __version__

if TYPE_CHECKING:
    from kvlint.cache.results import Results
    from kvlint.config import Config
    from kvlint.diagnostics import Finding
    from kvlint.file_check import FileCheck, Outcome


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
    from kvlint.source.prefilter import is_candidate, may_name_codes
    from kvlint.source.text import encode

    file = _config_file(os.path.dirname(path))
    data = encode(text)
    config = _config(file)
    if is_candidate(data, config.protocol) or may_name_codes(data):
        outcome = _outcome(path, text, data, file)
        yield from _unknown(outcome.findings, config, {path: data})
        yield from outcome.silenced


def _outcome(path: str, text: str, data: bytes, config_file: str | None) -> Outcome:
    from kvlint.engine import outcome_of_source
    from kvlint.file_check import FileCheck
    from kvlint.processes import collecting_rarely

    on_disk = _content_on_disk(path, text)
    with collecting_rarely():
        if on_disk is None:
            return outcome_of_source(FileCheck(_config(config_file), {path: data}), path, data)
        return outcome_of_source(_file_check(config_file), path, on_disk, _results(config_file))


def _unknown(findings: Sequence[Finding], config: Config, overlay: dict[str, bytes]) -> Sequence[Finding]:
    """Those of ``findings`` that the configured baseline does not know."""
    if config.baseline is None or not findings:
        return findings
    from kvlint.baseline import without_known
    from kvlint.report.model import FileCounts, Report

    return without_known(Report(tuple(findings), FileCounts(), overlay=overlay), config).findings


@cache
def _config_file(folder: str) -> str | None:
    from kvlint.config import find_config

    return find_config(folder) or find_config(os.curdir)


@cache
def _config(file: str | None) -> Config:
    from kvlint.config import default_config, read_config

    return default_config() if file is None else read_config(file)


@cache
def _file_check(config_file: str | None) -> FileCheck:
    """One per configuration file and process, so that a base class is looked up once."""
    from kvlint.file_check import MAX_LOADED, FileCheck

    # flake8 starts a process per core.
    return FileCheck(_config(config_file), max_loaded=MAX_LOADED // 2)


@cache
def _results(config_file: str | None) -> Results | None:
    """What earlier runs of flake8 or of the command found."""
    from kvlint.cache.location import is_off, results_folder
    from kvlint.cache.results import Results
    from kvlint.cache.store import CacheUnusable

    folder = None if is_off(os.environ) else results_folder(os.environ)
    if folder is None:
        return None
    try:
        return Results(folder, _config(config_file))
    except CacheUnusable:
        return None


def _content_on_disk(path: str, text: str) -> bytes | None:
    """The file's bytes if they are what flake8 shows us; standard input has a name, too, but other content."""
    from kvlint.source.text import UnreadableSource, decode, read_bytes

    if not os.path.isfile(path):
        return None
    try:
        data = read_bytes(path)
    except OSError:
        return None
    try:
        return data if decode(path, data).text == text else None
    except UnreadableSource:
        # flake8 reads as Latin-1 what does not decode, and takes no note; the finding is that it does not.
        return data
