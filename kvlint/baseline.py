"""Baselines: the findings that a project knows of, so that only new ones fail.

A baseline is a JSON file, one finding a line, sorted, without line numbers, so
that it changes only where findings come or go.  Paths in it are relative to its
own folder.  Equal findings of one function are counted.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated

import msgspec

from kvlint.config import Config, KvlintError
from kvlint.diagnostics import Finding
from kvlint.registry import known_codes, selected
from kvlint.report.fingerprint import Identity, identities
from kvlint.report.model import Report
from kvlint.source.display import one_line, printable, slashed
from kvlint.source.text import SourceText

#: The version of the format, and the name that tells it from other JSON files.
VERSION = 1
KIND = "kvlint-baseline"

#: No project has so many findings; whatever is larger was given by mistake.
MAX_BYTES = 32 << 20

_UNREADABLE = "KVL900"
_CONFLICT = re.compile(rb"^(?:<{7}|={7}|>{7}|\|{7})(?:\s|$)", re.MULTILINE)


class BaselineError(KvlintError):
    """A baseline that cannot be read or written."""


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    path: Annotated[str, msgspec.Meta(min_length=1)]
    code: Annotated[str, msgspec.Meta(pattern="^KVL[0-9]{3}$")]
    function: str
    text: str
    count: Annotated[int, msgspec.Meta(ge=1)] = 1


class _Head(msgspec.Struct, frozen=True):
    kind: str = ""
    version: object = None


class _Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: str
    version: int
    findings: list[_Entry]


@dataclass(frozen=True, slots=True)
class Baseline:
    """How often each finding is known; ``file`` is the path that the user gave."""

    file: str
    known: Counter[Identity]

    @property
    def folder(self) -> str:
        """What its paths are relative to."""
        return os.path.realpath(os.path.dirname(os.path.abspath(self.file)))


@dataclass(frozen=True, slots=True)
class Comparison:
    """A run beside a baseline: the report without what is known, and the known findings that are gone."""

    report: Report
    gone: Counter[Identity]


def read_baseline(file: str) -> Baseline:
    """The baseline in ``file``; raises BaselineError that says what to do about it."""
    data = _read(file)
    shown = one_line(file)
    if conflict := _CONFLICT.search(data):
        line = data.count(b"\n", 0, conflict.start()) + 1
        raise BaselineError(
            f"{shown}:{line}: holds an unresolved merge conflict; take either side and {_how_to_write(file)}"
        )
    try:
        document = msgspec.convert(_parsed(file, data), _Document)
    except msgspec.ValidationError as error:
        raise BaselineError(
            f"{shown}: is not a valid baseline: {error}; delete it and {_how_to_write(file)}"
        ) from error
    known: Counter[Identity] = Counter()
    for entry in document.findings:
        identity = Identity(entry.path, entry.code, entry.function, entry.text)
        # Twice the same entry is what a merge of two updated files leaves; neither says that there are more.
        known[identity] = max(known[identity], entry.count)
    return Baseline(file, known)


def empty_baseline(file: str) -> Baseline:
    """A baseline that is yet to be written to ``file``."""
    return Baseline(file, Counter())


def compare(report: Report, baseline: Baseline, checked: Iterable[str], config: Config) -> Comparison:
    """Leave out of ``report`` what ``baseline`` knows; of several equal findings, the first ones.

    ``checked`` are the absolute paths of the files that were looked at: what the
    baseline knows of others is not gone, nor is that of rules that ``config``
    does not run.
    """
    found = _identities(report, baseline)
    left = Counter(baseline.known)
    is_known = [_take([identity], left) for identity in found]
    former = _of_missing_files(baseline, left)
    for index, identity in enumerate(found):
        if not is_known[index]:
            # A file that was renamed takes its findings along.
            is_known[index] = _take(former.get(replace(identity, path=""), ()), left)
    new, known = (
        tuple(finding for finding, answer in zip(report.findings, is_known, strict=True) if answer is wanted)
        for wanted in (False, True)
    )
    examined = _Examined(report, baseline, checked, config)
    gone = Counter({identity: count for identity, count in left.items() if count > 0 and examined.covers(identity)})
    narrowed = replace(report, findings=new, known=report.known + len(known), left_out=(*report.left_out, *known))
    return Comparison(narrowed, gone)


def without_known(report: Report, config: Config) -> Report:
    """``report`` without what the configured baseline knows, if there is one; raises BaselineError."""
    file = config.baseline_file
    if file is None or not report.findings:
        return report
    return compare(report, read_baseline(file), (), config).report


def updated(report: Report, baseline: Baseline, checked: Iterable[str], config: Config) -> Baseline:
    """A baseline of the findings of ``report``, and of what ``baseline`` knows of files and rules not looked at."""
    examined = _Examined(report, baseline, checked, config)
    known = Counter({identity: count for identity, count in baseline.known.items() if not examined.covers(identity)})
    # An unreadable file was not examined, but that it cannot be read is found anew each time.
    for identity, count in Counter(_identities(report, baseline)).items():
        known[identity] = max(known[identity], count)
    return Baseline(baseline.file, known)


def rendered(baseline: Baseline) -> str:
    """The content of the file."""
    entries = [
        _Entry(identity.path, identity.code, identity.function, identity.text, count)
        for identity, count in sorted(baseline.known.items())
    ]
    lines = ",\n".join("    " + msgspec.json.format(msgspec.json.encode(entry), indent=0).decode() for entry in entries)
    findings = f"[\n{lines}\n  ]" if entries else "[]"
    return f'{{\n  "kind": "{KIND}",\n  "version": {VERSION},\n  "findings": {findings}\n}}\n'


# -- reading -------------------------------------------------------------------


def _read(file: str) -> bytes:
    shown = one_line(file)
    try:
        status = os.stat(file)
        if not stat.S_ISREG(status.st_mode):
            raise BaselineError(f"{shown}: is not a file, so it cannot hold a baseline")
        if status.st_size > MAX_BYTES:
            raise BaselineError(
                f"{shown}: is no baseline: it has {status.st_size:,} bytes, and none has more than {MAX_BYTES:,}"
            )
        with open(file, "rb") as stream:
            return stream.read()
    except FileNotFoundError as error:
        raise BaselineError(f"{shown}: there is no such baseline; to create it, {_how_to_write(file)}") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BaselineError(f"{shown}: the baseline cannot be read: {reason}") from error


def _parsed(file: str, data: bytes) -> object:
    """The JSON of a baseline; tells other people's files and other versions apart from broken ones."""
    shown = one_line(file)
    if not data:
        raise BaselineError(f"{shown}: is empty; to fill it, {_how_to_write(file)}")
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BaselineError(f"{shown}: is no baseline, nor any other JSON: {_placed(error, data)}") from error
    try:
        head = msgspec.convert(document, _Head)
    except msgspec.ValidationError:
        head = _Head()
    if head.kind != KIND:
        raise BaselineError(
            f"{shown}: is JSON, but no baseline of kvlint ({KIND!r} does not stand under 'kind'); "
            "give the path of a baseline, or of a file that does not exist yet"
        )
    if head.version != VERSION:
        raise BaselineError(
            f"{shown}: has version {head.version!r} of the format, and this kvlint reads version {VERSION}; "
            f"use the kvlint that wrote it, or delete it and {_how_to_write(file)}"
        )
    return document


def _placed(error: Exception, data: bytes) -> str:
    """``error`` with a line in place of msgspec's "(byte 17)"."""
    match = re.search(r" \(byte (\d+)\)", str(error))
    if match is None:
        return str(error)
    line = data.count(b"\n", 0, int(match[1])) + 1
    return f"line {line}: {str(error).replace(match[0], '')}"


def _how_to_write(file: str) -> str:
    return f"run `kvlint check --baseline {one_line(file)} --write-baseline`"


# -- comparing -----------------------------------------------------------------


def _identities(report: Report, baseline: Baseline) -> list[Identity]:
    """The identities of the findings, with paths as they stand in the file."""
    paths = _Paths(baseline.folder)
    display: dict[str, str] = {}
    moved: list[Finding] = []
    for finding in report.findings:
        path = paths.relative(finding.location.path)
        display[path] = finding.location.path
        moved.append(replace(finding, location=replace(finding.location, path=path)))

    def read(path: str) -> SourceText:
        return report.read_source(display[path])

    return identities(moved, read)


def _take(identities: Iterable[Identity], left: Counter[Identity]) -> bool:
    """Use up one of ``identities`` that is left, if any is."""
    for identity in identities:
        if left[identity] > 0:
            left[identity] -= 1
            return True
    return False


def _of_missing_files(baseline: Baseline, left: Counter[Identity]) -> dict[Identity, list[Identity]]:
    """What is left of files that are not there any more, by identity without the path."""
    found: dict[Identity, list[Identity]] = {}
    for identity in sorted(+left):
        if not _is_there(identity.path, baseline.folder):
            found.setdefault(replace(identity, path=""), []).append(identity)
    return found


class _Examined:
    """What a run had a say in."""

    def __init__(self, report: Report, baseline: Baseline, checked: Iterable[str], config: Config) -> None:
        self._folder = baseline.folder
        self._report = report
        self._checked = checked
        self._config = config
        self._files: frozenset[str] | None = None
        self._codes: frozenset[str] = frozenset()

    def covers(self, identity: Identity) -> bool:
        """Whether the run would have come upon ``identity`` if it were still there."""
        if self._files is None:
            self._look()
        assert self._files is not None
        if identity.code not in self._codes:
            # A rule that is no more finds nothing, either.
            return identity.code not in known_codes()
        return identity.path in self._files or not _is_there(identity.path, self._folder)

    def _look(self) -> None:
        failed = {crash.path for crash in self._report.crashes}
        failed |= {item.location.path for item in self._report.findings if item.code == _UNREADABLE}
        paths = _Paths(self._folder)
        unseen = {printable(paths.relative(path)) for path in failed}
        self._files = frozenset(printable(paths.relative(path)) for path in self._checked) - unseen
        self._codes = frozenset(rule.code for rule in selected(self._config))


class _Paths:
    """Paths from one folder, whichever way they were given."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._real: dict[str, str] = {}

    def relative(self, path: str) -> str:
        """``path`` from the folder, symbolic links above the file resolved."""
        above, name = os.path.split(os.path.abspath(path))
        if above not in self._real:
            self._real[above] = os.path.relpath(os.path.realpath(above), self._folder)
        return slashed(os.path.normpath(os.path.join(self._real[above], name)))


def _is_there(path: str, folder: str) -> bool:
    # A name with a byte that is no UTF-8 cannot be read back: nothing is concluded from its absence.
    return "\\x" in path or os.path.lexists(os.path.join(folder, path))
