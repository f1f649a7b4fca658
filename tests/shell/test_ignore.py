"""Patterns behave as git's do; git itself is asked."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvlint.source.ignore import Patterns

SEGMENTS = st.sampled_from(
    [
        "a",
        "b",
        "*",
        "a*",
        "*.py",
        "?",
        "**",
        "***",
        "[ab]",
        "[!a]",
        "[^a]",
        "a[b-c]",
        r"\*",
        r"\a",
        "[]a]",
        "a**b",
        "**a",
    ]
)
PATTERNS = st.builds(
    lambda prefix, parts, suffix: prefix + "/".join(parts) + suffix,
    st.sampled_from(["", "", "/", "!"]),
    st.lists(SEGMENTS, min_size=1, max_size=3),
    st.sampled_from(["", "", "/"]),
)
NAMES = st.sampled_from(["a", "b", "ab", "ac", "x.py", "a.py", "*", "aab", "]", "axb"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    return folder


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(PATTERNS, min_size=1, max_size=4), paths=st.sets(PATHS, min_size=20, max_size=60))
def test_agrees_with_git(repository: Path, lines: list[str], paths: set[str]) -> None:
    (repository / ".git/info/exclude").write_text("\n".join(lines) + "\n")
    command = ["git", "check-ignore", "--no-index", "--stdin", "-z"]
    asked = "\0".join(sorted(paths))
    answer = subprocess.run(command, input=asked, capture_output=True, text=True, cwd=repository, check=False)
    ignored = set(answer.stdout.split("\0")) - {""}
    patterns = Patterns(lines)
    assert {path for path in paths if patterns.covers(path)} == ignored


@pytest.mark.parametrize(
    ("line", "path", "is_folder", "verdict"),
    [
        ("build/", "src/build", True, True),
        ("build/", "src/build", False, None),
        ("/build", "src/build", True, None),
        ("docs/*.py", "docs/conf.py", False, True),
        ("docs/*.py", "docs/api/conf.py", False, None),
        ("**/gen/*.py", "a/b/gen/x.py", False, True),
        ("*.d/", "x.d", False, None),
        ("*.d/", "x.d", True, True),
        ("**/name", "a/name", False, True),
        ("/**", "a/name", False, True),
        ("!keep.py", "a/keep.py", False, False),
        ("# comment", "# comment", False, None),
        (r"\#odd", "#odd", False, True),
        ("trailing  ", "trailing", False, True),
        (r"trailing\ ", "trailing ", False, True),
        ("[z-a].py", "b.py", False, None),
        ("", "anything", False, None),
        ("/", "anything", False, None),
        ("caf\udce9.py", "caf\udce9.py", False, True),
    ],
)
def test_verdicts(line: str, path: str, is_folder: bool, verdict: bool | None) -> None:
    assert Patterns([line + "\n"]).verdict(path, is_folder) is verdict


def test_the_last_pattern_that_fits_decides() -> None:
    patterns = Patterns(["*.py", "!a.py", "a.*"])
    assert patterns.verdict("a.py", False) is True
    assert Patterns(["*.py", "a.*", "!a.py"]).verdict("a.py", False) is False
    assert not Patterns(["# only a comment"])
    assert patterns
