"""What the GitHub Action (``action.yml``) does once kvlint is installed: run it, and tell GitHub how it went.

Reads the action's inputs from ``INPUT_…`` variables, so that no text of a
workflow is ever part of a script.  Ends well whatever kvlint found: the
action's last step fails the job, after the report was uploaded.

Needs nothing but the standard library; kvlint is run as ``python -m kvlint``
by the interpreter that runs this file.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

# Of a finding: a note on how many there are names no file.
_ANNOTATION = re.compile(r"^::(?:error|warning|notice) file=", re.MULTILINE)
_SWITCHES = ("INPUT_UPLOAD_SARIF", "INPUT_FAIL_ON_FINDINGS")
_FAILED = 2


class BadInput(Exception):
    """An input of the action that cannot be used."""


@dataclass(frozen=True)
class Outcome:
    """The action's outputs; ``findings`` is None if kvlint failed."""

    exit_code: int
    findings: int | None = None
    sarif_file: str = ""


def main() -> None:
    """Run kvlint as the inputs say, and write the outputs."""
    environment = os.environ
    try:
        outcome = run(environment)
    except BadInput as error:
        print(f"::error title=kvlint::{_escaped(str(error))}")
        outcome = Outcome(_FAILED)
    else:
        if outcome.findings is None:
            print("::error title=kvlint::kvlint could not do its work; the log of this step says why")
    _write_outputs(outcome, environment)


def run(environment: Mapping[str, str]) -> Outcome:
    """Run kvlint for annotations, and again for SARIF where that is wanted; raises BadInput."""
    for name in _SWITCHES:
        if environment.get(name, "") not in ("", "true", "false"):
            raise BadInput(f"{_shown(name)} must be true or false, not {environment[name]!r}")
    folder = environment.get("INPUT_WORKING_DIRECTORY") or os.curdir
    if not os.path.isdir(folder):
        raise BadInput(f"working-directory: no such folder: {folder}")
    options = _options(environment, folder)
    paths = _words(environment, "INPUT_PATHS") or [os.curdir]
    done = _kvlint(folder, [*options, "--output-format", "github", "--", *paths], stdout=subprocess.PIPE)
    # Not through `print`: the bytes are kvlint's own.
    sys.stdout.buffer.write(done.stdout)
    sys.stdout.buffer.flush()
    if done.returncode not in (0, 1):
        return Outcome(done.returncode)
    findings = len(_ANNOTATION.findall(done.stdout.decode("utf-8", "replace")))
    sarif_file = _sarif_file(environment, folder)
    if sarif_file:
        arguments = [*options, "--quiet", "--output-format", "sarif", "--output", sarif_file, "--", *paths]
        again = _kvlint(folder, arguments, stdout=None)
        if again.returncode not in (0, 1):
            return Outcome(again.returncode)
    return Outcome(done.returncode, findings, sarif_file)


def _options(environment: Mapping[str, str], folder: str) -> list[str]:
    options = [
        f"--{name}={value}"
        for name in ("select", "ignore", "baseline")
        if (value := environment.get(f"INPUT_{name.upper()}", "").strip())
    ]
    if base := _diff_base(environment, folder):
        options.append(f"--diff-base={base}")
    more = _words(environment, "INPUT_ARGS")
    if any(word.startswith("--output") for word in more):
        raise BadInput("args: --output and --output-format are set by the action; use sarif-file for a report")
    return options + more


def _diff_base(environment: Mapping[str, str], folder: str) -> str:
    wanted = environment.get("INPUT_DIFF_BASE", "").strip()
    if wanted in ("", "none"):
        return ""
    if wanted != "auto":
        return wanted
    target = environment.get("GITHUB_BASE_REF", "")
    if not target:
        return ""
    branch = f"origin/{target}"
    if not _is_commit(branch, folder) and _is_commit("HEAD^2", folder):
        # A checkout of the merge that a pull request would make: with two commits of history its first parent is
        # the target branch, even if no branch of that name was fetched.
        return "HEAD^1"
    return branch


def _is_commit(revision: str, folder: str) -> bool:
    command = ["git", "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"]
    try:
        return subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=False).returncode == 0
    except OSError as error:
        reason = "was not found" if isinstance(error, FileNotFoundError) else f"cannot be run ({error.strerror})"
        raise BadInput(
            f"diff-base: git {reason}, and the target of a pull request cannot be looked up without it; "
            "install git on the runner before this action, or set diff-base to none"
        ) from error


def _sarif_file(environment: Mapping[str, str], folder: str) -> str:
    """The absolute path of the report that is wanted, empty for none."""
    named = environment.get("INPUT_SARIF_FILE", "").strip()
    if not named and environment.get("INPUT_UPLOAD_SARIF") != "true":
        return ""
    above = folder if named else environment.get("RUNNER_TEMP") or folder
    path = os.path.abspath(os.path.join(above, named or "kvlint.sarif"))
    if "\n" in path or "\r" in path:
        # Each line of the file with the outputs is one of them.
        raise BadInput(f"sarif-file: the report's path must be one line, and {path!r} is not")
    return path


def _words(environment: Mapping[str, str], name: str) -> list[str]:
    try:
        return shlex.split(environment.get(name, ""))
    except ValueError as error:
        raise BadInput(f"{_shown(name)}: {error}") from error


def _kvlint(folder: str, arguments: list[str], *, stdout: int | None) -> subprocess.CompletedProcess[bytes]:
    print(f"$ {shlex.join(['kvlint', 'check', *arguments])}", file=sys.stderr, flush=True)
    # -P: nothing in the checked folder may stand in for kvlint.
    command = [sys.executable, "-P", "-m", "kvlint", "check", *arguments]
    return subprocess.run(command, cwd=folder, stdout=stdout, check=False)


def _write_outputs(outcome: Outcome, environment: Mapping[str, str]) -> None:
    outputs = {
        "findings": "" if outcome.findings is None else str(outcome.findings),
        "exit-code": str(outcome.exit_code),
        "sarif-file": outcome.sarif_file,
    }
    with open(environment["GITHUB_OUTPUT"], "a", encoding="utf-8", errors="surrogateescape") as stream:
        stream.writelines(f"{name}={value}\n" for name, value in outputs.items())


def _shown(name: str) -> str:
    """The name of an input as a workflow has it."""
    return name.removeprefix("INPUT_").lower().replace("_", "-")


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


if __name__ == "__main__":
    main()
