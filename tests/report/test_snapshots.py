"""One report in every format, as committed: what a change does to each shows in review.

``pytest tests/report/test_snapshots.py --snapshot-update`` writes them anew.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from syrupy.extensions.single_file import SingleFileSnapshotExtension

from kvlint import __version__
from kvlint.report import FORMATS, render

from .small import small

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

_SUFFIXES = {
    "text": "txt",
    "json": "json",
    "sarif": "sarif",
    "github": "log",
    "gitlab": "json",
    "html": "html",
    "junit": "xml",
}


def settled(text: str, output_format: str, root: Path) -> str:
    """``text`` without what depends on the place, the version, and the pages of the rules."""
    text = text.replace(str(root), "/project").replace(__version__, "VERSION")
    if output_format == "sarif":
        document = json.loads(text)
        document["runs"][0]["tool"]["driver"]["rules"] = []
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    if output_format == "html":
        text = re.sub(r"sha256-[\w+/=]+", "sha256-…", text)
        text = re.sub(r"<(style|script)>.*?</\1>\n", r"<\1>…</\1>\n", text, flags=re.DOTALL)
        return re.sub(r'(<section id="rules").*?</section>', r"\1>…</section>", text, flags=re.DOTALL)
    return text


def test_every_format_has_a_snapshot() -> None:
    assert set(_SUFFIXES) == set(FORMATS)


@pytest.mark.parametrize("output_format", FORMATS)
def test_small_report(
    output_format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.chdir(tmp_path)
    text = settled(render(small(tmp_path), output_format), output_format, tmp_path)
    suffix = _SUFFIXES[output_format]
    # The attribute's name changed with syrupy 5.
    extension = type("Extension", (SingleFileSnapshotExtension,), {"file_extension": suffix, "_file_extension": suffix})
    assert text.encode() == snapshot(extension_class=extension)
