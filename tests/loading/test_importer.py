"""The modules of a tree: which are real, what they see, and what the process sees of them."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kvlint.loading import Backend, LoadError, UnforeseenUse, load_backend
from kvlint.loading.importer import Importer
from kvlint.loading.stand_in import StandInModule
from kvlint.loading.tree import find_tree

from . import driving, minitree

Load = Callable[..., Backend]


def probe(text: str) -> dict[str, str]:
    """A module of the tree to be loaded by itself."""
    return {"srt/disaggregation/probe.py": text}


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., dict[str, object]]:
    """Runs text as a module of the tree, and gives its names."""

    def load(text: str, replaced: dict[str, object] | None = None, **files: str) -> dict[str, object]:
        extra = {f"srt/disaggregation/{name}.py": body for name, body in files.items()}
        root = minitree.write(tmp_path / "probed", {**probe(text), **extra})
        return vars(Importer(find_tree(root), replaced or {}).load("sglang.srt.disaggregation.probe"))

    return load


def test_only_the_modules_that_matter_are_loaded(load: Load) -> None:
    assert sorted(load().loaded) == [
        "sglang.srt.disaggregation.base",
        "sglang.srt.disaggregation.base.conn",
        "sglang.srt.disaggregation.common.conn",
        "sglang.srt.disaggregation.nixl",
        "sglang.srt.disaggregation.nixl.conn",
        "sglang.srt.disaggregation.utils",
        "sglang.srt.environ",
        "sglang.srt.utils.network",
    ]


def test_the_process_is_left_as_it_was(load: Load, tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = set(sys.modules), list(sys.path), list(sys.meta_path), dict(os.environ), threading.active_count()
    load()
    new = set(sys.modules) - before[0]
    assert not {name for name in new if name.partition(".")[0] not in {*sys.stdlib_module_names, "numpy"}}
    assert (sys.path, sys.meta_path, dict(os.environ), threading.active_count()) == before[1:]
    assert capfd.readouterr() == ("", "")


def test_nothing_is_written_into_the_tree(load: Load) -> None:
    package = load().tree.package
    written = {path.relative_to(package).as_posix() for path in package.rglob("*") if path.is_file()}
    assert written == set(minitree.FILES)


def test_a_module_of_the_same_name_stays_in_the_process(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    installed: Any = SimpleNamespace()
    monkeypatch.setitem(sys.modules, "sglang.srt.environ", installed)
    assert load().loaded["sglang.srt.environ"] is not installed
    assert sys.modules["sglang.srt.environ"] is installed


def test_trees_are_loaded_one_after_the_other_and_stay_apart(tmp_path: Path) -> None:
    changed = minitree.edited(minitree.CONN, "the transfer failed", "another text")
    roots = [minitree.write(tmp_path / "one"), minitree.write(tmp_path / "two", changed)]
    one, two = (load_backend(root, substitutes={"queue": driving.QUEUE}) for root in roots)
    assert one.digest != two.digest
    assert one.poll is not two.poll
    assert not set(one.threads) & set(two.threads)
    for backend in (one, two, one):
        driver = driving.Driver(backend)
        driver.listen(backend.registration_frames() + backend.metadata_frames(5, 1))
        assert backend.manager.request_status == {5: backend.poll.WaitingForInput}
        backend.manager.request_status.clear()


def test_the_same_tree_has_the_same_digest(tree: Path) -> None:
    assert load_backend(tree).digest == load_backend(tree).digest


def test_code_keeps_the_names_of_the_users_files(load: Load) -> None:
    backend = load()
    code = backend.manager.transfer_worker.__func__.__code__
    assert code.co_filename == str(backend.tree.package / minitree.CONN)
    line = minitree.FILES[minitree.CONN].splitlines()[code.co_firstlineno - 1]
    assert line.strip() == "def transfer_worker(self, work):"


def test_a_traceback_shows_the_users_lines(load: Load) -> None:
    backend = load()
    with pytest.raises(KeyError) as raised:
        backend.manager.transfer_infos.pop(1)
    with pytest.raises(ValueError, match="invalid literal") as raised_inside:
        backend.manager.handle([b"ABORT", b"seven"])
    assert "self.update_status(int(frame[1])" in "".join(traceback.format_exception(raised_inside.value))
    assert raised.value.args == (1,)


def test_substitutes_are_seen_by_the_tree_and_by_nothing_else(load: Load) -> None:
    backend = load()
    assert isinstance(backend.manager.queues[0], driving.IdleQueue)
    assert "queue" not in vars(sys.modules["threading"])
    assert id(sys.modules["queue"]) != id(driving.QUEUE)


def test_a_part_of_a_package_can_be_substituted(run: Callable[..., dict[str, object]]) -> None:
    text = "import concurrent.futures, urllib.parse\nfrom concurrent import futures\nfrom urllib import request\n"
    mine = SimpleNamespace()
    found = run(text, {"concurrent.futures": mine, "urllib.request": mine})
    assert found["concurrent"].futures is mine  # type: ignore[attr-defined]
    assert found["futures"] is mine
    assert found["request"] is mine
    assert found["urllib"].parse.quote("/ ") == "/%20"  # type: ignore[attr-defined]


def test_modules_of_the_standard_library_and_numpy_are_real(run: Callable[..., dict[str, object]]) -> None:
    found = run("import os.path as path\nimport numpy.typing as npt\nfrom collections.abc import Mapping\n")
    assert found["path"] is os.path
    assert found["npt"].NDArray  # type: ignore[attr-defined]
    assert found["Mapping"]


def test_a_real_name_may_be_told_to_load_a_module_by_name(run: Callable[..., dict[str, object]]) -> None:
    text = """\
import importlib
other = importlib.import_module("sglang.srt.environ")
same = importlib.import_module(".environ", "sglang.srt")
"""
    found = run(text)
    assert found["other"] is found["same"]
    assert found["other"].envs  # type: ignore[attr-defined]


def test_modules_may_import_each_other(run: Callable[..., dict[str, object]]) -> None:
    found = run("from . import other\nlate = other.get()\n", other="from . import probe\ndef get(): return probe\n")
    assert vars(found["late"]) is found


def test_code_made_at_run_time_imports_like_the_rest(run: Callable[..., dict[str, object]]) -> None:
    found = run("exec('import torch', made := {})\nsame = __import__('torch')\n", {"torch": StandInModule("torch")})
    assert isinstance(found["same"], StandInModule)
    assert found["made"]["torch"] is found["same"]  # type: ignore[index]


def test_imports_are_relative_late_and_of_everything(run: Callable[..., dict[str, object]]) -> None:
    text = """\
from . import other
from .other import *
from ..environ import envs
import sglang.srt.disaggregation.other as again
from sglang.srt.disaggregation import other as third

def late():
    from sglang.srt.disaggregation.later import answer
    return answer
"""
    found = run(text, other="public = 1\n_private = 2\n", later="answer = 42\n")
    assert found["public"] == 1
    assert "_private" not in found
    assert found["other"] is found["again"] is found["third"]
    assert found["late"]() == 42  # type: ignore[operator]


def test_other_backends_and_the_rest_of_sglang_are_stand_ins(run: Callable[..., dict[str, object]]) -> None:
    found = run(
        "from sglang.srt.disaggregation.decode import Queue\n"
        "import sglang\n"
        "import sglang.srt.server_args as arguments\n"
        "import torch.nn.functional as functional\n",
        {"torch": StandInModule("torch")},
        decode="raise RuntimeError\n",
    )
    assert isinstance(found["arguments"], StandInModule)
    assert isinstance(found["sglang"], StandInModule)
    assert str(found["functional"]) == "<module 'torch.nn.functional'>"
    assert repr(found["Queue"]) == "<stand-in for sglang.srt.disaggregation.decode.Queue>"


def test_a_library_that_is_not_at_hand_can_be_done_without(run: Callable[..., dict[str, object]]) -> None:
    text = "try:\n    import no_such_library.part\nexcept ImportError as error:\n    missing = error.name\n"
    assert run(text)["missing"] == "no_such_library"


def test_a_module_can_be_ruled_out(run: Callable[..., dict[str, object]]) -> None:
    text = "try:\n    import zmq\nexcept ImportError as error:\n    missing = str(error)\n"
    assert run(text, {"zmq": None})["missing"] == "zmq was ruled out, as None stands for it"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import no_such_library", r"probe\.py:1: .*ModuleNotFoundError: no_such_library is not at hand here"),
        ("import sglang.srt.gone", r"probe\.py:1: .*probed.sglang has no module sglang\.srt\.gone"),
        ("from sglang.srt.environ import gone", r"probe\.py:1: .*ImportError: cannot import name 'gone'"),
        ("from sglang.srt.disaggregation import gone", r"probe\.py:1: .*ImportError: cannot import name 'gone'"),
        ("\nfrom . import gone", r"probe\.py:2: .*ImportError: cannot import name 'gone'"),
        ("x = 1\nx.y", r"probe\.py:2: sglang\.srt\.disaggregation\.nixl\.conn cannot be loaded: AttributeError: 'int'"),
        (
            "def f(:\n",
            r"probe\.py:1: sglang\.srt\.disaggregation\.nixl\.conn cannot be loaded: SyntaxError: invalid syntax",
        ),
        ("# coding: latin-9000\n", r"probe\.py:0: .*SyntaxError: (encoding problem|unknown encoding): latin-9000"),
        ("x = '\0'", r"probe.*(SyntaxError|ValueError): source code string cannot contain null bytes"),
        ("import sys; sys.exit('no device')", r"probe\.py:1: .*SystemExit: no device"),
        ("from ..... import gone", r"probe\.py:1: .*ImportError: attempted relative import beyond top-level package"),
        (
            "import torch\n@torch.no_grad()\ndef f(): ...",
            r"conn cannot be loaded: .*probe\.py:2: torch\.no_grad is a stand-in .*: it was called",
        ),
        (
            "from sglang.srt.layers.dp_attention import Base\nclass Mine(Base): ...",
            r"probe\.py:2: sglang\.srt\.layers\.dp_attention\.Base is a stand-in .*: it was taken as a base class",
        ),
        (
            "import socket\nsocket.socket()",
            r"probe\.py:2: socket\.socket is a stand-in that does not know this use: it was called",
        ),
        (
            "import torch\ntry:\n    torch.cuda.is_available()\nexcept Exception:\n    pass",
            r"probe\.py:3: torch\.cuda\.is_available is a stand-in",
        ),
    ],
)
def test_what_is_missing_is_named_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    changes = probe(text) | minitree.edited(
        minitree.CONN, "import queue", "import queue, sglang.srt.disaggregation.probe"
    )
    with pytest.raises(LoadError, match=message):
        load_backend(minitree.write(tmp_path / "probed", changes))


def test_a_module_that_failed_can_be_tried_again(tmp_path: Path) -> None:
    root = minitree.write(tmp_path / "tree", probe("raise ValueError('no')"))
    importer = Importer(find_tree(root), {})
    for _ in range(2):
        with pytest.raises(LoadError, match="ValueError: no"):
            importer.load("sglang.srt.disaggregation.probe")
    assert "sglang.srt.disaggregation.probe" not in {*importer.modules, *sys.modules}
    (root / "sglang/srt/disaggregation/probe.py").write_text("answer = 42\n")
    assert importer.load("sglang.srt.disaggregation.probe").answer == 42


def test_a_use_that_was_refused_is_kept_for_code_that_catches_everything(load: Load) -> None:
    change = minitree.edited(
        minitree.CONN,
        "    def heartbeat(self):\n",
        "    def careless(self):\n"
        "        try:\n            on_device([1])\n        except BaseException:\n            pass\n\n"
        "    def heartbeat(self):\n",
    )
    backend = load(change)
    assert backend.faults == []
    backend.manager.careless()
    (fault,) = backend.faults
    assert isinstance(fault, UnforeseenUse)
    assert (fault.name, fault.use) == ("torch.tensor", "it was called")
    utils = minitree.FILES["srt/disaggregation/utils.py"].splitlines()
    line = utils.index("    return torch.tensor(values)") + 1
    assert fault.place == f"{backend.tree.package / 'srt/disaggregation/utils.py'}:{line}"


def test_the_environment_and_the_log_are_the_trees_own(
    run: Callable[..., dict[str, object]], capfd: pytest.CaptureFixture[str]
) -> None:
    text = """\
import logging, os, warnings
os.environ["SGLANG_OF_THE_TREE"] = "1"
logger = logging.getLogger(__name__)
logger.setLevel(logging.DEBUG)
logger.error("lost %s", 1)
logger.getChild("x").exception("lost")
quiet = not logger.isEnabledFor(logging.CRITICAL) and logger.getEffectiveLevel() > logging.CRITICAL
print("lost")
warnings.warn("lost")
strange = "\\d"
"""
    from kvlint.loading.system import system_modules

    found = run(text, system_modules({}, {}, lambda _: None))
    assert found["quiet"] is True
    assert "SGLANG_OF_THE_TREE" not in os.environ
    assert capfd.readouterr() == ("", "")
