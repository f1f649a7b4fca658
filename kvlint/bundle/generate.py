"""From a release to its patch and its entry in the manifest: the safe fixes, by the code of ``kvlint fix``."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kvlint.bundle import CLEARED, BundleError, released_config
from kvlint.bundle.fetch import Releases
from kvlint.bundle.manifest import FileEntry, ReleaseEntry, WriterEntry
from kvlint.bundle.patches import FilePatch, difference, forward, line_before, parse, render
from kvlint.bundle.survey import targets_below
from kvlint.bundle.trees import Tree, unpacked
from kvlint.config import Config
from kvlint.diagnostics import Finding
from kvlint.fix_run import FixRun, fix_targets

_HEADER = """\
kvlint's safe fixes for {title}: {fixes}.
They only insert lines.  Apply them with `kvlint patch apply`, or in the folder that holds the package with one of
    git apply --unidiff-zero -p1 {patch}
    patch -p1 < {patch}

"""
_FILE_HEADER = "File: {path}\nSHA-256 before: {before}\nSHA-256 after:  {after}\n\n"


@dataclass(frozen=True, slots=True)
class Made:
    """The entry of a release and the bytes of its patch, None where nothing is to be mended or not enough can be."""

    entry: ReleaseEntry
    patch: bytes | None


def make(releases: Releases, package: str, version: str) -> Made:
    """Fetch a release, fix it in memory and describe what changed; raises BundleError."""
    with unpacked(releases, package, version) as tree:
        return made_of(tree, package, version)


def made_of(tree: Tree, package: str, version: str) -> Made:
    """As `make`, of an unpacked release."""
    from kvlint.engine import check_targets, findings_or_raise

    if not tree.archive.filename.endswith(".whl"):
        raise BundleError(f"{package}=={version}: has no wheel, and a patch is for files where a wheel puts them")
    config = released_config(str(tree.folder))
    targets = targets_below(str(tree.folder), tree.files)
    found = findings_or_raise(check_targets(targets, config, jobs=1))
    run = fix_targets(targets, config, unsafe=False, write=False, jobs=1)
    before, after = _by_file(found), _by_file(run.report.findings)
    present, left = {finding.code for finding in found}, {finding.code for finding in run.report.findings}
    if not run.changes or not left.isdisjoint(CLEARED):
        bare = ReleaseEntry(
            package=package, version=version, remaining=tuple(sorted(present)), insufficient=_insufficient(run)
        )
        return Made(bare, None)
    entry = ReleaseEntry(
        package=package, version=version, closed=tuple(sorted(present - left)), remaining=tuple(sorted(left))
    )
    return _described(entry, run, before, after, config)


def _insufficient(run: FixRun) -> dict[str, tuple[str, ...]]:
    """Where the safe fixes leave what a patch has to close, in lines of the released files."""
    patches = {
        fixed.display: difference(fixed.display, fixed.change.before, fixed.change.after) for fixed in run.changes
    }
    places: dict[str, list[tuple[str, int]]] = {}
    for finding in run.report.findings:
        if finding.code in CLEARED:
            path, line = finding.location.path, finding.location.span.line
            if path in patches:
                line = line_before(patches[path], line)
            places.setdefault(finding.code, []).append((path, line))
    return {code: tuple(f"{path}:{line}" for path, line in sorted(found)) for code, found in sorted(places.items())}


def _described(
    entry: ReleaseEntry,
    run: FixRun,
    before: Mapping[str, Counter[str]],
    after: Mapping[str, Counter[str]],
    config: Config,
) -> Made:
    from msgspec.structs import replace

    patches: list[FilePatch] = []
    files: list[FileEntry] = []
    for fixed in sorted(run.changes, key=lambda fixed: fixed.display):
        path, change = fixed.display, fixed.change
        _require_compilable(path, change.after)
        patches.append(difference(path, change.before, change.after))
        closed = before.get(path, Counter()) - after.get(path, Counter())
        files.append(
            FileEntry(
                path=path,
                before=_sha256(change.before),
                after=_sha256(change.after),
                closed=dict(sorted(closed.items())),
            )
        )
    whole = replace(
        entry,
        patch=f"{entry.package}-{entry.version}.patch",
        fixes=tuple(sorted({_name_of(title) for fixed in run.changes for title in fixed.change.titles})),
        files=tuple(files),
        writers=tuple(_writers(run, config)),
    )
    text = render(_header(whole), patches)
    # What is shipped is what was tested: the text is read back and applied.
    for patch, fixed in zip(
        parse(f"{whole.patch}", text), sorted(run.changes, key=lambda fixed: fixed.display), strict=True
    ):
        if forward(patch, fixed.change.before) != fixed.change.after:
            raise BundleError(f"{entry.title}: {patch.path}: the patch does not give the fixed text")
    return Made(whole, text)


def _header(entry: ReleaseEntry) -> str:
    head = _HEADER.format(title=entry.title, fixes=", ".join(entry.fixes), patch=entry.patch)
    return head + "".join(
        _FILE_HEADER.format(path=file.path, before=file.before, after=file.after) for file in entry.files
    )


def _writers(run: FixRun, config: Config) -> Iterable[WriterEntry]:
    """The writers in changed files whose tables changed."""
    from kvlint.file_check import FileCheck

    old, new = FileCheck(config), FileCheck(config, {fixed.change.path: fixed.change.after for fixed in run.changes})
    for fixed in sorted(run.changes, key=lambda fixed: fixed.display):
        tables = [
            {
                f"{writer.cls.name}.{writer.name}": writer.table.notation
                for writer in check.facts(fixed.change.path).writers
            }
            for check in (old, new)
        ]
        for name, notation in tables[0].items():
            if tables[1].get(name, notation) != notation:
                yield WriterEntry(name=name, path=fixed.display, before=notation, after=tables[1][name])


def _name_of(title: str) -> str:
    from typing import get_args

    from kvlint.diagnostics import FixPlan

    return next(str(plan.NAME) for plan in get_args(FixPlan) if title == plan.TITLE)


def _by_file(findings: Iterable[Finding]) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = {}
    for finding in findings:
        counts.setdefault(finding.location.path, Counter())[finding.code] += 1
    return counts


def _sha256(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def _require_compilable(path: str, text: bytes) -> None:
    try:
        compile(text, os.path.basename(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise BundleError(f"{path}: the fixed text does not compile: {error}") from error
