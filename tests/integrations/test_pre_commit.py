"""The hooks as a user of pre-commit gets them: built from the repository into an environment of their own, and run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
FIXTURES = ROOT / "fixtures" / "rules"
WORKER = FIXTURES / "kvl002_skip_without_terminal_write" / "bad.py"
PACKAGE = FIXTURES / "kvl001_non_terminal_write_after_failed" / "cross_file_override"

#: What the hook repository must hold for pip to build the package.
BUILT_FROM = ("pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml", "fixes", "kvlint")

# What pip prints when no package index answered.
UNREACHABLE = ("NewConnectionError", "NameResolutionError", "ConnectTimeoutError", "ReadTimeoutError", "ProxyError")


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, env=environment())


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PYTHON", "COV_"))}
    return {**kept, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


def commit_all(folder: Path) -> None:
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "all")


@pytest.fixture
def hooks(tmp_path: Path) -> Path:
    """A repository with the hooks, as the working tree has them now."""
    repository = tmp_path / "hooks"
    repository.mkdir()
    for name in BUILT_FROM:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, repository / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, repository / name)
    commit_all(repository)
    return repository


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository that a user lints: a worker that drops items, and a backend whose base stands in another file."""
    repository = tmp_path / "project"
    repository.mkdir()
    shutil.copy(WORKER, repository / "worker.py")
    shutil.copytree(PACKAGE, repository / "transfer", ignore=shutil.ignore_patterns("__pycache__"))
    commit_all(repository)
    return repository


def test_hooks_find_and_fix(hooks: Path, project: Path, tmp_path: Path) -> None:
    before = (project / "worker.py").read_text()
    options = ("--verbose", "--color", "never", "--files", "worker.py", "transfer/plain_backend.py")
    done = subprocess.run(
        [sys.executable, "-m", "pre_commit", "try-repo", str(hooks), *options],
        cwd=project,
        env={**environment(), "PRE_COMMIT_HOME": str(tmp_path / "cache")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    output = done.stdout + done.stderr
    if any(sign in output for sign in UNREACHABLE):
        pytest.skip("no package index answered, so pre-commit could not build the hooks' environment")
    assert done.returncode == 1, output
    check, _, fix = output.partition("- hook id: kvlint-fix")
    assert "- hook id: kvlint\n" in check
    assert "\nworker.py:" in check
    assert " KVL002 " in check
    # The writer stands in base.py, which pre-commit did not name.
    assert "\ntransfer/plain_backend.py:" in check
    assert "transfer/base.py:" in check
    assert "\ntransfer/base.py:" not in check
    assert "- files were modified by this hook" in fix
    after = (project / "worker.py").read_text()
    assert [line for line in after.splitlines() if line in before.splitlines()] != after.splitlines()
