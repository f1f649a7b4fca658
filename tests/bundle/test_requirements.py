"""What may be asked for, and which versions are meant by it."""

from __future__ import annotations

import pytest
from packaging.version import Version

from kvlint.bundle import BundleError
from kvlint.bundle.requirements import parse, version_of

VERSIONS = tuple(map(Version, ("0.5.9", "0.5.10rc0", "0.5.10", "0.5.10.post1", "0.5.14", "0.6.0rc1")))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sglang==0.5.14", ["0.5.14"]),
        ("sglang == 0.5.10", ["0.5.10"]),
        ("sglang>=0.5.10,<0.5.14", ["0.5.10", "0.5.10.post1"]),
        ("sglang==0.5.*", ["0.5.9", "0.5.10", "0.5.10.post1", "0.5.14"]),
        ("sglang", ["0.5.14"]),
        ("sglang[all]>=0.5.14", ["0.5.14"]),
        ("sglang>=0.5.14rc1", ["0.5.14", "0.6.0rc1"]),
        ("sglang>0.6rc0", ["0.6.0rc1"]),
        ("sglang<0.1", []),
    ],
)
def test_matching_versions(text: str, expected: list[str]) -> None:
    assert [str(version) for version in parse(text).matching(VERSIONS)] == expected


@pytest.mark.parametrize(
    ("text", "pinned"),
    [
        ("sglang==0.5.14", "0.5.14"),
        ("sglang===0.5.14", "0.5.14"),
        ("sglang==0.5.14.post1", "0.5.14.post1"),
        ("sglang==0.5.*", None),
        ("sglang>=0.5", None),
        ("sglang==0.5.14,!=0.5.13", None),
        ("sglang", None),
    ],
)
def test_pinned_version(text: str, pinned: str | None) -> None:
    assert parse(text).pinned == (None if pinned is None else Version(pinned))


def test_names_are_normalised() -> None:
    assert parse("AI_Dynamo==1").name == "ai-dynamo"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sglang==", "is no requirement"),
        ("sglang=0.5", "is no requirement"),
        ("", "is no requirement"),
        ("--index-url=x", "is no requirement"),
        ("../evil==1", "is no requirement"),
        ("a\nb", "is no requirement"),
        ("sglang @ https://example.org/x.whl", "names a URL"),
        ("sglang==1; python_version<'3'", "leave out what follows"),
    ],
)
def test_anything_else_is_refused(text: str, said: str) -> None:
    with pytest.raises(BundleError, match=said) as caught:
        parse(text)
    assert "\n" not in str(caught.value)


def test_a_text_that_is_no_version() -> None:
    assert version_of("not-a-version") is None
