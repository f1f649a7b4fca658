"""Patching files on disk: every file is old or new at any moment, and nothing unknown is touched."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import py_compile
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kvlint.bundle import installation, manifest
from kvlint.bundle.generate import Made, make
from kvlint.bundle.installation import BACKUP_SUFFIX, Incomplete, Refused, State, apply, look, revert
from kvlint.bundle.manifest import NAME, FileEntry, Manifest, render
from kvlint.bundle.patches import PatchError
from kvlint.fixing.refusals import WriteRefused
from kvlint.fixing.write import write_atomically

from .samples import AFFECTED, FolderReleases, mended

BASE, BACKEND = "kvdemo/base.py", "kvdemo/backend.py"
FILES = (BACKEND, BASE)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    source = FolderReleases(tmp_path_factory.mktemp("index"))
    source.add("kvdemo", "1.0", AFFECTED)
    return make(source, "kvdemo", "1.0")


@pytest.fixture(scope="module")
def fixed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return mended(AFFECTED, tmp_path_factory.mktemp("fixed"), unsafe=False)


@pytest.fixture(autouse=True)
def only_this_release(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "load", lambda: Manifest(format=1, releases=(made.entry,)))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder that holds the package as it was released."""
    for name, data in AFFECTED.items():
        path = tmp_path / "site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return tmp_path / "site"


def at(site: Path) -> Callable[[str], str]:
    return lambda path: str(site / path)


def put_on(made: Made, site: Path, **options: bool) -> tuple[State, ...]:
    assert made.patch is not None
    return tuple(item.state for item in apply(made.entry, at(site), made.patch, **options))


def take_off(made: Made, site: Path, **options: bool) -> tuple[State, ...]:
    assert made.patch is not None
    return tuple(item.state for item in revert(made.entry, at(site), made.patch, **options))


def content(site: Path) -> dict[str, bytes]:
    return {path.relative_to(site).as_posix(): path.read_bytes() for path in site.rglob("*") if path.is_file()}


def with_backups(files: dict[str, bytes]) -> dict[str, bytes]:
    return files | {name + BACKUP_SUFFIX: AFFECTED[name] for name in FILES}


def test_apply_and_revert(made: Made, site: Path, fixed: dict[str, bytes]) -> None:
    assert put_on(made, site) == (State.ORIGINAL, State.ORIGINAL)
    assert content(site) == with_backups(fixed)
    assert put_on(made, site) == (State.PATCHED, State.PATCHED)
    assert content(site) == with_backups(fixed)
    assert take_off(made, site) == (State.PATCHED, State.PATCHED)
    assert content(site) == AFFECTED
    assert take_off(made, site) == (State.ORIGINAL, State.ORIGINAL)
    assert content(site) == AFFECTED


def test_a_dry_run_writes_nothing(made: Made, site: Path, fixed: dict[str, bytes]) -> None:
    assert put_on(made, site, dry_run=True) == (State.ORIGINAL, State.ORIGINAL)
    assert content(site) == AFFECTED
    put_on(made, site)
    assert take_off(made, site, dry_run=True) == (State.PATCHED, State.PATCHED)
    assert content(site) == with_backups(fixed)


def test_the_mode_is_kept(made: Made, site: Path) -> None:
    (site / BASE).chmod(0o640)
    put_on(made, site)
    assert (site / BASE).stat().st_mode & 0o777 == 0o640
    take_off(made, site)
    assert (site / BASE).stat().st_mode & 0o777 == 0o640


def test_a_hard_link_elsewhere_keeps_the_original(made: Made, site: Path, tmp_path: Path) -> None:
    os.link(site / BASE, tmp_path / "shared-cache")
    put_on(made, site)
    assert (tmp_path / "shared-cache").read_bytes() == AFFECTED[BASE]


def test_one_unknown_file_and_nothing_is_written(made: Made, site: Path) -> None:
    changed = AFFECTED[BASE] + b"# local\n"
    (site / BASE).write_bytes(changed)
    with pytest.raises(Refused, match="neither the released file nor the patched one") as caught:
        put_on(made, site)
    assert "kvlint fix" in str(caught.value)
    assert [item.state for item in caught.value.found] == [State.ORIGINAL, State.CHANGED]
    assert content(site) == AFFECTED | {BASE: changed}


def test_a_missing_file(made: Made, site: Path) -> None:
    (site / BASE).unlink()
    with pytest.raises(Refused, match="is not there"):
        put_on(made, site)
    assert [item.state for item in look(made.entry, at(site))] == [State.ORIGINAL, State.MISSING]


def test_a_file_that_cannot_be_read(made: Made, site: Path) -> None:
    (site / BASE).unlink()
    (site / BASE).mkdir()
    with pytest.raises(Refused, match="cannot be read"):
        put_on(made, site)


def test_a_symlink_is_left_to_its_owner(made: Made, site: Path, tmp_path: Path) -> None:
    (site / BASE).rename(tmp_path / "real.py")
    (site / BASE).symlink_to(tmp_path / "real.py")
    with pytest.raises(Refused, match="is a symlink to"):
        put_on(made, site)
    assert (tmp_path / "real.py").read_bytes() == AFFECTED[BASE]


def test_a_file_changed_since_it_was_patched_is_not_reverted(made: Made, site: Path) -> None:
    put_on(made, site)
    with (site / BASE).open("ab") as stream:
        stream.write(b"# local\n")
    before = content(site)
    with pytest.raises(Refused, match="changed since it was patched"):
        take_off(made, site)
    assert content(site) == before


def test_revert_does_without_the_kept_originals(made: Made, site: Path) -> None:
    put_on(made, site)
    for name in FILES:
        (site / (name + BACKUP_SUFFIX)).unlink()
    take_off(made, site)
    assert content(site) == AFFECTED


def test_revert_leaves_what_is_somebody_elses(made: Made, site: Path) -> None:
    put_on(made, site)
    (site / (BASE + BACKUP_SUFFIX)).write_bytes(b"mine")
    (site / (BACKEND + BACKUP_SUFFIX)).unlink()
    (site / (BACKEND + BACKUP_SUFFIX)).symlink_to(site / BASE)
    with pytest.raises(Incomplete, match="move it away"):
        take_off(made, site)
    assert (site / (BASE + BACKUP_SUFFIX)).read_bytes() == b"mine"


def test_a_backup_that_is_not_known_is_left_alone(made: Made, site: Path) -> None:
    (site / (BASE + BACKUP_SUFFIX)).write_bytes(b"mine")
    with pytest.raises(Incomplete, match="move it away and run again"):
        put_on(made, site)
    assert content(site) == AFFECTED | {BASE + BACKUP_SUFFIX: b"mine"}


def test_a_backup_that_is_no_file(made: Made, site: Path) -> None:
    (site / (BASE + BACKUP_SUFFIX)).mkdir()
    with pytest.raises(Incomplete, match="is no regular file"):
        put_on(made, site)


def test_the_backup_of_another_release_is_replaced(
    made: Made, site: Path, monkeypatch: pytest.MonkeyPatch, fixed: dict[str, bytes]
) -> None:
    from msgspec.structs import replace

    digest = hashlib.sha256(b"of another release").hexdigest()
    other = replace(made.entry, version="0.9", files=(FileEntry(path=BASE, before=digest, after="0" * 64, closed={}),))
    monkeypatch.setattr(manifest, "load", lambda: Manifest(format=1, releases=(other, made.entry)))
    (site / (BASE + BACKUP_SUFFIX)).write_bytes(b"of another release")
    put_on(made, site)
    assert content(site) == with_backups(fixed)


def test_compiled_copies_that_nobody_checks_are_removed(made: Made, site: Path) -> None:
    def compiled(tag: str, mode: py_compile.PycInvalidationMode) -> Path:
        path = site / "kvdemo/__pycache__" / f"base.{tag}.pyc"
        py_compile.compile(str(site / BASE), str(path), invalidation_mode=mode)
        return path

    unchecked = [compiled(tag, py_compile.PycInvalidationMode.UNCHECKED_HASH) for tag in ("cpython-311", "py312.opt-1")]
    checked = [
        compiled("timestamp", py_compile.PycInvalidationMode.TIMESTAMP),
        compiled("hash", py_compile.PycInvalidationMode.CHECKED_HASH),
        site / "kvdemo/__pycache__/base.short.pyc",
        site / "kvdemo/__pycache__/based.cpython-311.pyc",
    ]
    checked[2].write_bytes(b"short")
    checked[3].write_bytes(unchecked[0].read_bytes())
    stale = unchecked[0].read_bytes()
    put_on(made, site)
    assert not any(path.exists() for path in unchecked)
    assert all(path.exists() for path in checked)
    # A run that was killed may leave one behind; one of the patched text is as good as another.
    unchecked[0].write_bytes(stale)
    compiled("py312.opt-1", py_compile.PycInvalidationMode.UNCHECKED_HASH)
    put_on(made, site)
    assert [path.exists() for path in unchecked] == [False, True]


def test_leftovers_of_a_killed_run_are_cleared_away_a_day_later(made: Made, site: Path) -> None:
    old, running = ["0123456789abcdef.tmp", "ab_01234.copy"], ["fedcba9876543210.tmp", "43210_ab.copy"]
    mine = ["mine.tmp", "mine.copy"]
    for name in (*old, *running, *mine):
        (site / f"kvdemo/.kvlint-{name}").write_bytes(b"half")
    for name in (*old, *mine):
        os.utime(site / f"kvdemo/.kvlint-{name}", (0, 0))
    put_on(made, site)
    assert {path.name for path in site.glob("kvdemo/.kvlint-*")} == {f".kvlint-{name}" for name in (*running, *mine)}


def test_a_sweep_knows_the_temporaries_of_a_running_command(
    made: Made, site: Path, monkeypatch: pytest.MonkeyPatch, fixed: dict[str, bytes]
) -> None:
    """They are young, although what they are copies of is old; once they are old themselves, they go."""
    replace = os.replace
    swept: list[str] = []

    def sweep_and_replace(source: str, target: str) -> None:
        installation._sweep(os.path.dirname(source))
        kept = Path(source).read_bytes()
        os.utime(source, (0, 0))
        installation._sweep(os.path.dirname(source))
        swept.append(Path(source).suffix)
        assert not os.path.exists(source)
        Path(source).write_bytes(kept)
        replace(source, target)

    os.utime(site / BACKEND, (0, 0))
    monkeypatch.setattr(os, "replace", sweep_and_replace)
    put_on(made, site)
    assert content(site) == with_backups(fixed)
    assert swept == [".copy", ".tmp"] * 2


def test_what_was_looked_at_is_kept(made: Made, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mkstemp = tempfile.mkstemp

    def save_meanwhile(*arguments: Any, **options: Any) -> tuple[int, str]:
        (site / BACKEND).write_bytes(b"saved by an editor")
        return mkstemp(*arguments, **options)

    monkeypatch.setattr(tempfile, "mkstemp", save_meanwhile)
    monkeypatch.setattr(os, "link", lambda *arguments: pytest.fail("what lies there now need not be the original"))
    with pytest.raises(Incomplete, match="was changed by someone else"):
        put_on(made, site)
    assert (site / (BACKEND + BACKUP_SUFFIX)).read_bytes() == AFFECTED[BACKEND]
    assert (site / BACKEND).read_bytes() == b"saved by an editor"


@pytest.mark.parametrize("change", [put_on, take_off])
def test_what_another_run_did_while_this_one_waited_is_seen(
    change: Callable[[Made, Path], tuple[State, ...]], made: Made, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other run, which holds the lock, does the whole work before this one gets it."""
    if change is take_off:
        put_on(made, site)

    def wait(*arguments: object) -> None:
        monkeypatch.setattr(fcntl, "flock", lambda *arguments: None)
        change(made, site)

    monkeypatch.setattr(fcntl, "flock", wait)
    assert change(made, site) == (State.PATCHED if change is put_on else State.ORIGINAL,) * 2


def test_a_folder_that_is_not_there(made: Made, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="is not there"):
        put_on(made, tmp_path / "none")


@pytest.mark.parametrize("name", ["replace", "fsync"])
def test_a_full_disk(name: str, made: Made, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, name, refuse)
        with pytest.raises(Incomplete, match=r"No space left on device(.|\n)*is original") as caught:
            put_on(made, site)
    assert [item.state for item in caught.value.found] == [State.ORIGINAL, State.ORIGINAL]
    put_on(made, site)


def test_a_copy_that_fails_leaves_nothing(made: Made, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(Incomplete):
        put_on(made, site)
    assert content(site) == AFFECTED


def test_one_file_fails_and_each_is_told(
    made: Made, site: Path, monkeypatch: pytest.MonkeyPatch, fixed: dict[str, bytes]
) -> None:
    write = write_atomically

    def refuse_base(path: str, before: bytes, after: bytes) -> None:
        if path.endswith("base.py"):
            raise WriteRefused(path, "the disk is gone")
        write(path, before, after)

    monkeypatch.setattr(installation, "write_atomically", refuse_base)
    with pytest.raises(Incomplete) as caught:
        put_on(made, site)
    assert [item.state for item in caught.value.found] == [State.PATCHED, State.ORIGINAL]
    text = str(caught.value)
    assert "base.py: the disk is gone" in text
    assert "backend.py: is patched" in text
    monkeypatch.undo()
    monkeypatch.setattr(manifest, "load", lambda: Manifest(format=1, releases=(made.entry,)))
    put_on(made, site)
    assert content(site) == with_backups(fixed)


@pytest.mark.parametrize(
    ("denied", "said"), [("kvdemo", "its folder cannot be written"), ("base.py", "cannot be written")]
)
def test_no_permission(denied: str, said: str, made: Made, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith(denied))
    with pytest.raises(Incomplete, match=f"nothing was written:(.|\n)*{said}(.|\n)*run as the owner"):
        put_on(made, site)
    assert content(site) == AFFECTED


def test_a_file_that_is_locked_by_its_mode(made: Made, site: Path) -> None:
    (site / BASE).chmod(0o444)
    with pytest.raises(Incomplete, match=r"read-only|cannot be written"):
        put_on(made, site)
    assert (site / BASE).read_bytes() == AFFECTED[BASE]


def test_folders_that_know_no_locks(made: Made, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    put_on(made, site)
    assert put_on(made, site) == (State.PATCHED, State.PATCHED)


def test_a_patch_that_is_not_the_manifests(made: Made, site: Path) -> None:
    assert made.patch is not None
    with pytest.raises(PatchError, match="does not give the promised file"):
        apply(made.entry, at(site), made.patch.replace(b"is final", b"is fatal"))
    with pytest.raises(PatchError, match=r"holds nothing for kvdemo/base\.py"):
        apply(made.entry, at(site), made.patch.replace(b"kvdemo/base.py", b"kvdemo/other.py"))
    assert content(site) == AFFECTED


# -- SIGKILL at every step ------------------------------------------------------

KILLED = """
import os, signal, sys
from pathlib import Path
from kvlint.bundle import installation, manifest

bundle, site, action, step = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
manifest.bundle_folder = lambda: bundle
(entry,) = manifest.load().releases
count = 0


def counted(name):
    original = getattr(os, name)

    def call(*arguments, **options):
        global count
        count += 1
        if count == step:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments, **options)

    setattr(os, name, call)


for name in ("open", "write", "fsync", "fchmod", "fchown", "close", "link", "replace", "unlink", "listdir"):
    counted(name)
getattr(installation, action)(entry, lambda path: os.path.join(site, path), (bundle / entry.patch).read_bytes())
"""


@pytest.mark.parametrize("action", ["apply", "revert"])
def test_killed_at_any_step_a_file_is_old_or_new(
    action: str, made: Made, site: Path, fixed: dict[str, bytes], tmp_path: Path
) -> None:
    bundle = tmp_path / "fixes"
    bundle.mkdir()
    assert made.patch is not None
    (bundle / "kvdemo-1.0.patch").write_bytes(made.patch)
    (bundle / NAME).write_text(render([made.entry]), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    states = set()
    for step in range(1, 200):
        if action == "revert":
            put_on(made, site)
        command = [sys.executable, "-c", KILLED, str(bundle), str(site), action, str(step)]
        done = subprocess.run(command, env=environment, check=False, capture_output=True)
        now = {name: (site / name).read_bytes() for name in FILES}
        for name in FILES:
            assert now[name] in (AFFECTED[name], fixed[name])
        states.add(tuple(now[name] == fixed[name] for name in FILES))
        for name in FILES:
            backup = site / (name + BACKUP_SUFFIX)
            if now[name] == fixed[name] or backup.exists():
                assert backup.read_bytes() == AFFECTED[name]
        # The next run completes what was begun, and, a day later, clears away what lay about.
        for left in (site / "kvdemo").glob(".kvlint-*"):
            os.utime(left, (0, 0))
        (put_on if action == "apply" else take_off)(made, site)
        assert content(site) == (with_backups(fixed) if action == "apply" else AFFECTED)
        if action == "apply":
            take_off(made, site)
        if done.returncode == 0:
            break
        assert done.returncode == -9, done.stderr
    else:
        pytest.fail("the run never came to its end")
    assert len(states) == 3
