"""``kvlint drill`` as it is typed."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kvlint.cli import cli
from kvlint.commands.drill import DrillProgress
from kvlint.drill import drill as drill_module
from kvlint.drill.drill import Request
from kvlint.drill.parent import DrillError
from kvlint.drill.results import DrillResult
from kvlint.drill.run import Moment
from kvlint.drill.storm import Storm

from . import made

Invoke = Callable[..., Result]
COMMAND = importlib.import_module("kvlint.commands.drill")
NEEDED = {"torch", "nixl", "zmq", "aiohttp", "requests", "numpy"}
CLEAN = made.result(made.clean_storm(), made.throughput(1.0))


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Runs the command on a Linux that has what it needs."""
    real = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name if name in NEEDED else real(name))
    monkeypatch.setattr(COMMAND, "sys", SimpleNamespace(platform="linux"))
    return lambda *arguments: CliRunner().invoke(cli, ["drill", *arguments])


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """What is asked for; nothing is run, and all is well."""
    return answering(monkeypatch, CLEAN)


def answering(monkeypatch: pytest.MonkeyPatch, answer: DrillResult | BaseException) -> list[Request]:
    requests: list[Request] = []

    def drill(request: Request, progress: Callable[[Moment], None]) -> DrillResult:
        requests.append(request)
        progress(Moment(0, 0, 0, "loading"))
        if isinstance(answer, BaseException):
            raise answer
        return answer

    monkeypatch.setattr(drill_module, "drill", drill)
    return requests


def test_without_options(invoke: Invoke, asked: list[Request]) -> None:
    result = invoke()
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[0] == "tree  (release 0.5.14)"
    assert asked == [Request(roots=(".",))]


def test_options_reach_the_request(invoke: Invoke, asked: list[Request]) -> None:
    result = invoke(
        *("tree", "--compare=other", "--seed=7", "--rooms=20", "--live=3", "--chunks=5", "--chunk-mib=0.5"),
        *("--step-ms=2", "--abort-probability=0.25", "--half-aborts", "--transfer-ms=4", "--device=cuda"),
        *("--one-process", "--workers=2", "--backend=POSIX", "--settle=3"),
    )
    assert result.exit_code == 0
    storm = Storm(
        seed=7,
        rooms=20,
        live=3,
        chunks=5,
        chunk_bytes=1 << 19,
        step=0.002,
        abort_probability=0.25,
        transfer=0.004,
        early_reaches_prefill=False,
    )
    assert asked == [
        Request(
            roots=("tree", "other"),
            storm=storm,
            measures=storm,
            rounds=10,
            device="cuda",
            one_process=True,
            workers=2,
            backend="POSIX",
            settle=3.0,
        )
    ]


def test_throughput_only(invoke: Invoke, asked: list[Request]) -> None:
    assert invoke("tree", "--no-storm", "--rooms=3").exit_code == 0
    assert invoke("tree", "--rounds=0").exit_code == 0
    assert invoke("tree", "--rounds=2", "--compare=x").exit_code == 0
    assert [(request.storm is None, request.rounds) for request in asked] == [(True, 5), (False, 0), (False, 2)]
    assert asked[0].measures.rooms == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--chunk-mib=0.0001"], "a chunk of 105 bytes cannot be cut into 512 pieces of whole words; give a multiple"),
        (["--chunk-mib=0.0000001"], "cannot be cut into 512 pieces"),
        (["--chunk-mib=0"], "0.0 is not in the range 0<x<=1024"),
        (["--chunk-mib=nan"], "--chunk-mib nan: give a number"),
        (["--step-ms=nan"], "--step-ms nan: give a number"),
        (["--transfer-ms=nan"], "--transfer-ms nan: give a number"),
        (["--abort-probability=nan"], "--abort-probability nan: give a number"),
        (["--abort-probability=1.1"], "1.1 is not in the range 0<=x<=1"),
        (["--settle=nan"], "--settle nan: give a number of seconds"),
        (["--settle=inf"], "inf is not in the range"),
        (["--seed=9223372036854775808"], "9223372036854775808 is not in the range"),
        (["--seed=-1"], "-1 is not in the range"),
        (["--rooms=0"], "0 is not in the range"),
        (["--rounds=-1"], "-1 is not in the range"),
        (["--no-storm", "--rounds=0"], "--no-storm with --rounds 0 leaves nothing to do"),
        (["--installed=sglang", "tree"], "ROOT and --installed name a tree each: give one of them"),
        (["--installed=no-such-thing"], "--installed no-such-thing: no distribution of that name is installed"),
        (["--device=tpu"], "'tpu' is not one of"),
        (["a", "b"], "unexpected extra argument"),
    ],
)
def test_wrong_usage_is_status_2_and_runs_nothing(
    invoke: Invoke, asked: list[Request], arguments: list[str], words: str
) -> None:
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
    assert asked == []


def test_the_multiple_that_it_asks_for_is_taken(invoke: Invoke, asked: list[Request]) -> None:
    multiple = invoke("--chunk-mib=0.0001").stderr.split()[-1]
    assert invoke(f"--chunk-mib={multiple}").exit_code == 0
    assert asked[0].measures.chunk_bytes == 4096


def test_any_seed_reaches_the_processes(invoke: Invoke, asked: list[Request]) -> None:
    from kvlint.drill.messages import Begin, decode_command, encode

    assert invoke(f"--seed={2**63 - 1}").exit_code == 0
    begin = Begin(asked[0].measures)
    assert decode_command(encode(begin)) == begin


@pytest.mark.parametrize("missing", [{"numpy"}, {"torch", "zmq"}, NEEDED])
def test_a_missing_extra_is_named(
    invoke: Invoke, asked: list[Request], monkeypatch: pytest.MonkeyPatch, missing: set[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name in missing else name)
    result = invoke("tree")
    assert result.exit_code == 2
    names = [name for name in ("torch", "nixl", "zmq", "aiohttp", "requests", "numpy") if name in missing]
    needed = ", ".join("pyzmq" if name == "zmq" else name for name in names)
    assert f"kvlint drill needs {needed}: pip install 'flake8-kvlint[drill]'" in result.stderr
    assert asked == []


def test_without_numpy_it_is_missed_and_nothing_else_happens() -> None:
    """The package itself needs numpy: what is missing has to be looked for before it is imported."""
    code = (
        "import sys, importlib.util\nsys.modules['numpy'] = None\nfrom kvlint.cli import cli\n"
        "real = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name: None if name == 'numpy' else name\n"
        "import kvlint.commands.drill as command\n"
        "command.sys = type('sys', (), {'platform': 'linux'})\n"
        "cli(['drill'])\n"
    )
    root = Path(__file__).parent.parent.parent
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=False)
    assert found.returncode == 2
    assert "kvlint drill needs numpy: pip install 'flake8-kvlint[drill]'" in found.stderr
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_other_systems_are_refused(
    invoke: Invoke, asked: list[Request], monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    monkeypatch.setattr(COMMAND, "sys", SimpleNamespace(platform=platform))
    result = invoke("tree")
    assert result.exit_code == 2
    assert "kvlint drill needs Linux: NIXL is made for no other system" in result.stderr
    assert asked == []


def test_a_fault_is_status_1(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, made.result(made.broken_storm()))
    result = invoke()
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1].startswith("FAILED: 3 rooms not at an end")
    assert "dead thread    worker Thread-1" not in result.stdout
    assert "dead thread    worker Thread-1" in invoke("--verbose").stdout


@pytest.mark.parametrize(
    ("details", "arguments", "words"),
    [
        ("", [], "error: tree: no\n"),
        ("a stack", [], "error: tree: no (--verbose tells more)\n"),
        ("a stack", ["-v"], "a stack\nerror: tree: no\n"),
        ("", ["-v"], "error: tree: no\n"),
    ],
)
def test_a_drill_that_cannot_go_on_is_status_2(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, details: str, arguments: list[str], words: str
) -> None:
    answering(monkeypatch, DrillError("tree: no", details))
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", words)


def test_an_interrupt_is_status_130(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, KeyboardInterrupt())
    assert invoke().exit_code == 130


def test_the_result_goes_where_it_is_wanted(invoke: Invoke, asked: list[Request], tmp_path: Path) -> None:
    output = tmp_path / "drill.json"
    result = invoke("--output-format=json", f"--output={output}")
    assert (result.exit_code, result.stdout) == (0, "")
    assert json.loads(output.read_text())["drill"]["trees"][0]["root"] == "tree"
    assert json.loads(invoke("--output-format=json").stdout) == json.loads(output.read_text())


def test_an_installed_distribution_is_found(
    invoke: Invoke, asked: list[Request], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    conn = tmp_path / "sglang" / "srt" / "disaggregation" / "nixl" / "conn.py"
    conn.parent.mkdir(parents=True)
    conn.write_text("")
    files = [importlib.metadata.PackagePath(conn.relative_to(tmp_path).as_posix())]
    found = SimpleNamespace(files=files, locate_file=lambda file: tmp_path / file)
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: found)
    monkeypatch.chdir(tmp_path)
    assert invoke("--installed=sglang").exit_code == 0
    assert asked[0].roots == ("sglang",)


def test_the_help_says_that_code_is_run() -> None:
    assert "THIS EXECUTES CODE OF THE TREE" in CliRunner().invoke(cli, ["drill", "--help"]).stdout


def test_nothing_heavy_is_loaded_for_the_help() -> None:
    code = (
        "import sys\nfrom kvlint.cli import cli\ncli(['drill', '--help'], standalone_mode=False)\n"
        "assert not {'torch', 'numpy', 'msgspec', 'rich', 'libcst'} & set(sys.modules)\n"
    )
    root = Path(__file__).parent.parent.parent
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root, stdout=subprocess.DEVNULL)


# -- progress ---------------------------------------------------------------------------


def test_progress_comes_after_a_second_and_goes_away(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with DrillProgress(clock=lambda: now[0]) as progress:
        progress(Moment(0, 0, 0, "loading tree"))
        assert capsys.readouterr().err == ""
        now[0] = 1.5
        progress(Moment(0, 0, 0, "loading tree"))
        assert capsys.readouterr().err == "\r\x1b[Kloading tree, 2 s"
        now[0] = 61.0
        progress(Moment(5, 10, 3, "storm"))
        assert capsys.readouterr().err == "\r\x1b[Kstorm: 3 of 10 rooms done, 5 started, 61 s"
    assert capsys.readouterr().err == "\r\x1b[K"


@pytest.mark.parametrize(("quiet", "looks"), [(True, True), (False, False)])
def test_progress_is_not_drawn_where_nobody_wants_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, quiet: bool, looks: bool
) -> None:
    now: list[Any] = [0.0]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: looks)
    with DrillProgress(quiet=quiet, clock=lambda: now[0]) as progress:
        now[0] = 5.0
        progress(Moment(1, 2, 0, "storm"))
    assert capsys.readouterr().err == ""
