"""Fingerprints of whole runs: the same whatever else the run reports, in every format that has them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from .repositories import CANDIDATE, repository, write

Run = Callable[..., Result]

pytestmark = pytest.mark.usefixtures("nobodys_git")

CALL = "    f(LOST)\n"
TWINS = CANDIDATE + "def worker():\n" + CALL + "    pass\n" + CALL


def of_gitlab(output: str) -> dict[int, str]:
    return {issue["location"]["lines"]["begin"]: issue["fingerprint"] for issue in json.loads(output)}


def of_sarif(output: str) -> dict[int, str]:
    def line(result: Any) -> int:
        number = result["locations"][0]["physicalLocation"]["region"]["startLine"]
        assert isinstance(number, int)
        return number

    (run,) = json.loads(output)["runs"]
    return {line(result): result["partialFingerprints"]["kvlintFinding/v1"] for result in run["results"]}


def of_html(output: str) -> dict[int, str]:
    """By position, since the page's lines belong to its layout: of the last finding alone if there is one."""
    anchors = re.findall(r'id="finding-([0-9a-f]{32})"', output)
    return dict(zip((3, 5) if len(anchors) == 2 else (5,), anchors, strict=True))


FORMATS = {"gitlab": of_gitlab, "sarif": of_sarif, "html": of_html}


@pytest.mark.parametrize("output_format", FORMATS)
def test_the_second_of_two_equal_findings_keeps_its_own(kvlint: Run, output_format: str) -> None:
    read = FORMATS[output_format]
    told = ("check", "--output-format", output_format)
    repository(a=TWINS.replace(CALL, CALL + "    # old\n", 1).replace("    pass\n" + CALL, ""))
    kvlint("check", "--baseline", "known.json", "--write-baseline")
    write("a.py", TWINS)
    whole = read(kvlint(*told).stdout)
    assert sorted(whole) == [3, 5]
    assert len(set(whole.values())) == 2
    for options in (["--diff-base=main"], ["--baseline=known.json"], ["--diff-base=main", "--baseline=known.json"]):
        narrowed = kvlint(*told, *options)
        assert narrowed.exit_code == 1
        assert read(narrowed.stdout) == {5: whole[5]}


def test_a_list_of_suppressed_findings_changes_none(kvlint: Run) -> None:
    Path("a.py").write_text(TWINS.replace(CALL, "    f(LOST)  # noqa: KVL001\n", 1))
    told = ("check", "--output-format", "sarif")
    without = of_sarif(kvlint(*told).stdout)
    including = of_sarif(kvlint(*told, "--include-suppressed").stdout)
    assert list(without) == [5]
    assert sorted(including) == [3, 5]
    assert including[5] == without[5] != including[3]
    assert os.listdir() == ["a.py"]
