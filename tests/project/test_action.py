"""The GitHub Action: what its YAML says, and what its steps do in a sandbox that stands in for a runner."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent.parent
ACTION = ROOT / "action.yml"
TEXT = ACTION.read_text(encoding="utf-8")
DOCUMENT: dict[str, Any] = yaml.safe_load(TEXT)
STEPS: list[dict[str, Any]] = DOCUMENT["runs"]["steps"]
SCRIPTS = [step["run"] for step in STEPS if "run" in step]
BACKEND = ROOT / "fixtures" / "rules" / "kvl004_overwritable_terminal_status" / "bad.py"

_EXPRESSION = re.compile(r"\$\{\{ (\S+) \}\}")

# In place of the interpreter that setup-python gives: makes no environment, installs nothing, takes note.
PYTHON = """\
#!/bin/sh
case "$1 $2" in
"-m venv") mkdir -p "$3/bin" && cp "$0" "$3/bin/python";;
"-m pip") shift 2; for word; do last=$word; done; echo "$last" > "$RUNNER_TEMP/installed";;
*) PYTHONPATH={path} exec {python} "$@";;
esac
"""

# In place of kvlint, to see what it is asked for.
KVLINT = """\
import json, os, sys
arguments = sys.argv[1:]
print(json.dumps(arguments), file=open(os.environ["RUNNER_TEMP"] + "/asked", "a"))
if "--output" in arguments:
    open(arguments[arguments.index("--output") + 1], "w").write("{}")
else:
    print("::error file=a.py,line=1::one%0A::error of two lines\\n::notice file=b.py::caf\\u00e9")
sys.exit(int(os.environ["EXIT_SARIF" if "--output" in arguments else "EXIT"]))
"""


@dataclass
class Job:
    """What became of the steps."""

    exit_code: int
    outputs: dict[str, str]
    log: str
    uploaded: list[str] = field(default_factory=list)


@dataclass
class Runner:
    """Runs the action's steps one by one, as GitHub would."""

    folder: Path
    path: str
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, **inputs: str) -> Job:
        temporary = self.folder / "temporary"
        temporary.mkdir(exist_ok=True)
        python = self.folder / "python"
        python.write_text(PYTHON.format(path=self.path, python=sys.executable))
        python.chmod(python.stat().st_mode | stat.S_IXUSR)
        known = {f"inputs.{name}": entry["default"] for name, entry in DOCUMENT["inputs"].items()}
        known |= {f"inputs.{name.replace('_', '-')}": value for name, value in inputs.items()}
        known["steps.python.outputs.python-path"] = str(python)
        job = Job(0, {}, "")
        for step in STEPS:
            if "run" in step:
                self._run_script(step, known, job)
            elif "upload-sarif" in step["uses"] and inputs.get("upload_sarif") == "true":
                assert step["if"].startswith("inputs.upload-sarif == 'true' && steps.check.outputs.sarif-file != ''")
                if known["steps.check.outputs.sarif-file"]:
                    job.uploaded.append(known["steps.check.outputs.sarif-file"])
            if job.exit_code:
                break
        for name, entry in DOCUMENT["outputs"].items():
            job.outputs[name] = filled(entry["value"], known)
        return job

    def _run_script(self, step: dict[str, Any], known: dict[str, str], job: Job) -> None:
        written = self.folder / "output"
        written.write_text("")
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "RUNNER_TEMP": str(self.folder / "temporary"),
            "GITHUB_OUTPUT": str(written),
            "GITHUB_ACTION_PATH": str(ROOT),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            **self.environment,
            **{name: filled(value, known) for name, value in step["env"].items()},
        }
        command = ["bash", "--noprofile", "--norc", "-euo", "pipefail", "-c", step["run"]]
        done = subprocess.run(
            command, cwd=self.folder / "checkout", env=environment, capture_output=True, text=True, check=False
        )
        job.log += done.stdout + done.stderr
        job.exit_code = done.returncode
        for line in written.read_text().splitlines():
            name, _, value = line.partition("=")
            known[f"steps.{step['id']}.outputs.{name}"] = value


def filled(text: str, known: dict[str, str]) -> str:
    return _EXPRESSION.sub(lambda match: known.get(match[1], ""), text)


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    (tmp_path / "checkout").mkdir()
    return Runner(tmp_path, str(ROOT))


@pytest.fixture
def recorder(runner: Runner) -> Runner:
    """A runner on which kvlint only takes note of its arguments."""
    package = runner.folder / "library" / "kvlint"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()  # without it an installed kvlint would come first
    (package / "__main__.py").write_text(KVLINT)
    runner.path = str(package.parent)
    runner.environment |= {"EXIT": "1", "EXIT_SARIF": "1"}
    return runner


def asked(runner: Runner) -> list[list[str]]:
    return [json.loads(line) for line in (runner.folder / "temporary" / "asked").read_text().splitlines()]


def git(*arguments: str, folder: Path) -> None:
    settings = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"]
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *settings, *arguments], cwd=folder, env=environment, capture_output=True, check=True)


# -- what it says ----------------------------------------------------------------


def test_no_text_of_a_workflow_becomes_part_of_a_script() -> None:
    assert SCRIPTS
    assert not any("${{" in script for script in SCRIPTS)


def test_other_actions_are_pinned() -> None:
    used = re.findall(r"uses: (.+)", TEXT)
    assert len(used) == 2
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line) for line in used), used


def test_inputs_and_outputs_are_described_and_used() -> None:
    for name, entry in DOCUMENT["inputs"].items():
        assert entry["description"], name
        assert isinstance(entry["default"], str), name
        assert f"inputs.{name}" in TEXT, name
    script = (ROOT / "tools" / "github_action.py").read_text(encoding="utf-8")
    check = next(step for step in STEPS if step.get("id") == "check")
    for name in check["env"]:
        stem = name.removeprefix("INPUT_").lower()
        assert name in script or f'"{stem}"' in script or name == "ENVIRONMENT", name
    for entry in DOCUMENT["outputs"].values():
        output = re.fullmatch(r"\$\{\{ steps\.check\.outputs\.([\w-]+) \}\}", entry["value"])
        assert output is not None
        assert f'"{output[1]}"' in script


def test_the_page_on_ci_names_every_input() -> None:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    for name in (*DOCUMENT["inputs"], *DOCUMENT["outputs"]):
        assert f"| `{name}` |" in page, name


@pytest.mark.parametrize("script", SCRIPTS)
def test_shellcheck(script: str) -> None:
    program = Path(sys.executable).parent / "shellcheck"
    done = subprocess.run([program, "--shell=bash", "-"], input=script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_zizmor() -> None:
    program = Path(sys.executable).parent / "zizmor"
    done = subprocess.run([program, "--offline", "--no-config", ACTION], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


# -- what it does ----------------------------------------------------------------


def test_findings(runner: Runner) -> None:
    shutil.copy(BACKEND, runner.folder / "checkout" / "a.py")
    job = runner.run(select="KVL004")
    assert job.exit_code == 1
    assert job.outputs == {"findings": "1", "exit-code": "1", "sarif-file": ""}
    assert "::error file=a.py,line=" in job.log
    assert "$ kvlint check --select=KVL004 --output-format github -- .\n" in job.log
    assert runner.run(fail_on_findings="false").exit_code == 0


@pytest.mark.parametrize("copies", [10, 11])
def test_more_findings_than_github_shows(runner: Runner, copies: int) -> None:
    for number in range(copies):
        shutil.copy(BACKEND, runner.folder / "checkout" / f"a{number}.py")
    job = runner.run(select="KVL004")
    assert job.outputs["findings"] == str(copies)
    assert ("::notice title=kvlint::11 findings; GitHub shows 10" in job.log) is (copies > 10)


def test_a_clean_checkout(runner: Runner) -> None:
    (runner.folder / "checkout" / "a.py").write_text("x = 1\n")
    job = runner.run()
    assert (job.exit_code, job.outputs) == (0, {"findings": "0", "exit-code": "0", "sarif-file": ""})


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"paths": "absent.py"}, "error: no such file or folder: absent.py"),
        ({"baseline": "absent.json"}, "error: absent.json: there is no such baseline"),
        ({"args": "--no-such-option"}, "No such option"),
        ({"paths": "'"}, "::error title=kvlint::paths: No closing quotation"),
        ({"args": "--output x"}, "::error title=kvlint::args: --output and --output-format are set"),
        ({"fail_on_findings": "perhaps"}, "::error title=kvlint::fail-on-findings must be true or false"),
        ({"upload_sarif": "True"}, "::error title=kvlint::upload-sarif must be true or false, not 'True'"),
        (
            {"working_directory": "ab%0Asent\n"},
            "::error title=kvlint::working-directory: no such folder: ab%250Asent%0A",
        ),
        ({"sarif_file": "a\nfindings=0"}, "::error title=kvlint::sarif-file: the report's path must be one line"),
        ({"diff_base": "main"}, "lies in no Git repository"),
    ],
)
def test_errors_always_fail(runner: Runner, inputs: dict[str, str], message: str) -> None:
    job = runner.run(**{"fail_on_findings": "false", **inputs})
    assert job.exit_code == 2
    assert job.outputs == {"findings": "", "exit-code": "2", "sarif-file": ""}
    assert message in job.log
    assert "::error title=kvlint::" in job.log


def test_what_kvlint_is_asked_for(recorder: Runner) -> None:
    (recorder.folder / "checkout" / "sub").mkdir()
    job = recorder.run(
        paths="a.py 'b c.py'\n-d.py $(touch x)\n",
        working_directory="sub",
        select="KVL001,KVL9",
        ignore=" KVL002\n",
        args="--exclude 'x y' -v",
        baseline="ci/known.json",
        diff_base="main; touch x",
    )
    assert asked(recorder) == [
        [
            *("check", "--select=KVL001,KVL9", "--ignore=KVL002", "--baseline=ci/known.json"),
            *("--diff-base=main; touch x", "--exclude", "x y", "-v", "--output-format", "github", "--"),
            *("a.py", "b c.py", "-d.py", "$(touch", "x)"),
        ]
    ]
    assert job.outputs == {"findings": "2", "exit-code": "1", "sarif-file": ""}
    assert sorted(os.listdir(recorder.folder / "checkout")) == ["sub"]


def test_the_report(recorder: Runner) -> None:
    job = recorder.run(sarif_file="out.sarif")
    named = str(recorder.folder / "checkout" / "out.sarif")
    assert (job.outputs["sarif-file"], job.uploaded, Path(named).read_text()) == (named, [], "{}")
    assert asked(recorder)[1] == ["check", "--quiet", "--output-format", "sarif", "--output", named, "--", "."]
    job = recorder.run(upload_sarif="true")
    assert job.uploaded == [str(recorder.folder / "temporary" / "kvlint.sarif")]
    assert job.exit_code == 1
    recorder.environment["EXIT_SARIF"] = "2"
    failed = recorder.run(upload_sarif="true", fail_on_findings="false")
    assert (failed.exit_code, failed.uploaded) == (2, [])
    recorder.environment["EXIT"] = "139"
    assert recorder.run(upload_sarif="true").outputs == {"findings": "", "exit-code": "139", "sarif-file": ""}


@pytest.mark.parametrize("name", ["line\nfeed", "carriage\rreturn"])
def test_a_folder_whose_name_breaks_the_outputs(recorder: Runner, name: str) -> None:
    (recorder.folder / "checkout" / name).mkdir()
    assert recorder.run(working_directory=name).outputs == {"findings": "2", "exit-code": "1", "sarif-file": ""}
    job = recorder.run(working_directory=name, sarif_file="out.sarif")
    assert job.outputs == {"findings": "", "exit-code": "2", "sarif-file": ""}
    assert "::error title=kvlint::sarif-file: the report's path must be one line, and '" in job.log
    # The runner's own folder is not below it.
    job = recorder.run(working_directory=name, upload_sarif="true")
    assert job.outputs["sarif-file"] == str(recorder.folder / "temporary" / "kvlint.sarif")


@pytest.mark.parametrize(("mode", "said"), [(None, "git was not found"), (0o644, "git cannot be run (Permission")])
def test_a_runner_without_git(recorder: Runner, mode: int | None, said: str) -> None:
    programs = recorder.folder / "programs"
    programs.mkdir()
    for name in ("bash", "sh", "mkdir", "mktemp", "cp"):
        (programs / name).symlink_to(shutil.which(name) or pytest.fail(f"{name} is needed"))
    if mode is not None:
        (programs / "git").touch(mode)
    recorder.environment |= {"PATH": str(programs), "GITHUB_BASE_REF": "main"}
    job = recorder.run(fail_on_findings="false")
    assert job.outputs == {"findings": "", "exit-code": "2", "sarif-file": ""}
    assert f"::error title=kvlint::diff-base: {said}" in job.log
    assert "set diff-base to none" in job.log
    assert "Traceback" not in job.log
    assert recorder.run(diff_base="none").outputs["findings"] == "2"


def test_the_installed_version(recorder: Runner) -> None:
    recorder.run()
    assert (recorder.folder / "temporary" / "installed").read_text() == f"{ROOT}\n"
    recorder.run(version="1.2; touch x")
    assert (recorder.folder / "temporary" / "installed").read_text() == "flake8-kvlint==1.2; touch x\n"


def test_nothing_in_the_checkout_stands_in_for_kvlint(runner: Runner) -> None:
    (runner.folder / "checkout" / "kvlint.py").write_text("raise SystemExit(7)\n")
    (runner.folder / "checkout" / "msgspec.py").write_text("raise SystemExit(7)\n")
    assert runner.run().exit_code == 0


def test_a_pull_request_is_held_against_its_target(runner: Runner) -> None:
    """In full, with two commits of history as the merge's checkout has, and without any."""
    origin = runner.folder / "origin"
    origin.mkdir()
    git("init", "--quiet", "--initial-branch", "main", folder=origin)
    shutil.copy(BACKEND, origin / "a.py")
    git("add", "--all", folder=origin)
    git("commit", "--quiet", "--message", "base", folder=origin)
    git("switch", "--quiet", "--create", "topic", folder=origin)
    shutil.copy(BACKEND, origin / "b.py")
    git("add", "--all", folder=origin)
    git("commit", "--quiet", "--message", "change", folder=origin)
    git("switch", "--quiet", "--create", "merge", "main", folder=origin)
    git("merge", "--quiet", "--no-ff", "topic", folder=origin)
    checkout = runner.folder / "checkout"

    def cloned(*arguments: str) -> Job:
        shutil.rmtree(checkout)
        git("clone", "--quiet", "--branch", "merge", *arguments, origin.as_uri(), str(checkout), folder=runner.folder)
        return runner.run(select="KVL004")

    assert cloned().outputs["findings"] == "2"
    runner.environment["GITHUB_BASE_REF"] = "main"
    job = cloned()
    assert job.outputs == {"findings": "1", "exit-code": "1", "sarif-file": ""}
    assert "::error file=b.py," in job.log
    assert "--diff-base=origin/main" in job.log
    assert runner.run(select="KVL004", diff_base="none").outputs["findings"] == "2"
    job = cloned("--depth", "2", "--single-branch")
    assert job.outputs["findings"] == "1"
    assert "'--diff-base=HEAD^1'" in job.log
    job = cloned("--depth", "1", "--single-branch")
    assert job.exit_code == 2
    assert "`fetch-depth: 0`" in job.log
