"""Backends of one tree: which files are rows, what their cells say, and what becomes of files that cannot be judged."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from kvlint import file_check
from kvlint.bundle import BundleError
from kvlint.bundle.survey import Survey, survey, targets_below
from kvlint.bundle.trees import unpacked
from kvlint.report import audit_markdown, audit_text
from kvlint.report.audit_model import (
    Audit,
    Backend,
    Fate,
    LoopRow,
    Release,
    RemovalCounts,
    WriterRow,
    loops_of,
    removals_of,
    verdict,
    writers_of,
)

from .samples import AFFECTED, FolderReleases

FIXTURES = Path(__file__).parent.parent.parent / "fixtures" / "rules"


def surveyed(folder: Path, files: dict[str, bytes]) -> Survey:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return survey(targets_below(str(folder), files), str(folder))


def backend(**cells: object) -> Backend:
    given = {"path": "a.py", "name": "a.py", "writers": (), "findings": {}, "loops": (), "removals": RemovalCounts()}
    return Backend(**{**given, **cells})  # type: ignore[arg-type]


def release(*backends: Backend, **more: object) -> Release:
    return Release("p", "1", None, None, backends, **more)  # type: ignore[arg-type]


def loop(fate: Fate, line: int = 1) -> LoopRow:
    return LoopRow("f", "worker", line, fate, "why")


def test_names_are_as_short_as_they_can_be(tmp_path: Path) -> None:
    copies = {f"{top}/{name}": data for top in ("x", "y") for name, data in AFFECTED.items()}
    found = surveyed(
        tmp_path, copies | {f"z/{name.replace('kvdemo', 'other')}": data for name, data in AFFECTED.items()}
    )
    assert [row.name for row in found.backends] == [
        "x/kvdemo/backend.py", "x/kvdemo/base.py", "y/kvdemo/backend.py", "y/kvdemo/base.py", "other/backend.py",
        "other/base.py",
    ]  # fmt: skip


def test_a_file_at_the_top(tmp_path: Path) -> None:
    source = (FIXTURES / "kvl004_overwritable_terminal_status" / "bad.py").read_bytes()
    (row,) = surveyed(tmp_path, {"bad.py": source}).backends
    assert row.name == "bad.py"
    assert set(row.findings) >= {"KVL004"}


def test_a_status_on_a_record(tmp_path: Path) -> None:
    cases = sorted(FIXTURES.glob("kvl001*/**/bad.py"))
    (path,) = [path for path in cases if path.parent.name == "attribute_status"] or [cases[0]]
    rows = surveyed(tmp_path, {"bad.py": path.read_bytes()}).backends
    assert [set(row.findings) for row in rows]


def test_a_file_that_kvlint_fails_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object, path: str) -> tuple[object, ...]:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(file_check.FileCheck, "_rules_for", fail)
    found = surveyed(tmp_path, AFFECTED)
    assert found.incomplete == tuple(
        f"{name}: kvlint failed on this file: ZeroDivisionError: a defect" for name in sorted(AFFECTED)
    )


def test_a_file_that_cannot_be_decoded_or_parsed(tmp_path: Path) -> None:
    found = surveyed(tmp_path, AFFECTED | {"a.py": b"Poll.Failed\n\xff\n", "b.py": b"Poll.Failed = (\n"})
    assert [text.partition(":")[0] for text in found.incomplete] == ["a.py", "b.py"]
    assert [row.path for row in found.backends] == sorted(AFFECTED)


def test_nowhere_to_unpack(releases: FolderReleases, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryDirectory", refuse)
    with pytest.raises(BundleError, match="set TMPDIR"), unpacked(releases, "kvdemo", "1.0"):
        pass


def test_the_unpacked_tree_goes(releases: FolderReleases) -> None:
    with unpacked(releases, "kvdemo", "1.0") as tree:
        assert tree.files == tuple(sorted(AFFECTED))
        assert (tree.folder / tree.files[0]).exists()
    assert not tree.folder.exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (release(), "no backend with a status protocol found"),
        (release(backend()), "nothing found by these rules"),
        (release(backend(loops=(loop(Fate.UNKNOWN),))), "nothing found by these rules"),
        (release(backend(loops=(loop(Fate.ENDS),))), "nothing found by these rules, but an exception can end a loop"),
        (release(backend(findings={"KVL005": 1})), "a failure can be lost; no fixed release known"),
        (
            release(backend(findings={"KVL005": 1}), backend(findings={"KVL001": 2}), fixed_in="2"),
            "an abort can be lost or the request pinned; fixed in 2",
        ),
        (release(backend(), incomplete=("a", "b")), "nothing found by these rules (2 files not judged)"),
        (release(backend(), incomplete=("a",)), "nothing found by these rules (1 file not judged)"),
    ],
)
def test_verdicts(given: Release, said: str) -> None:
    assert verdict(given) == said


def test_cells() -> None:
    assert writers_of(backend()) == removals_of(backend()) == loops_of(backend()) == "-"
    assert removals_of(backend(removals=RemovalCounts(0, 0, 2))) == "0/0/2"
    assert loops_of(backend(loops=(loop(Fate.GOES_ON),))) == "no"
    assert loops_of(backend(loops=(loop(Fate.GOES_ON), loop(Fate.UNKNOWN)))) == "unknown"
    assert loops_of(backend(loops=(loop(Fate.ENDS, 3), loop(Fate.UNKNOWN, 4), loop(Fate.ENDS, 5)))) == "yes: 3, 5"


WRITER = WriterRow("CommonKVManager", "update_status", "common/conn.py", 3, "-:F F:F", None)
WIDE = release(backend(name="mooncake/conn.py", findings={"KVL001": 12}, writers=(WRITER, WRITER)), backend())


@pytest.mark.parametrize("width", [20, 80, 130])
def test_a_narrow_terminal_loses_no_column(width: int) -> None:
    text = audit_text.render(Audit((WIDE,)), width=width)
    for title in ("release", "backend", "writer", "KVL001", "KVL005", "pop sites"):
        assert title in text
    assert "12" in text
    assert "".join(text.split()).count("mooncake/conn.py") == 1
    assert text.splitlines()[-1] == f"p 1: {verdict(WIDE)}"


def test_without_a_terminal_no_line_is_broken() -> None:
    lines = audit_text.render(Audit((WIDE,))).splitlines()
    assert sum("CommonKVManager.update_status -:F F:F; CommonKVManager.update_status" in line for line in lines) == 1


def test_colour_is_for_what_is_affected() -> None:
    assert "\x1b[31mp 1: " in audit_text.render(Audit((WIDE,)), colour=True)
    assert "\x1b[31m" not in audit_text.render(Audit((release(backend()),)), colour=True)
    assert "\x1b" not in audit_text.render(Audit((WIDE,)))


def test_nothing_to_show() -> None:
    assert audit_text.render(Audit(())) == ""
    assert audit_markdown.render(Audit(())) == ""


def test_a_loop_behind_the_function_that_is_started(tmp_path: Path) -> None:
    guarded = b"""

def guard(manager):
    def run():
        manager.bootstrap_listener()

    return run


class Guarded(RdmaManager):
    def start(self):
        threading.Thread(target=self.run_guarded).start()

    def run_guarded(self):
        try:
            self.listen()
        except Exception:
            raise

    def listen(self):
        while True:
            frames = self.socket.recv_multipart()
            self.update_status(int(frames[0]), Poll.Failed)

    def drain(self):
        while True:
            frames = self.socket.recv_multipart()
            self.update_status(int(frames[0]), Poll.Failed)
"""
    source = AFFECTED["kvdemo/backend.py"] + guarded
    rows = surveyed(tmp_path, AFFECTED | {"kvdemo/backend.py": source}).backends
    loops = {loop.function: loop.fate for row in rows for loop in row.loops}
    assert loops["Guarded.listen"] is Fate.ENDS
    assert "Guarded.drain" not in loops
