"""bench/gpu_drill.sh, with a program in place of Python that answers for `kvlint drill`; nothing is drilled."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kvlint.cli import cli

BENCH = Path(__file__).parent.parent.parent / "bench"

# In place of the interpreter: `kvlint drill` takes note and answers as $ANSWERS says; all else goes to Python.
PYTHON = """\
#!/bin/sh
case "$1 $2 $3" in
"-m kvlint drill") exec {python} {answerer} "$@";;
*) exec {python} "$@";;
esac
"""

ANSWERER = """\
import json, os, sys
arguments = sys.argv[4:]
with open(os.environ["ASKED"], "a") as asked:
    print(json.dumps(arguments), file=asked)
name = os.path.basename(arguments[arguments.index("--output") + 1]).removesuffix(".json")
status, result = json.loads(os.environ["ANSWERS"])[name]
print("what was wrong with", name, file=sys.stderr)
if result is not None:
    open(arguments[arguments.index("--output") + 1], "w").write(json.dumps(result))
sys.exit(status)
"""

Answer = tuple[int, dict[str, Any] | None]


def result(*faults: list[str], median: float | None = None) -> dict[str, Any]:
    """What matters of a document of `kvlint drill`."""
    comparison = None if median is None else {"median": median}
    return {"version": 1, "faults": list(faults), "drill": {"comparison": comparison}}


PASSED = {
    "two-processes": (0, result([])),
    "before": (1, result(["34 rooms pinned"])),
    "after": (0, result([])),
    "comparison": (0, result([], [], median=0.998)),
}


@dataclass
class Run:
    """What became of a run.

    Attributes:
        status: The exit status.
        said: All that was printed.
        asked: The arguments of each `kvlint drill`.
        document: What was written; None if nothing was.
    """

    status: int
    said: str
    asked: list[list[str]]
    document: Any

    def parts(self) -> list[str]:
        """Which parts were run."""
        return [Path(arguments[arguments.index("--output") + 1]).stem for arguments in self.asked]


@dataclass
class Host:
    """A host without a GPU on which kvlint answers as it is told."""

    folder: Path
    script: Path = BENCH / "gpu_drill.sh"
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, text in (("answerer.py", ANSWERER), ("python", self._python())):
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)
        for tree in self.trees():
            Path(tree).mkdir()

    def _python(self) -> str:
        return PYTHON.format(python=sys.executable, answerer=self.folder / "answerer.py")

    def trees(self) -> tuple[str, str]:
        """The tree and the fixed one: names that a careless script would take to pieces."""
        return str(self.folder / "the first's $(tree)"), str(self.folder / 'the "fixed" tree')

    def run(self, *arguments: str, answers: dict[str, Answer] | None = None, **environment: str) -> Run:
        asked = self.folder / "asked"
        given = {
            **{name: value for name, value in os.environ.items() if not name.startswith("COV_CORE")},
            "PYTHON": str(self.folder / "python"),
            "ASKED": str(asked),
            "ANSWERS": json.dumps(PASSED | (answers or {})),
            "DEVICE": "cpu",
            **self.environment,
            **environment,
        }
        output = self.folder / "results" / "drill.json"
        command = ["bash", str(self.script), *(arguments or (*self.trees(), str(output)))]
        done = subprocess.run(command, env=given, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        lines = asked.read_text().splitlines() if asked.exists() else []
        document = json.loads(output.read_text()) if output.exists() else None
        return Run(done.returncode, done.stdout + done.stderr, [json.loads(line) for line in lines], document)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_a_fixed_tree_that_passes_is_all_that_is_asked_for(host: Host) -> None:
    run = host.run()
    assert run.status == 0, run.said
    assert run.parts() == ["two-processes", "before", "after", "comparison"]
    document = run.document
    assert document["version"] == 1
    assert document["trees"] == dict(zip(("before", "after"), host.trees(), strict=True))
    assert document["before"]["status"] == 1
    assert document["before"]["drill"]["faults"] == [["34 rooms pinned"]]
    assert document["after"]["drill"]["faults"] == [[]]
    assert document["comparison"]["drill"]["drill"]["comparison"]["median"] == 0.998
    assert document["processes"]["count"] == 2
    assert document["processes"]["reason"] == "two processes work"
    assert document["host"]["python"]
    assert {"gpus", "torch", "nixl"} <= document["host"].keys()
    assert "before: 34 rooms pinned\nafter: passed\ncomparison: passed, 0.998 times the throughput\n" in run.said


def test_what_is_asked_of_the_command_is_what_it_understands(host: Host) -> None:
    before, after = host.trees()
    run = host.run(DEVICE="auto")
    read = [cli.commands["drill"].make_context("drill", list(arguments)).params for arguments in run.asked]
    assert [entry["root"] for entry in read] == [after, before, after, before]
    assert [entry["no_storm"] for entry in read] == [True, False, False, True]
    assert [entry["rounds"] for entry in read] == [1, None, None, 10]
    assert [entry["compare"] for entry in read] == [None, None, None, after]
    assert {entry["device"] for entry in read} == {"auto"}
    assert {entry["output_format"] for entry in read} == {"json"}


def test_the_device_is_a_gpu_unless_something_else_is_said(host: Host) -> None:
    run = host.run(DEVICE="")
    assert run.status == 0
    assert all(arguments[arguments.index("--device") + 1] == "cuda" for arguments in run.asked)


def test_without_cuda_ipc_one_process_is_used_and_the_file_says_so(host: Host) -> None:
    run = host.run(answers={"two-processes": (1, result(["24 rooms failed"])), "one-process": (0, result([]))})
    assert run.status == 0
    assert run.parts() == ["two-processes", "one-process", "before", "after", "comparison"]
    assert ["--one-process" in arguments for arguments in run.asked] == [False, True, True, True, True]
    assert run.document["processes"]["count"] == 1
    assert run.document["processes"]["reason"] == "two processes do not work here: 24 rooms failed"
    assert run.document["processes"]["trials"]["two-processes"]["status"] == 1
    assert "one is used" in run.said


@pytest.mark.parametrize("status", [1, 2])
def test_a_tree_at_fault_in_either_way_is_drilled_in_two_processes(host: Host, status: int) -> None:
    bad = (1, result(["24 rooms failed"]))
    run = host.run(answers={"two-processes": bad, "one-process": (status, bad[1]), "after": bad})
    assert run.status == 1
    assert ["--one-process" in arguments for arguments in run.asked] == [False, True, False, False, False]
    assert run.document["processes"]["reason"].startswith("one process does not work, either: ")


def test_one_process_that_has_faults_is_better_than_two_that_cannot_be_run(host: Host) -> None:
    bad = (1, result(["24 rooms failed"]))
    run = host.run(answers={"two-processes": (2, None), "one-process": bad, "after": bad})
    assert run.status == 1
    assert run.document["processes"]["count"] == 1
    assert run.document["processes"]["reason"].startswith("two processes do not work here: exit status 2: what was")


@pytest.mark.parametrize("status", [1, 2, 124, 139])
def test_a_drill_that_cannot_be_run_is_told_with_what_it_said(host: Host, status: int) -> None:
    run = host.run(answers={"two-processes": (status, None), "one-process": (2, None)})
    assert run.status == 2
    assert run.parts() == ["two-processes", "one-process"]
    assert "what was wrong with one-process" in run.said
    assert "before: not run" in run.said
    assert run.document["before"] is None
    assert run.document["processes"]["trials"]["one-process"]["log"] == "what was wrong with one-process\n"


@pytest.mark.parametrize(
    ("answers", "status"),
    [
        ({"before": (0, result([]))}, 0),
        ({"after": (1, result(["1 dead thread"]))}, 1),
        ({"before": (124, None)}, 2),
        ({"before": (1, None)}, 2),
        ({"after": (2, None)}, 2),
        ({"after": (137, None)}, 2),
        ({"comparison": (1, result(["3 rooms failed"], []))}, 0),
        ({"comparison": (1, result([], ["3 rooms failed"]))}, 1),
        ({"comparison": (2, None)}, 2),
    ],
)
def test_only_the_fixed_tree_and_what_cannot_be_run_decide(host: Host, answers: dict[str, Answer], status: int) -> None:
    run = host.run(answers=answers)
    assert run.status == status, run.said
    ((name, (given, drill)),) = answers.items()
    assert run.document[name]["status"] == (2 if drill is None and given < 2 else given)
    assert run.document[name]["drill"] == drill


def test_what_is_wrong_is_said_before_anything_is_run(host: Host) -> None:
    before, after = host.trees()
    output = str(host.folder / "results" / "drill.json")
    wrong: list[tuple[tuple[str, ...], dict[str, str], str]] = [
        ((before,), {}, "usage: bench/gpu_drill.sh"),
        ((before, after, output, "more"), {}, "usage: bench/gpu_drill.sh"),
        ((before, after + "s", output), {}, f"{after}s: there is no such folder"),
        (("", after, output), {}, "there is no such folder"),
        ((before, after, output), {"PYTHON": "python-that-is-not-there"}, "python-that-is-not-there: there is no such"),
        ((before, after, output), {"DEVICE": "tpu"}, "DEVICE=tpu: it is auto, cpu or cuda"),
        ((before, after, str(host.folder)), {}, "this is a folder; name a file"),
        ((before, after, str(host.folder / "python" / "a.json")), {}, "its folder cannot be made"),
    ]
    for arguments, environment, said in wrong:
        host.environment = environment
        run = host.run(*arguments)
        assert run.status == 2, arguments
        assert said in run.said
        assert run.asked == []
        assert run.document is None


def test_what_the_shell_has_set_does_not_matter(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    program = host.folder / "my python"
    shutil.copy(host.folder / "python", program)
    monkeypatch.chdir(host.folder)
    host.script = Path(os.path.relpath(host.script))
    host.environment = {"CDPATH": f"{host.folder}:/", "SECONDS": "100000", "PYTHON": "./my python", "status": "7"}
    run = host.run()
    assert run.status == 0, run.said
    assert run.parts() == ["two-processes", "before", "after", "comparison"]
    assert "after: at most 80 s" in run.said


def test_help_is_no_error(host: Host) -> None:
    run = host.run("--help")
    assert run.status == 0
    assert "AFTER_TREE" in run.said


def test_results_go_to_a_file_of_their_own_beside_the_script(tmp_path: Path) -> None:
    (tmp_path / "bench").mkdir()
    for name in ("gpu_drill.sh", "gpu_record.py"):
        shutil.copy(BENCH / name, tmp_path / "bench")
    host = Host(tmp_path, script=tmp_path / "bench" / "gpu_drill.sh")
    assert host.run(*host.trees(), DEVICE="cuda").status == 0
    (written,) = (tmp_path / "bench" / "results").iterdir()
    assert written.name.startswith("gpu-2")
    assert json.loads(written.read_text())["version"] == 1


def test_trees_and_files_may_begin_with_a_dash(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(host.folder)
    for name in ("-before", "--after"):
        (host.folder / name).mkdir()
    run = host.run("-before", "--after", "-out.json")
    assert run.status == 0, run.said
    assert json.loads((host.folder / "-out.json").read_text())["trees"] == {"before": "-before", "after": "--after"}


def test_the_gpu_and_its_driver_are_those_of_nvidia_smi(host: Host) -> None:
    tools = host.folder / "tools"
    tools.mkdir()
    program = tools / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'NVIDIA X1, 999.1, 80 MiB'\necho 'NVIDIA X2, 999.1, 90 MiB'\n")
    program.chmod(0o755)
    path = f"{tools}:{os.environ['PATH']}"
    gpus = host.run(PATH=path).document["host"]["gpus"]
    assert gpus[0] == {"name": "NVIDIA X1", "driver": "999.1", "memory": "80 MiB"}
    assert [gpu["name"] for gpu in gpus] == ["NVIDIA X1", "NVIDIA X2"]
    program.write_text("#!/bin/sh\necho no driver is loaded >&2\nexit 9\n")
    assert host.run(PATH=path).document["host"]["gpus"] is None


def test_an_older_result_is_replaced_and_nothing_lies_beside_it(host: Host) -> None:
    folder = host.folder / "results"
    folder.mkdir()
    (folder / "drill.json").write_text('{"older": true}')
    assert host.run().document["version"] == 1
    assert [entry.name for entry in folder.iterdir()] == ["drill.json"]


def test_the_script_is_clean() -> None:
    shellcheck = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert shellcheck is not None
    done = subprocess.run([shellcheck, str(BENCH / "gpu_drill.sh")], capture_output=True, text=True, check=False)
    assert done.stdout == ""
