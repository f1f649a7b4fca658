"""Pip is asked the right questions, and its answers and complaints are understood; a script stands in for it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from kvlint.bundle import fetch, pip
from kvlint.bundle.cache import Cache
from kvlint.bundle.fetch import IndexReleases, NoSuchRelease

STAND_IN = """\
import json, os, pathlib, sys
answers = json.loads(pathlib.Path(os.environ["ANSWERS"]).read_text())
calls = pathlib.Path(os.environ["CALLS"])
with calls.open("a") as stream:
    stream.write(json.dumps(sys.argv[1:]) + "\\n")
number = len(calls.read_text().splitlines()) - 1
answer = answers[min(number, len(answers) - 1)]
if "file" in answer:
    dest = pathlib.Path(sys.argv[sys.argv.index("--dest") + 1])
    (dest / answer["file"]).write_bytes(b"wheel")
print(answer.get("out", ""))
print(answer.get("err", ""), file=sys.stderr)
sys.exit(answer.get("rc", 0))
"""

NO_MATCH = {"rc": 1, "err": "ERROR: No matching distribution found for p"}
UNREACHABLE = {"rc": 1, "err": "WARNING: Retrying … NewConnectionError(…)\nERROR: No matching distribution found for p"}

Answers = Callable[..., Callable[[], list[list[str]]]]


@pytest.fixture
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Have pip give these answers, the last one for ever; what is returned tells how it was called."""
    script = tmp_path / "pip.py"
    script.write_text(STAND_IN, encoding="utf-8")
    monkeypatch.setattr(pip, "_command", lambda: (sys.executable, str(script)))
    monkeypatch.setenv("ANSWERS", str(tmp_path / "answers.json"))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))

    def prepare(*given: dict[str, Any]) -> Callable[[], list[list[str]]]:
        (tmp_path / "answers.json").write_text(json.dumps(given), encoding="utf-8")
        return lambda: [json.loads(line) for line in (tmp_path / "calls").read_text("utf-8").splitlines()]

    return prepare


def test_versions_are_read_and_sorted(answers: Answers) -> None:
    calls = answers({"out": "p (1.10)\nAvailable versions: 1.10, 1.9, 1.0rc1, 2004-junk-, 1.9\n  INSTALLED: 1.9"})
    assert pip.versions("p") == (Version("1.0rc1"), Version("1.9"), Version("1.10"))
    (call,) = calls()
    assert [word for word in call if not word.startswith("-")] == ["index", "versions", "p"]
    assert {"--pre", "--no-input", "--ignore-requires-python"} <= set(call)


def test_versions_of_other_interpreters(answers: Answers) -> None:
    calls = answers(NO_MATCH, NO_MATCH, {"out": "Available versions: 1.0"})
    assert pip.versions("p") == (Version("1.0"),)
    assert "--python-version" not in calls()[0]
    assert "--python-version" in calls()[2]


def test_an_unknown_name(answers: Answers) -> None:
    answers(NO_MATCH)
    with pytest.raises(pip.NoMatch, match="check the spelling"):
        pip.versions("p")


def test_an_answer_without_versions(answers: Answers) -> None:
    answers({"out": "something else"})
    assert pip.versions("p") == ()


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (UNREACHABLE, pip.Unreachable, "check the network"),
        ({"rc": 1, "err": 'ERROR: unknown command "index"'}, pip.PipFailed, "upgrade it"),
        ({"rc": 1, "err": "OSError: [Errno 28] No space left on device"}, pip.PipFailed, "disk is full"),
        (
            {"rc": 2, "err": "ERROR: first\nERROR: Hashes are required"},
            pip.PipFailed,
            "pip failed: Hashes are required",
        ),
        ({"rc": 3}, pip.PipFailed, "pip failed: nothing"),
        ({"rc": 1, "out": "Traceback\nKeyError: 1"}, pip.PipFailed, "KeyError: 1"),
    ],
)
def test_complaints(answer: dict[str, Any], kind: type[Exception], said: str, answers: Answers) -> None:
    answers(answer)
    with pytest.raises(kind, match=said) as caught:
        pip.versions("p")
    assert str(caught.value).startswith("p: ")


def test_a_wheel_is_downloaded(answers: Answers, tmp_path: Path) -> None:
    calls = answers({"file": "p-1.0-py3-none-any.whl"})
    assert pip.download_wheel("p", "1.0", tmp_path) == tmp_path / "p-1.0-py3-none-any.whl"
    (call,) = calls()
    assert call[0] == "download"
    assert {"--no-deps", "--only-binary=:all:", "--ignore-requires-python"} <= set(call)
    assert call[-1] == "p==1.0"


def test_a_wheel_for_another_platform_will_do(answers: Answers, tmp_path: Path) -> None:
    calls = answers(NO_MATCH, NO_MATCH, {"file": "p-1.0-cp311-cp311-win_amd64.whl"})
    assert pip.download_wheel("p", "1.0", tmp_path).name == "p-1.0-cp311-cp311-win_amd64.whl"
    third = calls()[2]
    assert third[third.index("--python-version") + 1] == "3.11"
    assert {"--platform=win_amd64", "--platform=manylinux_2_34_x86_64", "--platform=macosx_14_0_arm64"} <= set(third)


def test_a_release_without_wheels(answers: Answers, tmp_path: Path) -> None:
    answers(NO_MATCH)
    with pytest.raises(pip.NoMatch):
        pip.download_wheel("p", "1.0", tmp_path)


def test_pip_that_saves_nothing(answers: Answers, tmp_path: Path) -> None:
    answers({})
    with pytest.raises(pip.NoMatch, match="saved no wheel"):
        pip.download_wheel("p", "1.0", tmp_path)


def test_an_index_that_does_not_answer_is_asked_once(answers: Answers, tmp_path: Path) -> None:
    calls = answers(UNREACHABLE)
    with pytest.raises(pip.Unreachable):
        pip.download_wheel("p", "1.0", tmp_path)
    assert len(calls()) == 1


def test_settings(answers: Answers) -> None:
    listed = [
        "global.index-url='https://a.example/simple'",
        "global.extra-index-url='https://b.example\\nhttps://c.example'",
        "install.no-index='true'",
        "download.proxy='http://proxy:1'",
        ":env:.index-url='https://env.example/simple'",
    ]
    answers({"out": "\n".join(listed)})
    assert pip.settings.__wrapped__() == {
        "index-url": "https://env.example/simple",
        "extra-index-url": "https://b.example https://c.example",
        "proxy": "http://proxy:1",
    }


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "Base URL of the Python Package Index (default\n    https://a.example/simple). This",
            "https://a.example/simple",
        ),
        ("something else", ""),
    ],
)
def test_the_default_index(said: str, expected: str, answers: Answers) -> None:
    calls = answers({"out": said})
    assert pip.default_index.__wrapped__() == expected
    assert calls()[0][0] == "help"


def test_pip_that_cannot_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pip, "_command", lambda: ("/nowhere/pip",))
    with pytest.raises(pip.PipFailed, match="cannot be run"):
        pip.versions("p")


def test_pip_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        asked.append(command)
        if command[0] == "/bin/pip":
            raise OSError("not executable")
        return subprocess.CompletedProcess(command, 0 if command[0] == "/bin/pip3" else 1)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    assert pip._command.__wrapped__() == ("/bin/pip3",)
    assert asked[0][:2] == [sys.executable, "-P"]


def test_pip_that_is_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda command, **options: subprocess.CompletedProcess(command, 1))
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(pip.PipFailed, match="ensurepip"):
        pip._command.__wrapped__()


def test_a_release_is_fetched_once(answers: Answers, tmp_path: Path) -> None:
    calls = answers({"file": "p-1.0-py3-none-any.whl"})
    releases = IndexReleases(tmp_path / "cache", {})
    first = releases.archive("p", "1.0")
    assert releases.archive("p", "1.0") == first
    assert len(calls()) == 1
    first.path.write_bytes(b"harmed")
    assert releases.archive("p", "1.0") == first
    assert first.path.read_bytes() == b"wheel"
    assert len(calls()) == 2


def test_a_release_that_somebody_else_fetched_meanwhile(
    answers: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = answers({"file": "p-1.0-py3-none-any.whl"})
    releases = IndexReleases(tmp_path / "cache", {})
    kept = releases.archive("p", "1.0")
    finds = iter([None, kept])
    monkeypatch.setattr(Cache, "find", lambda self, name, version: next(finds))
    assert releases.archive("p", "1.0") == kept
    assert len(calls()) == 1


def test_a_version_that_does_not_exist(answers: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers(*[NO_MATCH] * 7, {"out": "Available versions: 1.0, 1.1"})
    monkeypatch.setattr(pip, "default_index", lambda: "")
    monkeypatch.setattr(fetch, "download_source", lambda *arguments: None)
    with pytest.raises(NoSuchRelease, match=r"p==9: there is no such release; the newest of 2 are 1\.0, 1\.1"):
        IndexReleases(tmp_path, {}).archive("p", "9")


def test_a_name_that_does_not_exist(answers: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers(NO_MATCH)
    monkeypatch.setattr(pip, "default_index", lambda: "")
    monkeypatch.setattr(fetch, "download_source", lambda *arguments: None)
    with pytest.raises(NoSuchRelease, match="knows no distribution called p"):
        IndexReleases(tmp_path, {}).archive("p", "9")


def test_a_source_distribution_where_there_is_no_wheel(
    answers: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(NO_MATCH)
    monkeypatch.setattr(pip, "default_index", lambda: "https://default.example")

    def download(name: str, version: str, folder: Path, settings: dict[str, str]) -> Path:
        assert settings == {"index-url": "https://default.example", "proxy": "x"}
        (folder / "p-1.0.tar.gz").write_bytes(b"source")
        return folder / "p-1.0.tar.gz"

    monkeypatch.setattr(fetch, "download_source", download)
    assert IndexReleases(tmp_path, {"proxy": "x"}).archive("p", "1.0").filename == "p-1.0.tar.gz"


def test_the_users_index_and_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVLINT_CACHE", str(tmp_path))
    releases = fetch.configured_releases()
    assert releases == IndexReleases(tmp_path)
    monkeypatch.setattr(pip, "settings", lambda: {"index-url": "https://me:secret@a.example"})
    assert releases._settings() == {"index-url": "https://me:secret@a.example"}
    assert "secret" not in repr(IndexReleases(tmp_path, releases._settings()))
    monkeypatch.setattr(pip, "versions", lambda name: (Version("1"),))
    assert releases.versions("p") == (Version("1"),)
