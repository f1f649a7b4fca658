"""A file is judged although a module that it draws on is broken somewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kvlint import engine
from kvlint.config import default_config
from kvlint.semantics import outlined
from kvlint.source.text import UnreadableSource

if TYPE_CHECKING:
    import pytest

BAD = Path(__file__).parent.parent.parent / "fixtures/rules/kvl004_overwritable_terminal_status/bad.py"
BASE = "class Mixin:\n    def helper(self):\n        return 1\n\n\ndef broken(:\n    pass\n"


def test_an_error_elsewhere_costs_no_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(outlined, "_SMALLEST", 0)
    text = BAD.read_text(encoding="utf-8")
    Path("mixin.py").write_text(BASE)
    Path("backend.py").write_text(text)
    expected = [finding.code for finding in engine.check(["backend.py"], default_config()).findings]
    assert expected
    head, first, rest = text.partition("class ")
    Path("backend.py").write_text(
        head + "from mixin import Mixin\n\n\nclass Unrelated(Mixin):\n    pass\n\n\n" + first + rest
    )
    report = engine.check(["backend.py"], default_config())
    assert [finding.code for finding in report.findings] == expected
    assert report.crashes == ()


def test_another_file_that_cannot_be_read_is_no_finding_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def fail(path: str, world: object) -> None:
        raise UnreadableSource("/other.py", "cannot be parsed", 7)

    monkeypatch.setattr("kvlint.analysis.facts.facts_of", fail)
    Path("a.py").write_bytes(BAD.read_bytes())
    report = engine.check(["a.py"], default_config())
    assert report.findings == ()
    (crash,) = report.crashes
    assert "/other.py" in crash.reason


def test_what_is_said_of_bases_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    more = "\n\nclass {}(Gone):\n    def end(self):\n        self.x = XferState.FAILED\n"
    text = BAD.read_text(encoding="utf-8") + "".join(map(more.format, ("A", "B", "C", "D")))
    Path("backend.py").write_text(text.replace("class ", "from nowhere import Gone\n\n\nclass ", 1))
    (warning,) = engine.check(["backend.py"], default_config()).warnings
    assert warning.startswith("backend.py: little is said of A, B, C and 1 more: nowhere.Gone and the like")


def test_an_enum_without_a_known_failure_is_not_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = BAD.read_text(encoding="utf-8")
    assert "FAILED" in text
    Path("backend.py").write_text(text.replace("FAILED", "BROKEN") + "\n# Failed\n")
    assert engine.check(["backend.py"], default_config()).findings == ()
