"""Kept outcomes: the same as computed ones, and gone as soon as anything they rest on changes."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from kvlint import engine
from kvlint.cache import identity as identities
from kvlint.cache.results import Results
from kvlint.cache.store import CacheUnusable
from kvlint.config import Config, ProtocolOverride
from kvlint.diagnostics import (
    Finding,
    Location,
    Severity,
    Span,
)
from kvlint.file_check import FileCheck, Outcome
from kvlint.report.model import Report
from kvlint.semantics.disk import Asked
from kvlint.source.discovery import discover

FIXTURES = Path(__file__).parent.parent.parent / "fixtures" / "rules"
CASES = [
    "kvl001_non_terminal_write_after_failed/cross_file_override",
    "kvl001_non_terminal_write_after_failed/cross_file_namespace_package",
    "kvl001_non_terminal_write_after_failed/cross_file_reexport",
    "kvl003_pop_in_abort_handler/cross_file_listener",
]


@pytest.fixture(autouse=True)
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def analysed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were analysed or whose comments were looked at, and not taken from an earlier run."""
    found: list[str] = []
    check, comments = FileCheck.check, FileCheck.check_comments

    def noted(self: FileCheck, path: str) -> Outcome:
        found.append(os.path.basename(path))
        return check(self, path)

    def noted_comments(self: FileCheck, path: str, data: bytes) -> Outcome:
        found.append(os.path.basename(path))
        return comments(self, path, data)

    monkeypatch.setattr(FileCheck, "check", noted)
    monkeypatch.setattr(FileCheck, "check_comments", noted_comments)
    return found


def fresh(config: Config | None = None) -> Report:
    return run(None, config)


def cached(config: Config | None = None) -> Report:
    results = Results("../cache", config or Config(folder=os.getcwd()))
    try:
        return run(results, config)
    finally:
        results.close()


def run(results: Results | None, config: Config | None) -> Report:
    config = config or Config(folder=os.getcwd())
    return engine.check_targets(discover(["."], config).targets, config, jobs=1, results=results)


def copy(case: str) -> None:
    shutil.copytree(FIXTURES / case, ".", dirs_exist_ok=True)


@pytest.mark.parametrize("case", CASES)
def test_a_second_run_analyses_nothing_and_reports_the_same(case: str, analysed: list[str]) -> None:
    copy(case)
    expected = fresh()
    assert expected.findings
    assert cached() == expected
    analysed.clear()
    assert cached() == expected
    assert analysed == []


def mutations(file: Path) -> Iterator[Callable[[], object]]:
    content = file.read_bytes()
    yield file.unlink
    yield lambda: file.write_bytes(b"")
    yield lambda: file.write_bytes(content.replace(b"max(", b"min("))
    yield lambda: file.write_bytes(b"def f(:\n" + content)
    yield lambda: file.write_bytes(b"\n" + content)
    yield lambda: file.with_suffix("").mkdir(exist_ok=True)
    yield lambda: file.with_suffix(".pyi").write_bytes(b"")


def restore(case: str) -> None:
    for entry in Path().iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    copy(case)


@pytest.mark.parametrize("case", CASES)
def test_after_any_change_the_report_is_that_of_a_run_without_cache(case: str) -> None:
    copy(case)
    cached()
    for file in sorted(Path().rglob("*.py")):
        for number, mutate in enumerate(mutations(file)):
            mutate()
            assert cached() == fresh(), f"{file}, change {number}"
            restore(case)
            assert cached() == fresh(), f"{file}, change {number} taken back"


def project() -> None:
    """A backend whose base class, and whose enum's module, stand elsewhere."""
    copy(CASES[0])
    for name in ("plain_backend.py", "sticky_backend.py", "base.py", "polls.py", "__init__.py"):
        target = Path("pkg") / name
        target.parent.mkdir(exist_ok=True)
        Path(name).rename(target)
    for name in ("plain_backend.py", "sticky_backend.py", "base.py"):
        file = Path("pkg") / name
        file.write_text(file.read_text().replace("from .", "from pkg."))


def append(path: str) -> None:
    with Path(path).open("a") as stream:
        stream.write("\n")


def stray_module() -> None:
    # Nearer to the importing file than the package itself.
    Path("pkg/pkg").mkdir()
    Path("pkg/pkg/base.py").write_text("class Base: pass\n")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda: Path("unrelated.py").write_text("x = 1\n"), set()),
        (lambda: Path("pkg/other.py").write_text("x = 1\n"), set()),
        (lambda: Path("pkg/base.py").touch(), set()),
        (lambda: append("pkg/plain_backend.py"), {"plain_backend.py"}),
        (lambda: append("pkg/base.py"), {"base.py", "plain_backend.py", "sticky_backend.py"}),
        (stray_module, {"plain_backend.py", "sticky_backend.py"}),
    ],
    ids=["new file", "new neighbour", "touch", "own edit", "base", "shadowing module"],
)
def test_what_is_analysed_again(change: Callable[[], object], expected: set[str], analysed: list[str]) -> None:
    project()
    cached()
    analysed.clear()
    change()
    report = cached()
    assert set(analysed) == expected
    assert report == fresh()


def test_an_edit_that_keeps_size_and_times_is_seen() -> None:
    copy(CASES[0])
    before = cached()
    file = Path("base.py")
    status = file.stat()
    content = file.read_bytes()
    file.write_bytes(content.replace(b"max(", b"min("))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert file.stat().st_size == status.st_size
    assert cached() == fresh() != before


CANDIDATE = "status = KVPoll.Failed\n"


@pytest.mark.parametrize(
    "config",
    [
        {"ignore": ("KVL001",)},
        {"select": ("KVL004",)},
        {"per_file_ignores": {"plain*": ("KVL001",)}},
        {"protocol": (ProtocolOverride(writer="set_state"),)},
    ],
)
def test_settings_that_change_findings_change_what_is_found(config: dict[str, object], analysed: list[str]) -> None:
    copy(CASES[0])
    usual = cached()
    changed = msgspec.structs.replace(Config(folder=os.getcwd()), **config)
    assert cached(changed) == fresh(changed)
    analysed.clear()
    cached(changed)
    assert cached() == usual
    assert analysed == []


def test_settings_that_change_no_finding_share_results(analysed: list[str]) -> None:
    copy(CASES[0])
    cached()
    analysed.clear()
    cached(Config(folder="/elsewhere", file="/elsewhere/kvlint.toml", exclude=("polls.py",)))
    assert analysed == []


def test_another_python_starts_afresh(analysed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    copy(CASES[0])
    cached()
    analysed.clear()
    identities._of_program.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(sys, "version", "4")
        cached()
    identities._of_program.cache_clear()
    assert analysed
    analysed.clear()
    cached()
    assert analysed == []


def test_the_source_of_kvlint_is_part_of_its_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "kvlint"
    shutil.copytree(Path(identities.__file__).parent.parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(identities, "__file__", str(package / "cache" / "identity.py"))
    of_program = identities._of_program.__wrapped__
    first = of_program()
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "x.pyc").touch()
    assert of_program() == first
    with (package / "rules" / "kvl001_non_terminal_write_after_failed.py").open("a") as stream:
        stream.write("\n")
    second = of_program()
    (package / "rules" / "kvl999_new.py").touch()
    assert len({first, second, of_program()}) == 3


def test_a_kvlint_whose_source_cannot_be_read_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(config: Config) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("kvlint.cache.results.identity", refuse)
    with pytest.raises(CacheUnusable, match="Permission denied"):
        Results(str(tmp_path / "cache"), Config())


def test_silenced_findings_come_back_as_such(analysed: list[str]) -> None:
    Path("a.py").write_text(CANDIDATE + "x  # noqa: KVL001\n")
    Path("b.py").write_text(CANDIDATE + "x  # noqa: KVL001, KVL901\n")
    Path("c.py").write_text("x  # noqa: KVL001\n")
    expected = cached()
    assert [finding.location.path for finding in expected.findings] == ["a.py", "c.py"]
    analysed.clear()
    assert cached() == expected
    assert analysed == []
    results = Results("../cache", Config())
    path = os.path.abspath("b.py")
    outcome = results.find(path, Path(path).read_bytes())
    assert outcome is not None
    assert [finding.code for finding in outcome.silenced] == ["KVL901"]
    results.close()


def test_a_file_that_does_not_parse_is_known_to(analysed: list[str]) -> None:
    Path("a.py").write_text(CANDIDATE + "def f(:\n")
    Path("b.py").write_bytes(CANDIDATE.encode() + b"'\xff'\n")
    expected = cached()
    assert [finding.code for finding in expected.findings] == ["KVL900"] * 2
    without_rule = Config(folder=os.getcwd(), ignore=("KVL900",))
    warned = cached(without_rule)
    assert len(warned.warnings) == 2
    analysed.clear()
    assert cached() == expected
    assert cached(without_rule) == warned
    assert analysed == []


def too_deep(self: FileCheck, path: str) -> None:
    raise RecursionError


def crash(self: FileCheck, path: str) -> None:
    raise ZeroDivisionError


@pytest.mark.parametrize("failure", [too_deep, crash])
def test_what_was_cut_short_is_not_kept(failure: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    copy(CASES[0])
    with monkeypatch.context() as patched:
        patched.setattr(FileCheck, "facts", failure)
        report = cached()
        assert report.files.failed
    assert cached() == fresh() != report


def test_what_rests_on_a_module_nested_too_deeply_is_not_kept(analysed: list[str]) -> None:
    project()
    cached()
    Path("pkg/base.py").write_text("x = " + "-" * 20_000 + "1\n" + CANDIDATE)
    cached()
    analysed.clear()
    assert cached() == fresh()
    assert {"base.py", "plain_backend.py"} <= set(analysed)


def test_a_file_that_vanishes_is_not_kept() -> None:
    Path("a.py").write_text(CANDIDATE)
    results = Results("../cache", Config())
    path = os.path.abspath("a.py")
    Path("a.py").unlink()
    assert results.check(FileCheck(Config()), path).failed
    assert not [name for name in os.listdir("../cache/kvlint-v1") if len(name) == 64]
    results.close()


def test_paths_that_are_no_text_are_computed_each_time(analysed: list[str]) -> None:
    name = os.fsdecode(b"caf\xe9.py")
    try:
        Path(name).write_text(CANDIDATE)
    except OSError:
        pytest.skip("the file system takes names in UTF-8 only")
    shutil.copyfile(FIXTURES / "kvl004_overwritable_terminal_status" / "bad.py", name)
    assert cached() == cached() == fresh()
    assert len(analysed) == 3


def test_a_blob_with_another_form_is_replaced(analysed: list[str]) -> None:
    copy(CASES[0])
    expected = cached()
    results = Results("../cache", Config())
    for name in os.listdir("../cache/kvlint-v1"):
        # The marks are replaced, too, which does no harm.
        results._store.put(name, b"not ours")
    results.close()
    analysed.clear()
    assert cached() == expected
    assert analysed
    analysed.clear()
    assert cached() == expected
    assert analysed == []


def test_processes_keep_what_they_find(analysed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvlint.processes._SMALLEST_SHARE", 1)
    copy(CASES[0])
    config = Config(folder=os.getcwd())
    results = Results("../cache", config)
    targets = discover(["."], config).targets
    together = engine.check_targets(targets, config, jobs=2, results=results)
    results.close()
    assert together == fresh()
    analysed.clear()
    assert cached() == together
    assert analysed == []


def test_an_outcome_is_replaced_whole() -> None:
    path = os.path.abspath("a.py")
    Path(path).write_text("x\n")
    results = Results("../cache", Config())
    found = Finding("KVL001", "name", Severity.ERROR, "é ☃", Location(path, Span(1, 1, 1, 2)))
    outcome = Outcome(path, (found,), parsed=True)
    for parsed in (True, False):
        results._keep(replace(outcome, parsed=parsed), {path: b"x\n"}, Asked())
        assert results.find(path, b"x\n") == replace(outcome, parsed=parsed)
    assert results.find(path, b"y\n") is None
    results.close()
